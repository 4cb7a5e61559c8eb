"""What a Karmada control plane is made of is looked for, and what is missing is named."""

from pathlib import Path

import pytest

from lab.federation.assets import CRDS, PROGRAMS, WEBHOOKS, Assets, placed
from lab.sandbox import SandboxError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with every file that is needed."""
    for name in PROGRAMS:
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / CRDS).mkdir()
    (tmp_path / CRDS / "kustomization.yaml").touch()
    (tmp_path / WEBHOOKS).write_text(
        "url: https://karmada-webhook.karmada-system.svc:443/x\nca: {{caBundle}}\n"
    )
    return tmp_path


class TestAssets:
    """One sentence says what is missing, and where it is."""

    def test_are_found(self, folder: Path) -> None:
        """Programs, kinds and webhooks, whose address and certificate are the lab's."""
        assets = Assets.find({"KARMADA_ASSETS": str(folder)})
        assert assets.program("karmada-scheduler") == folder / "karmada-scheduler"
        assert assets.webhooks("https://127.0.0.1:7", "Q0E=") == "url: https://127.0.0.1:7/x\nca: Q0E=\n"
        assert assets.crds == folder / "_crds"

    @pytest.mark.parametrize("environment", [{}, {"KARMADA_ASSETS": ""}])
    def test_without_a_folder(self, environment: dict[str, str]) -> None:
        """Everything that it has to have is named."""
        with pytest.raises(SandboxError, match="KARMADA_ASSETS is not set") as refused:
            Assets.find(environment)
        assert all(name in str(refused.value) for name in (*PROGRAMS, CRDS, WEBHOOKS, "charts/karmada"))

    @pytest.mark.parametrize("name", [*PROGRAMS, f"{CRDS}/kustomization.yaml", WEBHOOKS])
    def test_with_one_that_is_missing(self, folder: Path, name: str) -> None:
        """It is named, and no other."""
        (folder / name).unlink()
        with pytest.raises(SandboxError, match=f"has no {name}\\. Karmada 1") as refused:
            Assets.find({"KARMADA_ASSETS": str(folder)})
        assert str(folder) in str(refused.value)

    def test_with_a_program_that_cannot_be_run(self, folder: Path) -> None:
        """It is missing, too."""
        (folder / PROGRAMS[0]).chmod(0o644)
        with pytest.raises(SandboxError, match=f"has no {PROGRAMS[0]}\\. "):
            Assets.find({"KARMADA_ASSETS": str(folder)})

    def test_webhooks_of_kinds(self) -> None:
        """The names that Karmada's charts fill in are filled in here."""
        patch = 'url: "https://{{name}}.{{namespace}}.svc:443/convert"'
        assert placed(patch, "https://127.0.0.1:7", "Q0E=") == 'url: "https://127.0.0.1:7/convert"'

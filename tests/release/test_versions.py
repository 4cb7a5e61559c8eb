import re
import shutil
from pathlib import Path

import pytest

from release import versions
from release.errors import ReleaseError
from release.scratch import ROOT, git
from release.versions import Version
from splitter import __version__


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with only the files that say the version."""
    for file, _ in versions.places(ROOT):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


class TestParsed:
    def test_is_three_numbers(self) -> None:
        """They are compared as numbers."""
        assert versions.parsed("0.10.0") > versions.parsed("0.9.12")
        assert str(versions.parsed("1.20.3")) == "1.20.3"

    @pytest.mark.parametrize(
        "text", ["0.2", "v0.2.0", "0.2.0-rc1", "0.02.0", "0.2.0\n", "\u0660.\u0662.\u0660", "0.2.0; ls"]
    )
    def test_is_nothing_else(self, text: str) -> None:
        """What packages, charts and tags would each read otherwise is refused."""
        with pytest.raises(ReleaseError, match="is no version: name three numbers"):
            versions.parsed(text)

    def test_is_asked_for(self) -> None:
        """Without one, the sentence is the command to type."""
        with pytest.raises(ReleaseError, match=r"^Name the version: make release VERSION=0\.2\.0$"):
            versions.parsed("")


class TestPlaces:
    def test_agree(self) -> None:
        """Manifests, chart and docs say the version of the package."""
        assert {said for _, said in versions.places(ROOT)} == {__version__}
        assert str(versions.current(ROOT)) == __version__

    def test_are_all_known(self) -> None:
        """No other page and no other manifest names the image with a version."""
        known = {file for file, _ in versions.places(ROOT)}
        names = git(
            ROOT, "ls-files", "*.md", "*.yaml", "*.toml", "*.j2", "Makefile", "Dockerfile"
        ).splitlines()
        naming = {
            name
            for name in names
            if not (ROOT / name).is_symlink()
            and re.search(r"\bsplitter:v?\d+\.\d+\.\d+", (ROOT / name).read_text(encoding="utf-8"))
        }
        assert {"README.md", "manifests/deployment.yaml"} <= naming
        assert naming <= known

    def test_are_all_written(self, tree: Path) -> None:
        """Each place says the new version, and the rest of its file is as it was."""
        before = {file: (tree / file).read_text(encoding="utf-8") for file, _ in versions.places(tree)}
        versions.write(tree, Version(9, 8, 7))
        assert {said for _, said in versions.places(tree)} == {"9.8.7"}
        for file, text in before.items():
            assert (tree / file).read_text(encoding="utf-8").replace("9.8.7", __version__) == text

    def test_that_disagree_are_named(self, tree: Path) -> None:
        """Somebody's half of a release is not built upon."""
        chart = tree / "manifests/helm/splitter/Chart.yaml"
        text = chart.read_text(encoding="utf-8").replace(f"appVersion: {__version__}", "appVersion: 0.0.7")
        chart.write_text(text, encoding="utf-8")
        with pytest.raises(ReleaseError, match=r"Chart.yaml says 0\.0\.7, and splitter/__init__.py says"):
            versions.current(tree)

    def test_that_are_gone_are_asked_for(self, tree: Path) -> None:
        """A place that a rewording has lost is no place that agrees."""
        (tree / "README.md").write_text("nothing", encoding="utf-8")
        with pytest.raises(ReleaseError, match=r"^README.md says no version"):
            versions.current(tree)

"""`make release` in a repository of the test's: refused with nothing changed, or made whole."""

import hashlib
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from release import changelog, scratch
from release.scratch import git, release
from splitter import __version__

pytestmark = pytest.mark.slow

IMAGE = "registry.example/team/splitter"
VERSION = "9.8.7"


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository that nobody changes."""
    return scratch.repository(tmp_path_factory.mktemp("pattern") / "a")


@pytest.fixture
def root(pattern: Path, tmp_path: Path) -> Path:
    """Return a repository with something to tell."""
    return shutil.copytree(pattern, tmp_path / "a", symlinks=True)


@pytest.fixture(scope="module")
def released(pattern: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a repository after a release, and what the command said."""
    folder = shutil.copytree(pattern, tmp_path_factory.mktemp("released") / "a", symlinks=True)
    answer = release(folder, "cut", VERSION, "--image", IMAGE)
    assert answer.returncode == 0, answer.stderr
    return folder, answer.stdout


def contents(dist: Path) -> dict[str, bytes]:
    """Return the files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(dist.iterdir())}


def members(content: bytes) -> dict[str, bytes]:
    """Return the plain files of a tar, compressed or not."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        by_name = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        return {name: file.read() for name, file in by_name.items() if file is not None}


def _rewritten(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text(encoding="utf-8")
    assert old in text
    (root / file).write_text(text.replace(old, new), encoding="utf-8")
    git(root, "commit", "--quiet", "--all", "--message", "Change")


def _emptied(root: Path) -> None:
    text = (root / changelog.FILE).read_text(encoding="utf-8")
    _rewritten(root, changelog.FILE, changelog.section(text, "Unreleased"), "### Added")


def _without_two(root: Path) -> None:
    (root / "LICENSE").unlink()
    (root / "README.md").unlink()


def _tagged(root: Path) -> None:
    git(root, "tag", f"v{VERSION}")
    git(root, "tag", "vendor")


def _nothing(root: Path) -> None:
    del root


OLDER = f"0.0.1 is older than {__version__}, which splitter/__init__.py says: name that or a newer one."
NEWER = "name a newer one, as"
SECTIONS = "## [Unreleased]\n\n- A thing.\n\n## [9.9.0] - 2026-01-01\n"
REFUSED: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    ("", _nothing, "Name the version: make release VERSION=0.2.0"),
    ("9.8", _nothing, "'9.8' is no version: name three numbers, such as VERSION=0.2.0."),
    ("0.0.1", _nothing, OLDER),
    (VERSION, _tagged, f"9.8.7 is not newer than 9.8.7, the last release: {NEWER} 9.8.8."),
    (
        VERSION,
        lambda root: _rewritten(root, "CHANGELOG.md", "## [Unreleased]", SECTIONS),
        f"9.8.7 is not newer than 9.9.0, the last release: {NEWER} 9.9.1.",
    ),
    (
        VERSION,
        lambda root: git(root, "switch", "--quiet", "--create", "side"),
        "This is on side, and a release is made on main: git switch main, and try again.",
    ),
    (
        VERSION,
        lambda root: git(root, "switch", "--quiet", "--detach"),
        "This is on no branch, and a release is made on main: git switch main, and try again.",
    ),
    (
        VERSION,
        lambda root: (root / "new.txt").write_text("x"),
        "new.txt is not committed: commit it or take it away, and try again.",
    ),
    (
        VERSION,
        _without_two,
        "LICENSE and 1 more is not committed: commit it or take it away, and try again.",
    ),
    (VERSION, _emptied, "[Unreleased] in CHANGELOG.md is empty: say what changes for users, commit it,"),
    (
        VERSION,
        lambda root: _rewritten(root, "CHANGELOG.md", "## [Unreleased]", "## Unreleased"),
        "CHANGELOG.md has no section '## [Unreleased]': add it, with what changes for users.",
    ),
    (
        VERSION,
        lambda root: _rewritten(root, "manifests/kustomization.yaml", "newTag: ", "newTag: 1"),
        f"manifests/kustomization.yaml says 1{__version__}, and splitter/__init__.py says {__version__}:",
    ),
    (
        VERSION,
        lambda root: _rewritten(root, "pyproject.toml", '"hatchling.build"', '"hatchling.build'),
        "hatchling cannot build the packages: mend what it says.",
    ),
    (
        VERSION,
        lambda root: (root / ".git/refs/tags/v9.8.7.lock").write_text(""),
        "git tag failed: mend what it says, and try again.",
    ),
    (
        VERSION,
        lambda root: (root / ".git/index.lock").write_text(""),
        "git merge failed: mend what it says, and try again.",
    ),
)


class TestRefusals:
    @pytest.mark.parametrize(("version", "spoil", "said"), REFUSED, ids=[case[2][:40] for case in REFUSED])
    def test_change_nothing(
        self, root: Path, version: str, spoil: Callable[[Path], object], said: str
    ) -> None:
        """One sentence says what to do; no commit, tag, file or work tree is made, nor by a failed build."""
        spoil(root)

        def all_of_it() -> list[str]:
            asked = ("log --all --format=%H", "tag", "status --porcelain", "worktree list", "branch --all")
            return [git(root, *words.split()) for words in asked]

        before = all_of_it()
        answer = release(root, "cut", version)
        assert answer.returncode == 1
        assert answer.stderr.startswith(said)
        assert all_of_it() == before
        assert not (root / "dist").exists()

    def test_without_a_name_to_commit_in(self, root: Path) -> None:
        """Git's own advice of nine lines is one sentence."""
        git(root, "config", "user.useConfigOnly", "true")
        git(root, "config", "--unset", "user.email")
        answer = release(root, "cut", VERSION)
        assert answer.stderr.startswith("git does not know who you are: set user.name and user.email")


class TestCut:
    def test_commits_and_tags(self, released: tuple[Path, str]) -> None:
        """One commit with the version and the day, a tag on it, and nothing left lying about."""
        root, said = released
        assert git(root, "log", "--format=%s").splitlines() == [f"Release {VERSION}", "Begin"]
        assert git(root, "rev-parse", f"v{VERSION}^{{commit}}") == git(root, "rev-parse", "main")
        assert git(root, "cat-file", "-t", f"v{VERSION}") == "tag"
        assert git(root, "status", "--porcelain") == ""
        assert len(git(root, "worktree", "list").splitlines()) == 1
        text = (root / changelog.FILE).read_text(encoding="utf-8")
        before = git(root, "show", f"main~:{changelog.FILE}")
        assert changelog.section(text, VERSION) == changelog.section(before, "Unreleased")
        [title] = [line for line in text.splitlines() if line.startswith(f"## [{VERSION}] - ")]
        day = datetime.fromisoformat(title.split(" - ")[1]).replace(tzinfo=UTC)
        assert abs(datetime.now(UTC) - day).days <= 1
        assert said.endswith(f"Nothing is pushed. To publish it: git push --atomic origin main v{VERSION}\n")

    def test_changes_the_version_alone(self, released: tuple[Path, str]) -> None:
        """Beside the change log, lines that say the version, and no other line."""
        root, _ = released
        diff = git(
            root, "diff", "--unified=0", "main~", "main", "--", ".", f":!{changelog.FILE}"
        ).splitlines()
        added = [line[1:] for line in diff if line.startswith("+") and not line.startswith("+++")]
        removed = [line[1:] for line in diff if line.startswith("-") and not line.startswith("---")]
        assert [line.replace(VERSION, __version__) for line in added] == removed
        assert len(added) >= 7

    def test_is_asked_by_the_workflow(self, released: tuple[Path, str]) -> None:
        """Whether the tag is this tree's, and what to say about it."""
        root, _ = released
        assert release(root, "tag", f"v{VERSION}").returncode == 0
        assert release(root, "tag", "v1.2.3").stderr.startswith(
            f"The tag is v1.2.3, and this tree is v{VERSION}"
        )
        notes = changelog.section((root / changelog.FILE).read_text(encoding="utf-8"), VERSION)
        assert release(root, "notes").stdout.strip() == notes


class TestArtifacts:
    def test_are_all_there(self, released: tuple[Path, str]) -> None:
        """Each by a name with the version, and each with its sum."""
        dist = contents(released[0] / "dist")
        sums = dist.pop("SHA256SUMS").decode()
        assert sorted(dist) == [
            f"splitter-{VERSION}-py3-none-any.whl",
            f"splitter-{VERSION}.tar.gz",
            f"splitter-chart-{VERSION}.tgz",
            f"splitter-crds-{VERSION}.yaml",
            f"splitter-image-{VERSION}.tar",
            f"splitter-manifests-{VERSION}.yaml",
            f"splitter-sbom-{VERSION}.cdx.json",
        ]
        assert sums.splitlines() == [
            f"{hashlib.sha256(content).hexdigest()}  {name}" for name, content in sorted(dist.items())
        ]

    def test_are_of_the_version(self, released: tuple[Path, str]) -> None:
        """The package, the chart, the manifests and the SBOM say it, and name the image."""
        dist = contents(released[0] / "dist")
        with zipfile.ZipFile(io.BytesIO(dist[f"splitter-{VERSION}-py3-none-any.whl"])) as wheel:
            assert f"\nVersion: {VERSION}\n" in wheel.read(f"splitter-{VERSION}.dist-info/METADATA").decode()
        chart = members(dist[f"splitter-chart-{VERSION}.tgz"])
        reported = yaml.safe_load(chart["splitter/Chart.yaml"])
        assert reported["version"] == reported["appVersion"] == VERSION
        assert yaml.safe_load(chart["splitter/values.yaml"])["image"]["repository"] == IMAGE
        assert chart["splitter/files/crd.yaml"] == dist[f"splitter-crds-{VERSION}.yaml"]
        collected = list(yaml.safe_load_all(dist[f"splitter-manifests-{VERSION}.yaml"]))
        [deployment] = [raw for raw in collected if raw["kind"] == "Deployment"]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"] == f"{IMAGE}:{VERSION}"
        component = json.loads(dist[f"splitter-sbom-{VERSION}.cdx.json"])["metadata"]["component"]
        assert component["version"] == VERSION

    def test_hold_what_the_image_needs(self, released: tuple[Path, str]) -> None:
        """The context has what the Dockerfile copies, and nothing of tests, docs or git."""
        root, _ = released
        result = members((root / f"dist/splitter-image-{VERSION}.tar").read_bytes())
        copied = [
            name
            for line in (root / "Dockerfile").read_text(encoding="utf-8").splitlines()
            if line.startswith("COPY ") and "--from" not in line
            for name in line.split()[1:-1]
        ]
        assert len(copied) > 8
        for name in ("Dockerfile", *copied):
            assert any(path == name or path.startswith(f"{name}/") for path in result), name
        wanted = ("Dockerfile", ".dockerignore", *copied)
        assert [path for path in result if not path.startswith(wanted)] == []

    def test_are_the_same_twice(self, released: tuple[Path, str], tmp_path: Path) -> None:
        """The tag, cloned elsewhere by somebody with another umask and time zone, gives the same bytes."""
        root, _ = released
        git(tmp_path, "clone", "--quiet", str(root), "b")
        other = tmp_path / "b"
        (other / "stray.txt").write_text("of this machine")
        (other / "splitter/stray.py").write_text("")
        git(other, "config", "tar.umask", "0077")
        elsewhere = {"TZ": "Asia/Tokyo", "LC_ALL": "C", "SOURCE_DATE_EPOCH": "1", "PYTHONHASHSEED": "7"}
        command = ("build", "--commit", f"v{VERSION}", "--image", IMAGE)
        answer = release(other, *command, umask=0o077, environment=elsewhere)
        assert answer.returncode == 0, answer.stderr
        assert contents(other / "dist") == contents(root / "dist")

    def test_make_dist_anew(self, root: Path) -> None:
        """What an older build left would be published with this one."""
        (root / "dist").mkdir()
        (root / "dist/splitter-0.0.1.tar.gz").write_text("old")
        assert release(root, "build").returncode == 0
        assert (root / "dist/SHA256SUMS").exists()
        assert not (root / "dist/splitter-0.0.1.tar.gz").exists()

    def test_refuse_an_image_with_a_tag_in_capitals(self, root: Path) -> None:
        """What no registry takes is refused, and `dist/` stays as it was."""
        answer = release(root, "build", "--image", "Registry/splitter")
        assert answer.stderr.startswith("'Registry/splitter' is no name of an image")
        assert not (root / "dist").exists()

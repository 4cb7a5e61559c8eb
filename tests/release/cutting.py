"""One release: refused with nothing changed, or made whole.

Everything that can fail happens in a second work tree: the new change log and version are committed there,
and the artifacts are built from that commit. Only then the branch moves forward and the tag is set. Nothing
is pushed.
"""

import shutil
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

from release import artifacts, changelog, versions
from release.errors import ReleaseError
from release.repository import Repository
from release.versions import Version

BRANCH = "main"


def check(repository: Repository, name: str) -> Version:
    """Return the version to release. Raises ReleaseError with the first reason not to."""
    version = versions.parsed(name)
    if (branch := repository.branch) != BRANCH:
        where = f"on {branch}" if branch else "on no branch"
        raise ReleaseError(
            f"This is {where}, and a release is made on {BRANCH}: git switch {BRANCH}, and try again."
        )
    if changed := repository.changed:
        others = f" and {len(changed) - 1} more" if changed[1:] else ""
        raise ReleaseError(
            f"{changed[0]}{others} is not committed: commit it or take it away, and try again."
        )
    repository.check_identity()
    text = (repository.root / changelog.FILE).read_text(encoding="utf-8")
    _check_newer(version, versions.current(repository.root), _released(repository, text))
    changelog.reported(text)
    return version


def _released(repository: Repository, text: str) -> list[Version]:
    tagged = versions.known(tag.removeprefix("v") for tag in repository.tags)
    return sorted({*tagged, *changelog.versions(text)})


def _check_newer(version: Version, current: Version, released: list[Version]) -> None:
    if released and version <= released[-1]:
        last = released[-1]
        raise ReleaseError(
            f"{version} is not newer than {last}, the last release: name a newer one, as {last.following}."
        )
    if version < current:  # it may be equal when it was never released
        raise ReleaseError(
            f"{version} is older than {current}, which {versions.HOME} says: name that or a newer one."
        )


def cut(repository: Repository, name: str, *, today: date, image: str, say: Callable[[str], None]) -> None:
    """Release a version: commit, tag, artifacts in `dist/`. Raises ReleaseError with nothing changed."""
    version = check(repository, name)
    with tempfile.TemporaryDirectory(prefix="splitter-release-") as folder:
        with repository.aside() as other:
            path = other.root / changelog.FILE
            text = path.read_text(encoding="utf-8")
            path.write_text(changelog.released(text, version, today), encoding="utf-8")
            versions.write(other.root, version)
            other.git("commit", "--quiet", "--all", "--message", f"Release {version}")
            commit = other.git("rev-parse", "HEAD")
        say(f"building {version} ...")
        names = _build(repository, commit, Path(folder), image)
        repository.adopt(commit, version.tag, f"splitter {version}")
        _place(Path(folder), repository.root / "dist")
    say(f"committed and tagged {version.tag} ({commit[:12]}), built into dist/:")
    _list(names, say)
    say(f"Nothing is pushed. To publish it: git push --atomic origin {BRANCH} {version.tag}")


def rebuild(repository: Repository, commit: str, *, image: str, say: Callable[[str], None]) -> None:
    """Build the artifacts of any commit into `dist/`. Raises ReleaseError, with `dist/` as it was."""
    with tempfile.TemporaryDirectory(prefix="splitter-release-") as folder:
        names = _build(repository, commit, Path(folder), image)
        _place(Path(folder), repository.root / "dist")
    say(f"built {repository.git('rev-parse', '--short=12', commit)} into dist/:")
    _list(names, say)


def _build(repository: Repository, commit: str, into: Path, image: str) -> list[str]:
    with repository.exported(commit) as tree:
        return artifacts.build(tree, into, epoch=repository.epoch(commit), image=image)


def _place(made: Path, dist: Path) -> None:
    """Make `dist/` anew: what an older release left there would be published with this one."""
    shutil.rmtree(dist, ignore_errors=True)
    shutil.copytree(made, dist)
    dist.chmod(0o755)  # the temporary folder was its owner's only


def _list(names: list[str], say: Callable[[str], None]) -> None:
    for name in names:
        say(f"  {name}")

"""A version, and the places that say it.

`splitter/__init__.py` is where the version stands; what is built reads it there. The other places are for
people and for Kubernetes, which cannot look it up: a release writes them, and a test holds them equal.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from release.errors import ReleaseError

HOME = "splitter/__init__.py"
_NUMBER = r"(?:0|[1-9][0-9]*)"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}")
# A file, and what stands around the version in it.
_PLACES = (
    (HOME, r'^(__version__ = ")([^"\s]+)(")$'),
    ("manifests/deployment.yaml", r"^( +image: splitter:)(\S+)()$"),
    ("manifests/karmada/estimator.yaml", r"^( +image: splitter:)(\S+)()$"),
    ("manifests/kustomization.yaml", r"^( +newTag: )(\S+)()$"),
    ("manifests/helm/splitter/Chart.yaml", r"^(version: )(\S+)()$"),
    ("manifests/helm/splitter/Chart.yaml", r"^(appVersion: )(\S+)()$"),
    ("README.md", r"(/splitter:)([0-9][^\s`]*)()"),
    ("docs/how-to/install.md", r"(/splitter:)([0-9][^\s`]*)()"),
)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """Three numbers."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        """Write it as people do."""
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def tag(self) -> str:
        """Return the name of its tag."""
        return f"v{self}"

    @property
    def following(self) -> "Version":
        """Return the lowest version above this one."""
        return Version(self.major, self.minor, self.patch + 1)


def parsed(text: str) -> Version:
    """Read a version. Raises ReleaseError when it is none."""
    if not text:
        raise ReleaseError("Name the version: make release VERSION=0.2.0")
    if not _VERSION.fullmatch(text):
        raise ReleaseError(f"'{text}' is no version: name three numbers, such as VERSION=0.2.0.")
    return Version(*(int(number) for number in text.split(".")))


def known(names: Iterable[str]) -> list[Version]:
    """Return the versions among some names; other names are other people's."""
    return [parsed(name) for name in names if _VERSION.fullmatch(name)]


def places(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each place that says the version, as its file and what it says.

    Raises ReleaseError when a file says none where one is looked for.
    """
    for file, pattern in _PLACES:
        text = (root / file).read_text(encoding="utf-8")
        result = re.findall(pattern, text, re.MULTILINE)
        if not result:
            raise ReleaseError(f"{file} says no version: bring back a line of the form {pattern}")
        yield from ((file, said) for _, said, _ in result)


def current(root: Path) -> Version:
    """Return the version of a tree. Raises ReleaseError when a place says another one."""
    (_, said), *others = places(root)
    for file, other in others:
        if other != said:
            raise ReleaseError(
                f"{file} says {other}, and {HOME} says {said}: make them equal, and try again."
            )
    return parsed(said)


def write(root: Path, version: Version) -> None:
    """Write this version into every place."""
    for file, pattern in _PLACES:
        path = root / file
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(pattern, rf"\g<1>{version}\g<3>", text, flags=re.MULTILINE), encoding="utf-8")

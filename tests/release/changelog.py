"""The change log as a release needs it: is there something to tell, and the same text one version later.

It reads and writes text only. A section begins with `## [Unreleased]` or `## [0.2.0] - 2026-01-31`, and ends
where the next one begins.
"""

import re
from datetime import date

from release.errors import ReleaseError
from release.versions import Version, known

FILE = "CHANGELOG.md"
_UNRELEASED = re.compile(r"^## \[Unreleased\][^\S\n]*$", re.MULTILINE)
_SECTION = re.compile(r"^## \[([^\]]+)\].*$", re.MULTILINE)


def versions(text: str) -> list[Version]:
    """Return the versions that have a section, in the order of the text."""
    return known(one[1] for one in _SECTION.finditer(text))


def section(text: str, name: str) -> str:
    """Return what the section of a version, or of `Unreleased`, says below its title.

    Raises ReleaseError when there is no such section.
    """
    sections = list(_SECTION.finditer(text))
    ends = [*(one.start() for one in sections), len(text)][1:]
    for one, end in zip(sections, ends, strict=True):
        if one[1] == name:
            return text[one.end() : end].strip()
    raise ReleaseError(f"{FILE} has no section '## [{name}]': add it, with what changes for users.")


def reported(text: str) -> str:
    """Return what is not released yet. Raises ReleaseError when that is nothing."""
    said = section(text, "Unreleased")
    if not any(line.strip() and not line.startswith("#") for line in said.splitlines()):
        raise ReleaseError(
            f"[Unreleased] in {FILE} is empty: say what changes for users, commit it, and try again."
        )
    return said


def released(text: str, version: Version, day: date) -> str:
    """Return the change log in which what was not released is this version, below a new, empty section."""
    reported(text)
    title = f"## [Unreleased]\n\n## [{version}] - {day.isoformat()}"
    return _UNRELEASED.sub(lambda _: title, text, count=1)

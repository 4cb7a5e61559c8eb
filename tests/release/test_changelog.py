from datetime import date

import pytest

from release import changelog
from release.errors import ReleaseError
from release.scratch import ROOT
from release.versions import Version, current

TEXT = """\
# Changelog

## [Unreleased]

### Added

- A thing \\1.

## [0.1.0] - 2026-01-01

- The first.
"""
EMPTY = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n## [0.1.0] - 2026-01-01\n\n- The first.\n"


class TestReleased:
    def test_becomes_a_version_below_an_empty_section(self) -> None:
        """What was not released stands below version and day, word for word; above it is room again."""
        released = changelog.released(TEXT, Version(0, 2, 0), date(2026, 2, 3))
        assert released == TEXT.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n")
        assert changelog.section(released, "Unreleased") == ""
        assert changelog.section(released, "0.2.0") == "### Added\n\n- A thing \\1."
        assert changelog.versions(released) == [Version(0, 2, 0), Version(0, 1, 0)]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (EMPTY, "[Unreleased] in CHANGELOG.md is empty: say what changes for users"),
            ("# Changelog\n", "CHANGELOG.md has no section '## [Unreleased]': add it"),
        ],
    )
    def test_needs_something_to_tell(self, text: str, said: str) -> None:
        """Titles alone are nothing to tell, and a lost section is asked for."""
        with pytest.raises(ReleaseError) as refused:
            changelog.released(text, Version(0, 2, 0), date(2026, 2, 3))
        assert str(refused.value).startswith(said)

    def test_cannot_be_done_twice(self) -> None:
        """A release leaves nothing for the next one to tell."""
        once = changelog.released(TEXT, Version(0, 2, 0), date(2026, 2, 3))
        with pytest.raises(ReleaseError, match="is empty"):
            changelog.released(once, Version(0, 3, 0), date(2026, 2, 3))


class TestVersions:
    def test_are_of_this_form_only(self) -> None:
        """A section of another form is no release to be newer than."""
        text = TEXT.replace("## [0.1.0]", "## [Old]\n\n## [0.1.0-rc1]\n\n## [0.1.0]")
        assert changelog.versions(text) == [Version(0, 1, 0)]


class TestSection:
    def test_ends_at_the_next_one(self) -> None:
        """The last one ends with the file."""
        assert changelog.section(TEXT, "0.1.0") == "- The first."


class TestOwn:
    def test_can_be_released(self) -> None:
        """It has room for what is new, the newest version first, and none of the future."""
        text = (ROOT / changelog.FILE).read_text(encoding="utf-8")
        changelog.section(text, "Unreleased")
        versions = changelog.versions(text)
        assert versions == sorted(versions, reverse=True)
        assert all(version <= current(ROOT) for version in versions)

"""The reference pages say what the code says: their tables are as they would be written now.

To write them anew: SPLITTER_REGENERATE=1 pytest tests/test_reference.py
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from splitter.cli.exits import exits_table
from splitter.core import labels_annotations as keys
from splitter.core.labels_annotations import OWN_ANNOTATIONS, USER_ANNOTATIONS
from splitter.core.labels_annotations.policy import parse_policy
from splitter.core.labels_annotations.reference import ROWS, annotations_table
from splitter.core.model import Policy
from splitter.core.reasons import Reason
from splitter.report.meanings import MEANINGS, SECTIONS, reasons_tables
from written import in_step

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
_TESTS = "tests/test_reference.py"
_SINGLE: dict[str, tuple[str, Callable[[], str]]] = {
    "annotations.md": ("splitter.core.labels_annotations.reference", annotations_table),
    "commands.md": ("splitter.cli.exits", exits_table),
}


class TestThePages:
    """What is written by code."""

    @pytest.mark.parametrize("page", _SINGLE)
    def test_has_its_table(self, page: str) -> None:
        """The page's one table."""
        writer, table = _SINGLE[page]
        in_step(REFERENCE / page, writer, _TESTS, [table()])

    def test_reasons_have_theirs(self) -> None:
        """One table under each heading, in the order of the code."""
        in_step(REFERENCE / "reasons.md", "splitter.report.meanings", _TESTS, list(reasons_tables().values()))
        text = (REFERENCE / "reasons.md").read_text(encoding="utf-8")
        assert re.findall(r"^## (.*)$", text, flags=re.MULTILINE) == list(SECTIONS)


class TestReasons:
    """What splitter/report/meanings says."""

    def test_have_a_meaning_each(self) -> None:
        """A reason without one is not looked up in vain; one stands in one section only."""
        assert set(MEANINGS) == set(Reason)
        assert sum(map(len, SECTIONS.values())) == len(Reason)

    @pytest.mark.parametrize("reason", Reason)
    def test_are_told_in_one_line(self, reason: Reason) -> None:
        """A table's cell ends where a bar stands."""
        meaning = MEANINGS[reason]
        text = f"{meaning.means}{meaning.remedy}"
        assert meaning.means.endswith(".")
        assert "|" not in text
        assert "\n" not in text
        assert "  " not in text

    @pytest.mark.parametrize("reason", [one for one in Reason if MEANINGS[one].event == "Warning"])
    def test_that_warn_say_what_to_do(self, reason: Reason) -> None:
        """A Warning means that somebody should look; this says at what."""
        assert MEANINGS[reason].remedy or reason is Reason.ON_DEMAND_DOOMED


class TestAnnotations:
    """What splitter/core/labels_annotations/reference.py says."""

    def test_are_all_there(self) -> None:
        """Each annotation a user may write has a row, and what is splitter's own is named."""
        assert sorted(row.annotation for row in ROWS) == sorted(USER_ANNOTATIONS)
        text = (REFERENCE / "annotations.md").read_text(encoding="utf-8")
        own = (
            *OWN_ANNOTATIONS,
            keys.LABEL_SPLIT,
            keys.LABEL_POOL,
            keys.LABEL_SOURCE,
            keys.LABEL_TEMPLATE_SET,
        )
        assert [key for key in own if f"`{key}`" not in text] == []

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.annotation)
    def test_are_read_by_these_forms(self, row: object) -> None:
        """The parser takes the form's example, and refuses a bad value in the form's words."""
        assert isinstance(row, type(ROWS[0]))
        assert parse_policy({row.annotation: row.form.example}, Policy()).problems == ()
        (problem,) = parse_policy({row.annotation: "no such value"}, Policy()).problems
        assert f"it must be {row.form.must_be}." in problem.message

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.annotation)
    def test_have_their_defaults(self, row: object) -> None:
        """Writing the default changes nothing."""
        assert isinstance(row, type(ROWS[0]))
        if row.default:
            assert parse_policy({row.annotation: row.default}, Policy()).policy == Policy()

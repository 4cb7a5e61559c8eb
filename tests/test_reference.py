"""The reference pages say what the code says: their tables are as they would be written now.

To write them anew: SPLITTER_REGENERATE=1 pytest tests/test_reference.py
"""

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import indent

import pytest
import yaml

from reference_tables import annotations_table, default_of, exits_table, policy_schema
from splitter.bundled import bundled_path
from splitter.core import labels_annotations as keys
from splitter.core.labels_annotations import OWN_ANNOTATIONS
from splitter.core.labels_annotations.policy import ANNOTATIONS, Level, Policy, parse_policy
from splitter.core.labels_annotations.reported import values_of
from splitter.core.labels_annotations.words import Annotation, reported
from written import in_step

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
_TESTS = "tests/test_reference.py"
_WRITER = "tests/reference_tables.py"
_SINGLE: dict[str, Callable[[], str]] = {"annotations.md": annotations_table, "commands.md": exits_table}


class TestThePages:
    """What is written by code."""

    @pytest.mark.parametrize("page", _SINGLE)
    def test_has_its_table(self, page: str) -> None:
        """The page's one table."""
        in_step(REFERENCE / page, _WRITER, _TESTS, [_SINGLE[page]()])

    def test_the_crd_describes_the_policy(self) -> None:
        """A Split's schema has what is reported of the policy, as `kubectl explain` shows it."""
        text = yaml.safe_dump(policy_schema(), sort_keys=False, width=90)
        path = bundled_path("manifests/crd.yaml")
        in_step(path, _WRITER, _TESTS, [indent(text.rstrip(), " " * 20)])


class TestAnnotations:
    """What the rows in splitter/core/labels_annotations/policy.py say."""

    def test_are_all_there(self) -> None:
        """What is splitter's own is named too."""
        text = (REFERENCE / "annotations.md").read_text(encoding="utf-8")
        own = (
            *OWN_ANNOTATIONS,
            keys.LABEL_SPLIT,
            keys.LABEL_POOL,
            keys.LABEL_SOURCE,
            keys.LABEL_TEMPLATE_SET,
        )
        assert [key for key in own if f"`{key}`" not in text] == []

    @pytest.mark.parametrize("row", ANNOTATIONS, ids=lambda row: row.key)
    def test_are_read_by_these_forms(self, row: Annotation) -> None:
        """The parser takes the form's example, and refuses a bad value in the form's words."""
        assert parse_policy({row.key: row.form.example}, Policy()).problems == ()
        (problem,) = parse_policy({row.key: "no such value"}, Policy()).problems
        assert f"it must be {row.form.must_be}." in problem.message

    @pytest.mark.parametrize("row", ANNOTATIONS, ids=lambda row: row.key)
    def test_reach_their_fields_and_the_status(self, row: Annotation) -> None:
        """A value on the workload or its Namespace is in force, and reported from there under its name."""
        written = {row.key: row.form.example}
        levels = {
            Level.SOURCE: parse_policy(written, Policy()),
            Level.NAMESPACE: parse_policy({}, Policy(), written),
        }
        for level, parsed in levels.items():
            assert parsed.policy is not None
            value = getattr(parsed.policy, row.field)
            assert value == row.form.read(row.form.example)
            assert dict(parsed.levels)[row.key] is level
            assert values_of(parsed.policy).get(row.reported_as) == (
                reported(value) if row.reported_as else None
            )
        silent = parse_policy({}, Policy()).policy
        assert silent is not None
        assert getattr(silent, row.field) == getattr(Policy(), row.field)

    @pytest.mark.parametrize("row", ANNOTATIONS, ids=lambda row: row.key)
    def test_have_their_defaults(self, row: Annotation) -> None:
        """Writing the default changes nothing."""
        if (match := re.match(r"`([^`]*)`", default_of(row))) is not None:
            assert parse_policy({row.key: match[1]}, Policy()).policy == Policy()

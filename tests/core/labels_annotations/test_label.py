"""Which source is taken over, and by whom."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.labels_annotations.label import (
    LabelState,
    OwnershipMark,
    ownership_mark_value,
    parse_ownership_mark,
    source_label_state,
)
from splitter.core.reasons import Reason


class TestSourceLabel:
    def test_enabled_and_absent(self) -> None:
        """The word enabled is a wish; no label is none."""
        assert source_label_state({"splitter.io/split": "enabled"}).state is LabelState.ENABLED
        assert source_label_state({"app": "web"}).state is LabelState.ABSENT

    @pytest.mark.parametrize("value", ["twin", "parked"])
    def test_ours(self, value: str) -> None:
        """What carries a mark of ours is never a source."""
        label = source_label_state({"splitter.io/split": value})
        assert label.state is LabelState.OURS
        assert label.note is not None
        assert label.note.reason is Reason.IS_TWIN

    def test_invalid(self) -> None:
        """Any other word is refused, with both ways out."""
        label = source_label_state({"splitter.io/split": "true"})
        assert label.state is LabelState.INVALID
        assert label.note is not None
        assert label.note.reason is Reason.INVALID_LABEL
        assert label.note.message == (
            'splitter.io/split is "true"; it must be "enabled". Write "enabled" to split this workload, '
            "or remove the label to have it back."
        )


class TestMark:
    def test_round_trip(self) -> None:
        """What is written is read back, in UTC, to the second."""
        now = datetime(2026, 1, 31, 13, 0, 0, 999, tzinfo=timezone(timedelta(hours=1)))
        text = ownership_mark_value("u-1", now)
        assert text == '{"uid":"u-1","time":"2026-01-31T12:00:00Z"}'
        assert parse_ownership_mark(text) == OwnershipMark("u-1", datetime(2026, 1, 31, 12, tzinfo=UTC))

    @pytest.mark.parametrize(
        "text",
        [
            None,
            "",
            "{",
            "[]",
            "null",
            '{"uid":"u-1"}',
            '{"uid":1,"time":"2026-01-31T12:00:00Z"}',
            '{"uid":"","time":"2026-01-31T12:00:00Z"}',
            '{"uid":"u-1","time":"noon"}',
            "[" * 100_000,
        ],
    )
    def test_not_a_mark(self, text: str | None) -> None:
        """What splitter did not write is no mark, and no error."""
        assert parse_ownership_mark(text) is None

    @given(st.text())
    def test_any_text(self, text: str) -> None:
        """No text raises."""
        parse_ownership_mark(text)
        parse_ownership_mark(json.dumps({"uid": "u", "time": text}))

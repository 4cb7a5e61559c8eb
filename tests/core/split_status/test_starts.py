"""What a Split remembers of starts: a bounded number of times, each of which can be one."""

from datetime import UTC, datetime

import pytest

from splitter.core.split_status.starts import KEPT, LONGEST_GRACE_S, LONGEST_START_S, PoolStarts, StartTimes

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


class TestTimes:
    def test_of_starts_and_of_nodes_have_bounds_of_their_own(self) -> None:
        """A longer one is no start, or no node that was being bought; the others count."""
        raw = {
            "startSeconds": [0, LONGEST_START_S, LONGEST_START_S + 1, -1, "3", 7],
            "nodeSeconds": [0, LONGEST_GRACE_S, LONGEST_GRACE_S + 1, True, 7],
        }
        assert PoolStarts.from_json(raw) == PoolStarts((0, LONGEST_START_S, 7), (0, LONGEST_GRACE_S, 7))

    def test_are_the_newest(self) -> None:
        """Old ones make room for new ones."""
        read = PoolStarts.from_json({"startSeconds": list(range(KEPT + 5))})
        assert read.start_s == tuple(range(5, KEPT + 5))


class TestNotice:
    @pytest.mark.parametrize(
        ("raw", "notice_s"), [(30, 30), (0, None), (LONGEST_START_S + 1, None), (None, None), ("30", None)]
    )
    def test_of_nothing_is_none(self, raw: object, notice_s: int | None) -> None:
        """A notice of 0 s would be a division by nothing to learn from."""
        assert StartTimes.from_json({"noticeSeconds": raw}).notice_s == notice_s


def test_come_back_as_they_were() -> None:
    """Each pool its own; nothing is written of what was never learned."""
    learned = StartTimes(NOON, 120, PoolStarts((3,), (0,)), PoolStarts((9, 8), (60,)))
    raw = learned.to_json()
    assert StartTimes.from_json(raw) == learned
    assert raw["spot"] == {"startSeconds": [9, 8], "nodeSeconds": [60]}
    assert StartTimes(NOON).to_json() == {"until": "2026-01-05T12:00:00Z"}

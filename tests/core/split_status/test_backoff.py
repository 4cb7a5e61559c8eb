"""Failures in a row: what they are counted as, and how long the rest after them is."""

from datetime import UTC, datetime

import pytest

from splitter.core.split_status.backoff import Backoff

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(("failures", "rest_s"), [(0, 0.0), (1, 10.0), (2, 20.0), (10, 5120.0), (99, 5120.0)])
def test_each_failure_doubles_the_rest(failures: int, rest_s: float) -> None:
    """Up to 1,024 times the base; without a failure there is none."""
    assert Backoff(failures).rest_s(5.0) == rest_s


def test_a_failure_is_counted_with_its_time() -> None:
    """If that is when the rest begins."""
    assert Backoff(1, NOON.replace(hour=1)).failed(NOON) == Backoff(2, NOON)
    assert Backoff(1).failed() == Backoff(2)


@pytest.mark.parametrize("raw", [None, 3, {"count": "3"}, {"count": -1}, {"last": 7}])
def test_what_makes_no_sense_is_no_failure(raw: object) -> None:
    """As in every status."""
    assert Backoff.from_json(raw) == Backoff()


def test_is_read_as_it_was_written() -> None:
    """And a count alone has no time."""
    assert Backoff.from_json(Backoff(2, NOON).to_json()) == Backoff(2, NOON)
    assert Backoff(2).to_json() == {"count": 2}

"""How long a wait still lasts, and until when, as people read it."""

from datetime import datetime, timedelta, timezone

import pytest

from builders import NOW, ago
from splitter.core.clock import clock, left_s


@pytest.mark.parametrize(
    ("since", "after_s", "left"),
    [
        *((ago(10), 30.0, 20.0), (ago(30), 30.0, 0.0), (ago(90), 30.0, 0.0), (None, 30.0, 0.0)),
        *((NOW, 0.0, 0.0), (ago(-3600), 30.0, 30.0), (ago(-3600), 0.0, 0.0)),
    ],
)
def test_what_is_left_is_never_less_than_nothing(since: datetime | None, after_s: float, left: float) -> None:
    """Nor more than all; what never began is over."""
    assert left_s(NOW, since, after_s) == left


def test_an_instant_is_told_in_utc() -> None:
    """Whatever zone it was read in; where nothing began it is now."""
    there = NOW.astimezone(timezone(timedelta(hours=5)))
    assert clock(there, 61.0) == "10:01:01Z"
    assert clock(None) == "now"

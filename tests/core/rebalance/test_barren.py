"""Spot that earns nothing, and until when it rests."""

from datetime import datetime, timedelta

import pytest

from builders import NOW, ago
from splitter.core.rebalance import Tuning
from splitter.core.rebalance.barren import is_barren, rests_until
from splitter.core.split_status import RebalanceState

DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("barren", "since", "until"),
    [
        (9, ago(7200), None),
        (10, ago(7200), NOW + timedelta(seconds=7200)),
        (99, ago(9 * DAY_S), NOW + timedelta(seconds=DAY_S)),
        (10, None, None),
    ],
)
def test_it_rests_as_long_as_it_has_earned_nothing(
    barren: int, since: datetime | None, until: datetime | None
) -> None:
    """A day at most, from the last loss on; not before the tenth."""
    state = RebalanceState(barren=barren, barren_since=since, last_loss=NOW)
    assert rests_until(state, Tuning()) == until
    assert is_barren(state, Tuning()) is (barren >= 10)

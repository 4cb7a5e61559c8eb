"""What the lab reads of a Split's usage, beside what splitter itself reads of it."""

from datetime import UTC, datetime, timedelta

import pytest

from lab.splits import DESIRED, ON_DEMAND, SPOT, replica_seconds
from splitter.core.split_status.usage import Amount, Usage, Use

NOON = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("seconds", [0, 1, 3_600, 86_400])
def test_counts_as_splitter_does(seconds: int) -> None:
    """A total, and what is held since: the same replica-seconds of each use at any moment after."""
    usage = Usage(NOON, NOON, {}, {Use.SPOT: Amount(3), Use.ON_DEMAND: Amount(1), Use.DESIRED: Amount(4)})
    held = {Use.ON_DEMAND: Amount(4, cpu=500), Use.DESIRED: Amount(4)}
    usage = usage.holding(held, NOON + timedelta(hours=1))
    moment = NOON + timedelta(hours=1, seconds=seconds)
    used = usage.at(moment)
    assert replica_seconds({"usage": usage.to_json()}, moment) == {
        ON_DEMAND: used[Use.ON_DEMAND].replicas,
        SPOT: used[Use.SPOT].replicas,
        DESIRED: used[Use.DESIRED].replicas,
    }


def test_a_split_without_usage() -> None:
    """None, not zero: it is not known yet."""
    assert replica_seconds({}, NOON) is None

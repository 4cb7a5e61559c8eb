"""Reads of the status of a Split what the page draws: the moves that its decisions tell of."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from splitter.core.replica import Pool
from splitter.core.split_status import PastDecision, SplitStatus
from splitter.plugin.dashboard.history import Moment

# What a sentence begins with that scales a pool (core.model.Move).
_MOVE = re.compile(r"scale (on-demand|spot) ([0-9]{1,10}) -> ([0-9]{1,10}) ")


def shown(status: SplitStatus) -> SplitStatus:
    """Return a status as it is shown; before the first report it says so."""
    if status.state:
        return status
    return replace(status, state="Unreported", message="Nothing is reported yet; is the controller running?")


def counts_of(status: SplitStatus) -> tuple[int, int, int, int]:
    """Return replicas wanted, ready on on-demand, ready on spot, and on nodes that go (`Moment`)."""
    return status.desired, status.on_demand.ready, status.spot.ready, status.doomed


def move_of(decision: PastDecision) -> tuple[Pool, int, int] | None:
    """Return which pool a decision scales, from how many to how many; None when it scales none."""
    result = _MOVE.match(decision.message)
    return (Pool(result[1]), int(result[2]), int(result[3])) if result else None


def asked(status: SplitStatus) -> list[Moment]:
    """Return how many replicas were asked for since a workload is split, as the sentences say.

    Where nothing was counted, since the first decision that is kept.
    """
    now = {Pool.ON_DEMAND: status.on_demand.spec, Pool.SPOT: status.spot.spec}
    result: list[Moment] = []
    for one in reversed(status.decisions):
        if (move := move_of(one)) is not None:
            pool, was, to = move
            now[pool] = to
            result.append(_moment(one.at, now))
            now[pool] = was
    if status.usage is not None:
        first = status.usage.since
    elif status.decisions:
        first = status.decisions[0].at
    else:
        return []
    return [_moment(first, now), *(one for one in result[::-1] if one.at >= first)]


def _moment(at: datetime, specs: Mapping[Pool, int]) -> Moment:
    return Moment(at, 0, specs[Pool.ON_DEMAND], specs[Pool.SPOT])

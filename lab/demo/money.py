"""What the demo's application saves on spot, and what it has saved: two sentences from its Splits."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from lab import splits

_SPOT_PRICE: Final = 0.3  # of a replica on on-demand; `splitter savings` assumes the same
_ASSUMED: Final = f"a replica on spot taken to cost {_SPOT_PRICE:g} of one on on-demand"

Statuses = Iterable[Mapping[str, Any]]


def saves(statuses: Statuses) -> str:
    """Say what the labels save as the replicas are divided now."""
    pairs = [(status["spot"]["spec"], status["desired"]) for status in statuses]
    on_spot, desired = (sum(counts) for counts in zip(*pairs, strict=True))
    saved = _saved(on_spot, desired - on_spot, desired)
    return f"the labels put {on_spot} of {desired} replicas on spot, and save {saved:.0%} ({_ASSUMED})"


def has_saved(statuses: Statuses, now: datetime) -> str:
    """Say what was saved until now, the outage and the surge of all moves included."""
    counted = [used for status in statuses if (used := splits.replica_seconds(status, now)) is not None]
    on_demand, spot, desired = (sum(used[use] for used in counted) for use in splits.USES)
    if not desired:
        return "no Split has counted anything, so what was saved is not known"
    share = spot / (spot + on_demand) if spot + on_demand else 0.0
    return (
        f"so far {share:.0%} of the replicas' time was on spot and {_saved(spot, on_demand, desired):.0%} was"
        f" saved, the outage and the surge of all moves included ({_ASSUMED})"
    )


def _saved(spot: float, on_demand: float, desired: float) -> float:
    return 1 - (on_demand + _SPOT_PRICE * spot) / desired if desired else 0.0

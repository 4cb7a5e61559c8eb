"""Holders, asked as the tests of the arithmetic ask: by their views, with their targets."""

from splitter.core.holders import holder_of
from splitter.core.holders.holder import Among, is_available
from splitter.core.holders.shares import Share, share_of
from splitter.core.model import ReplicaSetView, TwinView


def kept_by(view: ReplicaSetView | TwinView, replicas: int, among: Among = is_available) -> int:
    """Return what a holder surely keeps."""
    return holder_of(view).surely_keeps(replicas, among)


def most_lost(view: ReplicaSetView | TwinView, replicas: int) -> int:
    """Return what a holder may lose."""
    return holder_of(view).may_lose(replicas)


def share(view: ReplicaSetView | TwinView, target: int, rank: int, *, on_demand: bool = False) -> Share:
    """Return a holder and its target."""
    return share_of(holder_of(view), target, rank, on_demand=on_demand)


def lags(twin: TwinView) -> bool:
    """Return whether a lowering has not reached its pods."""
    return holder_of(twin).lags

"""Moments of a workload, for tests of the decision."""

from datetime import UTC, datetime, timedelta

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import RebalanceInput

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    """Return the instant so many seconds before NOW."""
    return NOW - timedelta(seconds=seconds)


def settled(desired: int, policy: Policy, *, max_surge: int = 5, max_unavailable: int = 0) -> RebalanceInput:
    """Build the steady state: everything divided, ready for hours."""
    base = base_replicas(desired, policy)
    return RebalanceInput(
        now=NOW,
        desired=desired,
        max_surge=max_surge,
        max_unavailable=max_unavailable,
        on_demand_spec=base,
        on_demand_ready=base,
        spot_spec=desired - base,
        spot_ready_since=(ago(50_000),) * (desired - base),
    )

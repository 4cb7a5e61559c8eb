"""What splitter has to remember of a workload over a restart, and people need not read (`status.memory`)."""

from collections.abc import Mapping
from dataclasses import dataclass

from splitter.core.split_status import values
from splitter.core.split_status.moving import FollowedCount
from splitter.core.split_status.rebalance_state import RebalanceState
from splitter.core.split_status.starts import StartTimes
from splitter.core.split_status.values import Kept, kept


@dataclass(frozen=True, slots=True)
class Memory(Kept):
    """All of it is nothing of a workload that was never split."""

    rebalance: RebalanceState = kept("rebalance", RebalanceState.from_json)
    followed: FollowedCount = kept("followed", FollowedCount.from_json)
    """The count that is followed while Karmada moves replicas to another cluster."""
    starts: StartTimes = kept("starts", StartTimes.from_json)
    """How long its pods took to start: written beside something else only."""
    good_annotations: Mapping[str, str] = kept("policyAnnotations", values.mapped(values.maybe_word))
    """The last good policy, as it was written."""

"""The status of a Split: what people read about one workload, and what must survive a restart.

It is parsed once, where the Split is read, and written once. A field more is a line in `SplitStatus`, and in
`manifests/crd.yaml`. Counts are replicas, instants aware UTC datetimes in whole seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from splitter.core.split_status import values
from splitter.core.split_status.memory import Memory
from splitter.core.split_status.rebalance_state import RebalanceState, Restart
from splitter.core.split_status.relief import ReliefMove, ReliefStatus
from splitter.core.split_status.starts import PoolStarts, StartTimes
from splitter.core.split_status.usage import Usage
from splitter.core.split_status.values import TEXT_MAX, Kept, Scalar, kept

__all__ = [
    "DECISIONS_MAX",
    "HANDED_OVER",
    "LET_GO",
    "NODES_MAX",
    "TEXT_MAX",
    "UNREPORTED",
    "Condition",
    "GoingNode",
    "Memory",
    "PastDecision",
    "PoolCounts",
    "PoolStarts",
    "RebalanceState",
    "ReliefMove",
    "ReliefStatus",
    "Restart",
    "Scalar",
    "SplitStatus",
    "StartTimes",
    "Usage",
]

DECISIONS_MAX = 20
# How the decision begins that tells when pods were let go: the moment without an owner begins with it.
LET_GO = "running pods change their owner"
# And how the one begins with which a take-over has ended.
HANDED_OVER = "handed over: "
NODES_MAX = 10
"""So many are named, the most urgent first: a status is read by people, and the pools have the counts."""
_WRITE_CONFLICTS_MAX, _POLICY_MAX = 10, 40


@dataclass(frozen=True, slots=True)
class PoolCounts(Kept):
    """Replicas of one pool."""

    wanted: int = kept("wanted", values.replicas, always=True)
    spec: int = kept("spec", values.replicas, always=True)
    ready: int = kept("ready", values.replicas, always=True)
    doomed: int = kept("doomed", values.replicas, always=True)
    pending: int = kept("pending", values.replicas, always=True)


@dataclass(frozen=True, slots=True)
class Condition(Kept):
    """One condition, in the Kubernetes convention."""

    type: str = kept("type", values.text, always=True)
    status: str = kept("status", values.text, always=True)
    reason: str = kept("reason", values.text, always=True)
    message: str = kept("message", values.text, always=True)
    since: datetime = kept("lastTransitionTime", values.moment, values.whole_seconds, always=True)
    observed_generation: int | None = kept("observedGeneration", values.ordinal)

    def holds_for(self, kind: str, reason: str) -> bool:
        """Whether it is of this type, and holds for this reason."""
        return (self.type, self.status, self.reason) == (kind, "True", reason)


@dataclass(frozen=True, slots=True)
class PastDecision(Kept):
    """One decision, with its sentence."""

    at: datetime = kept("time", values.moment, values.whole_seconds, always=True)
    reason: str = kept("reason", values.text, always=True)
    message: str = kept("message", values.text, always=True)


@dataclass(frozen=True, slots=True)
class GoingNode(Kept):
    """A node under replicas that is about to go (`Doomed`), or gone (`Lost`)."""

    name: str = kept("name", values.text, always=True)
    state: str = kept("state", values.text, always=True)
    replicas: int = kept("replicas", values.replicas, always=True)
    signal: str = kept("signal", values.text, always=True)
    deadline: datetime | None = kept("deadline", values.instant, values.whole_seconds)


_CONDITIONS = values.items(Condition, "type", 20)
_DECISIONS = values.items(PastDecision, "at", DECISIONS_MAX)


def _times(value: tuple[datetime, ...]) -> list[str | None]:
    return [values.whole_seconds(at) for at in value[-_WRITE_CONFLICTS_MAX:]]


@dataclass(frozen=True, slots=True)
class SplitStatus(Kept):
    """What a Split says; all of it is nothing until something is reported.

    >>> SplitStatus.from_json({"state": "Steady", "ready": 3}).to_json()["ready"], SplitStatus().to_json()
    (3, {})
    """

    observed_generation: int = kept("observedGeneration", values.number, always=True)
    source_generation: int = kept("sourceGeneration", values.number, always=True)
    state: str = kept("state", values.text, always=True)
    reason: str = kept("reason", values.text, always=True)
    message: str = kept("message", values.text, always=True)
    desired: int = kept("desired", values.replicas, always=True)
    ready: int = kept("ready", values.replicas, always=True)
    cover: int = kept("cover", values.replicas, always=True)
    on_demand: PoolCounts = kept("onDemand", PoolCounts.from_json, always=True)
    spot: PoolCounts = kept("spot", PoolCounts.from_json, always=True)
    policy: Mapping[str, Scalar] = kept("policy", values.mapped(values.scalar, _POLICY_MAX), always=True)
    """The values in force, by field (`labels_annotations.reported`)."""
    policy_from: Mapping[str, str] = kept(
        "policyFrom", values.mapped(values.maybe_word, _POLICY_MAX), always=True
    )
    """Where each comes from: a `labels_annotations.Level`."""
    conditions: tuple[Condition, ...] = kept("conditions", _CONDITIONS, always=True)
    decisions: tuple[PastDecision, ...] = kept("decisions", _DECISIONS, always=True)
    usage: Usage | None = kept("usage", Usage.from_json, Usage.to_json)
    guard: str = kept("guard", values.text)
    relief: ReliefStatus = kept("relief", ReliefStatus.from_json)
    """How hot nodes are relieved of its replicas, if asked for, and which of them stay in the other pool."""
    nodes: tuple[GoingNode, ...] = kept("nodes", values.items(GoingNode, "name", NODES_MAX))
    memory: Memory = kept("memory", Memory.from_json)
    replicas: int | None = kept("replicas", values.ordinal)
    """Of a StatefulSet: the pods of all holders, for an autoscaler."""
    selector: str = kept("selector", values.word)
    write_conflicts: tuple[datetime, ...] = kept(
        "writeConflicts", values.listed(values.instant, _WRITE_CONFLICTS_MAX), _times
    )
    conflicting_writer: str = kept("conflictingWriter", values.text)
    """Who wrote spec.replicas in them; of a Deployment, nobody."""
    conflict: bool = kept("conflict", values.is_true)

    @property
    def doomed(self) -> int:
        """Replicas of both pools on nodes that are announced to go: they serve, and count as not ready."""
        return self.on_demand.doomed + self.spot.doomed

    def to_json(self) -> dict[str, Any]:
        """Return it in JSON's own types; of what was never reported only what is remembered."""
        return self._written(always=bool(self.state))


UNREPORTED = SplitStatus()
"""Of a Split that nobody has reported on."""

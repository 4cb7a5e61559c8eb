"""A Node as the rest of the core sees it: the facts that were read, and the state that was assessed.

`NodeFacts` is built by `kube.observe` alone and thrown away after `signals.assess`; `NodeState` is what
is kept. Nothing here decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum, unique


@unique
class CapacityClass(StrEnum):
    """How a node is paid for; unknown counts as on-demand."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    UNKNOWN = "unknown"


@unique
class Health(StrEnum):
    """What a node's pods may count on."""

    HEALTHY = "healthy"
    HINTED = "hinted"
    """It may go: its pods hold their place, but earn no return."""
    DOOMED = "doomed"
    """It is going: its pods still serve, and need replacing now."""
    GONE = "gone"
    """Absent, or not Ready: its pods count 0."""


@unique
class Tier(StrEnum):
    """How sure and how soon a signal is (R5)."""

    NOTICE = "T0"
    GONE = "T1"
    CORDON = "T2"
    HINT = "T3"


@dataclass(frozen=True, slots=True)
class Taint:
    """One taint, as in `spec.taints`."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        """Write it as kubectl does.

        >>> str(Taint("kubernetes.azure.com/scalesetpriority", "spot"))
        'kubernetes.azure.com/scalesetpriority=spot:NoSchedule'
        """
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, as in `status.conditions`; `status` is "True", "False" or "Unknown"."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """One Event about this very Node (same UID or name and younger than the node): its reason, its time."""

    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Everything about a Node that says what it is and where it is going."""

    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    conditions: tuple[Condition, ...] = ()
    unschedulable: bool = False
    deletion_timestamp: datetime | None = None
    provider: str = ""
    """Whose machine it is: the scheme of `spec.providerID` (aws, gce, azure, ...); empty: nobody says."""
    allocatable: Mapping[str, int] = field(default_factory=dict)
    """cpu in thousandths, memory and storage in bytes, pods and extended resources as counts."""
    events: tuple[NodeEvent, ...] = ()
    """Recent Events; they only make things faster, the truth is in taints and conditions."""
    machine: str = ""
    """The machine since it was started last (systemUUID and bootID); empty: it does not say."""
    voluntary: bool = False
    """Karpenter's NodeClaim says that the disruption is its own choice (where we may read it)."""

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of one type, or None."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


@dataclass(frozen=True, slots=True)
class NodeState:
    """What a Node is and what becomes of its pods, with the signal that says so."""

    name: str
    uid: str
    capacity: CapacityClass
    health: Health = Health.HEALTHY
    tier: Tier | None = None
    signal: str = ""
    """For people: "taint karpenter.sh/disrupted"; empty while nothing is wrong."""
    deadline: datetime | None = None
    """When it goes at the latest, where somebody said so."""
    notice_s: float | None = None
    """Of a doomed node: how long its provider's notice lasts; None while nobody takes the machine away."""
    reclaim_s: float | None = None
    """The same, where its provider says that it takes the machine back, and how long it gives is known."""
    undated: bool = False
    """Doomed, and neither a deadline nor that says when it goes: it was cordoned, or is drained."""
    usual_notice_s: float | None = None
    """How long its provider's notice would last, whether it goes or not."""
    voluntary: bool = False
    """Somebody's choice, not a reclaim: replaced all the same, but no reason to distrust spot."""
    machine: str = ""
    """The machine since it was started last; empty: not known."""
    announced: bool = False
    """Of one that is gone: before that somebody said so, or it was not Ready."""
    contradiction: str = ""
    """Two marks that cannot both be true: why `capacity` is unknown. Empty while all agree."""
    spot_labels: tuple[str, ...] = ()
    """Of spot capacity: the labels that say so."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_spot(self) -> bool:
        """Say whether this is spot capacity; unknown nodes count as on-demand."""
        return self.capacity is CapacityClass.SPOT

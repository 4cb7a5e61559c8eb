"""What the last looks at real use mean for one workload: the type that relief and its reconcile share.

`relief` decides over the whole cluster, a reconcile over one workload. Nothing here decides.
"""

from dataclasses import dataclass
from enum import StrEnum, unique


@unique
class Aim(StrEnum):
    """What a move of a replica is for."""

    COOL = "cool"
    """Its node is hot."""
    SPOT = "spot"
    """It prefers spot, and stands on on-demand."""
    SPREAD = "spread"
    """It stands where its own spread constraints allow fewer."""
    POOL = "pool"
    """It stands on a node of the other pool. Nobody has to ask for this."""


@dataclass(frozen=True, slots=True)
class LeavingReplica:
    """A replica that is to stand elsewhere, and why."""

    pod_uid: str
    why: str
    aim: Aim = Aim.COOL
    keep_off: tuple[str, ...] = ()
    """The nodes that a hint is to keep the new one off; none: no hint is given, or it was asked for."""
    crowded: frozenset[str] = frozenset()
    """On which nodes it would be spread no better."""
    stand: str = ""
    """How replicas and nodes stand."""


@dataclass(frozen=True, slots=True)
class HotNodes:
    """What is known of hot nodes and bad places, as far as it matters for one workload; nodes by name."""

    paused: str = ""
    """Why nothing is relieved anywhere."""
    known: bool = False
    """It was looked often enough to say of each node whether it is hot."""
    hot: tuple[str, ...] = ()
    """Those that replicas of this workload stand on, by its own thresholds or another's."""
    avoid: frozenset[str] = frozenset()
    """On which a replica that was just moved may not stay."""
    leaves: LeavingReplica | None = None
    unhinted: str = ""
    """Why the scheduler is given no hint, where it should be."""
    left: str = ""
    """Why none of its replicas leaves a hot node now."""
    crowded: frozenset[str] = frozenset()
    """On which a replica that is moved to be spread may not stay."""
    badly_placed: str = ""
    """How many of its replicas are off spot, or not spread as they ask, and why none moves now."""

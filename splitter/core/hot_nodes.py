"""What the last looks at real use mean for one workload: the type that relief and its reconcile share.

`core.relief` decides over the whole cluster, a reconcile over one workload. Nothing here decides.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeavingReplica:
    """A replica that is to stand elsewhere, and why."""

    pod_uid: str
    why: str
    to_spot: bool = False
    """Its node is not hot: it is to stand on spot."""
    keep_off: tuple[str, ...] = ()
    """The nodes that a hint is to keep the new one off; none: no hint is given, or it was asked for."""


@dataclass(frozen=True, slots=True)
class HotNodes:
    """What is known of hot nodes and of spot, as far as it matters for one workload; nodes by name."""

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
    off_spot: str = ""
    """How many of its replicas prefer spot and stand on on-demand, and why none comes now."""

"""A replica of a workload: its pod, with the node under it already looked up, and the one state it is in.

`kube.observe` makes them; whatever counts replicas asks `state`, `ready`, `serves` and `available`. Instants
are aware UTC.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum, auto, unique

from splitter.core.clock import Waits
from splitter.core.reasons import Reason


@unique
class Pool(StrEnum):
    """Which half of the split a twin belongs to."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a replica does not run, when that is not for want of nodes (`causes` finds out)."""

    reason: Reason
    detail: str


@unique
class NodeStatus(StrEnum):
    """What the node under a pod says about the pod (H5)."""

    UNBOUND = "unbound"
    SOUND = "sound"
    DOOMED = "doomed"
    LOST = "lost"
    UNSEEN = "unseen"  # bound to a node we have not seen yet: neither lost nor doomed


@unique
class ReplicaState(Enum):
    """What a replica is to its workload: decided once, from its life, its node and its readiness."""

    HINDERED = auto()  # waits for something of its own that no node anywhere would give it (R9)
    UNPLACED = auto()  # has no node
    STARTING = auto()  # not ready on a node that stays, or on one that we have not seen yet
    READY = auto()
    DOOMED = auto()  # on a node that is about to go, ready or not
    SILENT = auto()  # on a node that says nothing any more
    VANISHED = auto()  # its Node object is gone
    ENDING = auto()  # asked to end
    OVER = auto()  # has finished

    @property
    def is_lost(self) -> bool:
        """Whether its node says nothing any more, or is gone."""
        return self in _LOST

    @property
    def is_placed(self) -> bool:
        """Whether it has a node that stays, as far as is known."""
        return self in _PLACED


_LOST = frozenset({ReplicaState.SILENT, ReplicaState.VANISHED})
_PLACED = frozenset({ReplicaState.STARTING, ReplicaState.READY})
# What neither another node nor the other pool would cure.
_INCURABLE = frozenset({Reason.VOLUME_UNAVAILABLE, Reason.SCHEDULING_GATED})


@dataclass(frozen=True, slots=True)
class Replica:
    """One pod of a holder, with the status of its node already looked up."""

    name: str
    uid: str
    node_status: NodeStatus
    node: str | None = None
    node_uid: str | None = None
    on_spot: bool = False
    vanished: bool = False  # its Node object was seen, and is gone
    vanished_since: datetime | None = None  # when that was found, where nothing had told of it before
    successor: str = ""  # the UID of another node that has the vanished one's name by now
    voluntary: bool = False  # its node goes by somebody's choice: replaced, but no reason to distrust spot
    cordoned: bool = False  # and nothing worse is known of its node: somebody may leave it so for ever
    undated: bool = False  # its node goes, and nothing says by when: cordoned, or drained
    hinted: bool = False  # its node may be about to go: the pod holds its place but earns no return
    ready_since: datetime | None = None
    unready_since: datetime | None = None  # bound, and not ready since
    bound_since: datetime | None = None
    trouble: Trouble | None = None  # of a pod that is not ready: what kubelet or scheduler say
    created: datetime | None = None
    terminating: bool = False
    terminating_since: datetime | None = None  # None: not asked for, or not known yet
    finished: bool = False
    unschedulable_since: datetime | None = None
    signal: str = ""
    deadline: datetime | None = None
    notice_s: float | None = None  # of a doomed node: from its notice to its end, where no deadline is told
    reclaim_s: float | None = None  # the same of one that its provider surely takes back
    usual_notice_s: float | None = None  # of any node: how long its provider's notice would last
    termination_s: int = 30  # terminationGracePeriodSeconds: what it is given to end
    ordinal: int | None = None  # of a StatefulSet's
    born: Pool | None = None  # for which pool the admission policy made it, in placement mode
    revision: str = ""  # the template that it was made of: its pod-template-hash, or a StatefulSet's revision
    held_for: str = ""  # of a placeholder: pool/ordinal/hash of the move that it holds room for
    deletion_cost: str | None = None
    cost_before: str | None = None  # the user's own deletion cost, remembered while ours is set
    cost_at: datetime | None = None  # when ours was written, by the API server's clock, to the second
    priority: int = 0  # of its PriorityClass
    requests: tuple[tuple[str, int], ...] = ()  # cpu in thousandths, the rest in bytes or pieces

    @property
    def state(self) -> ReplicaState:
        """What it is to its workload."""
        if self.finished or self.terminating:
            return ReplicaState.OVER if self.finished else ReplicaState.ENDING
        match self.node_status:
            case NodeStatus.UNBOUND:
                hindered = self.trouble is not None and self.trouble.reason in _INCURABLE
                return ReplicaState.HINDERED if hindered else ReplicaState.UNPLACED
            case NodeStatus.LOST:
                return ReplicaState.VANISHED if self.vanished else ReplicaState.SILENT
            case NodeStatus.DOOMED:
                return ReplicaState.DOOMED
            case NodeStatus.SOUND if self.ready_since is not None:
                return ReplicaState.READY
            case _:
                return ReplicaState.STARTING

    @property
    def counts(self) -> bool:
        """Whether a ReplicaSet counts it as one of its replicas."""
        return not self.terminating and not self.finished

    @property
    def ready(self) -> bool:
        """Whether its ReplicaSet counts it as ready, wherever it is."""
        return self.ready_since is not None and self.counts

    @property
    def serves(self) -> bool:
        """Whether clients would miss it: it is ready, on a doomed node or not."""
        return self.ready and self.node_status is not NodeStatus.LOST

    @property
    def available(self) -> bool:
        """Whether it serves and stays."""
        return self.state is ReplicaState.READY

    def is_stuck(self, waits: Waits, grace_s: float) -> bool:
        """Whether there has been no node for it for the grace."""
        return self.counts and waits.past(self.unschedulable_since, grace_s)

    @property
    def silent_since(self) -> datetime | None:
        """Return since when its node has said nothing; None: it says something, or is gone."""
        lost = self.node_status is NodeStatus.LOST and not self.vanished
        return self.unready_since if lost else None

    @property
    def going(self) -> bool:
        """Whether its node is about to go, or gone."""
        return self.node_status in {NodeStatus.DOOMED, NodeStatus.LOST}

    @property
    def is_to_be_replaced(self) -> bool:
        """Whether it goes with its node, and what comes in its place has to be asked for.

        A ReplicaSet makes another one as soon as it ends; a StatefulSet waits until its name is free.
        """
        if self.ordinal is not None:
            return self.going and not self.finished
        return self.going and self.counts and not self.vanished

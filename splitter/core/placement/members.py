"""The members of a StatefulSet in one moment, where each stands, and what the mover may answer about them.

Built by `kube.observe` in every reconcile (and by tests). A member is counted by its pod and that pod's node,
never by the StatefulSet's status. Nothing here decides. Counts are replicas, instants aware UTC datetimes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from splitter.core.clock import ANOTHER_MOMENT, Waits, waits_of
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.placeable import EvictionRefusal, Reach, runs
from splitter.core.rebalance import RebalanceInput
from splitter.core.replica import NodeStatus, Pool, Replica, ReplicaState

TRANSIT_S = 60.0
"""So long a member that restarts holds up the doomed: they go anyway, half a notice later."""
HURRY_S = 600.0
"""A deadline that is further away leaves time for a planned move. No provider's notice is longer."""


@dataclass(frozen=True, slots=True)
class Member:
    """One ordinal of the StatefulSet, and its pod if there is one now."""

    ordinal: int
    pod: Replica | None = None
    born: Pool | None = None  # what the admission policy made of the pod; None: it was there before the split
    reach: Reach = field(default_factory=Reach)
    staged: str = ""  # what a new pod would bring that its StatefulSet keeps back
    untried: str = ""  # the template that a new pod would be of, where no member shows that it starts

    @property
    def serves(self) -> bool:
        """Ready, and on a node that has not gone: it may be doomed."""
        pod = self.pod
        return pod is not None and pod.serves

    def may_stand_on(self, pool: Pool) -> bool:
        """Whether some node of the pool can have its volumes."""
        return self.reach.on_demand if pool is Pool.ON_DEMAND else self.reach.spot

    @property
    def is_sound(self) -> bool:
        """Ready on a node that stays."""
        return self.pod is not None and self.pod.available

    @property
    def is_doomed(self) -> bool:
        """Its spot node is about to go, or has gone, and not by somebody's choice."""
        pod = self.pod
        going = pod is not None and pod.going
        return going and pod is not None and pod.on_spot and not pod.voluntary

    def is_unhurried(self, waits: Waits) -> bool:
        """Doomed, and its node is cordoned or drained without a deadline, or has one that is far (P27)."""
        pod = self.pod
        if pod is None or not self.is_doomed or self.is_lost:
            return False
        if pod.deadline is not None:
            return not waits.past(pod.deadline, -HURRY_S)
        return pod.undated or pod.cordoned

    @property
    def may_stay(self) -> bool:
        """On a spot node that is cordoned, and nothing worse: it may stay so for ever."""
        return self.is_doomed and self.pod is not None and self.pod.cordoned and self.pod.deadline is None

    @property
    def is_lost(self) -> bool:
        """Its node has gone, or says nothing any more."""
        return self.pod is not None and self.pod.node_status is NodeStatus.LOST

    def transit_s(self, waits: Waits, ended: datetime | None, grace_s: float, min_ready_s: float) -> float:
        """Return the seconds for which it counts as being between two lives; 0 when it does not.

        It does while it ends, or starts with nothing known against it, until it is available, and for
        `TRANSIT_S` at most. `ended` is when splitter ended it last.
        """
        pod = self.pod
        if pod is None or pod.finished:
            return waits.left_s(ended, TRANSIT_S)
        if self.is_lost:
            return 0.0
        if pod.terminating:
            return _on_the_way_s(waits, pod.terminating_since or ended or waits.now)
        if pod.ready_since is not None:
            return min(_on_the_way_s(waits, pod.ready_since), waits.left_s(pod.ready_since, min_ready_s))
        if pod.trouble is not None or self.is_stuck(waits, grace_s):
            return 0.0
        return _on_the_way_s(waits, pod.unready_since or pod.created)

    def is_available(self, waits: Waits, min_ready_s: float) -> bool:
        """Whether it has been ready for `minReadySeconds`, on a node that stays."""
        return self.is_sound and self.is_ready_for(waits, min_ready_s)

    def is_ready_for(self, waits: Waits, seconds: float) -> bool:
        """Whether it serves, and has been ready for so long: what the StatefulSet controller asks."""
        ready_since = self.pod.ready_since if self.pod is not None else None
        return self.serves and not waits.left_s(ready_since, seconds)

    def is_stuck(self, waits: Waits, grace_s: float) -> bool:
        """Whether the scheduler has found no node for it for the whole grace."""
        return self.pod is not None and self.pod.is_stuck(waits, grace_s)

    @property
    def is_on_cordoned(self) -> bool:
        """Ready on an on-demand node that is cordoned, and nothing worse: it may stay so for ever."""
        return self.serves and self.pod is not None and self.pod.cordoned and not self.pod.on_spot

    @property
    def pool(self) -> Pool | None:
        """Where it stands: the pool of its node; None while that is not known, or the node goes."""
        pod = self.pod
        if pod is None or not pod.counts or pod.node_status is not NodeStatus.SOUND:
            return None
        return Pool.SPOT if pod.on_spot else Pool.ON_DEMAND


def _on_the_way_s(waits: Waits, since: datetime | None) -> float:
    """Return what is left of a transit; nothing where a clock is so far ahead that it tells nothing."""
    wrong = since is not None and (since - waits.now).total_seconds() > TRANSIT_S
    return 0.0 if wrong else waits.left_s(since, TRANSIT_S)


@dataclass(frozen=True, slots=True)
class Placeholder:
    """The pod that holds the room for a move: the requests of one member, and a low priority."""

    pool: Pool
    ordinal: int  # whose move it waits for
    made_of: str  # a hash of what it was made of: another template asks for other room
    pod: Replica


@dataclass(frozen=True, slots=True)
class PlacementInput:
    """One moment of one workload in placement mode."""

    now: datetime
    name: str
    desired: int
    """N, the StatefulSet's `spec.replicas`: never ours to write."""
    members: tuple[Member, ...] = ()
    """One for each ordinal of the range, lowest first."""
    in_force: tuple[int, ...] = ()
    """`Split.spec.onDemandOrdinals`, as read after our last write."""
    surplus: tuple[Replica, ...] = ()
    """Pods beyond the range, on their way out."""
    placeholder: Placeholder | None = None
    spent: Placeholder | None = None
    """One that holds no room: it has failed, or came to a node that goes."""
    made_of: str = ""
    """What a placeholder would be made of now."""
    ordered: bool = True
    """OrderedReady: the StatefulSet makes no pod behind a lower ordinal that is not available."""
    rolling: str = ""
    """How far the StatefulSet's own rolling update is; empty: there is none."""
    update_at_once: int = 1
    """So many members that update may take in this moment, at most."""
    min_ready_s: float = 0.0
    """The StatefulSet's `minReadySeconds`."""
    published: bool = True
    """The admission policy goes by what the Split says; else nobody is ended."""
    unplaceable: str = ""
    """Why the API server would not place a new pod, if that is known."""
    removes_vanished: bool = True
    """Pods of vanished nodes are removed; else Kubernetes does it in a minute."""
    blocked: str = ""
    """Why no spot machine can be had now, or should not be asked for."""
    fit_spot: int = 0
    """The members for which the spot nodes that there are have room; counted only while spot is blocked."""
    view_broken: bool = False
    refused: EvictionRefusal | None = None
    waits: Waits = field(default=ANOTHER_MOMENT, compare=False, repr=False)
    """Each question that has a clock."""

    def __post_init__(self) -> None:
        """Begin to wait when nothing of this moment waits yet."""
        object.__setattr__(self, "waits", waits_of(self.waits, self.now))

    @property
    def serving(self) -> int:
        """Return the members that are ready now, on doomed nodes too."""
        return sum(member.serves for member in self.members)

    @property
    def on_spot(self) -> tuple[Replica, ...]:
        """Return the pods of members on spot nodes."""
        pods = (member.pod for member in self.members)
        return tuple(
            pod
            for pod in pods
            if pod is not None and pod.on_spot and pod.node_status is not NodeStatus.UNBOUND
        )

    @property
    def known(self) -> int:
        """Return the members that the application knows: N, and those that are being scaled away."""
        return self.desired + sum(not pod.finished for pod in self.surplus)

    def keeps_majority_without(self, leaving: int) -> bool:
        """Say whether more than half of the members are ready after so many have left: of two not one."""
        return (self.serving - leaving) * 2 > self.known


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing moves, and for how many seconds at most: time alone may end that."""

    note: Note
    lasts_s: float | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """End this pod, by the eviction API: the StatefulSet makes it again, in the other pool."""

    ordinal: int
    pod: str
    uid: str
    to: Pool


@dataclass(frozen=True, slots=True)
class Reservation:
    """Hold room in a pool for one member's move."""

    pool: Pool
    ordinal: int


@dataclass(frozen=True, slots=True)
class Move:
    """The next eviction or what it waits for, and the room to hold meanwhile; all None: nothing to move."""

    step: Eviction | Hold | None = None
    reservation: Reservation | None = None
    note: Note | None = None


def evicted(member: Member, to: Pool) -> Eviction | None:
    """Return the eviction of a member; None where it has no pod."""
    if member.pod is None:
        return None
    return Eviction(member.ordinal, member.pod.name, member.pod.uid, to)


def rebalance_input(observed: PlacementInput, policy: Policy) -> RebalanceInput:
    """Count the members as `rebalance` does: what was lost, and since when spot stands.

    The placeholder on spot counts as a replica there: it is what proves spot while no member may try it.
    """
    in_force = frozenset(observed.in_force)
    on_spot = observed.on_spot
    held = observed.placeholder
    # What came to a node that was going already has lost nothing.
    proof = [held.pod] if held is not None and held.pod.on_spot and observed.spent is None else []
    ready_since = [
        observed.now if pod.hinted else pod.ready_since
        for pod in (*on_spot, *proof)
        if pod.available and pod.ready_since is not None
    ]
    on_demand = sum(member.ordinal in in_force for member in observed.members)
    losing = [
        pod for pod in (*on_spot, *proof) if pod.node_uid is not None and not pod.voluntary and pod.going
    ]
    return RebalanceInput(
        now=observed.now,
        desired=observed.desired,
        max_surge=0,
        max_unavailable=1,
        on_demand_spec=on_demand,
        on_demand_ready=sum(member.is_sound and member.pool is Pool.ON_DEMAND for member in observed.members),
        spot_spec=observed.desired - on_demand,
        spot_ready_since=tuple(sorted(ready_since)),
        spot_starting=sum(pod.state is ReplicaState.STARTING for pod in on_spot),
        on_demand_doomed=sum(member.is_on_cordoned for member in observed.members),
        spot_doomed=sum(pod.state is ReplicaState.DOOMED for pod in on_spot),
        lost_node_uids=tuple(sorted({pod.node_uid or "" for pod in losing})),
        lost_nodes_live=not any(pod.node_status is NodeStatus.LOST for pod in losing),
        blocked=observed.blocked,
        view_broken=observed.view_broken,
        cover=policy.on_demand_max != 0,
        waits=observed.waits,
    )


def spoken(ordinals: Iterable[int]) -> str:
    """Return ordinals as a person writes them.

    >>> spoken([0, 1, 2, 4])
    '0-2, 4'
    """
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs(ordinals)) or "none"

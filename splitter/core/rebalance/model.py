"""The input of a decision: present counts and time constants.

`RebalanceInput` is built in every reconcile (`inputs`), `Tuning` comes from the settings. What is remembered
between two is `split_status.RebalanceState`. Nothing here decides. Counts are replicas,
durations seconds, instants aware UTC datetimes.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from splitter.core.clock import ANOTHER_MOMENT, Waits, waits_of
from splitter.core.replica import Trouble

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

RELEASE_S = 60.0
"""Doomed replicas that are covered are kept no longer than this: their notice may still be taken back."""


def with_changes(one: T, **changes: object) -> T:
    """Return a dataclass with other values: itself where none is other, as in most reconciles."""
    if all(getattr(one, name) == value for name, value in changes.items()):
        return one
    return replace(one, **changes)


@dataclass(frozen=True, slots=True)
class Tuning:
    """The time constants that are no annotation (R25, R33, R34, R41 to R44); settings may shorten them.

    The soak is `Policy.soak_s` and the grace `Policy.grace_s`, since users choose those.
    """

    soak_max_s: float = 3600.0
    """Hmax: the back-off stops doubling here (or at the user's own soak, where that is longer)."""
    calm_s: float = 3600.0
    """Spot that was up for less than this when it was lost is flapping: the soak doubles."""
    reset_s: float = 7200.0
    """So long without a loss, and the soak is the user's again."""
    burst_s: float = 120.0
    """Losses closer together than this are one event (AWS reclaims in bursts of minutes)."""
    settle_s: float = 10.0
    """So long after a loss, free spot nodes are not believed: the next notice may be theirs."""
    first_window: int = 1
    """w0: replicas asked of spot beyond what runs, while nobody knows whether spot can be had."""
    barren_losses: int = 10
    """Spot rests after so many losses in a row that each came before it had earned anything (R27)."""
    barren_max_s: float = 86_400.0
    """The longest rest."""
    step_fraction: float = 0.25
    """On-demand goes down by at most this share of N in one step, but for what is above N + S."""
    step_interval_s: float = 60.0
    """Between two steps down."""
    fast_s: float = 60.0
    """The soak of one replica once spot as a whole has proven itself."""
    release_s: float | None = None
    """So long must everything doomed have been covered before it is let go. None: `RELEASE_S`, or less where
    the notice is shorter (docs/adr/0031)."""
    restarts_per_hour: int = 4
    """Placement: one member is ended at most so often within an hour; to restore order, half as often."""
    vanished_node_wait_s: float = 40.0
    """Placement: so long a pod stays whose Node went while Ready. Kubernetes' own collector waits as long."""


@dataclass(frozen=True, slots=True)
class RebalanceInput:
    """One moment of one workload, counted by the state of its pods' nodes, never by status counters.

    Only pods that are not terminating count. Ready means ready on a node that exists, is Ready and is
    not doomed. A pod whose node nobody has seen yet is `spot_starting`. Voluntary disruption (Karpenter
    consolidation) counts in `spot_doomed` but its node stays out of `lost_node_uids`: spot then replaces
    it itself, on-demand only after the grace. A ready pod on a hinted node is passed with `now`, so that
    it holds its place but earns no return.
    """

    now: datetime
    desired: int
    """N, the source's `spec.replicas`."""
    max_surge: int
    """S, rounded up."""
    max_unavailable: int
    """U, rounded down."""
    on_demand_spec: int
    """The twin's `spec.replicas`, as read after our last write."""
    on_demand_ready: int
    on_demand_stuck: int = 0
    """Unschedulable for longer than the grace."""
    on_demand_over_quota: int = 0
    """Not created, since a quota is used up: by spot's Pending replicas too."""
    on_demand_doomed: int = 0
    """On nodes that are going or gone: replaced within on-demand."""
    on_demand_held: int = 0
    """Those of them on no such node: of a StatefulSet, slow to end, or no node reaches their volumes."""
    on_demand_late: int = 0
    """Those of them that were made after the first of them was seen: as a rule they tolerate that."""
    spot_spec: int = 0
    spot_ready_since: tuple[datetime, ...] = ()
    """When each ready replica became ready (or its node did, whichever is later); any order."""
    spot_starting: int = 0
    """Bound to a healthy or not yet seen node, not ready yet."""
    spot_pending_since: datetime | None = None
    """Since when the oldest one that is not bound has been unschedulable: a shortage that began while nobody
    looked (splitter was down) counts from its beginning. None = unknown."""
    spot_hindered: int = 0
    """Asked for, and kept from running by what no other node would cure: refused by the API server, their
    volume missing (`causes`). Neither placed nor a shortage of spot."""
    spot_unplaceable: Trouble | None = None
    """Why the nodes that are there do not take the pending ones; None: too few, or full."""
    spot_doomed: int = 0
    """Still there, on a node that is going. Gone nodes' pods count nowhere."""
    spot_silent: int = 0
    """Of a Deployment's, on nodes that say nothing for so long that Kubernetes would have removed them, did
    they not tolerate it: dead, and in the place of others."""
    spot_by_ordinal: bool = False
    """It is a StatefulSet's: a lowering takes the highest ordinals, whoever is doomed or dead."""
    spot_dead: int = 0
    """The silent of a StatefulSet's, and those whose volume no node can reach: they keep their names, so they
    cannot make room."""
    spot_pinned: int = 0
    """Of a StatefulSet's `spot_doomed`: below one that stands, which would be lowered before it."""
    spot_stop_at: datetime | None = None
    """When the first of the doomed has to begin to end: the deadline of its node, less its
    terminationGracePeriodSeconds. None: no node of theirs tells a deadline."""
    spot_stop_after_s: float | None = None
    """Of the doomed without a deadline: the same, in seconds after the notice, by their provider's."""
    lost_node_uids: tuple[str, ...] = ()
    """Every spot node that is doomed, NotReady or absent under a bound pod of this workload now."""
    lost_nodes_live: bool = False
    """All of those are doomed, and none is NotReady or absent yet."""
    surging: int = 0
    """Beside both specs: what rollouts hold or may hold, replicas that wait for a node left out."""
    fit_spot: int = 0
    """Replicas that the healthy spot nodes have room for now (`nodes.count_headroom`)."""
    blocked: str = ""
    """Why no more spot can be counted on now: an autoscaler says so, or a node hints that it may go."""
    view_broken: bool = False
    """More than half of the on-demand nodes are NotReady too: our view is broken, not spot."""
    cover: bool = True
    """False: on-demand never stands in for spot (StatefulSets with volumes in twins mode)."""
    waits: Waits = field(default=ANOTHER_MOMENT, compare=False, repr=False)
    """Each question that has a clock."""

    def __post_init__(self) -> None:
        """Begin to wait when nothing of this moment waits yet."""
        object.__setattr__(self, "waits", waits_of(self.waits, self.now))

    @property
    def floor(self) -> int:
        """Return F: what must stay ready while we lower something."""
        return max(0, self.desired if self.max_surge >= 1 else self.desired - self.max_unavailable)

    @property
    def removing(self) -> bool:
        """Say whether the silent are removed now (R44). A ReplicaSet takes one that starts before them."""
        return self.spot_silent > 0 and not self.spot_starting

    @property
    def spot_going(self) -> int:
        """Return what of spot is beyond N + S: it goes, or is dead."""
        return self.spot_doomed + self.spot_dead

    @property
    def spot_ready(self) -> int:
        """Return R: ready replicas on healthy spot nodes."""
        return len(self.spot_ready_since)

    @property
    def spot_placed(self) -> int:
        """Return the replicas that have a healthy spot node, ready or not."""
        return self.spot_ready + self.spot_starting

    @property
    def spot_accounted(self) -> int:
        """Return the replicas that on-demand need not stand in for: placed, or hindered wherever they go."""
        return self.spot_placed + self.spot_hindered

    def spot_has_stood(self, last_loss: datetime | None, soak_s: float) -> bool:
        """Whether a replica has stood for the soak, and nothing was lost meanwhile.

        Survivors of a loss prove nothing by having been old before it: spot as a whole is what must prove
        itself, or a third of the nodes could flap for ever beside the other two (docs/adr/0010).
        """
        if last_loss is not None and not self.waits.past(last_loss, soak_s):
            return False
        return any(self.waits.past(since, soak_s) for since in self.spot_ready_since)

    def within_spec(self) -> "RebalanceInput":
        """Count only what will still be there when the controllers have caught up with the specs.

        For a moment after a scale-down more pods exist than are asked for. Counting those would let
        two reconciles in a row spend the same surplus. What goes first is what a ReplicaSet deletes first:
        the unready, the doomed (their deletion cost is -1000), then the youngest.
        """
        on_demand_ready = min(self.on_demand_ready, self.on_demand_spec)
        on_demand_doomed = min(self.on_demand_doomed, self.on_demand_spec - on_demand_ready)
        unready = self.on_demand_spec - on_demand_ready - on_demand_doomed
        ready_since = tuple(sorted(self.spot_ready_since))[: self.spot_spec]
        doomed = min(self.spot_doomed, self.spot_spec - len(ready_since))
        starting = min(self.spot_starting, self.spot_spec - len(ready_since) - doomed)
        return with_changes(
            self,
            on_demand_ready=on_demand_ready,
            on_demand_doomed=on_demand_doomed,
            on_demand_late=min(self.on_demand_late, on_demand_doomed),
            on_demand_stuck=min(self.on_demand_stuck, unready),
            on_demand_over_quota=min(self.on_demand_over_quota, unready),
            spot_ready_since=ready_since,
            spot_doomed=doomed,
            spot_pinned=min(self.spot_pinned, doomed),
            spot_dead=min(self.spot_dead, self.spot_spec - len(ready_since) - doomed - starting),
            spot_starting=starting,
            spot_hindered=min(self.spot_hindered, self.spot_spec - len(ready_since) - doomed - starting),
        )

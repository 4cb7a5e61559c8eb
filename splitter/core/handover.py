"""Chooses the step of a Deployment, and counts how far holders may grow and shrink.

`next_step` is the table of docs/design/handover.md (H20 to H38), row for row: tried top
down, the first that matches acts. Every row is level-triggered and idempotent, so a crash between
any two writes is harmless. `make` grows the holders that want more within the room, `break_` shrinks
those that want less down to the floor; the planner calls `break_` only when nothing was made.
Nothing here knows what an API object looks like.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, unique

from splitter.core.floor import is_rolling, kept_by, may_roll, most_lost
from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER
from splitter.core.labels_annotations.label import parse_ownership_mark
from splitter.core.model import PodView, ReplicaSetView, SourceView, TwinView


@unique
class Ownership(StrEnum):
    """The mark on the source, against the source's own UID."""

    NONE = "none"
    OURS = "ours"
    FOREIGN = "foreign"  # restored from a backup, or re-created under the same name


def ownership_of(source: SourceView) -> Ownership:
    """Return whose mark a source bears."""
    mark = parse_ownership_mark(source.annotations.get(ANNOTATION_TAKEN_OVER))
    if mark is None:
        return Ownership.NONE
    return Ownership.OURS if mark.uid == source.uid else Ownership.FOREIGN


@unique
class Step(StrEnum):
    """One row of the state machine."""

    NOTHING = "nothing"
    CONSIDER = "consider"  # eligibility, then Split and mark
    ADOPT = "adopt"  # ours again: Split if missing, mark anew
    CREATE_SPLIT = "create-split"
    CLAIM = "claim"  # what is ours by its name, and was orphaned with the source before this one
    PAUSE = "pause"
    WAIT_CONTROLLER = "wait-controller"
    WAIT_ROLLOUT = "wait-rollout"  # the source's own, before its pods can change their owner
    ADOPT_PODS = "adopt-pods"  # the twins are prepared, and the source's pods let go
    SETTLE = "settle"  # the twins take them
    PARK = "park"
    CUT_OFF = "cut-off"  # what hangs in its deletion is parked: its pods are replaced
    RUN = "run"  # twins, counts, rolls: the workload is ours and at rest or on the move
    UNPAUSE = "unpause"
    SHRINK_OURS = "shrink-ours"
    CLEAN_UP = "clean-up"
    OFFBOARD = "offboard"  # the twins' pods are let go
    BRING_HOME = "bring-home"  # the source takes them
    REATTACH = "reattach"
    HAND_BACK = "hand-back"  # of a StatefulSet
    SAVE = "save"  # of a StatefulSet, from here on: N, before anything is scaled
    FOLLOW = "follow"  # somebody has scaled the source: the new N
    FOLLOW_SPLIT = "follow-split"  # or its Split
    SHOW = "show"  # N on the Split
    WAIT_COUNT = "wait-count"  # label and mark are gone, and the source stands at 0: its user has to say N
    RELEASE = "release"
    PLACE = "place"  # in placement mode: ordinals in force, members where they are wanted
    UNPLACE = "unplace"


@dataclass(frozen=True, slots=True)
class Columns:
    """What the table looks at; one Observation gives exactly one of these."""

    label: bool
    conflict: bool
    split: bool  # a Split that takes over
    report: bool  # a Split that only reports a refusal
    mark: Ownership
    paused: bool
    paused_by_us: bool
    observed: bool
    attached: bool
    returning: bool
    parked: bool
    twins: bool
    ours_at_zero: bool  # twins and parked ReplicaSets hold no replica
    twins_wait: bool = False  # there are none, or each is paused and has no replica yet
    twins_hold: bool = False  # one of them has replicas
    unsettled: bool = False  # one is paused, or is not there though pods wait for it
    rolling: bool = False  # more than one attached ReplicaSet has replicas
    leaving: bool = False  # a ReplicaSet is going, and leaves its pods
    hanging: bool = False  # and has been for too long, or a loss does not let it wait
    orphans: bool = False  # pods that we have labelled have no owner
    parked_active: bool = (
        False  # a parked ReplicaSet has replicas: of an earlier version, or made by a foreign unpause
    )
    copied: bool = False  # the Deployment controller has copied our mark onto an attached ReplicaSet
    adrift: bool = False  # the Split or a parked ReplicaSet would not go with the source

    @property
    def holds(self) -> bool:
        """Whether anything of ours is on the workload itself."""
        return self.parked or self.returning or self.twins or self.let_go or self.mark is not Ownership.NONE

    @property
    def let_go(self) -> bool:
        """Whether orphans are pods that we have let go: any client may make one with our labels."""
        marked = self.mark is not Ownership.NONE or self.split or self.paused_by_us
        return self.orphans and (marked or self.parked or self.returning or self.twins)

    @property
    def is_undone(self) -> bool:
        """Whether a take-over is taken back though the label is there: its Split no longer takes over."""
        return self.label and self.report and self.mark is Ownership.OURS


def next_step(c: Columns) -> Step:
    """Return the first row of the table that matches.

    Source: H20 to H38; the comments name the row.
    """
    if c.is_undone:
        return _step_without_label(c)  # H29
    if c.label and not c.conflict:
        return _step_with_label(c)
    if c.label and not c.holds:
        # H30: given back in Conflict; the Split says so until the label goes
        return Step.CLEAN_UP if c.copied else Step.NOTHING
    return _step_without_label(c)


def _step_with_label(c: Columns) -> Step:
    # Anybody may make a pod with our labels: alone it is none that we have let go.
    let_go = c.orphans and (c.mark is not Ownership.NONE or c.split or c.paused)
    ours = c.parked or c.returning or c.twins or let_go
    if c.mark is Ownership.NONE and not ours and not ((c.split or c.paused_by_us) and c.paused):
        return Step.CONSIDER  # H21
    if c.mark is Ownership.OURS and not c.split and not ours and not c.paused:
        return Step.CONSIDER  # H21: `rollout undo` brings a mark back that the source's ReplicaSet had kept
    if c.mark is not Ownership.OURS:
        return Step.ADOPT  # H22
    if not c.split:
        return Step.CREATE_SPLIT  # H23
    if c.adrift:
        return Step.CLAIM  # H23: deleted with --cascade=orphan, and created anew
    if not c.paused:
        return Step.WAIT_ROLLOUT if c.twins_wait and c.rolling else Step.PAUSE  # H24
    if not c.observed or c.returning or (c.leaving and not c.hanging):
        return Step.WAIT_CONTROLLER  # H25
    if c.leaving:
        return Step.CUT_OFF  # H25
    if c.attached:
        return Step.ADOPT_PODS if c.twins_wait else Step.PARK  # H26
    return Step.SETTLE if c.unsettled else Step.RUN  # H27, H28


def _step_without_label(c: Columns) -> Step:
    if not c.holds and (c.conflict or not c.split):
        # H30. Only a report is left: a refusal, or a Conflict that was given back. The pause is the user's.
        # Or a copy of our mark, whose Split somebody has deleted.
        return Step.CLEAN_UP if c.split or c.report or c.copied else Step.NOTHING
    if c.returning or (c.leaving and not c.hanging):
        return Step.WAIT_CONTROLLER  # H31: another attached here would make two
    if c.leaving:
        return Step.CUT_OFF  # H31
    if c.let_go:
        return Step.OFFBOARD if c.twins_hold else Step.BRING_HOME  # H32
    if c.attached:
        if c.paused:
            return Step.UNPAUSE  # H33
        return Step.CLEAN_UP if c.ours_at_zero else Step.SHRINK_OURS  # H35, H34
    if not c.paused:
        return Step.WAIT_CONTROLLER  # H36
    if c.twins:
        return Step.OFFBOARD  # H37
    return Step.REATTACH if c.parked_active else Step.UNPAUSE  # H38


def holds_replicas(rs: ReplicaSetView) -> bool:
    """Whether a ReplicaSet has pods, or is to have some."""
    return bool(rs.spec_replicas or rs.status_replicas or any(pod.counts for pod in rs.pods))


def waits_for_pods(twin: TwinView) -> bool:
    """Whether a twin is paused and has nothing yet: it was created to adopt pods, or has let them go."""
    return twin.paused and not any(map(holds_replicas, twin.replica_sets))


@dataclass(frozen=True, slots=True)
class Holder:
    """One object that holds replicas, in the arithmetic of MAKE and BREAK (all counts: replicas)."""

    name: str
    spec: int
    held: int  # the most it may have at this moment, unschedulable ones left out
    available: int  # that it surely keeps as it is
    target: int
    on_demand: bool = False
    rank: int = 0  # BREAK takes from the lowest rank first
    resource_version: str = ""
    of: ReplicaSetView | TwinView | None = None  # None: all that is available serves, and nothing else

    def kept(self, given: int) -> int:
        """Return how many available replicas it surely keeps that gives so many."""
        if self.of is None:
            return max(0, min(self.available, self.spec - given))
        return kept_by(self.of, self.spec - given)

    def cost(self, given: int) -> int:
        """Return how many that serve it may lose, at the most, that gives so many (H56)."""
        return self.available - self.kept(given) if self.of is None else most_lost(self.of, self.spec - given)

    def shrink(self, least: int) -> int:
        """Return how many replicas above its target it can give: so that `least` surely stay available.

        Where fewer are available, those that cost nobody. Giving more keeps no more, but in some rolls: there
        it may give fewer than it could. Nothing here walks over the replicas: their number is a tenant's.
        """

        def is_too_many(given: int) -> bool:
            return self.kept(given) < least and self.cost(given) > 0

        excess = max(0, self.spec - self.target)
        return bisect_left(range(1, excess + 1), x=True, key=is_too_many)


def holder_of_replica_set(rs: ReplicaSetView, target: int, rank: int) -> Holder:
    """Count a parked ReplicaSet."""
    return Holder(
        name=rs.name,
        spec=rs.spec_replicas,
        held=max(rs.spec_replicas, rs.status_replicas, _counted(rs.pods)) - stuck(rs.pods),
        available=kept_by(rs, rs.spec_replicas),
        target=target,
        rank=rank,
        resource_version=rs.resource_version,
        of=rs,
    )


def holder_of_twin(twin: TwinView, target: int, rank: int, *, on_demand: bool) -> Holder:
    """Count a twin: the largest of what its spec, status and ReplicaSets hold; the least that serves.

    Scaled down and up within its controller's lag, a status still shows the old numbers, so the
    ReplicaSets' specs count too. In a roll it may surge above its spec.
    """
    replica_sets_spec = sum(rs.spec_replicas for rs in twin.replica_sets)
    surged = twin.spec_replicas + (twin.max_surge if may_roll(twin) and twin.spec_replicas else 0)
    return Holder(
        name=twin.name,
        spec=twin.spec_replicas,
        held=max(surged, twin.status_replicas, replica_sets_spec, _counted(twin.pods)) - stuck(twin.pods),
        available=kept_by(twin, twin.spec_replicas),
        target=target,
        on_demand=on_demand,
        rank=rank,
        resource_version=twin.resource_version,
        of=twin,
    )


def surging(twin: TwinView) -> int:
    """Count the replicas that a rollout may hold above the spec; those that wait for a node take no room."""
    if not is_rolling(twin) or not twin.spec_replicas:
        return 0
    return max(0, twin.max_surge - stuck(twin.pods))


def _counted(pods: Sequence[PodView]) -> int:
    return sum(1 for pod in pods if pod.counts)


def stuck(pods: Sequence[PodView]) -> int:
    """Count the replicas that the scheduler cannot place: they take no room from others."""
    return sum(1 for pod in pods if pod.counts and pod.unschedulable_since is not None)


def doomed_or_lost(pods: Sequence[PodView]) -> int:
    """Count the replicas that are about to go or gone: each is replaced at once on on-demand."""
    return sum(1 for pod in pods if pod.is_to_be_replaced)


def surge_headroom(holders: Sequence[Holder], replicas: int, surge: int, going: int) -> int:
    """Return how many replicas may be made now: N + S + doomed - what is held (never negative).

    `going` counts the doomed and the lost: in an emergency they do not take the place of their
    replacements (promise 2).
    """
    return max(0, replicas + surge + going - sum(holder.held for holder in holders))


def make(holders: Sequence[Holder], space: int) -> dict[str, int]:
    """Return the new spec of each holder that grows: on-demand before spot, within the room.

    >>> make([Holder("web-spot", 0, 0, 0, 6), Holder("web-od", 0, 0, 0, 2, on_demand=True)], 3)
    {'web-od': 2, 'web-spot': 1}
    """
    grown: dict[str, int] = {}
    for holder in sorted(holders, key=lambda holder: not holder.on_demand):
        step = min(holder.target - holder.spec, space)
        if step > 0:
            grown[holder.name] = holder.spec + step
            space -= step
    return grown


def break_(holders: Sequence[Holder], floor: int, others_available: int = 0) -> dict[str, int]:
    """Return the new spec of each holder that shrinks, without going below the floor (H56).

    A holder gives as many as leave the floor available for sure, in all. Below the floor it gives only what
    costs nobody. A replica that became ready in between would be deleted, so the caller sends each holder's
    resourceVersion along. `others_available` stay too, but are not ours to scale (the source's own, on the
    way back).

    >>> break_([Holder("old", 8, 8, 8, 0), Holder("web-spot", 2, 2, 2, 8)], floor=8)
    {'old': 6}
    """
    available = others_available + sum(holder.available for holder in holders)
    shrunk: dict[str, int] = {}
    for holder in sorted(holders, key=lambda holder: holder.rank):
        given = holder.shrink(floor - (available - holder.available))
        if given > 0:
            shrunk[holder.name] = holder.spec - given
            available -= holder.available - holder.kept(given)
    return shrunk

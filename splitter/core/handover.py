"""Names the steps of the state machine, and counts how far holders may grow and shrink.

Tables choose the step (`deployment.table`, `statefulset.table`, `placement.table`). `make` grows
holders that want more within the headroom, `break_` shrinks those that want less down to the floor; steps
call `break_` only when nothing was made. Nothing here knows what an API object looks like.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Generic, TypeVar

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


Columns = TypeVar("Columns")


@dataclass(frozen=True, slots=True)
class Row(Generic[Columns]):
    """One row of a table: the rule of docs/design/handover.md, when it matches, and the step that acts."""

    rule: str
    when: Callable[[Columns], bool]
    step: Step


def first_step(rows: Sequence[Row[Columns]], c: Columns) -> Step:
    """Return the step of the first row that matches; the last row of a table always does."""
    return next(row.step for row in rows if row.when(c))


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

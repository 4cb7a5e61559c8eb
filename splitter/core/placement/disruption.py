"""The only place that permits the end of a pod: each eviction or deletion of a member asks `permitted` (P10).

It knows the evidence and its age, what would keep the member from being made again (`recreation`), the
quorum, the budget and the back-off. It keeps count: splitter ends one
member at most `Tuning.restarts_per_hour` times within an hour, and moves it for the sake of order half as
often, whatever the cluster answers. The count is kept in the Split (`RebalanceState.restarts`), and by the
reconciler while that cannot be written (`Observation.restarts`). `place` calls it last, with all that a
reconcile would end; `mover` asks `hindrance` before, to say what a member waits for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto, unique

from splitter.core.clock import Waits, clock
from splitter.core.limits import MAX_WRITES
from splitter.core.model import Note
from splitter.core.placeable import FEW_REMEDY, FEWEST, UNPLACEABLE_AGAIN_S
from splitter.core.placement.members import TRANSIT_S, Hold, Member, PlacementInput
from splitter.core.placement.recreation import held_in_order, not_made_again
from splitter.core.reasons import Reason
from splitter.core.rebalance import Tuning
from splitter.core.rebalance.sentences import waiting
from splitter.core.replica import Replica
from splitter.core.split_status import RebalanceState, Restart

HOUR_S = 3600.0
# The Split remembers ends in whole seconds, so an end counts for a second longer than an hour.
_COUNTS_S = HOUR_S + 1.0
# An eviction that a PodDisruptionBudget refused is asked again after this.
ASK_AGAIN_S = 10.0


@unique
class Cause(Enum):
    """Why a pod is to end."""

    ORDER = auto()  # it stands in the wrong pool: any other time would do
    NOTICE = auto()  # its node is about to go
    VANISHED = auto()  # its Node object is gone
    UNBOUND = auto()  # it has never run, and waits for the wrong pool


_EVICTIONS = frozenset({Cause.ORDER, Cause.NOTICE})


def cause_of(member: Member, waits: Waits) -> Cause:
    """Return why a member is evicted: a cordon without a deadline leaves time for a planned move."""
    return Cause.NOTICE if member.is_doomed and not member.is_unhurried(waits) else Cause.ORDER


@dataclass(frozen=True, slots=True)
class End:
    """A pod that is to end, and why."""

    ordinal: int
    pod: Replica
    cause: Cause

    @property
    def serves(self) -> bool:
        """Whether one fewer is ready by it."""
        return self.cause in _EVICTIONS and self.pod.ready


def permitted(
    observed: PlacementInput, asked: Iterable[End], state: RebalanceState, tuning: Tuning
) -> tuple[tuple[End, ...], tuple[Hold, ...], RebalanceState]:
    """Return the ends that may be now, why the others may not, and the state that has counted the first.

    Only one eviction a reconcile, and none beside other ends: the quorum was counted before, and what the API
    server refuses must not take the count of what it did along. No more than one reconcile writes: what is
    counted is done. Nobody is ended before the admission policy is told. Never raises.
    """
    if not observed.published:
        return (), (), state
    granted: list[End] = []
    held: list[Hold] = []
    for end in asked:
        second = end.cause in _EVICTIONS and granted
        hold = hindrance(observed, end, state, tuning)
        if hold is not None:
            held.append(hold)
        elif not second and len(granted) < MAX_WRITES:
            granted.append(end)
            state = _counted(observed, end, state)
    return tuple(granted), tuple(held), state


def _counted(observed: PlacementInput, end: End, state: RebalanceState) -> RebalanceState:
    """Count an end. One pod ends once: what was asked of it a moment ago, by a process that died, counts."""
    if any(_is_this_end(observed, end, one) for one in state.restarts):
        return state
    counted = Restart(end.ordinal, observed.now, end.cause is Cause.ORDER)
    return replace(state, restarts=(*state.restarts, counted))


def _is_this_end(observed: PlacementInput, end: End, restart: Restart) -> bool:
    """Whether this very pod was asked to end within the last minute; Kubernetes tells whole seconds."""
    made = end.pod.created or observed.now
    recent = observed.waits.left_s(restart.at, TRANSIT_S) > 0
    return restart.ordinal == end.ordinal and recent and made < restart.at.replace(microsecond=0)


def hindrance(observed: PlacementInput, end: End, state: RebalanceState, tuning: Tuning) -> Hold | None:
    """Return why a pod may not be ended now; None: it may."""
    if end.cause in _EVICTIONS:
        return (
            _unplaceable(observed, end, state, tuning)
            or not_made_again(observed, end.ordinal, end.pod, state, tuning)
            or _without_majority(observed, end)
            or _beside_another(observed, end, state)
            or _too_often(observed, end, state, tuning)
            or _failed_before(observed, end, state, tuning)
            or _refused(observed, end)
        )
    if end.cause is Cause.VANISHED:
        return _may_still_run(observed, end, tuning) or _too_often(observed, end, state, tuning)
    return held_in_order(observed, end.ordinal, end.pod) or _too_often(observed, end, state, tuning)


def barred(
    observed: PlacementInput, member: Member, cause: Cause, state: RebalanceState, tuning: Tuning
) -> Hold | None:
    """Return why a member may not be ended now; None: it may, or has no pod."""
    if member.pod is None:
        return None
    return hindrance(observed, End(member.ordinal, member.pod, cause), state, tuning)


def is_member_spent(
    observed: PlacementInput, member: Member, cause: Cause, state: RebalanceState, tuning: Tuning
) -> bool:
    """Whether a member has to rest for its own sake: another may be moved meanwhile."""
    return member.pod is not None and is_spent(
        observed, End(member.ordinal, member.pod, cause), state, tuning
    )


def is_spent(observed: PlacementInput, end: End, state: RebalanceState, tuning: Tuning) -> bool:
    """Whether a member has to rest for its own sake: another may be moved meanwhile."""
    return bool(_too_often(observed, end, state, tuning) or _failed_before(observed, end, state, tuning))


def last_end(state: RebalanceState, ordinal: int) -> datetime | None:
    """Return when splitter ended a member last, as far as is remembered."""
    return max((one.at for one in state.restarts if one.ordinal == ordinal), default=None)


def within_the_hour(state: RebalanceState, now: datetime) -> RebalanceState:
    """Forget the ends that count no more."""
    since = now - timedelta(seconds=_COUNTS_S)
    return replace(state, restarts=tuple(one for one in state.restarts if one.at > since))


def _unplaceable(observed: PlacementInput, end: End, state: RebalanceState, tuning: Tuning) -> Hold | None:
    """Hold everybody while nothing would place the pod that comes after (P18)."""
    if observed.unplaceable:
        message = f"{end.pod.name} is not moved, it would start anywhere: {observed.unplaceable}"
        observed.waits.look_in(UNPLACEABLE_AGAIN_S)  # no event tells that a policy was installed
        return Hold(Note(Reason.PLACEMENT_UNSUPPORTED, message, warning=True), UNPLACEABLE_AGAIN_S)
    if not state.unplaced:
        return None
    interval_s = tuning.step_interval_s
    rest_s = max(interval_s, state.failed_moves.rest_s(interval_s), state.failed_covers.rest_s(interval_s))
    if not (wait_s := observed.waits.left_s(state.last_step, rest_s)):
        return None
    message = (
        f"{end.pod.name} is not moved before {clock(state.last_step, rest_s)}, it would start anywhere: the"
        " pod of the last move was created without its label, so policy splitter-placement does not act. Is"
        " it there, with its binding, and does the API server evaluate it?"
    )
    return Hold(Note(Reason.PLACEMENT_UNSUPPORTED, message, warning=True), wait_s)


def _without_majority(observed: PlacementInput, end: End) -> Hold | None:
    """Hold where half of the members or fewer would be ready, those being scaled away included (P11)."""
    # The StatefulSet's own update may take so many more in this very moment.
    by_update = observed.update_at_once if observed.rolling else 0
    leaving = int(end.serves) + by_update
    if not end.serves or observed.keeps_majority_without(leaving):
        return None
    also = "the one that is" if by_update == 1 else f"the {by_update} that are"
    update = f" beside {also} rolled" if by_update else ""
    message = (
        f"{end.pod.name} stays on doomed node {end.pod.node}: without it{update}"
        f" {observed.serving - leaving} of {observed.known} would be ready, no majority"
    )
    if observed.desired < FEWEST:
        message += f"; it starts on on-demand when it is made again. {FEW_REMEDY}"
    return Hold(Note(Reason.QUORUM_HELD, message, warning=True))


def _beside_another(observed: PlacementInput, end: End, state: RebalanceState) -> Hold | None:
    """Hold while another member was asked to end and nobody knows whether it will: no pod shows it yet.

    The answer got lost, or a leader asked that leads no more: its request may still arrive (docs/adr/0038).
    """
    waits = {
        member.ordinal: wait_s
        for member in observed.members
        if member.ordinal != end.ordinal
        and member.pod is not None
        and member.pod.counts
        and (last := last_end(state, member.ordinal)) is not None
        # Kubernetes tells whole seconds.
        and (member.pod.created or observed.now) < last.replace(microsecond=0)
        and (wait_s := observed.waits.left_s(last, TRANSIT_S))
    }
    if not waits:
        return None
    other = min(waits)
    message = (
        f"{end.pod.name} is not moved before {clock(last_end(state, other), TRANSIT_S)}:"
        f" {observed.name}-{other} was asked to end, and may be about to"
    )
    return Hold(waiting(message), max(waits.values()))


def _too_often(observed: PlacementInput, end: End, state: RebalanceState, tuning: Tuning) -> Hold | None:
    """Hold a member that was ended as often as may be within an hour (P16)."""
    own = sorted(
        one for one in state.restarts if one.ordinal == end.ordinal and not _is_this_end(observed, end, one)
    )
    times, planned = [one.at for one in own], [one.at for one in own if one.planned]
    wait_s = _until_fewer(observed.waits, times, tuning.restarts_per_hour)
    if end.cause is Cause.ORDER:
        wait_s = max(wait_s, _until_fewer(observed.waits, planned, max(1, tuning.restarts_per_hour // 2)))
    if not wait_s:
        return None
    message = (
        f"{end.pod.name} is left alone until {clock(observed.now, wait_s)}: splitter has ended it"
        f" {len(times)} times within the hour"
    )
    return Hold(Note(Reason.RESTART_LIMIT, message, warning=True), wait_s)


def _until_fewer(waits: Waits, times: Sequence[datetime], most: int) -> float:
    return waits.left_s(times[-most], _COUNTS_S) if len(times) >= most else 0.0


def _failed_before(observed: PlacementInput, end: End, state: RebalanceState, tuning: Tuning) -> Hold | None:
    """Hold a doomed member that came back to spot, ever longer. Of planned moves `mover` asks earlier."""
    if end.cause is not Cause.NOTICE:
        return None
    rest_s, last = state.failed_covers.rest_s(tuning.step_interval_s), last_end(state, end.ordinal)
    if not (wait_s := observed.waits.left_s(last, rest_s)):
        return None
    message = (
        f"{end.pod.name} stays on doomed node {end.pod.node} until {clock(last, rest_s)}: it was moved, and"
        " started on spot again"
    )
    return Hold(Note(Reason.MOVE_UNDONE, message, warning=True), wait_s)


def _refused(observed: PlacementInput, end: End) -> Hold | None:
    refused = observed.refused
    if refused is None or refused.pod_uid != end.pod.uid:
        return None
    wait_s = observed.waits.left_s(refused.at, ASK_AGAIN_S)
    if not wait_s:
        return None
    message = f"{end.pod.name} may not be evicted now: {refused.detail}"
    return Hold(Note(Reason.EVICTION_REFUSED, message, warning=True), wait_s)


def _may_still_run(observed: PlacementInput, end: End, tuning: Tuning) -> Hold | None:
    """Hold a pod whose Node went while Ready: somebody deleted it, and a kubelet may run the pod on (P14)."""
    pod = end.pod
    wait_s = observed.waits.left_s(pod.vanished_since, tuning.vanished_node_wait_s)
    if not wait_s:
        return None
    removed_at = clock(pod.vanished_since, tuning.vanished_node_wait_s)
    message = (
        f"{pod.name} is removed at {removed_at}: Node {pod.node} was Ready"
        " when its object went, so the pod may still run there, or the node may register anew"
    )
    return Hold(Note(Reason.SPOT_LOST, message) if pod.on_spot else waiting(message), wait_s)

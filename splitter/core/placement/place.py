"""One reconcile of placement: ordinals, pods to remove, at most one to move, the room to hold, and why.

The planner calls `place` in every reconcile of a workload in placement mode and turns the answer into writes.
When the ordinals change, they are all that is written in that reconcile (P5): a pod that ended in the same
breath could be born by the old ones. It must never see a clock: the same input gives the same answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.placeable import FEWEST
from splitter.core.placement.disruption import Cause, End, cause_of, permitted, within_the_hour
from splitter.core.placement.members import (
    Eviction,
    Hold,
    Member,
    Move,
    PlacementInput,
    Reservation,
    rebalance_input,
    spoken,
)
from splitter.core.placement.mover import next_move
from splitter.core.placement.ordinals import Ordinals, ordinals
from splitter.core.placement.outcome import judged, with_spent
from splitter.core.reasons import Reason
from splitter.core.rebalance import Tuning, losses
from splitter.core.rebalance.sentences import waiting
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status import RebalanceState

_AT_ONCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Placed:
    """What to put in force, remove, move and hold; what to remember, what to say, when to look again."""

    ordinals: tuple[int, ...]
    base: frozenset[int]
    verdict: Note
    state: RebalanceState
    evict: Eviction | None = None
    vanished: tuple[Replica, ...] = ()
    """Pods whose Node objects are gone: nothing of them runs, and only their deletion makes them anew."""
    unbound: tuple[Replica, ...] = ()
    """Pods that have never run, and wait for a pool that they are no longer meant for."""
    reservation: Reservation | None = None
    notes: tuple[Note, ...] = ()
    moving: bool = False
    outlook: tuple[str, ...] = ()
    """What each member would do next, one sentence each."""
    requeue_after_s: float | None = None
    """When time alone may change the answer; None when only an event can."""


def place(
    observed: PlacementInput, policy: Policy, state: RebalanceState, tuning: Tuning | None = None
) -> Placed:
    """Return what to do now for one StatefulSet in placement mode.

    Example: N = 5 with a majority on on-demand: ordinals 0-2 are there, 3 and 4 on spot. All spot nodes get
    a notice: 3 and 4 join the set in this call, in the next `db-3` is evicted, and `db-4` when that is ready.
    """
    placed = _placed(observed, policy, state, tuning or Tuning())
    return replace(placed, requeue_after_s=observed.waits.next_due_s)


def _placed(observed: PlacementInput, policy: Policy, state: RebalanceState, tuning: Tuning) -> Placed:
    before = state.not_after(observed.now)
    state = losses(rebalance_input(observed, policy), policy, before, tuning)
    state, undone = judged(observed, policy, within_the_hour(state, observed.now))
    if policy.freeze or observed.view_broken or observed.desired == 0:
        return _held(observed, policy, state, tuning)
    where = ordinals(observed, policy, state)
    move = next_move(observed, where, policy, state, tuning)
    if returning := _returning(observed, policy, state, move) & where.in_force:
        where = ordinals(observed, policy, state, returning)
    state = replace(state, yielded=tuple(sorted(where.yielded)))
    in_force = tuple(sorted(where.in_force))
    placed = Placed(
        ordinals=in_force,
        base=where.base,
        verdict=_at_rest(observed, where),
        state=state,
        reservation=move.reservation,
        notes=() if undone is None else (undone,),
        outlook=tuple(_outlook(observed, where, move)),
    )
    if set(in_force) != set(observed.in_force) or not observed.published:
        notes = (*placed.notes, *where.notes)
        return replace(
            placed, verdict=where.notes[0] if where.notes else placed.verdict, notes=notes, moving=True
        )
    state, spent = with_spent(observed, state, tuning)
    if spent is not None:
        placed = replace(placed, state=state, notes=(*placed.notes, spent))
    return _ended(observed, placed, move, tuning)


def _ended(observed: PlacementInput, placed: Placed, move: Move, tuning: Tuning) -> Placed:
    """Return it with the pods to end: those of all that are asked for which may be ended now."""
    asked = (*_vanished(observed), *_misborn(observed), *_to_evict(observed, move))
    granted, held, state = permitted(observed, asked, placed.state, tuning)
    vanished = tuple(one.pod for one in granted if one.cause is Cause.VANISHED)
    placed = replace(
        placed,
        state=state,
        vanished=vanished,
        unbound=tuple(one.pod for one in granted if one.cause is Cause.UNBOUND),
    )
    if isinstance(move.step, Eviction) and any(one.pod.uid == move.step.uid for one in granted):
        step, note = move.step, move.note or placed.verdict
        state = replace(
            state,
            moved=step.ordinal,
            moved_uid=step.uid,
            moved_up=step.to is Pool.ON_DEMAND,
            last_step=observed.now,
        )
        return replace(
            placed, evict=step, verdict=note, state=state, notes=(*placed.notes, note), moving=True
        )
    if vanished:
        note = _removal(observed, vanished)
        if len(granted) < len(asked):  # those of nodes that went later too
            observed.waits.look_in(_AT_ONCE_S)
        return replace(placed, verdict=note, notes=(*placed.notes, note), moving=True)
    holds = (*held, *((move.step,) if isinstance(move.step, Hold) else ()))
    warned = tuple(one.note for one in holds if one.note.warning)
    verdict = holds[0].note if holds else placed.verdict
    return replace(placed, verdict=verdict, notes=(*placed.notes, *warned))


def _to_evict(observed: PlacementInput, move: Move) -> Iterator[End]:
    if not isinstance(move.step, Eviction):
        return
    ordinal = move.step.ordinal
    member = next((m for m in observed.members if m.ordinal == ordinal), None)
    if member is not None and member.pod is not None:
        yield End(ordinal, member.pod, cause_of(member, observed.waits))


def _returning(observed: PlacementInput, policy: Policy, state: RebalanceState, move: Move) -> frozenset[int]:
    """Return the ordinals whose move to spot is due; where none may be moved, time alone lets them return."""
    if isinstance(move.step, Eviction):
        return frozenset({move.step.ordinal}) if move.step.to is Pool.SPOT else frozenset()
    calm = state.last_loss is None or (observed.waits.past(state.last_loss, state.soak(policy.soak_s)))
    settled = calm and not observed.blocked and not any(member.is_doomed for member in observed.members)
    few = observed.desired < FEWEST
    return frozenset(_ordinals(observed)) if few and settled else frozenset()


def _held(observed: PlacementInput, policy: Policy, state: RebalanceState, tuning: Tuning) -> Placed:
    """Leave the ordinals and the pods as they are; only what no node has any more is removed."""
    granted, _, state = permitted(observed, _vanished(observed), state, tuning)
    vanished = tuple(one.pod for one in granted)
    kept = tuple(sorted(observed.in_force))
    if observed.desired == 0:
        note = Note(Reason.BALANCED, "no replica is asked for")
    elif policy.freeze:
        note = Note(Reason.FROZEN, f"hold ordinals {spoken(kept)} on on-demand: splitter.io/freeze is set")
    else:
        note = Note(
            Reason.CONTROL_PLANE_VIEW,
            f"hold ordinals {spoken(kept)} on on-demand and move nothing: more than half of the on-demand"
            " nodes are NotReady too, so our view of the cluster is broken, not spot",
            warning=True,
        )
    where = replace(ordinals(observed, policy, state), in_force=frozenset(kept))
    outlook = tuple(_outlook(observed, where, Move(Hold(note))))
    return Placed(kept, where.base, note, state, vanished=vanished, outlook=outlook)


def _vanished(observed: PlacementInput) -> Iterator[End]:
    """Yield the pods whose Node objects are gone, and no other has their names (P14, P15).

    Where one has, its kubelet starts the pods that are bound to it, and says how they are.
    """
    pods = (
        *((m.ordinal, m.pod) for m in observed.members),
        *((one.ordinal, one) for one in observed.surplus),
    )
    for ordinal, pod in pods:
        if pod is None or ordinal is None or pod.node is None or not observed.removes_vanished:
            continue
        if pod.vanished and not pod.successor and not pod.finished:
            yield End(ordinal, pod, Cause.VANISHED)


def _removal(observed: PlacementInput, vanished: tuple[Replica, ...]) -> Note:
    """Say which pods are removed, and why nothing else would."""
    names = ", ".join(pod.name for pod in vanished)
    nodes = ", ".join(dict.fromkeys(str(pod.node) for pod in vanished))
    message = (
        f"remove {names}: no Node object is left of {nodes}, and a StatefulSet makes no pod anew while one of"
        f" its name is there; {observed.serving} of {observed.desired} are ready"
    )
    return Note(Reason.SPOT_LOST, message, warning=True)


def _misborn(observed: PlacementInput) -> tuple[End, ...]:
    """Return the pods that wait for on-demand although their ordinal may start on spot by now."""
    return tuple(
        End(member.ordinal, member.pod, Cause.UNBOUND)
        for member in observed.members
        if member.pod is not None
        and member.born is Pool.ON_DEMAND
        and member.ordinal not in observed.in_force
        and member.pod.counts
        and member.pod.node_status is NodeStatus.UNBOUND
        and member.pod.unschedulable_since is not None
    )


def _at_rest(observed: PlacementInput, where: Ordinals) -> Note:
    """Say how it stands when nothing is to be moved."""
    unready = [member.ordinal for member in observed.members if not member.is_sound]
    if unready:
        message = (
            f"{observed.desired - len(unready)} of {observed.desired} are ready on nodes that stay; waiting"
            f" for {', '.join(f'{observed.name}-{ordinal}' for ordinal in unready)}"
        )
        return waiting(message)
    message = (
        f"ordinals {spoken(where.in_force)} on on-demand,"
        f" {spoken(set(_ordinals(observed)) - where.in_force)} on spot, as wanted"
    )
    return Note(Reason.BALANCED, message)


def _ordinals(observed: PlacementInput) -> Iterator[int]:
    return (member.ordinal for member in observed.members)


def _outlook(observed: PlacementInput, where: Ordinals, move: Move) -> Iterator[str]:
    """Say of each member where it stands, where it is wanted, and what would happen to it next."""
    for member in observed.members:
        wanted = Pool.ON_DEMAND if member.ordinal in where.in_force else Pool.SPOT
        next_ = _next(member, wanted, move)
        yield f"{observed.name}-{member.ordinal}: {_stands(member)}; wanted on {wanted}{next_}"


def _stands(member: Member) -> str:
    pod = member.pod
    if pod is None:
        return "not there now"
    if pod.terminating:
        return f"ending on node {pod.node}" if pod.node else "ending"
    match pod.node_status:
        case NodeStatus.UNBOUND:
            return "waits for a node"
        case NodeStatus.LOST:
            return f"on node {pod.node}, which has gone or says nothing"
        case NodeStatus.DOOMED:
            return f"on doomed node {pod.node}"
        case _:
            pool = f"{member.pool} " if member.pool is not None else ""
            return f"on {pool}node {pod.node}{'' if member.serves else ', not ready'}"


def _next(member: Member, wanted: Pool, move: Move) -> str:
    """Say what would happen to a member next; nothing where it stands as wanted."""
    if isinstance(move.step, Eviction) and move.step.ordinal == member.ordinal:
        return ": moves now"
    if (without_us := _by_itself(member)) is not None:
        return without_us
    if not member.is_doomed and member.pool in {None, wanted}:
        return ""
    if not member.may_stand_on(wanted):
        return f": stays ({member.reach.why})"
    holds = isinstance(move.step, Hold) and (
        move.reservation is None or move.reservation.ordinal == member.ordinal
    )
    if not isinstance(move.step, Hold) or not holds:
        return ": moves later"
    return f": {'waits' if move.reservation is None else 'moves next'} ({move.step.note.reason})"


def _by_itself(member: Member) -> str | None:
    """Say what happens to a member whose pod has ended or whose node goes by choice; None of any other."""
    pod = member.pod
    if pod is None or (pod.terminating and not member.is_lost):
        return ": the StatefulSet makes it again"
    if member.is_lost:
        if pod.successor:
            return f": the kubelet of the new node {pod.node} starts it"
        return ": removed, and made again" if pod.vanished else f": made again when Node {pod.node} is gone"
    if pod.node_status is NodeStatus.DOOMED and not member.is_doomed:
        return ": left to whoever drains the node"
    return None

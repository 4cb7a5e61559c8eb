"""Which pod is moved next: at most one, and only when more than half of the members stay ready without it.

`place` asks once a pass. A doomed pod is moved at once, while its node still lives; one that merely stands in
the wrong pool only when every other member is ready, nothing else is under way, and a placeholder holds
the room that it will need. Pods whose nodes have gone are not moved but deleted (`place`), and those of a
node that only says nothing are left alone: a StatefulSet promises at most one pod for each name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from splitter.core.model import Note, Policy, Pool
from splitter.core.placeable import FEW_REMEDY, FEWEST
from splitter.core.placement.members import Member, Placeholder, PlacementInput
from splitter.core.placement.ordinals import Ordinals
from splitter.core.reasons import Reason
from splitter.core.rebalance import RebalanceState, Tuning

# An eviction that a PodDisruptionBudget refused is asked again after this.
ASK_AGAIN_S = 10.0
_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class Eviction:
    """End this pod, by the eviction API: the StatefulSet makes it anew, in the other pool."""

    ordinal: int
    pod: str
    uid: str
    to: Pool


@dataclass(frozen=True, slots=True)
class Room:
    """Hold room in a pool for one member's move."""

    pool: Pool
    ordinal: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing moves, and the seconds after which time alone may change that."""

    note: Note
    wake_s: float | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """The next eviction or what it waits for, and the room to hold meanwhile; all None: nothing to move."""

    step: Eviction | Hold | None = None
    room: Room | None = None
    note: Note | None = None


def next_move(
    observed: PlacementInput, where: Ordinals, policy: Policy, state: RebalanceState, tuning: Tuning
) -> Move:
    """Return the one move that is due. Units: seconds; never raises."""
    if any(member.is_doomed for member in observed.members):
        return _urgent(observed, where, policy)
    candidate, to = _misplaced(observed, where)
    if candidate is None:
        return Move()
    if observed.desired < FEWEST:
        message = (
            f"{_name(observed, candidate)} stands on {_other(to)} and is wanted on {to}: without it"
            f" {observed.desired - 1} of {observed.desired} would be ready, no majority; it moves when it is"
            f" made anew, by itself or by you. {FEW_REMEDY}"
        )
        return Move(Hold(Note(Reason.QUORUM_HELD, message)))
    held = observed.placeholder
    if to is Pool.SPOT and (early := _too_early(observed, candidate, held, state, tuning)) is not None:
        return Move(early)
    room = Room(to, candidate.ordinal)
    hold = _waits_for_others(observed, candidate, to) or _waits_for_room(observed, candidate, to, held)
    if hold is None and to is Pool.SPOT and held is not None:
        hold = _earns(observed, candidate, held, policy, state, tuning)
    if hold is not None:
        return Move(hold, room)
    return Move(_evicted(candidate, to), room, _moves(observed, where, candidate, to))


def _urgent(observed: PlacementInput, where: Ordinals, policy: Policy) -> Move:
    """Move the doomed while their nodes live: one at a time, the one with the least time first."""
    movable = [
        m
        for m in observed.members
        if m.is_doomed
        and m.ordinal in where.in_force
        and m.pod is not None
        and not m.is_lost
        and m.pod.counts
    ]
    if not movable:
        return Move(Hold(_unmovable(observed)))
    first = min(movable, key=_urgency)
    name, node = _name(observed, first), first.pod.node if first.pod is not None else None
    others = [m for m in observed.members if m.ordinal != first.ordinal]
    underway = [m for m in others if m.in_transit(observed.now, policy.grace_s)]
    if underway:
        message = (
            f"{name} on doomed node {node} waits for {_name(observed, underway[0])}: one member at a time"
        )
        return Move(Hold(Note(Reason.WAITING_FOR_REPLICAS, message)))
    # The StatefulSet's own update may take one more in this very moment.
    leaving = int(first.serves) + bool(observed.rolling)
    if first.serves and not observed.keeps_majority_without(leaving):
        update = " beside the one that is rolled" if observed.rolling else ""
        message = (
            f"{name} stays on doomed node {node}: without it{update} {observed.serving - leaving} of"
            f" {observed.desired} would be ready, no majority"
        )
        if observed.desired < FEWEST:
            message += f"; it is born on on-demand when it is made anew. {FEW_REMEDY}"
        return Move(Hold(Note(Reason.QUORUM_HELD, message, warning=True)))
    if (refused := _refused(observed, first)) is not None:
        return Move(refused)
    signal = first.pod.signal if first.pod is not None else ""
    message = f"evict {name}: node {node} is about to go ({signal or 'doomed'}); it starts anew on on-demand"
    return Move(_evicted(first, Pool.ON_DEMAND), None, Note(Reason.SPOT_INTERRUPTED, message, warning=True))


def _unmovable(observed: PlacementInput) -> Note:
    """Say why none of the doomed is moved."""
    doomed = [m for m in observed.members if m.is_doomed]
    ending = [m for m in doomed if m.pod is not None and m.pod.terminating]
    lost = [m for m in doomed if m.is_lost]
    first = next(iter((*lost, *ending, *doomed)))
    name, node = _name(observed, first), first.pod.node if first.pod is not None else None
    if first in lost:
        message = (
            f"{name} is made anew as soon as it ends or Node {node} is deleted: {node} says nothing, the old"
            " pod may still run there, and no name may run twice"
        )
        return Note(Reason.SPOT_LOST, message, warning=True)
    if first in ending:
        return Note(Reason.WAITING_FOR_REPLICAS, f"{name} is ending on doomed node {node}")
    if not first.reach.on_demand:
        message = f"{name} stays on doomed node {node}: {first.reach.why}"
        return Note(Reason.VOLUME_ZONE_CONFLICT, message, warning=True)
    message = f"{name} stays on doomed node {node}: on-demand-max leaves no room on on-demand"
    return Note(Reason.ON_DEMAND_CAPPED, message, warning=True)


def _urgency(member: Member) -> tuple[bool, datetime, int]:
    """Order the doomed: what does not serve costs nothing, then the nearest deadline, then primaries."""
    pod = member.pod
    deadline = pod.deadline if pod is not None else None
    return member.serves, deadline or datetime.max.replace(tzinfo=UTC), member.ordinal


def _misplaced(observed: PlacementInput, where: Ordinals) -> tuple[Member | None, Pool]:
    """Return who stands in the wrong pool: to on-demand first, lowest first; then to spot, highest first."""
    up = [
        m
        for m in observed.members
        if m.pool is Pool.SPOT and m.ordinal in where.base and m.may_stand_on(Pool.ON_DEMAND)
    ]
    down = [
        m
        for m in reversed(observed.members)
        if m.pool is Pool.ON_DEMAND and m.ordinal not in where.base and m.may_stand_on(Pool.SPOT)
    ]
    if up:
        return _already_held(up, observed.placeholder, Pool.ON_DEMAND), Pool.ON_DEMAND
    return (_already_held(down, observed.placeholder, Pool.SPOT) if down else None), Pool.SPOT


def _already_held(members: Sequence[Member], held: Placeholder | None, pool: Pool) -> Member:
    """Return the member that a placeholder waits for already, else the first."""
    if held is not None and held.pool is pool:
        return next((m for m in members if m.ordinal == held.ordinal), members[0])
    return members[0]


def _waits_for_others(observed: PlacementInput, candidate: Member, to: Pool) -> Hold | None:
    name = _name(observed, candidate)
    if observed.rolling:
        message = f"{name} moves to {to} when the StatefulSet's own update is through: {observed.rolling}"
        return Hold(Note(Reason.ROLLOUT_IN_PROGRESS, message))
    unready = [m for m in observed.members if not m.is_sound]
    if unready:
        ready = observed.desired - len(unready)
        not_yet = "it is not itself" if candidate in unready else f"{_name(observed, unready[0])} is not"
        message = (
            f"{name} waits to move to {to}: {ready} of {observed.desired} are ready on nodes that stay,"
            f" {not_yet}"
        )
        return Hold(Note(Reason.WAITING_FOR_REPLICAS, message))
    if observed.surplus:
        message = f"{name} waits to move to {to}: {observed.surplus[0].name} is being scaled away"
        return Hold(Note(Reason.WAITING_FOR_REPLICAS, message))
    return _refused(observed, candidate)


def _refused(observed: PlacementInput, candidate: Member) -> Hold | None:
    refused, pod = observed.refused, candidate.pod
    if refused is None or pod is None or refused.pod_uid != pod.uid:
        return None
    left_s = _left_s(observed.now, refused.at, ASK_AGAIN_S)
    if not left_s:
        return None
    message = f"{_name(observed, candidate)} may not be evicted now: {refused.detail}"
    return Hold(Note(Reason.EVICTION_REFUSED, message, warning=True), left_s)


def _too_early(
    observed: PlacementInput,
    candidate: Member,
    held: Placeholder | None,
    state: RebalanceState,
    tuning: Tuning,
) -> Hold | None:
    """Return why no room on spot is asked for yet: it was lost just now, or nobody can get a machine.

    Room that is held already proves more than what an autoscaler says, and so do machines that have room.
    """
    name = _name(observed, candidate)
    settles_s = _left_s(observed.now, state.last_loss, tuning.settle_s)
    if settles_s and held is None:
        reason, what = (
            (Reason.SPOT_INTERRUPTED, "had a notice") if state.interrupted else (Reason.SPOT_LOST, "was lost")
        )
        return Hold(Note(reason, f"{name} waits on on-demand: spot {what} a moment ago"), settles_s)
    standing = held is not None and held.pool is Pool.SPOT and held.pod.available
    if not observed.blocked or observed.fit_spot or standing:
        return None
    message = f"{name} stays on on-demand, and no room on spot is asked for: {observed.blocked}"
    return Hold(Note(Reason.SPOT_BLOCKED, message))


def _waits_for_room(
    observed: PlacementInput, candidate: Member, to: Pool, held: Placeholder | None
) -> Hold | None:
    name = _name(observed, candidate)
    fits = held is not None and (held.pool, held.ordinal, held.made_of) == (
        to,
        candidate.ordinal,
        observed.made_of,
    )
    if held is not None and fits and held.pod.available:
        return None
    since = held.pod.unschedulable_since if held is not None and fits else None
    why = f"no node has had room since {_clock(since)}" if since is not None else "a placeholder asks for it"
    message = f"{name} stays on {_other(to)} until room on {to} is held for it: {why}"
    return Hold(Note(Reason.WAITING_FOR_ROOM, message))


def _earns(  # noqa: PLR0917 - what every step of the mover is given, and its candidate
    observed: PlacementInput,
    candidate: Member,
    held: Placeholder,
    policy: Policy,
    state: RebalanceState,
    tuning: Tuning,
) -> Hold | None:
    """Return why spot is not trusted yet, with the soak and the back-off that twins know too."""
    name = _name(observed, candidate)
    hinted = next((pod for pod in (*observed.on_spot, held.pod) if pod.hinted and pod.counts), None)
    if hinted is not None:
        message = f"{name} stays on on-demand: {hinted.node}: {hinted.signal}"
        return Hold(Note(Reason.SPOT_BLOCKED, message))
    soak_s = 0.0
    if state.last_loss is not None:
        soak_s = min(state.soak(policy), tuning.fast_s) if state.proven else state.soak(policy)
    begins = max(
        (one for one in (held.pod.ready_since, None if state.proven else state.last_loss) if one is not None),
        default=None,
    )
    if left_s := _left_s(observed.now, begins, soak_s):
        until = _clock(begins, soak_s)
        message = f"{name} stays on on-demand until {until}: spot has to stand for {soak_s:.0f} s first"
        return Hold(Note(Reason.SOAKING, message), left_s)
    rest_s = rest(state, tuning)
    if left_s := _left_s(observed.now, state.last_step, rest_s):
        tried = f", after {state.failed_moves} that ended where they began" if state.failed_moves else ""
        message = (
            f"{name} moves to spot at {_clock(state.last_step, rest_s)}: one move in {rest_s:.0f} s{tried}"
        )
        return Hold(Note(Reason.RETURNING, message), left_s)
    return None


def rest(state: RebalanceState, tuning: Tuning) -> float:
    """Return the seconds between two moves to spot: doubled by each that ended where it began.

    >>> rest(RebalanceState(failed_moves=2), Tuning())
    240.0
    """
    doubled = tuning.step_interval_s * float(2 ** min(state.failed_moves, _DOUBLINGS))
    return min(doubled, max(tuning.soak_max_s, tuning.step_interval_s))


def judged(observed: PlacementInput, state: RebalanceState) -> tuple[RebalanceState, Note | None]:
    """Look how the last move to spot ended; the note is about one that ended where it began."""
    moved = next((m for m in observed.members if m.ordinal == state.moved), None)
    if state.moved is None or state.last_step is None:
        return state, None
    if moved is None:
        return replace(state, moved=None), None
    pod = moved.pod
    if pod is None or pod.created is None or pod.created < state.last_step or not moved.serves:
        return state, None
    if moved.pool is Pool.ON_DEMAND:
        message = (
            f"{_name(observed, moved)} was to start on spot, and the scheduler chose on-demand node"
            f" {pod.node}; the next try waits longer"
        )
        state = replace(state, moved=None, failed_moves=state.failed_moves + 1)
        return state, Note(Reason.MOVE_UNDONE, message, warning=True)
    return replace(state, moved=None, failed_moves=0), None


def _moves(observed: PlacementInput, where: Ordinals, candidate: Member, to: Pool) -> Note:
    name = _name(observed, candidate)
    if to is Pool.ON_DEMAND:
        message = (
            f"evict {name}: it starts anew on on-demand, where {len(where.base)} of {observed.desired} are"
            " wanted"
        )
        return Note(Reason.SCALED, message)
    wanted = observed.desired - len(where.base)
    message = (
        f"evict {name}: it starts anew on spot, where {wanted} of {observed.desired} are wanted and its room"
        " is held"
    )
    return Note(Reason.RETURNING, message)


def _evicted(member: Member, to: Pool) -> Eviction | None:
    if member.pod is None:
        return None
    return Eviction(member.ordinal, member.pod.name, member.pod.uid, to)


def _name(observed: PlacementInput, member: Member) -> str:
    return f"{observed.name}-{member.ordinal}"


def _other(pool: Pool) -> Pool:
    return Pool.SPOT if pool is Pool.ON_DEMAND else Pool.ON_DEMAND


def _left_s(now: datetime, since: datetime | None, after_s: float) -> float:
    """Return the seconds until `after_s` have passed; 0 when they have."""
    if since is None:
        return 0.0
    return max(0.0, after_s - (now - since).total_seconds())


def _clock(since: datetime | None, after_s: float = 0.0) -> str:
    """Return an instant as people read it, in UTC."""
    if since is None:
        return "now"
    return f"{(since + timedelta(seconds=after_s)).astimezone(UTC):%H:%M:%SZ}"

"""Chooses the next pod to move: at most one. Whether it may be is for `disruption` to say (P10).

`place` asks once a reconcile. A pod whose node goes soon is moved at once (`notice`); one that stands in the
wrong pool, or on a spot node that is cordoned, only when every other member is ready, nothing else is under
way, and a placeholder holds the room that it will need. Pods whose nodes have gone are not moved but deleted
(`place`), and those of a node that only says nothing are left alone: a StatefulSet promises at most one pod
for each name.
"""

from collections.abc import Sequence

from splitter.core.clock import clock
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.placeable import FEW_REMEDY, FEWEST
from splitter.core.placement.calm import waits_for_others, waits_long
from splitter.core.placement.disruption import Cause, barred, is_member_spent
from splitter.core.placement.members import (
    Hold,
    Member,
    Move,
    Placeholder,
    PlacementInput,
    Reservation,
    evicted,
)
from splitter.core.placement.notice import moved_on_notice, unmovable
from splitter.core.placement.ordinals import Ordinals
from splitter.core.placement.outcome import rest, room_rest
from splitter.core.placement.recreation import not_made_again
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.rebalance import Tuning, rests_until
from splitter.core.replica import Pool
from splitter.core.split_status import RebalanceState

# A move that is further away, or has waited longer for somebody, holds no room: a node may be kept for it. On
# spot a placeholder stands for the soak too.
_RESERVES_S = 300.0


def next_move(
    observed: PlacementInput, where: Ordinals, policy: Policy, state: RebalanceState, tuning: Tuning
) -> Move:
    """Return the one move that is due. Units: seconds; never raises."""
    if any(m.is_doomed and not m.is_unhurried(observed.waits) for m in observed.members):
        return moved_on_notice(observed, where, policy, state, tuning)
    leaving = _leaving(observed, where, policy)
    if not leaving and any(m.is_doomed for m in observed.members):
        return Move(Hold(unmovable(observed)))
    candidate, to = _misplaced(observed, where, leaving, state, tuning)
    if candidate is None:
        return Move()
    if observed.desired < FEWEST and candidate.is_doomed:
        return Move(barred(observed, candidate, Cause.ORDER, state, tuning))
    if observed.desired < FEWEST:
        message = (
            f"{_name(observed, candidate)} stands on {_other(to)} and is wanted on {to}: without it"
            f" {observed.desired - 1} of {observed.desired} would be ready, no majority; it moves when it is"
            f" made anew, by itself or by you. {FEW_REMEDY}"
        )
        return Move(Hold(Note(Reason.QUORUM_HELD, message)))
    return _planned(observed, where, candidate, to, policy, state, tuning)


def _planned(  # noqa: PLR0917 - what every step of the mover is given, and its candidate
    observed: PlacementInput,
    where: Ordinals,
    candidate: Member,
    to: Pool,
    policy: Policy,
    state: RebalanceState,
    tuning: Tuning,
) -> Move:
    """Move a member of the wrong pool (P20): slowly, when all are available and its room is held."""
    held = observed.placeholder
    if candidate.staged:
        # P25
        message = f"{_name(observed, candidate)} stays on {_other(to)}: {candidate.staged}"
        return Move(Hold(Note(Reason.ROLLOUT_IN_PROGRESS, message)))
    if to is Pool.SPOT and (early := _too_early(observed, candidate, held, state, tuning)) is not None:
        return Move(early)
    later = _rests(observed, candidate, to, state, tuning) or barred(
        observed, candidate, Cause.ORDER, state, tuning
    )
    others = waits_for_others(observed, candidate, to, state)
    if others is not None and candidate.pod is not None and candidate.is_doomed:
        unsafe = not_made_again(observed, candidate.ordinal, candidate.pod, state, tuning)
        others = unsafe or others
    if held is None and (rests := _room_rests(observed, candidate, to, state, tuning)) is not None:
        return Move(others or rests)
    lead_s = _RESERVES_S + (_soak_s(policy, state, tuning) if to is Pool.SPOT else 0.0)
    far = others is None and later is not None and (later.lasts_s or 0.0) > lead_s
    idle = others is not None and waits_long(observed, state, _RESERVES_S)
    if far or idle or observed.unplaceable:
        return Move(others or later)
    reservation = Reservation(to, candidate.ordinal)
    hold = others or _waits_for_reservation(observed, candidate, to, held)
    if hold is None and to is Pool.SPOT and held is not None:
        hold = _earns(observed, candidate, held, policy, state, tuning)
    if (hold := hold or later) is not None:
        return Move(hold, reservation)
    return Move(evicted(candidate, to), reservation, _moves(observed, where, candidate, to))


def _leaving(observed: PlacementInput, where: Ordinals, policy: Policy) -> list[Member]:
    """Return the members to move off spot nodes that are cordoned, or drained without a deadline (P27)."""
    most = policy.on_demand_max
    headroom = len(observed.members) if most is None else max(most, len(where.base))
    return [
        m
        for m in observed.members
        if m.is_unhurried(observed.waits)
        and m.pod is not None
        and m.pod.counts
        and m.may_stand_on(Pool.ON_DEMAND)
        and len(where.in_force | {m.ordinal}) <= headroom
    ]


def _misplaced(
    observed: PlacementInput,
    where: Ordinals,
    leaving: Sequence[Member],
    state: RebalanceState,
    tuning: Tuning,
) -> tuple[Member | None, Pool]:
    """Return which member moves next: to on-demand first, lowest first; then to spot, highest first."""
    up = [
        *leaving,
        *(
            m
            for m in observed.members
            if m.pool is Pool.SPOT and m.ordinal in where.base and m.may_stand_on(Pool.ON_DEMAND)
        ),
    ]
    down = [
        m
        for m in reversed(observed.members)
        if m.pool is Pool.ON_DEMAND and m.ordinal not in where.base and m.may_stand_on(Pool.SPOT)
    ]
    to = Pool.ON_DEMAND if up else Pool.SPOT
    wrong = up or down
    if not wrong:
        return None, to
    first = _already_held(wrong, observed.placeholder, to)
    movable = (
        m
        for m in (first, *wrong)
        if not m.staged and not is_member_spent(observed, m, Cause.ORDER, state, tuning)
    )
    return next(movable, first), to


def _already_held(members: Sequence[Member], held: Placeholder | None, pool: Pool) -> Member:
    """Return the member that a placeholder waits for already, else the first."""
    if held is not None and held.pool is pool:
        return next((m for m in members if m.ordinal == held.ordinal), members[0])
    return members[0]


def _too_early(
    observed: PlacementInput,
    candidate: Member,
    held: Placeholder | None,
    state: RebalanceState,
    tuning: Tuning,
) -> Hold | None:
    """Return why no room on spot is asked for yet: it was lost just now, or nobody can get a machine (P24).

    Room that is held already proves more than what an autoscaler says, and so do machines that have room.
    """
    name = _name(observed, candidate)
    settles_s = observed.waits.left_s(state.last_loss, tuning.settle_s)
    if settles_s and held is None:
        reason, what = (
            (Reason.SPOT_INTERRUPTED, "had a notice") if state.interrupted else (Reason.SPOT_LOST, "was lost")
        )
        return Hold(Note(reason, f"{name} waits on on-demand: spot {what} a moment ago"), settles_s)
    until = rests_until(state, tuning)
    if until is not None and held is None and (left_s := observed.waits.until_s(until)):
        message = (
            f"{name} stays on on-demand, and no placeholder asks for spot before {clock(until)}: it was lost"
            f" {state.barren} times in a row before it had stood for the soak"
        )
        return Hold(Note(Reason.SPOT_UNPROFITABLE, message), left_s)
    node_status = held is not None and held.pool is Pool.SPOT and held.pod.available
    if not observed.blocked or observed.fit_spot or node_status:
        return None
    message = f"{name} stays on on-demand, and no placeholder asks for spot: {observed.blocked}"
    return Hold(Note(Reason.SPOT_BLOCKED, message))


def _waits_for_reservation(
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
    pod = held.pod if held is not None and fits else None
    trouble = pod.trouble if pod is not None else None
    why = "a placeholder asks for it"
    if pod is not None and pod.unschedulable_since is not None:
        why = f"no node has had room since {clock(pod.unschedulable_since)}"
    elif pod is not None and trouble is not None:  # its image is not to be had, as a rule
        why = f"the placeholder {pod.name} on node {pod.node} does not run: {trouble.detail}"
    node = candidate.pod.node if candidate.pod is not None and candidate.is_doomed else None
    where = f"doomed node {node}" if node else _other(to)
    message = f"{name} stays on {where} until room on {to} is held for it: {why}"
    return Hold(Note(Reason.WAITING_FOR_ROOM, message, warning=trouble is not None))


def _earns(  # noqa: PLR0917 - what every step of the mover is given, and its candidate
    observed: PlacementInput,
    candidate: Member,
    held: Placeholder,
    policy: Policy,
    state: RebalanceState,
    tuning: Tuning,
) -> Hold | None:
    """Return why spot is not trusted yet, with the soak and the back-off that twins know too (P22)."""
    name = _name(observed, candidate)
    hinted = next((pod for pod in (*observed.on_spot, held.pod) if pod.hinted and pod.counts), None)
    if hinted is not None:
        message = f"{name} stays on on-demand: {hinted.node}: {hinted.signal}"
        return Hold(Note(Reason.SPOT_BLOCKED, message))
    soak_s = _soak_s(policy, state, tuning)
    begins = max(
        (one for one in (held.pod.ready_since, None if state.proven else state.last_loss) if one is not None),
        default=None,
    )
    if wait_s := observed.waits.left_s(begins, soak_s):
        until = clock(begins, soak_s)
        message = f"{name} stays on on-demand until {until}: spot has to stand for {soak_s:.0f} s first"
        return Hold(Note(Reason.SOAKING, message), wait_s)
    return None


def _soak_s(policy: Policy, state: RebalanceState, tuning: Tuning) -> float:
    """Return the seconds for which room on spot has to stand before a member comes to it."""
    if state.last_loss is None:
        return 0.0
    soak_s = state.soak(policy.soak_s)
    return min(soak_s, tuning.fast_s) if state.proven else soak_s


def _rests(
    observed: PlacementInput, candidate: Member, to: Pool, state: RebalanceState, tuning: Tuning
) -> Hold | None:
    """Return why the next move has to wait: moves to spot are slow, and slower after a failed one (P23)."""
    failed = (state.failed_moves if to is Pool.SPOT else state.failed_covers).count
    rest_s = rest(state, tuning, to)
    if not (wait_s := observed.waits.left_s(state.last_step, rest_s)):
        return None
    tried = f", after {failed} that ended where they began" if failed else ""
    message = (
        f"{_name(observed, candidate)} moves to {to} at {clock(state.last_step, rest_s)}: one move in"
        f" {rest_s:.0f} s{tried}"
    )
    return Hold(Note(Reason.RETURNING if to is Pool.SPOT else Reason.MOVE_UNDONE, message), wait_s)


def _room_rests(
    observed: PlacementInput, candidate: Member, to: Pool, state: RebalanceState, tuning: Tuning
) -> Hold | None:
    """Return why no room is asked for yet: the last placeholders held none."""
    rest_s = room_rest(state, tuning, to)
    failed = state.failed_placeholders
    if not (wait_s := observed.waits.left_s(failed.last, rest_s)):
        return None
    last = "the last placeholder" if failed.count == 1 else f"the last {failed.count} placeholders"
    message = (
        f"{_name(observed, candidate)} stays on {_other(to)}: {last} held no room on {to}; the next one asks"
        f" for it at {clock(failed.last, rest_s)}"
    )
    return Hold(Note(Reason.WAITING_FOR_ROOM, message, warning=True), wait_s)


def _moves(observed: PlacementInput, where: Ordinals, candidate: Member, to: Pool) -> Note:
    name = _name(observed, candidate)
    if candidate.is_doomed and candidate.pod is not None:
        pod = candidate.pod
        message = (
            f"evict {name}: node {pod.node} is to go ({pod.signal or 'doomed'}); it starts again on"
            " on-demand, where its room is held"
        )
        return Note(Reason.SPOT_INTERRUPTED, message, warning=True)
    if to is Pool.ON_DEMAND:
        message = (
            f"evict {name}: it starts again on on-demand, where {len(where.base)} of {observed.desired} are"
            " wanted"
        )
        return Note(Reason.SCALED, message, cause=VerdictCause.ON_THE_WAY)
    wanted = observed.desired - len(where.base)
    message = (
        f"evict {name}: it starts again on spot, where {wanted} of {observed.desired} are wanted and its room"
        " is held"
    )
    return Note(Reason.RETURNING, message)


def _name(observed: PlacementInput, member: Member) -> str:
    return f"{observed.name}-{member.ordinal}"


def _other(pool: Pool) -> Pool:
    return Pool.SPOT if pool is Pool.ON_DEMAND else Pool.ON_DEMAND

"""Says whether all members but the one that moves are available: only then any is moved for order's sake.

`mover` asks before each planned move (P20). A node that was cordoned long ago may never be drained: then it
is enough that a majority would be left.
"""

from datetime import datetime

from splitter.core.model import Note
from splitter.core.placement.members import Hold, Member, PlacementInput
from splitter.core.reasons import Reason
from splitter.core.rebalance.sentences import waiting
from splitter.core.replica import Pool
from splitter.core.split_status import RebalanceState

# Whoever drains a node has begun by then.
_LEFT_CORDONED_S = 3600.0


def waits_for_others(
    observed: PlacementInput, candidate: Member, to: Pool, state: RebalanceState
) -> Hold | None:
    """Return what a planned move waits for besides its room and its time; None: for nothing."""
    name = f"{observed.name}-{candidate.ordinal}"
    if observed.rolling:
        message = f"{name} moves to {to} when the StatefulSet's own update is through: {observed.rolling}"
        return Hold(Note(Reason.ROLLOUT_IN_PROGRESS, message))
    left = _left_cordoned(observed, state)
    unready = [m for m in observed.members if m.ordinal not in left and not _is_calm(observed, m)]
    if unready:
        ready = observed.desired - len(unready) - len(left)
        first = unready[0]
        not_yet = "it is not itself" if candidate in unready else f"{observed.name}-{first.ordinal} is not"
        if first.pod is not None and first.pod.going and first.pod.signal:
            not_yet += f": node {first.pod.node}, {first.pod.signal}"
        message = (
            f"{name} waits to move to {to}: {ready} of {observed.desired} are ready on nodes that stay,"
            f" {not_yet}"
        )
        waits = [
            observed.waits.left_s(m.pod.ready_since, observed.min_ready_s)
            for m in unready
            if m.pod is not None
        ]
        if any(m.is_on_cordoned for m in unready):
            waits.append(observed.waits.left_s(state.on_demand_doomed_since, _LEFT_CORDONED_S))
        return Hold(waiting(message), max(waits, default=0.0) or None)
    if observed.surplus:
        message = f"{name} waits to move to {to}: {observed.surplus[0].name} is being scaled away"
        return Hold(waiting(message))
    return None


def _is_calm(observed: PlacementInput, member: Member) -> bool:
    """Whether it is available; on a spot node that is cordoned it stays until another client drains it."""
    unhurried = member.serves and member.is_unhurried(observed.waits)
    return (unhurried or member.is_sound) and member.is_ready_for(observed.waits, observed.min_ready_s)


def waits_long(observed: PlacementInput, state: RebalanceState, seconds: float) -> bool:
    """Whether somebody has not been available for so many seconds: it may never be."""
    since = [_ill_since(member, state) for member in observed.members]
    since += [pod.terminating_since for pod in observed.surplus]
    return any(one is not None and not observed.waits.left_s(one, seconds) for one in since)


def _ill_since(member: Member, state: RebalanceState) -> datetime | None:
    pod = member.pod
    if pod is None:
        return None
    if pod.terminating:
        return pod.terminating_since
    if pod.ready_since is None:
        return pod.unready_since or pod.created
    return state.on_demand_doomed_since if member.is_on_cordoned else None


def _left_cordoned(observed: PlacementInput, state: RebalanceState) -> frozenset[int]:
    """Return the members on on-demand nodes that were cordoned and left so; they hold up no planned move.

    Unless no majority would be left if their nodes were drained while another member moves.
    """
    on_cordoned = frozenset(m.ordinal for m in observed.members if m.is_on_cordoned)
    since = state.on_demand_doomed_since
    if since is None or observed.waits.left_s(since, _LEFT_CORDONED_S):
        return frozenset()
    return on_cordoned if observed.keeps_majority_without(1 + len(on_cordoned)) else frozenset()

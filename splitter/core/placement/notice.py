"""Moves members off spot nodes that go soon, one at a time (P12). Whether one may end is for `disruption`.

`mover` asks where a node goes in a hurry. What was cordoned, or is drained without a deadline, is moved by
plan instead (P27).
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.placement.disruption import Cause, barred, is_member_spent
from splitter.core.placement.members import Hold, Member, Move, PlacementInput, evicted
from splitter.core.placement.ordinals import Ordinals
from splitter.core.placement.recreation import not_made_again
from splitter.core.reasons import Reason
from splitter.core.rebalance import Tuning
from splitter.core.rebalance.sentences import waiting
from splitter.core.replica import Pool
from splitter.core.split_status import RebalanceState


def moved_on_notice(
    observed: PlacementInput, where: Ordinals, policy: Policy, state: RebalanceState, tuning: Tuning
) -> Move:
    """Move the doomed while their nodes live: one at a time, the one with the least time first (P12).

    Those whose nodes leave time for a planned move wait meanwhile. Units: seconds; never raises.
    """
    movable = [
        m
        for m in observed.members
        if m.is_doomed
        and not m.is_unhurried(observed.waits)
        and m.ordinal in where.in_force
        and m.pod is not None
        and not m.is_lost  # P13
        and m.pod.counts
    ]
    if not movable:
        return Move(Hold(unmovable(observed)))
    movable.sort(key=_urgency)
    rested = [m for m in movable if not is_member_spent(observed, m, Cause.NOTICE, state, tuning)]
    certain = (m for m in rested if m.pod and not not_made_again(observed, m.ordinal, m.pod, state, tuning))
    first = next(certain, (rested or movable)[0])
    name, node = _name(observed, first), first.pod.node if first.pod is not None else None
    ended = {one.ordinal: one.at for one in sorted(state.restarts)}
    waits, grace_s, min_ready_s = observed.waits, policy.grace_s, observed.min_ready_s
    underway = {
        m.ordinal: wait_s
        for m in observed.members
        if m.ordinal != first.ordinal
        and not _is_for_the_gate(observed, m, first, ended)
        and (wait_s := m.transit_s(waits, ended.get(m.ordinal), grace_s, min_ready_s))
    }
    if underway:
        other = f"{observed.name}-{min(underway)}"
        message = f"{name} on doomed node {node} waits for {other}: one member at a time"
        return Move(Hold(waiting(message), max(underway.values())))
    if (hold := barred(observed, first, Cause.NOTICE, state, tuning)) is not None:
        return Move(hold)
    signal = first.pod.signal if first.pod is not None else ""
    message = f"evict {name}: node {node} is about to go ({signal or 'doomed'}); it starts again on on-demand"
    return Move(evicted(first, Pool.ON_DEMAND), None, Note(Reason.SPOT_INTERRUPTED, message, warning=True))


def _is_for_the_gate(
    observed: PlacementInput, member: Member, first: Member, ended: Mapping[int, datetime]
) -> bool:
    """Whether it is no mere start: no node was found for it, or it holds up those above by itself (P19)."""
    if member.pod is not None and member.pod.unschedulable_since is not None:
        return True
    return observed.ordered and member.ordinal < first.ordinal and member.ordinal not in ended


def unmovable(observed: PlacementInput) -> Note:
    """Say why none of the doomed is moved."""
    doomed = [m for m in observed.members if m.is_doomed]
    ending = [m for m in doomed if m.pod is not None and m.pod.terminating]
    lost = [m for m in doomed if m.is_lost]
    first = next(iter((*lost, *ending, *doomed)))
    name, node = _name(observed, first), first.pod.node if first.pod is not None else None
    if first in lost:
        message = (
            f"{name} is made again as soon as it ends or Node {node} is deleted: {node} is silent, the old"
            " pod may still run there, and no name may run twice"
        )
        return Note(Reason.SPOT_LOST, message, warning=True)
    if first in ending:
        return waiting(f"{name} is ending on doomed node {node}")
    if first.pod is not None and first.pod.finished:
        return waiting(f"{name} has ended on doomed node {node}, and is made again")
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


def _name(observed: PlacementInput, member: Member) -> str:
    return f"{observed.name}-{member.ordinal}"

"""Chooses the ordinals of on-demand: the base, emergencies, and those that may not return yet.

`place` calls this before it looks for a move. The set only says where a pod is born the next time:
changing it restarts nothing. So what is missing joins at once, and what returns leaves one at a time, when
its move is due. Source: P6 to P9.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.placeable import FEWEST
from splitter.core.placement.members import Member, PlacementInput, spoken
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.replica import Pool
from splitter.core.split_status import RebalanceState


@dataclass(frozen=True, slots=True)
class Ordinals:
    """The ordinals to put in force, why they differ from those that are, and which of the base wait."""

    in_force: frozenset[int]
    base: frozenset[int]
    yielded: frozenset[int]
    notes: tuple[Note, ...] = ()


def base_ordinals(observed: PlacementInput, policy: Policy) -> frozenset[int]:
    """Return the lowest ordinals that on-demand can have, as many as the policy wants there (P6).

    The lowest, because primaries mostly live there and a scale-down takes the highest first.
    """
    able = [member.ordinal for member in observed.members if member.reach.on_demand]  # P8
    return frozenset(able[: base_replicas(observed.desired, policy)])


def ordinals(
    observed: PlacementInput,
    policy: Policy,
    state: RebalanceState,
    returning: frozenset[int] = frozenset(),
) -> Ordinals:
    """Return the ordinals of on-demand now. `returning` are those that may be born on spot again.

    A base ordinal that on-demand has had no room for during the whole grace yields: its pod has never run,
    may start on spot, and would keep those behind it from being made (OrderedReady). It joins again when a
    placeholder holds its room.
    """
    base = base_ordinals(observed, policy)
    doomed = frozenset(
        m.ordinal
        for m in observed.members
        if m.is_doomed and m.reach.on_demand and (not m.may_stay or _has_reservation(m, observed))
    )  # P7, P27
    stuck = frozenset(m.ordinal for m in observed.members if _has_no_headroom(m, observed, policy))
    yielded = frozenset(
        member.ordinal
        for member in observed.members
        if member.ordinal in (base & (stuck | set(state.yielded))) - doomed
        and member.pool is not Pool.ON_DEMAND
        and not _has_reservation(member, observed)
        # Of too few to move nobody's room is ever held: who has started on spot is born on on-demand again.
        and not (observed.desired < FEWEST and member.pool is Pool.SPOT)
    )
    in_force = frozenset(observed.in_force)
    kept = frozenset(
        m.ordinal
        for m in observed.members
        # One that stands on spot, and may, is where it is wanted.
        if m.ordinal in in_force - base - stuck
        and m.pool is not Pool.SPOT
        and m.ordinal not in returning
        and not (m.may_stay and m.pod is not None and m.pod.counts)
    )
    wanted = (base - yielded) | _capped(kept | doomed, base, policy)
    notes = tuple(_notes(observed, in_force, Ordinals(wanted, base, yielded), returning))
    return Ordinals(wanted, base, yielded, notes)


def _has_no_headroom(member: Member, observed: PlacementInput, policy: Policy) -> bool:
    """Whether it was born for on-demand, and no node has taken it for the whole grace (P9)."""
    stuck = member.born is not Pool.SPOT and member.is_stuck(observed.waits, policy.grace_s)
    return stuck and member.ordinal in observed.in_force


def _has_reservation(member: Member, observed: PlacementInput) -> bool:
    held = observed.placeholder
    return (
        held is not None
        and held.pool is Pool.ON_DEMAND
        and held.ordinal == member.ordinal
        and held.pod.available
    )


def _capped(added: frozenset[int], base: frozenset[int], policy: Policy) -> frozenset[int]:
    if policy.on_demand_max is None:
        return added
    headroom = max(0, policy.on_demand_max - len(base))
    return frozenset(sorted(added - base)[:headroom])


def _notes(
    observed: PlacementInput, before: frozenset[int], after: Ordinals, returning: frozenset[int]
) -> Iterator[Note]:
    """Say why ordinals join and leave, one sentence for each cause."""
    present = {member.ordinal: member for member in observed.members}
    joined = after.in_force - before
    lost = {k for k in joined if present[k].is_lost and present[k].is_doomed}
    doomed = {k for k in joined if present[k].is_doomed} - lost
    now = f"on-demand has ordinals {spoken(after.in_force)} now"
    if lost:
        yield Note(
            Reason.SPOT_LOST,
            f"{_named(observed, lost)} will start on on-demand: {_nodes(present, lost)} has gone or is not"
            f" ready; {now}",
            warning=True,
        )
    if doomed:
        yield Note(
            Reason.SPOT_INTERRUPTED,
            f"{_named(observed, doomed)} will start on on-demand: {_nodes(present, doomed)} is about to go;"
            f" {now}",
            warning=True,
        )
    if others := joined - lost - doomed:
        yield Note(
            Reason.SCALED,
            f"{_named(observed, others)} will start on on-demand: {len(after.base)} of {observed.desired}"
            f" are wanted there; {now}",
            cause=VerdictCause.ON_THE_WAY,
        )
    if shorts := (before & after.yielded):
        yield Note(
            Reason.ON_DEMAND_SHORT,
            f"{_named(observed, shorts)} may start on spot: on-demand had no room for the whole grace; {now}",
            warning=True,
        )
    left = {k for k in before - after.in_force if k in present and k not in after.yielded}
    if left:
        message = f"{_named(observed, left)} will start on spot where it can; {now}"
        if returning & left:
            yield Note(Reason.RETURNING, message)
        else:
            yield Note(Reason.SCALED, message, cause=VerdictCause.ON_THE_WAY)


def _named(observed: PlacementInput, ordinals: set[int] | frozenset[int]) -> str:
    return ", ".join(f"{observed.name}-{ordinal}" for ordinal in sorted(ordinals))


def _nodes(present: dict[int, Member], ordinals: set[int]) -> str:
    pods = [member.pod for ordinal, member in sorted(present.items()) if ordinal in ordinals]
    nodes = {f"{pod.node}{f' ({pod.signal})' if pod.signal else ''}": None for pod in pods if pod is not None}
    return "node " + ", ".join(nodes)

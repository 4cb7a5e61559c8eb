"""Replicas linger while Karmada moves them to another cluster: a move is make before break there too.

Karmada lowers the count in one cluster and raises it in another at the same moment, so until the new pods are
ready the service has fewer. A move leaves Karmada's generation of the workload as it is; a person or an
autoscaler who scales it changes that, and is followed at once. Pure. Source: R56.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from splitter.core.clock import clock
from splitter.core.handover import Step
from splitter.core.model import Note
from splitter.core.plan import PlanInput
from splitter.core.reasons import Reason
from splitter.core.split_status.moving import NOTHING_FOLLOWED, FollowedCount
from splitter.core.start_times import cover_s

_AT_LEAST_S = 30.0
_STARTS = 1.5  # of a start: the other cluster may need a little longer


@dataclass(frozen=True, slots=True)
class Lingering:
    """What is remembered of the count that is followed, and what people are told while replicas linger."""

    followed: FollowedCount | None  # None: leave what is remembered
    note: Note | None = None


def lingering(this: PlanInput, step: Step) -> tuple[PlanInput, Lingering]:
    """Return what to plan with: while replicas linger, N is the count before the move.

    Only twins that run linger: whatever takes over or gives back goes by the source's own count.
    """
    if step is not Step.RUN:
        return this, Lingering(None)
    moved = _followed(this)
    if moved.note is None or moved.followed is None or moved.followed.replicas is None:
        return this, moved
    held = replace(this.source, replicas=moved.followed.replicas)
    return replace(this, observed=replace(this.observed, source=held), source=held), moved


def _followed(this: PlanInput) -> Lingering:
    observed, asked, generation = this.observed, this.source.replicas, this.source.karmada_generation
    if not generation:
        return Lingering(NOTHING_FOLLOWED)
    before, stays_s = observed.reported.memory.followed, _stays_s(this)
    # A Split's status may be edited: never more than there is.
    held = min(before.replicas or 0, sum(twin.spec_replicas for twin in observed.twins))
    if held <= asked or before.generation != generation or not stays_s:
        return Lingering(FollowedCount(asked, asked, generation))
    latest = observed.now.replace(microsecond=0) + timedelta(
        seconds=stays_s
    )  # another clock, or a longer linger, may have set it
    moves_more = before.until is None or asked < (before.asked or 0)
    until = latest if before.until is None or moves_more else min(before.until, latest)
    if not observed.waits.until_s(until):
        return Lingering(FollowedCount(asked, asked, generation))
    message = (
        f"{held - asked} of {held} replicas stay until {clock(until)}: Karmada moves them to another cluster,"
        " and their successors there may not be ready yet"
    )
    note = Note(Reason.LINGERING, message, about="linger")
    followed = FollowedCount(held, asked, generation, until)
    return Lingering(followed, note)


def _stays_s(this: PlanInput) -> float:
    """Return how long: what the annotation says, else one and a half starts, half a minute at least."""
    if this.policy.linger_s is not None:
        return this.policy.linger_s
    return max(_AT_LEAST_S, _STARTS * (cover_s(this.in_force.starts) or 0))

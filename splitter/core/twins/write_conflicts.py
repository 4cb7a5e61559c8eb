"""Counts write conflicts: how often somebody has undone a write of splitter's lately, and who (H50)."""

from datetime import datetime

from splitter.core.model import Observation, seconds_between
from splitter.core.plan import Plan

WINDOW_S, MOST = 600.0, 3
"""So many within so many seconds, and splitter gives way."""

TEMPLATES = "the pod templates of its twins"
"""In the place of the writer, where that is what is written: by whom anybody may say."""


def recent(observed: Observation) -> tuple[datetime, ...]:
    """Return the write conflicts that still count, oldest first."""
    known = observed.reported.write_conflicts
    return tuple(at for at in known if seconds_between(at, observed.now) < WINDOW_S)


def with_one_more(observed: Observation, writer: str) -> tuple[datetime, ...]:
    """Return them with one more now; only those with one and the same writer count together.

    Of pod templates nobody knows who it was: those count with any other, or two that take turns would go on.
    """
    before = observed.reported.conflicting_writer
    same = writer == before or TEMPLATES in {writer, before}
    return (*(recent(observed) if same else ()), observed.now.replace(microsecond=0))


def counted(observed: Observation, plan: Plan, *, written: bool) -> tuple[tuple[datetime, ...], str, bool]:
    """Return the write conflicts that count after a plan, with whom, and whether splitter gives way."""
    known, writer = recent(observed), observed.reported.conflicting_writer
    if plan.write_conflict and written:
        known, writer = with_one_more(observed, plan.conflicting_writer), plan.conflicting_writer
    conflict = observed.reported.conflict or len(known) >= MOST
    return known, writer if known or conflict else "", conflict

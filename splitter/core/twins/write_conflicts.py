"""Counts write conflicts: how often somebody has undone a write of splitter's lately, and who (H50)."""

from datetime import datetime

from splitter.core.model import Note, Observation, SourceView, seconds_between
from splitter.core.plan import Plan
from splitter.core.reasons import Reason

WINDOW_S, MOST = 600.0, 3
"""So many within so many seconds, and splitter gives way."""

TOGETHER_S = 10.0
"""Edits of twins that were written within so many seconds are one command's."""

TEMPLATES = "the pod templates of its twins"
"""In the place of the writer, where that is what is written: by whom anybody may say."""


def recent(observed: Observation) -> tuple[datetime, ...]:
    """Return the write conflicts that still count, oldest first."""
    known = observed.reported.write_conflicts
    return tuple(at for at in known if seconds_between(at, observed.now) < WINDOW_S)


def with_one_more(observed: Observation, writer: str, at: datetime | None = None) -> tuple[datetime, ...]:
    """Return them with one more; only those with one and the same writer count together.

    Of pod templates nobody knows who it was: those count with any other, or two that take turns would go on.
    One command may write to both twins, and they are put back one after the other: what was written (`at`)
    together is one conflict.
    """
    before = observed.reported.conflicting_writer
    same = writer == before or TEMPLATES in {writer, before}
    known, one = recent(observed) if same else (), (at or observed.now).replace(microsecond=0)
    if writer == before == TEMPLATES and any(abs(seconds_between(one, each)) <= TOGETHER_S for each in known):
        return known
    return tuple(sorted((*known, one)))


def times(count: int) -> str:
    """Return how often it was, for a sentence."""
    return f"{count} of {MOST} times within {WINDOW_S / 60:.0f} min"


def contested(writer: str, *, stateful: bool = False) -> str:
    """Return what is written and undone again."""
    if writer == TEMPLATES:
        return writer
    return f"spec.replicas with {writer or 'somebody'}" if stateful else "spec.paused"


def remedy(source: SourceView, otherwise: str) -> str:
    """Return what ends the conflict, if Karmada writes the source; else what is said `otherwise`."""
    if not source.by_karmada:
        return otherwise
    return (
        "Karmada writes the whole source again and again: apply manifests/karmada/interpreters.yaml to its"
        " API server (docs/how-to/karmada.md)"
    )


def declared(count: int, writer: str, *, stateful: bool = False) -> tuple[Note, ...]:
    """Return the note that splitter gives way, with the last conflict that counts."""
    if count < MOST:
        return ()
    message = (
        f"{count} write conflicts within {WINDOW_S / 60:.0f} min over {contested(writer, stateful=stateful)}:"
        " the workload is given back. Find what writes there and stop it; then remove the label and set it"
        " again"
    )
    return (Note(Reason.CONFLICT, message, warning=True),)


def counted(observed: Observation, plan: Plan, *, written: bool) -> tuple[tuple[datetime, ...], str, bool]:
    """Return the write conflicts that count after a plan, with whom, and whether splitter gives way."""
    known, writer = recent(observed), observed.reported.conflicting_writer
    if plan.write_conflict and written:
        writer = plan.conflicting_writer
        known = with_one_more(observed, writer, plan.conflict_at)
    conflict = observed.reported.conflict or len(known) >= MOST
    return known, writer if known or conflict else "", conflict

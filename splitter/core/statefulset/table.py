"""Chooses the step of a StatefulSet in twins mode, which cannot be paused.

The source is scaled to 0 while its twins grow, and N is kept in an annotation and on the Split. So there is
nothing to pause and to park: the source itself holds replicas as a parked ReplicaSet does, and MAKE and BREAK
move them (`replica_moves`). `next_step` is tried top down, the first row that matches acts; every row is
level-triggered and idempotent. Source: H70 to H76.
"""

from dataclasses import dataclass

from splitter.core.handover import Ownership, Step, ownership_of
from splitter.core.labels_annotations import LABEL_SPLIT
from splitter.core.model import Observation, SourceView
from splitter.core.twins import replica_moves


@dataclass(frozen=True, slots=True)
class Columns:
    """What the table looks at; one Observation gives exactly one of these."""

    label: bool
    conflict: bool
    split: bool  # a Split that takes over
    report: bool  # a Split that only reports a refusal
    mark: Ownership
    saved: bool  # N is written down on the source
    written: bool  # somebody has written another count to the source since
    zero: bool  # its spec.replicas is 0
    left: bool  # N is not written down, and it is what a move of ours has left there
    shown: bool  # the Split bears a count
    asked: bool  # and it is not N: somebody has scaled the Split
    twins: bool
    twins_at_zero: bool  # they hold no replica, or there are none
    home: bool  # the source asks for N pods of its own, and the twins for none
    adrift: bool = False  # the Split would not go with the source

    @property
    def holds(self) -> bool:
        """Whether anything of ours is on the workload itself."""
        return self.saved or self.twins or self.mark is not Ownership.NONE


def columns_of(observed: Observation, source: SourceView) -> Columns:
    """Read the columns of the table off an observation of a StatefulSet."""
    stateful, split = source.stateful, observed.split
    if stateful is None:
        raise ValueError(f"{source.key} is no StatefulSet")
    at_zero = replica_moves.at_zero(observed.twins, ())
    return Columns(
        label=LABEL_SPLIT in source.labels,
        conflict=observed.reported.conflict,
        split=split is not None and split.takes_over,
        report=split is not None and not split.takes_over,
        mark=ownership_of(source),
        saved=stateful.saved is not None,
        written=stateful.is_written_by_others,
        zero=stateful.spec_replicas == 0,
        left=split is not None and split.takes_over and stateful.is_left_by_us(split.replicas),
        shown=split is not None and split.replicas is not None,
        asked=split is not None and split.replicas not in {None, source.replicas},
        twins=bool(observed.twins),
        twins_at_zero=at_zero,
        home=at_zero and stateful.spec_replicas == source.replicas,
        adrift=split is not None and source.uid not in split.owner_uids,
    )


def next_step(c: Columns) -> Step:
    """Return the first row of the table that matches."""
    if c.label and not c.conflict:
        return _step_with_label(c)
    if c.label and not c.holds:
        return Step.NOTHING  # given back in Conflict; the Split says so until the label goes
    return _step_without_label(c)


def _step_with_label(c: Columns) -> Step:  # noqa: PLR0911 - a table of early returns, one a row
    ours = c.saved or c.twins
    if not ours and not (c.split and c.zero) and (c.mark is Ownership.NONE or not (c.split or c.zero)):
        return Step.CONSIDER
    if c.mark is not Ownership.OURS:
        return Step.ADOPT  # `kubectl replace` dropped it, or it was restored from a backup
    if not c.split:
        return Step.CREATE_SPLIT
    if c.adrift:
        return Step.CLAIM
    if not c.saved:
        return Step.SAVE  # before the first scale-down
    if c.written:
        return Step.FOLLOW
    if not c.shown:
        return Step.SHOW
    if c.asked:
        return Step.FOLLOW_SPLIT
    return Step.RUN


def _step_without_label(c: Columns) -> Step:
    if not c.holds and (c.conflict or not c.split):
        return Step.RELEASE if c.split or c.report else Step.NOTHING
    unknown = not c.saved and (c.zero or c.left)
    if unknown and (c.mark is not Ownership.NONE or (c.label and not c.twins_at_zero)):
        return Step.SAVE  # N was lost, and is needed on the way back
    if unknown and not c.twins_at_zero:
        return Step.WAIT_COUNT  # nothing of ours is on it: we may not write it, nor take what is there for N
    # Replaced by a manifest that knows nothing of us, it runs its own N again: only the twins have to go.
    if c.written:
        return Step.FOLLOW
    if c.saved and c.asked:
        return Step.FOLLOW_SPLIT
    return Step.RELEASE if c.home or (c.twins_at_zero and not c.saved) else Step.HAND_BACK

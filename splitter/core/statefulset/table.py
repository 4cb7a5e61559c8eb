"""Chooses the step of a StatefulSet in twins mode, which cannot be paused.

The source is scaled to 0 while its twins grow, and N is kept in an annotation and on the Split. So there is
nothing to pause and to park: the source itself holds replicas as a parked ReplicaSet does, and MAKE and BREAK
move them (`replica_moves`). `next_step` is tried top down, the first row that matches acts; every row is
level-triggered and idempotent. Source: H70 to H76.
"""

from dataclasses import dataclass

from splitter.core.handover import Ownership, Row, Step, first_step, ownership_of
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
    def ours(self) -> bool:
        """Whether N is written down, or twins hold its pods."""
        return self.saved or self.twins

    @property
    def was_marked(self) -> bool:
        """Whether it bears a mark, and more than the mark says that it was split."""
        return self.mark is not Ownership.NONE and (self.split or self.zero)

    @property
    def holds(self) -> bool:
        """Whether anything of ours is on the workload itself."""
        return self.ours or self.mark is not Ownership.NONE

    @property
    def is_bare(self) -> bool:
        """Whether nothing of ours is on the workload, but for a Split that takes nothing over any more."""
        return not self.holds and (self.conflict or not self.split)

    @property
    def is_unknown(self) -> bool:
        """Whether N is nowhere on the source."""
        return not self.saved and (self.zero or self.left)

    @property
    def may_be_written(self) -> bool:
        """Whether the source bears a mark, or its label beside twins that hold pods."""
        return self.mark is not Ownership.NONE or (self.label and not self.twins_at_zero)


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


Table = tuple[Row[Columns], ...]

WITH_LABEL: Table = (
    Row("H21", lambda c: not (c.ours or (c.split and c.zero)) and not c.was_marked, Step.CONSIDER),
    # `kubectl replace` dropped the mark, or the source was restored from a backup.
    Row("H22", lambda c: c.mark is not Ownership.OURS, Step.ADOPT),
    Row("H23", lambda c: not c.split, Step.CREATE_SPLIT),
    Row("H23", lambda c: c.adrift, Step.CLAIM),
    # Before the first scale-down.
    Row("H70", lambda c: not c.saved, Step.SAVE),
    Row("H71", lambda c: c.written, Step.FOLLOW),
    Row("H71", lambda c: not c.shown, Step.SHOW),
    Row("H71", lambda c: c.asked, Step.FOLLOW_SPLIT),
    Row("H28", lambda _: True, Step.RUN),
)
"""The rows of a source with the label."""

WITHOUT_LABEL: Table = (
    Row("H30", lambda c: c.is_bare and (c.split or c.report), Step.RELEASE),
    Row("H30", lambda c: c.is_bare, Step.NOTHING),
    # N was lost, and is needed on the way back.
    Row("H70", lambda c: c.is_unknown and c.may_be_written, Step.SAVE),
    # Nothing of ours is on the source: we may not write it, and what is there is not N.
    Row("H70", lambda c: c.is_unknown and not c.twins_at_zero, Step.WAIT_COUNT),
    # Replaced by a manifest without our annotations, it runs its own N again: only the twins have to go.
    Row("H71", lambda c: c.written, Step.FOLLOW),
    Row("H71", lambda c: c.saved and c.asked, Step.FOLLOW_SPLIT),
    Row("H76", lambda c: c.home or (c.twins_at_zero and not c.saved), Step.RELEASE),
    Row("H72", lambda _: True, Step.HAND_BACK),
)
"""The rows of a source without the label, and of one in Conflict."""


def next_step(c: Columns) -> Step:
    """Return the step of the first row that matches."""
    if c.label and not c.conflict:
        return first_step(WITH_LABEL, c)
    if c.label and not c.holds:
        return Step.NOTHING  # given back in Conflict; the Split says so until the label goes
    return first_step(WITHOUT_LABEL, c)

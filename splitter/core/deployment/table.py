"""Chooses the step of a Deployment: the table of docs/design/handover.md (H20 to H38), row for row.

The rows are tried top down, and the first that matches acts. Every row is level-triggered and idempotent: a
crash between any two writes is harmless.
"""

from dataclasses import dataclass

from splitter.core.deployment import unowned
from splitter.core.handover import (
    Ownership,
    Row,
    Step,
    first_step,
    holds_replicas,
    ownership_of,
    waits_for_pods,
)
from splitter.core.labels_annotations import LABEL_SPLIT
from splitter.core.model import Attachment, Observation, SourceView
from splitter.core.replica import Pool
from splitter.core.twins import onboard, replica_moves


@dataclass(frozen=True, slots=True)
class Columns:
    """What the table looks at; one Observation gives exactly one of these."""

    label: bool
    conflict: bool
    split: bool  # a Split that takes over
    report: bool  # a Split that only reports a refusal
    mark: Ownership
    paused: bool
    paused_by_us: bool
    observed: bool
    attached: bool
    returning: bool
    parked: bool
    twins: bool
    ours_at_zero: bool  # twins and parked ReplicaSets hold no replica
    twins_wait: bool = False  # there are none, or each is paused and has no replica yet
    twins_hold: bool = False  # one of them has replicas
    unsettled: bool = False  # one is paused, or is not there though pods wait for it
    rolling: bool = False  # more than one attached ReplicaSet has replicas
    leaving: bool = False  # a ReplicaSet is going, and leaves its pods
    hanging: bool = False  # and has been for too long, or a loss does not let it wait
    orphans: bool = False  # pods that we have labelled have no owner
    parked_active: bool = False  # a parked ReplicaSet has replicas, made by a foreign unpause
    copied: bool = False  # the Deployment controller has copied our mark onto an attached ReplicaSet
    adrift: bool = False  # the Split or a parked ReplicaSet would not go with the source

    @property
    def marked(self) -> bool:
        """Whether the source bears a mark, its own or a foreign one."""
        return self.mark is not Ownership.NONE

    @property
    def valid(self) -> bool:
        """Whether the mark is of this very source."""
        return self.mark is Ownership.OURS

    @property
    def taken(self) -> bool:
        """Whether a Split or a pause of ours says that it was taken over."""
        return self.split or self.paused_by_us

    @property
    def ours(self) -> bool:
        """Whether anything of ours holds its pods. Any client may make pods with our labels: alone, not."""
        let_go = self.orphans and (self.marked or self.split or self.paused)
        return self.parked or self.returning or self.twins or let_go

    @property
    def is_leaving(self) -> bool:
        """Whether a ReplicaSet is going, and may still leave its pods in time."""
        return self.leaving and not self.hanging

    @property
    def is_bare(self) -> bool:
        """Whether nothing of ours is on the workload, but for a Split that takes nothing over any more."""
        return not self.holds and (self.conflict or not self.split)

    @property
    def holds(self) -> bool:
        """Whether anything of ours is on the workload itself."""
        return self.parked or self.returning or self.twins or self.let_go or self.marked

    @property
    def let_go(self) -> bool:
        """Whether orphans are pods that we have let go: any client may make one with our labels."""
        return self.orphans and (self.marked or self.taken or self.parked or self.returning or self.twins)

    @property
    def is_undone(self) -> bool:
        """Whether a take-over is taken back though the label is there: its Split no longer takes over."""
        return self.label and self.report and self.valid


def columns_of(observed: Observation, source: SourceView) -> Columns:
    """Read the columns of the table off an observation of a Deployment."""
    split = observed.split
    parked = observed.attached_as(Attachment.PARKED)
    orphans = any(pod.counts for pod in observed.orphans)
    return Columns(
        label=LABEL_SPLIT in source.labels,
        conflict=observed.reported.conflict,
        split=split is not None and split.takes_over,
        report=split is not None and not split.takes_over,
        mark=ownership_of(source),
        paused=source.paused,
        paused_by_us=source.paused_by_us,
        observed=source.observed,
        attached=bool(observed.attached_as(Attachment.ATTACHED)),
        returning=bool(observed.attached_as(Attachment.RETURNING)),
        parked=bool(parked),
        twins=bool(observed.twins),
        ours_at_zero=replica_moves.at_zero(observed.twins, parked),
        twins_wait=all(map(waits_for_pods, observed.twins)),
        twins_hold=any(holds_replicas(rs) for twin in observed.twins for rs in twin.replica_sets),
        unsettled=any(twin.paused for twin in observed.twins)
        or (orphans and len(observed.twins) < len(Pool)),
        rolling=sum(map(holds_replicas, observed.attached_as(Attachment.ATTACHED))) > 1,
        leaving=observed.leaving,
        orphans=orphans,
        hanging=bool(observed.going) and unowned.is_over(observed),
        parked_active=any(rs.deleted is None and holds_replicas(rs) for rs in parked),
        copied=any(rs.marked for rs in observed.attached_as(Attachment.ATTACHED)),
        adrift=any(rs.orphaned for rs in parked) or (split is not None and not onboard.owns(source, split)),
    )


Table = tuple[Row[Columns], ...]

WITH_LABEL: Table = (
    # `rollout undo` brings a mark back that the source's ReplicaSet had kept.
    Row("H21", lambda c: not c.marked and not c.ours and not (c.taken and c.paused), Step.CONSIDER),
    Row("H21", lambda c: c.valid and not (c.split or c.ours or c.paused), Step.CONSIDER),
    Row("H22", lambda c: not c.valid, Step.ADOPT),
    Row("H23", lambda c: not c.split, Step.CREATE_SPLIT),
    # Deleted with --cascade=orphan, and created again.
    Row("H23", lambda c: c.adrift, Step.CLAIM),
    Row("H24", lambda c: not c.paused and c.twins_wait and c.rolling, Step.WAIT_ROLLOUT),
    Row("H24", lambda c: not c.paused, Step.PAUSE),
    Row("H25", lambda c: not c.observed or c.returning or c.is_leaving, Step.WAIT_CONTROLLER),
    Row("H25", lambda c: c.leaving, Step.CUT_OFF),
    Row("H26", lambda c: c.attached and c.twins_wait, Step.ADOPT_PODS),
    Row("H26", lambda c: c.attached, Step.PARK),
    Row("H27", lambda c: c.unsettled, Step.SETTLE),
    Row("H28", lambda _: True, Step.RUN),
)
"""The rows of a source with the label."""

WITHOUT_LABEL: Table = (
    # Only a report is left: a refusal, or a Conflict that was given back. The pause is the user's. Or a copy
    # of our mark is, whose Split the user has deleted.
    Row("H30", lambda c: c.is_bare and (c.split or c.report or c.copied), Step.CLEAN_UP),
    Row("H30", lambda c: c.is_bare, Step.NOTHING),
    # Another one attached here would make two.
    Row("H31", lambda c: c.returning or c.is_leaving, Step.WAIT_CONTROLLER),
    Row("H31", lambda c: c.leaving, Step.CUT_OFF),
    Row("H32", lambda c: c.let_go and c.twins_hold, Step.OFFBOARD),
    Row("H32", lambda c: c.let_go, Step.BRING_HOME),
    Row("H33", lambda c: c.attached and c.paused, Step.UNPAUSE),
    Row("H34", lambda c: c.attached and not c.ours_at_zero, Step.SHRINK_OURS),
    Row("H35", lambda c: c.attached, Step.CLEAN_UP),
    Row("H36", lambda c: not c.paused, Step.WAIT_CONTROLLER),
    Row("H37", lambda c: c.twins, Step.OFFBOARD),
    Row("H38", lambda c: c.parked_active, Step.REATTACH),
    Row("H38", lambda _: True, Step.UNPAUSE),
)
"""The rows of a source without the label, and of one whose take-over is undone (H29)."""


def next_step(c: Columns) -> Step:
    """Return the step of the first row that matches (H20 to H38)."""
    if c.label and not c.is_undone:
        if not c.conflict:
            return first_step(WITH_LABEL, c)
        if not c.holds:
            # H30: given back in Conflict; the Split says so until the label goes
            return Step.CLEAN_UP if c.copied else Step.NOTHING
    return first_step(WITHOUT_LABEL, c)

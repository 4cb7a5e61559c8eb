"""The steps of giving back, from the removed label to no trace (handover.md, rows 13 to 21).

The planner calls one of these a pass. Availability is moved by `transfer`; here stand the order of the
writes and their sentences. The mark goes after everything it stands for, the Split last.
"""

from dataclasses import replace

from splitter.core import transfer
from splitter.core.actions import (
    Action,
    CreateHandBack,
    DeleteReplicaSet,
    DeleteSplit,
    DeleteTwin,
    EnsureSplit,
    Reattach,
    SetMark,
    SetPaused,
    StripMark,
)
from splitter.core.floor import is_rolling
from splitter.core.handover import Step, hand_back_of
from splitter.core.model import Note, ReplicaSetView, SourceView, Tie
from splitter.core.plan import POLL_S, Pass, Plan
from splitter.core.reasons import Reason, State
from splitter.core.rollout import kept_numbers
from splitter.core.running import moving, rolled
from splitter.core.surface import ANNOTATION_TAKEN_OVER, LABEL_SPLIT
from splitter.core.taking import wait_controller
from splitter.core.write_order import restored_costs


def unpause(this: Pass) -> Plan:
    """Unpause once a ReplicaSet is attached (row 14)."""
    note = Note(Reason.GIVING_BACK, "its own ReplicaSet is back and runs all replicas; unpaused")
    actions = (SetPaused(paused=False, resource_version=this.source.resource_version),)
    return Plan(Step.UNPAUSE, State.GIVING_BACK, note, actions, (note,), wake_after_s=POLL_S)


def shrink_ours(this: Pass) -> Plan:
    """Shrink ours beside a source that runs its own (row 16)."""
    moved = transfer.drain(this.observed, this.source)
    return replace(moving(this, moved, State.GIVING_BACK, Reason.GIVING_BACK, (0, 0)), step=Step.SHRINK_OURS)


def clean_up(this: Pass) -> Plan:
    """Take every trace away: same-template ReplicaSets, then the others back, twins, mark, Split."""
    if this.observed.split is None and (
        this.observed.twins or ANNOTATION_TAKEN_OVER in this.source.annotations
    ):
        # Without it nothing would lead back here once the twins are gone: no watch selects a mark.
        note = Note(Reason.GIVING_BACK, "the Split object is written anew, and goes last")
        anew = (EnsureSplit(takes_over=True),)
        return Plan(Step.CLEAN_UP, State.GIVING_BACK, note, anew, wake_after_s=POLL_S)
    taken = {rs.template_hash for rs in this.observed.tied(Tie.ATTACHED)} | {this.source.template_hash}
    parked = this.observed.tied(Tie.PARKED)
    twice = [rs for rs in parked if rs.template_hash in taken]
    back = [rs for rs in parked if rs.template_hash not in taken]
    actions: list[Action] = [DeleteReplicaSet(rs.name, rs.uid, rs.resource_version) for rs in twice]
    actions += [_reattach_one(this.source, rs) for rs in back]
    if back:  # adopted first; what is left goes in the next pass
        note = Note(Reason.GIVING_BACK, f"gives {len(back)} old revisions back, for kubectl rollout undo")
        return Plan(Step.CLEAN_UP, State.GIVING_BACK, note, tuple(actions), wake_after_s=POLL_S)
    actions += [DeleteTwin(twin.name, twin.uid) for twin in this.observed.twins if not twin.deleting]
    costs = restored_costs(this.observed.tied(Tie.ATTACHED))
    if costs is None:
        return wait_controller(this)
    actions += costs
    if ANNOTATION_TAKEN_OVER in this.source.annotations:
        actions.append(SetMark(None))
    if actions:
        note = Note(Reason.GIVEN_BACK, f"given back with {this.source.replicas} replicas")
        return Plan(Step.CLEAN_UP, State.GIVING_BACK, note, tuple(actions), (note,), wake_after_s=POLL_S)
    return _last_traces(this)


def _last_traces(this: Pass) -> Plan:
    """Take the mark off where the Deployment controller has copied it, then the Split away.

    Only when that controller has seen that the source has none any more: it would copy it again.
    """
    if not this.source.observed:
        return wait_controller(this)
    actions: list[Action] = [StripMark(rs.name) for rs in this.observed.tied(Tie.ATTACHED) if rs.marked]
    conflict = this.observed.split is not None and this.observed.split.conflict
    if this.observed.split is not None and not (conflict and LABEL_SPLIT in this.source.labels):
        actions.append(DeleteSplit())
    note = Note(Reason.GIVEN_BACK, "no trace is left")
    return Plan(Step.CLEAN_UP, State.GIVING_BACK, note, tuple(actions), wake_after_s=POLL_S)


def _reattach_one(source: SourceView, rs: ReplicaSetView) -> Reattach:
    names = (*source.selector_keys, "pod-template-hash")
    labels = tuple((name, rs.template_labels[name]) for name in names if name in rs.template_labels)
    counts = (rs.spec_replicas, rs.spec_replicas + source.max_surge) if rs.spec_replicas else None
    return Reattach(rs.name, rs.resource_version, labels, counts)


def create_hand_back(_: Pass) -> Plan:
    """Make a ReplicaSet to give back where none has the template (row 19)."""
    note = Note(Reason.GIVING_BACK, "made a ReplicaSet with the source's template to give back")
    return Plan(
        Step.CREATE_HAND_BACK, State.GIVING_BACK, note, (CreateHandBack(),), (note,), wake_after_s=POLL_S
    )


def reattach(this: Pass) -> Plan:
    """Give the complete ReplicaSet its labels back (row 20)."""
    hand_back = hand_back_of(this.observed)
    if hand_back is None:
        return wait_controller(this)
    costs = restored_costs((hand_back,))
    if costs is None:
        return wait_controller(this)
    if costs:
        note = Note(Reason.GIVING_BACK, "its pods get the deletion costs back that they had")
        return Plan(Step.REATTACH, State.GIVING_BACK, note, tuple(costs), wake_after_s=POLL_S)
    note = Note(Reason.GIVING_BACK, f"{hand_back.name} has {this.source.replicas} available and goes back")
    return Plan(
        Step.REATTACH,
        State.GIVING_BACK,
        note,
        (_reattach_one(this.source, hand_back),),
        (note,),
        wake_after_s=POLL_S,
    )


def hand_back(this: Pass) -> Plan:
    """Move replicas from the twins to the ReplicaSet to give back (row 21)."""
    moved = transfer.towards_source(this.observed, this.source)
    if not moved.scales and (freed := _roll_on(this)) is not None:
        return freed
    return moving(this, moved, State.GIVING_BACK, Reason.GIVING_BACK, (0, 0))


def _roll_on(this: Pass) -> Plan | None:
    """Give a twin that is stuck in a roll the source's template, with the numbers of that roll (row 18).

    Its surge replicas that never became available would fill the room for ever, and a twin in mid-roll
    has no free replicas to shrink by (docs/adr/0012).
    """
    if isinstance(this.rendered, Note) or this.source.stateful is not None:
        return None  # a StatefulSet rolls without surge, and shrinks from its top, where its roll is
    for twin in this.observed.twins:
        rendered = this.rendered[twin.pool]
        surge, unavailable = kept_numbers(twin)
        if not is_rolling(twin) or twin.rendered_hash == rendered.hash or not (surge or unavailable):
            continue
        note = Note(Reason.ROLLING, f"{twin.name} is stuck in a roll; it gets the source's template first")
        action = rolled(twin, rendered, surge, unavailable)
        return Plan(Step.HAND_BACK, State.GIVING_BACK, note, (action,), (note,), wake_after_s=POLL_S)
    return None

"""The steps of a StatefulSet that is scaled to 0: save N, follow it, show it, and clean up.

The planner calls one of these a reconcile, by the table of `statefulset.table`. What they have in common with
Deployments is in `onboard`, `twins.steps` and `offboard`. None scales anything: N is written before the first
scale-down, with the resourceVersion that it was read from (H70, H71).
"""

from splitter.core import labels_annotations as keys
from splitter.core.actions import Action, DeleteSplit, DeleteTwin, ReleaseSource, SaveReplicas, ShowReplicas
from splitter.core.handover import Step
from splitter.core.model import Note, SourceView
from splitter.core.plan import POLL_S, Plan, PlanInput
from splitter.core.reasons import Reason, State
from splitter.core.stateful import StatefulView
from splitter.core.twins import write_conflicts
from splitter.core.twins.onboard import under_way


def save(this: PlanInput) -> Plan:
    """Write N down, before anything is scaled; where it was lost, the Split has it."""
    stateful = _stateful(this.source)
    replicas, where = stateful.spec_replicas, "spec.replicas"
    split = this.observed.split
    if replicas == 0 or (split is not None and stateful.is_left_by_us(split.replicas)):
        replicas, where = _lost(this)
    note = Note(Reason.HANDING_OVER, f"saved {replicas} replicas, read from {where}")
    action = SaveReplicas(replicas, stateful.spec_replicas, this.source.resource_version)
    return Plan(Step.SAVE, _state(this), note, (*_shown(this, replicas), action), (note,))


def _lost(this: PlanInput) -> tuple[int, str]:
    """Return N of a source that stands where we left it without its annotation, and where it was found."""
    split = this.observed.split
    if split is not None and split.replicas is not None:
        return split.replicas, f"the Split {keys.split_name(this.source.key)}"
    held = sum(twin.spec_replicas for twin in this.observed.twins)
    if (desired := this.observed.reported.desired) > 0:
        return desired, "the Split's status"
    return held, "its twins" if held else "spec.replicas"


def _shown(this: PlanInput, replicas: int) -> tuple[Action, ...]:
    """Return the write that tells the Split a new N, where it says another.

    Before the source is written: after it, a crash in between would look as if somebody had scaled the Split
    back.
    """
    split = this.observed.split
    return (ShowReplicas(replicas),) if split is not None and split.replicas not in {None, replicas} else ()


def follow(this: PlanInput) -> Plan:
    """Take what somebody has written to the source as the new N; the old one again is a write conflict."""
    stateful = _stateful(this.source)
    new, old = stateful.spec_replicas, this.source.replicas
    actions = (*_shown(this, new), SaveReplicas(new, new, this.source.resource_version))
    who = stateful.writer or "somebody"
    if new != old or not _is_ours(this):
        note = Note(Reason.SCALED, f"{who} scaled the source: {old} -> {new} replicas")
        return Plan(Step.FOLLOW, _state(this), note, actions, (note,))
    count = len(write_conflicts.with_one_more(this.observed, stateful.writer))
    split = keys.split_name(this.source.key)
    remedy = write_conflicts.remedy(
        this.source, f"Take spec.replicas out of its manifests, and scale the Split {split}"
    )
    message = (
        f"{who} set spec.replicas of the source to {new} again, which has 0 replicas while it is split"
        f" ({write_conflicts.times(count)});"
        f" {'given back' if count >= write_conflicts.MOST else 'set to 0 again'}. {remedy}"
    )
    note = Note(Reason.FOREIGN_WRITE, message, warning=True, about=who)
    return Plan(
        Step.FOLLOW,
        State.MOVING,
        note,
        actions,
        (note, *write_conflicts.declared(count, stateful.writer, stateful=True)),
        write_conflict=True,
        conflicting_writer=stateful.writer,
    )


def follow_split(this: PlanInput) -> Plan:
    """Take what somebody, or an autoscaler, has written to the Split as the new N."""
    stateful, split = _stateful(this.source), this.observed.split
    new = split.replicas if split is not None and split.replicas is not None else this.source.replicas
    note = Note(Reason.SCALED, f"the Split was scaled: {this.source.replicas} -> {new} replicas")
    action = SaveReplicas(new, stateful.left, this.source.resource_version)
    return Plan(Step.FOLLOW_SPLIT, _state(this), note, (action,), (note,))


def wait_for_count(this: PlanInput) -> Plan:
    """Leave the twins as they are: they serve, and nobody says how many the source is to have instead."""
    replicas, where = _lost(this)
    held = sum(twin.spec_replicas for twin in this.observed.twins)
    left = _stateful(this.source).spec_replicas
    message = (
        f"splitter's label and annotations were removed together while the source stands at {left}, so"
        f" splitter may not write it any more; its twins go on running {held} replicas. Scale the source, to"
        f" {replicas} as {where} says, and the twins shrink beside it; or delete the twins"
    )
    note = Note(Reason.GIVING_BACK, message, warning=True)
    return Plan(Step.WAIT_COUNT, State.HELD, note, notes=(note,), requeue_after_s=this.rules.look_again_s)


def show(this: PlanInput) -> Plan:
    """Write N into the Split, so that an autoscaler finds it there."""
    note = Note(
        Reason.HANDING_OVER, f"the Split {keys.split_name(this.source.key)} can be scaled, too", quiet=True
    )
    return Plan(Step.SHOW, _state(this), note, (ShowReplicas(this.source.replicas),), (note,))


def release(this: PlanInput) -> Plan:
    """Remove every trace: mark and N first, since no watch selects them, then twins and Split (H76)."""
    marked = {keys.ANNOTATION_TAKEN_OVER, keys.ANNOTATION_REPLICAS} & this.source.annotations.keys()
    actions: list[Action] = [ReleaseSource()] if marked else []
    actions += [DeleteTwin(twin.name, twin.uid) for twin in this.observed.twins if not twin.deleting]
    if actions:
        note = Note(Reason.GIVEN_BACK, f"given back with {this.source.replicas} replicas")
        return Plan(Step.RELEASE, State.GIVING_BACK, note, tuple(actions), (note,), requeue_after_s=POLL_S)
    split = this.observed.split
    keeps = this.observed.reported.conflict and keys.LABEL_SPLIT in this.source.labels
    last = () if split is None or keeps or this.observed.twins else (DeleteSplit(),)
    note = Note(Reason.GIVEN_BACK, "no trace is left")
    return Plan(Step.RELEASE, State.GIVING_BACK, note, last, requeue_after_s=POLL_S)


def _stateful(source: SourceView) -> StatefulView:
    if source.stateful is None:
        raise ValueError(f"{source.key} is no StatefulSet")
    return source.stateful


def _is_ours(this: PlanInput) -> bool:
    """Whether it is to stand at 0: labelled, and not in Conflict."""
    return keys.LABEL_SPLIT in this.source.labels and not this.observed.reported.conflict


def _state(this: PlanInput) -> State:
    return under_way(this) if _is_ours(this) else State.GIVING_BACK

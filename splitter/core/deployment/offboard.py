"""The steps of giving back, from the removed label to no trace (H30 to H38).

The planner calls one of these a reconcile. Availability is moved by `replica_moves`; here stand the order of
the writes and their sentences. The mark goes after everything it stands for, the Split last.
"""

from dataclasses import replace

from splitter.core import actions as do
from splitter.core.deployment import adoption
from splitter.core.deployment.adoption import restless, unlabelled
from splitter.core.deployment.unowned import stopped
from splitter.core.handover import Step, holds_replicas, waits_for_pods
from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER, LABEL_SOURCE, LABEL_SPLIT, short_name
from splitter.core.model import Attachment, Note, ReplicaSetView, SourceView
from splitter.core.plan import AT_ONCE_S, POLL_S, Plan, PlanInput
from splitter.core.reasons import Reason, State
from splitter.core.twins import letting_go, replica_moves
from splitter.core.twins import steps as twins_steps
from splitter.core.twins.onboard import wait_controller
from splitter.core.twins.rollout import last_available
from splitter.core.twins.steps import moving
from splitter.core.twins.write_order import restored_costs


def unpause(this: PlanInput) -> Plan:
    """Unpause once a ReplicaSet is attached (H33)."""
    note = Note(Reason.GIVING_BACK, "its pods are its own again; unpaused")
    actions = (do.SetPaused(paused=False, resource_version=this.source.resource_version),)
    return Plan(Step.UNPAUSE, State.GIVING_BACK, note, actions, (note,), requeue_after_s=AT_ONCE_S)


def shrink_ours(this: PlanInput) -> Plan:
    """Shrink splitter's holders beside a source that runs its own pods (H34)."""
    if paused := [twin for twin in this.observed.twins if twin.paused and not waits_for_pods(twin)]:
        # Somebody has resumed the source after they were paused: cut off in a roll, they could not shrink.
        note = Note(
            Reason.GIVING_BACK, "the source runs by itself: the twins are resumed, and shrink", quiet=True
        )
        actions = tuple(
            do.PauseTwin(twin.name, paused=False, resource_version=twin.resource_version) for twin in paused
        )
        return Plan(Step.SHRINK_OURS, State.GIVING_BACK, note, actions, (note,), requeue_after_s=POLL_S)
    moved = replica_moves.drain(this.observed, this.source)
    return replace(moving(this, moved, State.GIVING_BACK, Reason.GIVING_BACK, (0, 0)), step=Step.SHRINK_OURS)


def clean_up(this: PlanInput) -> Plan:
    """Remove every trace (H35, H81): needless ReplicaSets, then the others back, twins, mark, Split."""
    if this.observed.split is None and (
        this.observed.twins or ANNOTATION_TAKEN_OVER in this.source.annotations
    ):
        # Without it nothing would lead back here once the twins are gone: no watch selects a mark.
        note = Note(Reason.GIVING_BACK, "the Split object is written anew, and goes last")
        anew = (do.EnsureSplit(takes_over=True),)
        return Plan(Step.CLEAN_UP, State.GIVING_BACK, note, anew, requeue_after_s=POLL_S)
    taken = {rs.template_hash for rs in this.observed.attached_as(Attachment.ATTACHED)} | {
        this.source.template_hash
    }
    parked = [rs for rs in this.observed.attached_as(Attachment.PARKED) if rs.deleted is None]
    needless = {rs.uid for rs in parked if rs.template_hash in taken or _is_a_twins(rs, this.source)}
    go = [rs for rs in parked if rs.uid in needless]
    back = [rs for rs in parked if rs.uid not in needless]
    actions: list[do.Action] = [do.DeleteReplicaSet(rs.name, rs.uid, rs.resource_version) for rs in go]
    actions += [_reattach_one(this.source, rs) for rs in back]
    if back:  # adopted first; what is left goes in the next reconcile
        note = Note(Reason.GIVING_BACK, f"gives {len(back)} old revisions back, for kubectl rollout undo")
        return Plan(Step.CLEAN_UP, State.GIVING_BACK, note, tuple(actions), requeue_after_s=AT_ONCE_S)
    actions += [do.DeleteTwin(twin.name, twin.uid) for twin in this.observed.twins if not twin.deleting]
    costs = restored_costs(this.observed.attached_as(Attachment.ATTACHED), this.source.replicas)
    if costs is None:
        return wait_controller(this)
    actions += costs
    actions += unlabelled(this.observed.attached_as(Attachment.ATTACHED))
    if ANNOTATION_TAKEN_OVER in this.source.annotations:
        actions.append(do.SetOwnershipMark(None))
    if actions:
        note = Note(Reason.GIVEN_BACK, f"given back with {this.source.replicas} replicas")
        return Plan(
            Step.CLEAN_UP, State.GIVING_BACK, note, tuple(actions), (note,), requeue_after_s=AT_ONCE_S
        )
    return _last_traces(this)


def _is_a_twins(rs: ReplicaSetView, source: SourceView) -> bool:
    """Whether a twin made it: the source has adopted it, out of a backup, and no user has that template.

    Given its labels back, it would be adopted by the twin that is still there, and scaled up.
    """
    return rs.template_labels.get(LABEL_SOURCE) == short_name(source.key.name)


def _last_traces(this: PlanInput) -> Plan:
    """Take the mark off where the Deployment controller has copied it, then the Split away.

    Only when that controller has seen that the source has none any more: it would copy it again.
    """
    if not this.source.observed:
        return wait_controller(this)
    actions: list[do.Action] = [
        do.StripOwnershipMark(rs.name) for rs in this.observed.attached_as(Attachment.ATTACHED) if rs.marked
    ]
    conflict = this.observed.reported.conflict
    if this.observed.split is not None and not (conflict and LABEL_SPLIT in this.source.labels):
        actions.append(do.DeleteSplit())
    note = Note(Reason.GIVEN_BACK, "no trace is left")
    return Plan(Step.CLEAN_UP, State.GIVING_BACK, note, tuple(actions), requeue_after_s=POLL_S)


def _reattach_one(source: SourceView, rs: ReplicaSetView) -> do.Reattach:
    names = (*source.selector_keys, "pod-template-hash")
    labels = tuple((name, rs.template_labels[name]) for name in names if name in rs.template_labels)
    return do.Reattach(rs.name, rs.resource_version, labels, active=rs.spec_replicas > 0)


def offboard(this: PlanInput) -> Plan:
    """Give the twins' pods back, once nothing more urgent is due (H37)."""
    if not restless(this):
        if (why := letting_go.barred(this)) is not None:
            return letting_go.replaced(this, why)
        if any(pod.counts for pod in this.observed.orphans) and (first := stopped(this)) is not None:
            return replace(first, step=Step.OFFBOARD)
        return adoption.offboard(this)
    return replace(twins_steps.run(this), state=State.GIVING_BACK, step=Step.OFFBOARD, requeue_after_s=POLL_S)


def reattach(this: PlanInput) -> Plan:
    """Give a ReplicaSet with pods its labels back, where no twin is left (H38)."""
    parked = this.observed.attached_as(Attachment.PARKED)
    active = [rs for rs in parked if rs.deleted is None and holds_replicas(rs)]
    largest = max(active, key=lambda rs: (rs.template_hash == this.source.template_hash, rs.spec_replicas))
    note = Note(Reason.GIVING_BACK, f"{largest.name} goes back with {largest.spec_replicas} replicas")
    back = (_reattach_one(this.source, largest),)
    return Plan(Step.REATTACH, State.GIVING_BACK, note, back, (note,), requeue_after_s=POLL_S)


def hand_back(this: PlanInput) -> Plan:
    """Move replicas from the twins of a StatefulSet to itself (H72), once no broken roll is left (H77)."""
    back = tuple(
        do.RestoreTemplate(twin.name, good.name, twin.resource_version)
        for twin in this.observed.twins
        if twin.observed and (good := last_available(twin)) is not None
    )
    if back:
        names = " and ".join(one.twin for one in back)
        note = Note(Reason.GIVING_BACK, f"the template of {names} that has not come up is taken back")
        return Plan(Step.HAND_BACK, State.GIVING_BACK, note, back, (note,), requeue_after_s=POLL_S)
    moved = replica_moves.towards_source(this.observed, this.source, this.policy.grace_s)
    return moving(this, moved, State.GIVING_BACK, Reason.GIVING_BACK, (0, 0))

"""Says what each action does, in a line: what `splitter plan` would write."""

from typing import assert_never

from splitter.core import actions as do
from splitter.core.labels_annotations import CONDITION_AVAILABLE


def describe(action: do.Action) -> str:  # noqa: C901, PLR0911, PLR0912 (one line a kind of action)
    """Return what an action does, in words that kubectl users know.

    >>> describe(do.Scale(do.HolderKind.DEPLOYMENT, "web-spot", 3, 5, None))
    'scale deployment web-spot 3 -> 5'
    """
    match action:
        case do.EnsureSplit():
            return "create the Split" if action.takes_over else "create a Split that only reports"
        case do.DeleteSplit():
            return "delete the Split"
        case do.SetOwnershipMark():
            return "mark the source as taken over" if action.value else "remove the mark from the source"
        case do.SetPaused():
            return "pause the source" if action.paused else "unpause the source"
        case do.SaveReplicas():
            return f"save {action.replicas} replicas on the source"
        case do.ShowReplicas():
            return f"show {action.replicas} replicas on the Split"
        case do.ReleaseSource():
            return "remove the mark and the saved replicas from the source"
        case do.Park():
            return f"park replicaset {action.name}"
        case do.Reattach():
            return f"give replicaset {action.name} back to the source"
        case do.StripOwnershipMark():
            return f"take the mark off replicaset {action.name}"
        case do.HideAvailable():
            return f"take the condition {CONDITION_AVAILABLE} off the source"
        case do.RetryPods():
            return f"have replicaset {action.name} create the pods that it was refused"
        case do.PauseTwin():
            return f"{'pause' if action.paused else 'resume'} twin {action.name}"
        case do.LabelPod():
            return f"label pod {action.pod} for {action.pool}" if action.pool else f"unlabel pod {action.pod}"
        case do.KeepRevision():
            whose = "the source" if action.replica_set is None else f"replicaset {action.replica_set}"
            return f"keep the template of {whose} as {action.name}, at 0"
        case do.OrphanPods():
            return f"delete replicaset {action.name} and leave its pods running"
        case do.AdoptPods():
            return f"create replicaset {action.name} for the running pods"
        case do.DeleteReplicaSet():
            return f"delete replicaset {action.name}"
        case do.ApplyTwin():
            verb = "create" if action.resource_version is None else "roll"
            return f"{verb} the {action.pool} twin at {action.replicas}"
        case do.RestoreTemplate():
            return f"put the template of {action.replica_set} back on {action.twin}"
        case do.DeleteTwin():
            return f"delete twin {action.name}"
        case do.Scale():
            return f"scale {action.kind.lower()} {action.name} {action.was} -> {action.replicas}"
        case do.SetBudget():
            kept = action.min_available
            return f"let {action.name} keep {kept} pods" if kept is not None else f"delete {action.name}"
        case do.SetDeletionCost():
            return f"{'set' if action.cost else 'restore'} the deletion cost of pod {action.pod}"
        case do.DeleteVanishedPod():
            return f"delete pod {action.pod} of vanished node {action.node}"
        case do.DeletePod():
            return f"delete pod {action.pod}, on which no ReplicaSet acts"
        case do.PlaceOrdinals():
            ordinals = ", ".join(map(str, action.ordinals)) or "none"
            return f"put on-demand ordinals {ordinals} in force on the Split"
        case do.EvictPod():
            return f"evict pod {action.pod}, to start anew on {action.pool}"
        case do.DeleteUnboundPod():
            return f"delete pod {action.pod}, which has no node"
        case do.CreatePlaceholder():
            if action.node:
                return f"create a placeholder that keeps {action.pool} off {action.node}"
            return f"create a placeholder on {action.pool} for ordinal {action.held_for.split('/')[1]}"
        case do.DeletePlaceholder():
            return f"delete placeholder {action.pod}"
        case _:
            assert_never(action)

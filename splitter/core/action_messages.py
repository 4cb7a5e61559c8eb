"""Says what each action does, in a line: what `splitter plan` would write."""

from typing import assert_never

from splitter.core.actions import (
    Action,
    AdoptionAction,
    AdoptPods,
    ApplyTwin,
    CreatePlaceholder,
    DeletePlaceholder,
    DeleteReplicaSet,
    DeleteSplit,
    DeleteTwin,
    DeleteUnboundPod,
    DeleteVanishedPod,
    EnsureSplit,
    EvictPod,
    KeepRevision,
    LabelPod,
    OrphanPods,
    Park,
    PauseTwin,
    PlacementAction,
    PlaceOrdinals,
    Reattach,
    ReleaseSource,
    RestoreTemplate,
    RetryPods,
    SaveReplicas,
    Scale,
    SetBudget,
    SetDeletionCost,
    SetOwnershipMark,
    SetPaused,
    ShowReplicas,
    StripOwnershipMark,
)


def describe(action: Action) -> str:  # noqa: C901, PLR0911, PLR0912 (one line a kind of action)
    """Return what an action does, in words that kubectl users know.

    >>> describe(Scale(HolderKind.DEPLOYMENT, "web-spot", 3, 5, None))
    'scale deployment web-spot 3 -> 5'
    """
    match action:
        case EnsureSplit():
            return "create the Split" if action.takes_over else "create a Split that only reports"
        case DeleteSplit():
            return "delete the Split"
        case SetOwnershipMark():
            return "mark the source as taken over" if action.value else "remove the mark from the source"
        case SetPaused():
            return "pause the source" if action.paused else "unpause the source"
        case SaveReplicas():
            return f"save {action.replicas} replicas on the source"
        case ShowReplicas():
            return f"show {action.replicas} replicas on the Split"
        case ReleaseSource():
            return "remove the mark and the saved replicas from the source"
        case Park():
            return f"park replicaset {action.name}"
        case Reattach():
            return f"give replicaset {action.name} back to the source"
        case StripOwnershipMark():
            return f"take the mark off replicaset {action.name}"
        case RetryPods():
            return f"have replicaset {action.name} create the pods that it was refused"
        case PauseTwin() | LabelPod() | KeepRevision() | OrphanPods() | AdoptPods():
            return _describe_adoption(action)
        case DeleteReplicaSet():
            return f"delete replicaset {action.name}"
        case ApplyTwin():
            verb = "create" if action.resource_version is None else "roll"
            return f"{verb} the {action.pool} twin at {action.replicas}"
        case RestoreTemplate():
            return f"put the template of {action.replica_set} back on {action.twin}"
        case DeleteTwin():
            return f"delete twin {action.name}"
        case Scale():
            return f"scale {action.kind.lower()} {action.name} {action.was} -> {action.replicas}"
        case SetBudget():
            kept = action.min_available
            return f"let {action.name} keep {kept} pods" if kept is not None else f"delete {action.name}"
        case SetDeletionCost():
            return f"{'set' if action.cost else 'restore'} the deletion cost of pod {action.pod}"
        case DeleteVanishedPod():
            return f"delete pod {action.pod} of vanished node {action.node}"
        case PlaceOrdinals() | EvictPod() | DeleteUnboundPod() | CreatePlaceholder() | DeletePlaceholder():
            return _describe_placement(action)
        case _:
            assert_never(action)


def _describe_adoption(action: AdoptionAction) -> str:
    match action:
        case PauseTwin():
            return f"{'pause' if action.paused else 'resume'} twin {action.name}"
        case LabelPod():
            return f"label pod {action.pod} for {action.pool}" if action.pool else f"unlabel pod {action.pod}"
        case KeepRevision():
            whose = "the source" if action.replica_set is None else f"replicaset {action.replica_set}"
            return f"keep the template of {whose} as {action.name}, at 0"
        case OrphanPods():
            return f"delete replicaset {action.name} and leave its pods running"
        case AdoptPods():
            return f"create replicaset {action.name} for {action.replicas} of the running pods"
        case _:
            assert_never(action)


def _describe_placement(action: PlacementAction) -> str:
    match action:
        case PlaceOrdinals():
            ordinals = ", ".join(map(str, action.ordinals)) or "none"
            return f"put on-demand ordinals {ordinals} in force on the Split"
        case EvictPod():
            return f"evict pod {action.pod}, to start anew on {action.pool}"
        case DeleteUnboundPod():
            return f"delete pod {action.pod}, which has no node"
        case CreatePlaceholder():
            return f"create a placeholder on {action.pool} for ordinal {action.ordinal}"
        case DeletePlaceholder():
            return f"delete placeholder {action.pod}"
        case _:
            assert_never(action)

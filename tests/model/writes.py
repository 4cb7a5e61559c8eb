"""The writes of splitter in the explored world, each as `kube.apply` sends it, and the twins it renders."""

import json

from model.cluster import (
    APP,
    TEMPLATE_HASH,
    Cluster,
    Deployment,
    LostRaceError,
    ReplicaSet,
    Split,
    StatefulSet,
)
from splitter.core.actions import (
    Action,
    AdoptionAction,
    AdoptPods,
    ApplyTwin,
    CreatePlaceholder,
    DeletePlaceholder,
    DeletePod,
    DeleteReplicaSet,
    DeleteSplit,
    DeleteTwin,
    DeleteUnboundPod,
    DeleteVanishedPod,
    EnsureSplit,
    EvictPod,
    HideAvailable,
    HolderKind,
    KeepRevision,
    LabelPod,
    OrphanPods,
    Park,
    PauseTwin,
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
from splitter.core.desired.compare import withdrawn
from splitter.core.labels_annotations import (
    ANNOTATION_REPLICAS,
    ANNOTATION_TAKEN_OVER,
    LABEL_SPLIT,
    SPLIT_PARKED,
    SPOT_ORDINALS,
)
from splitter.core.labels_annotations.policy import Policy
from splitter.core.labels_annotations.saved import saved_value
from splitter.core.model import Observation, Rendered
from splitter.core.replica import Pool
from splitter.kube import payloads
from splitter.kube.client import Json


def render(observed: Observation, policy: Policy) -> dict[Pool, Rendered]:
    """Render both twins: a word each, made of the source's template."""
    template = observed.source.template_hash if observed.source else ""
    restarted = f"@{policy.restarted_at}" if policy.restarted_at else ""
    words = {pool: f"{template}{restarted}|{pool.value}" for pool in Pool}
    return {pool: Rendered(json.dumps({"template": word}), word, word) for pool, word in words.items()}


def write(cluster: Cluster, action: Action, observed: Observation) -> None:
    """Do one write. Raises LostRaceError where its precondition does not hold."""
    source = cluster.source
    ours = {ANNOTATION_TAKEN_OVER, ANNOTATION_REPLICAS} & source.annotations.keys()
    on_source = isinstance(action, SetOwnershipMark | SaveReplicas | ReleaseSource) or (
        isinstance(action, Scale) and action.name == source.name
    )
    if cluster.is_stateful and on_source and not ours and LABEL_SPLIT not in source.labels:
        raise LostRaceError("the policy on splitter's account refuses it; for ever, and there is no rest")
    _write(cluster, action, observed)


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise LostRaceError(message)


def _write(cluster: Cluster, action: Action, observed: Observation) -> None:  # noqa: C901, PLR0912, PLR0915 - one case a write
    source = cluster.source
    match action:
        case EnsureSplit():
            if cluster.split is None:
                cluster.split = Split(cluster.name("uid-split"), source.uid, action.takes_over)
            cluster.split.owner, cluster.split.takes_over = source.uid, action.takes_over
        case DeleteSplit():
            if observed.split and cluster.split and cluster.split.uid == observed.split.uid:
                cluster.split = None
        case SetOwnershipMark():
            if action.value is None:
                source.annotations.pop(ANNOTATION_TAKEN_OVER, None)
            else:
                source.annotations[ANNOTATION_TAKEN_OVER] = action.value
            source.version = cluster.version()
        case SetPaused():
            _expect(action.resource_version == str(source.version), "source changed")
            cluster.change_spec(source, paused=action.paused, paused_by_us=action.paused)
        case SaveReplicas():
            _expect(action.resource_version == str(source.version), "source changed")
            source.annotations[ANNOTATION_REPLICAS] = saved_value(action.replicas, action.left)
            source.version = cluster.version()
        case ShowReplicas():
            _expect(cluster.split is not None, "the Split is gone")
            if cluster.split is not None:
                cluster.split.replicas = action.replicas
        case ReleaseSource():
            source.annotations.pop(ANNOTATION_TAKEN_OVER, None)
            source.annotations.pop(ANNOTATION_REPLICAS, None)
            source.version = cluster.version()
        case Scale():
            _scale(cluster, action, observed)
        case ApplyTwin():
            _apply_twin(cluster, action)
        case DeleteTwin():
            twin = next((twin for twin in cluster.twins.values() if twin.uid == action.uid), None)
            if twin is not None and twin.pool is not None:
                cluster.delete_twin(twin.pool)
        case DeleteUnboundPod():
            pod = cluster.pods.get(action.pod)
            if pod is not None:
                cluster.terminate(pod)
        case PlaceOrdinals() | EvictPod() | CreatePlaceholder() | DeletePlaceholder() | SetBudget():
            raise AssertionError(f"no member is placed here, and no budget written: {action}")
        case RestoreTemplate():
            _restore_template(cluster, action)
        case RetryPods() | HideAvailable():
            raise AssertionError(f"no part of what a plan decides: {action}")
        case StripOwnershipMark():
            _replica_set(cluster, action.name, None).marked = False
        case PauseTwin() | LabelPod() | KeepRevision() | OrphanPods() | AdoptPods() | DeletePod():
            _adopt(cluster, action, observed)
        case Park() | Reattach() | DeleteReplicaSet():
            _write_replica_set(cluster, action)
        case SetDeletionCost():
            pod = cluster.pods.get(action.pod)
            if pod is not None:
                pod.cost, pod.cost_before = action.cost, action.remember
        case DeleteVanishedPod():
            pod = cluster.pods.get(action.pod)
            if pod is not None and action.node not in cluster.nodes:
                cluster.terminate(pod)


def _replica_set(cluster: Cluster, name: str, version: str | None) -> ReplicaSet:
    rs = next((rs for rs in cluster.replica_sets.values() if rs.name == name), None)
    if rs is None or version not in {None, str(rs.version)}:
        raise LostRaceError(name)
    return rs


def _twin(cluster: Cluster, name: str, version: str | None) -> Deployment:
    twin = next((twin for twin in cluster.twins.values() if twin.name == name), None)
    if twin is None or version not in {None, str(twin.version)}:
        raise LostRaceError(name)
    return twin


def _scale(cluster: Cluster, action: Scale, observed: Observation) -> None:
    source = cluster.source
    if action.kind is HolderKind.REPLICA_SET:
        rs = _replica_set(cluster, action.name, action.resource_version)
        rs.spec, rs.version = action.replicas, cluster.version()
    elif action.name == source.name and observed.source is not None:
        _expect(action.resource_version == str(source.version), "source changed")
        source.annotations[ANNOTATION_REPLICAS] = saved_value(observed.source.replicas, action.replicas)
        cluster.change_spec(source, replicas=action.replicas, writer="")
    else:
        twin = _twin(cluster, action.name, action.resource_version)
        cluster.change_spec(twin, replicas=action.replicas)


def _apply_twin(cluster: Cluster, action: ApplyTwin) -> None:
    template = json.loads(action.manifest_json)["template"]
    if action.pool in cluster.twins:
        _expect(action.resource_version is not None or not cluster.is_stateful, "the twin exists")
        twin = _twin(cluster, cluster.twins[action.pool].name, action.resource_version)
    else:
        _expect(action.resource_version is None, "twin is gone")
        twin = cluster.twins[action.pool] = _created(cluster, action.pool, template)
    changes: dict[str, object] = {
        "template": template,
        "rendered_hash": action.hash,
        "replicas": action.replicas,
    }
    if isinstance(twin, StatefulSet):
        changes |= {"partition": action.partition}
        if twin.template != template:
            changes["old_template"] = twin.template
    else:
        changes |= {"made_of": action.hash, "edited": False, "robbed": False, "paused": action.paused}
        changes |= {"max_surge": action.max_surge, "max_unavailable": action.max_unavailable}
    cluster.change_spec(twin, **changes)


def _created(cluster: Cluster, pool: Pool, template: str) -> Deployment:
    name = f"{cluster.source.name}-{pool.value}"
    uid = cluster.name(f"uid-{name}")
    if cluster.is_stateful:
        made = StatefulSet(name, uid, pool, template, 0, 0, 1, cluster.version(), generation=0)
        made.first = SPOT_ORDINALS if pool is Pool.SPOT else 0
        return made
    return Deployment(name, uid, pool, template, 0, 0, 0, 0, generation=0, history_limit=2)


def _restore_template(cluster: Cluster, action: RestoreTemplate) -> None:
    twin = _twin(cluster, action.twin, action.resource_version)
    if isinstance(twin, StatefulSet):
        good = action.replica_set.removeprefix("revision-")
        cluster.change_spec(twin, template=good, rendered_hash=withdrawn(twin.rendered_hash))
        return
    good = _replica_set(cluster, action.replica_set, None).template
    restored = withdrawn(twin.rendered_hash if action.tried else "")
    cluster.change_spec(twin, template=good, rendered_hash=restored, edited=False)


def _adopt(cluster: Cluster, action: AdoptionAction, observed: Observation) -> None:
    match action:
        case PauseTwin():
            twin = _twin(cluster, action.name, action.resource_version)
            cluster.change_spec(twin, paused=action.paused)
        case LabelPod():
            pod = cluster.pods.get(action.pod)
            if pod is not None:
                pod.label = action.pool
        case DeletePod():
            pod = cluster.pods.get(action.pod)
            if pod is not None:
                cluster.terminate(pod)
        case KeepRevision():
            _keep(cluster, action, observed)
        case OrphanPods():
            rs = _replica_set(cluster, action.name, action.resource_version)
            rs.deleting, rs.deleted, rs.version = True, cluster.now, cluster.version()
        case AdoptPods():
            _take(cluster, action, observed)


def _take(cluster: Cluster, action: AdoptPods, observed: Observation) -> None:
    """Create the ReplicaSet that adopts pods, with the counts that the real payload has."""
    owner = cluster.source if action.pool is None else cluster.twins.get(action.pool)
    source = observed.source
    if owner is None or source is None:
        raise LostRaceError(action.name)
    _expect(owner.paused, f"{owner.name} was resumed")
    _free(cluster, action.name)
    template = owner.template
    if action.template_of is not None:
        template = _replica_set(cluster, action.template_of, None).template
    live = _live(owner)
    body = payloads.adopting(source, action, live, live)
    made = cluster.adopting(owner, action.name, template, body["spec"]["replicas"], action.hashes)
    _remember(made, body)


def _live(owner: Deployment) -> Json:
    """Return a Deployment as far as the payloads of splitter's writes look at one."""
    rolling = {"maxSurge": owner.max_surge, "maxUnavailable": owner.max_unavailable}
    labels = {"metadata": {"labels": {APP: "web"}}}
    spec = {
        "replicas": owner.replicas,
        "strategy": {"rollingUpdate": rolling},
        "selector": {},
        "template": labels,
    }
    return {"metadata": {"name": owner.name, "uid": owner.uid}, "spec": spec}


def _remember(rs: ReplicaSet, body: Json) -> None:
    """Let a ReplicaSet bear the counts of its Deployment that a payload has, if it has any."""
    annotations = body["metadata"]["annotations"]
    if payloads.DESIRED in annotations:
        rs.desired_replicas = int(annotations[payloads.DESIRED])
        rs.max_replicas = int(annotations[payloads.MOST])


def _keep(cluster: Cluster, action: KeepRevision, observed: Observation) -> None:
    if action.replica_set is None:
        template = observed.source.template_hash if observed.source else ""
    else:
        template = _replica_set(cluster, action.replica_set, None).template
    _free(cluster, action.name)
    kept = action.name.rpartition("-")[2]
    made = cluster.adopting(cluster.source, action.name, template, 0, (kept,))
    made.controlled, made.desired_replicas = False, None
    made.labels = {TEMPLATE_HASH: kept, LABEL_SPLIT: SPLIT_PARKED}


def _free(cluster: Cluster, name: str) -> None:
    _expect(all(rs.name != name for rs in cluster.replica_sets.values()), f"{name} exists")


def _write_replica_set(cluster: Cluster, action: Park | Reattach | DeleteReplicaSet) -> None:
    match action:
        case Park():
            rs = _replica_set(cluster, action.name, action.resource_version)
            for key in action.strip:
                rs.labels.pop(key, None)
            rs.labels[LABEL_SPLIT] = SPLIT_PARKED
            rs.owner, rs.controlled = cluster.source.uid, False
            rs.version = cluster.version()
        case Reattach():
            rs = _replica_set(cluster, action.name, action.resource_version)
            _expect(cluster.source.paused or not action.active, f"{cluster.source.name} was resumed")
            rs.labels |= dict(action.labels)
            rs.labels.pop(LABEL_SPLIT, None)
            _remember(rs, payloads.reattaching(action, _live(cluster.source)))
            rs.marked = False
            rs.version = cluster.version()
        case DeleteReplicaSet():
            rs = _replica_set(cluster, action.name, action.resource_version)
            cluster.remove_replica_set(rs)

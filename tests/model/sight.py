"""What splitter sees of the story's cluster: the part of kube.observe, without an API in between."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from model import budgets
from model.cluster import APP, Cluster, Deployment, Pod, ReplicaSet, Split
from model.kubelets import UNREADY_AFTER_S
from splitter.core.keyed import Edit
from splitter.core.labels_annotations import kept_name
from splitter.core.model import (
    Attachment,
    NodeStatus,
    Observation,
    PodView,
    Pool,
    RelatedObjects,
    ReplicaSetView,
    SourceView,
    Trouble,
    TwinView,
)
from splitter.core.names import Key
from splitter.core.reasons import Reason
from splitter.core.split_status.view import SplitView
from splitter.kube.orphans import as_counted

KEY = Key("Deployment", "shop", "web")


def observe(cluster: Cluster) -> Observation:
    """Return everything that one reconcile may know."""
    source = cluster.source
    sets = [rs for rs in cluster.replica_sets.values() if rs.owner in {source.uid, ""}]
    own = [rs for rs in sorted(sets, key=lambda rs: rs.name) if not (rs.deleting and rs.controlled)]
    views = [_replica_set(cluster, rs, _attachment(rs)) for rs in own]
    on_demand = [node for node in cluster.nodes.values() if not node.spot]
    lost = sum(1 for node in on_demand if not node.ready)
    spot = cluster.twins.get(Pool.SPOT)
    return Observation(
        budgets=budgets.views(cluster),
        unguardable=_unguardable(cluster),
        signal_ends_at=_budget_due(cluster),
        key=KEY,
        now=cluster.instant(cluster.now),
        source=_source(source),
        split=split_view(cluster.split),
        replica_sets=tuple(views),
        on_demand=_twin(cluster, cluster.twins.get(Pool.ON_DEMAND)),
        spot=_twin(cluster, spot),
        fit_spot=_fit(cluster) if spot else 0,
        view_broken=len(on_demand) >= 3 and lost * 2 > len(on_demand),
        namespace_annotations={},
        leaving=any(rs.deleting and rs.controlled for rs in cluster.replica_sets.values())
        or _dangles(cluster),
        going=tuple(_going(cluster)),
        orphans=tuple(_pod(cluster, pod) for pod in _orphans(cluster)),
        related=RelatedObjects(rival=cluster.rival),
    )


def _going(cluster: Cluster) -> Iterator[ReplicaSetView]:
    pools = {twin.uid: pool for pool, twin in cluster.twins.items()}
    for rs in cluster.replica_sets.values():
        if rs.deleting and rs.controlled:
            yield replace(_replica_set(cluster, rs, Attachment.PARKED), held_by=pools.get(rs.owner))


def _dangles(cluster: Cluster) -> bool:
    """Whether a pod names a ReplicaSet that is gone: what is seen of pods is older than the rest."""
    owned = (pod.owner for pod in cluster.pods.values() if pod.active and pod.label is not None and pod.owner)
    return not all(owner in cluster.replica_sets for owner in owned)


def _orphans(cluster: Cluster) -> list[Pod]:
    """Return the pods that nobody controls and that bear our labels, or were made in the last moment."""
    kept = {rs.name for rs in cluster.released()}
    free = cluster.unowned()
    return [
        pod
        for pod in free
        if pod.label is not None
        or (kept_name("web", pod.hash) in kept and pod.name.startswith(f"web-{pod.hash}-"))
    ]


def _unguardable(cluster: Cluster) -> str:
    until = cluster.budgets_refused_until
    if until is None:
        return "nobody may write budgets here"
    return "budgets are refused for a while" if cluster.now < until else ""


def _budget_due(cluster: Cluster) -> datetime | None:
    until = cluster.budgets_refused_until
    return cluster.instant(until) if until is not None and cluster.now < until else None


def _attachment(rs: ReplicaSet) -> Attachment:
    if rs.controlled:
        return Attachment.ATTACHED
    return Attachment.RETURNING if APP in rs.labels else Attachment.PARKED


def _fit(cluster: Cluster) -> int:
    used: dict[str, int] = {}
    for pod in cluster.pods.values():
        used[pod.node or ""] = used.get(pod.node or "", 0) + 1
    sound = (node for node in cluster.nodes.values() if node.spot and node.ready and not node.doomed)
    return sum(max(0, node.slots - used.get(node.name, 0)) for node in sound)


def _source(source: Deployment) -> SourceView:
    counts = (source.status_updated, source.status_available, source.status_replicas)
    observed = source.observed_generation >= source.generation
    return SourceView(
        key=KEY,
        uid=source.uid,
        resource_version=str(source.version),
        generation=source.generation,
        replicas=source.replicas,
        max_surge=source.max_surge,
        max_unavailable=source.max_unavailable,
        paused=source.paused,
        observed=observed,
        template_hash=source.template,
        pod_hash=_pod_hash(source.template),
        labels=dict(source.labels),
        annotations=dict(source.annotations),
        selector_keys=(APP,),
        manifest_json=json.dumps(
            {"template": source.template, "spec": {"template": {"metadata": {"labels": {APP: "web"}}}}}
        ),
        paused_by_us=source.paused_by_us,
        rollout_complete=observed and counts[0] == counts[2] <= source.replicas,
        all_available=counts[1] == source.replicas,
        rollout=f"{counts[0]} updated, {counts[1]} available, {counts[2]} in all, {source.replicas} wanted",
    )


def split_view(split: Split | None) -> SplitView | None:
    """Return what is seen of the Split; of a StatefulSet's too."""
    if split is None:
        return None
    return SplitView(
        uid=split.uid,
        owner_uids=(split.owner,),
        takes_over=split.takes_over,
        replicas=split.replicas,
        status=split.read(),
    )


def _twin(cluster: Cluster, twin: Deployment | None) -> TwinView | None:
    if twin is None or twin.pool is None:
        return None
    return TwinView(
        pool=twin.pool,
        name=twin.name,
        uid=twin.uid,
        resource_version=str(twin.version),
        rendered_hash=twin.rendered_hash,
        robbed=twin.robbed,
        made_of=twin.made_of,
        paused=twin.paused,
        template_hash=twin.template,
        spec_replicas=twin.replicas,
        status_replicas=twin.status_replicas,
        available_replicas=twin.status_available,
        updated_replicas=twin.status_updated,
        observed=twin.observed_generation >= twin.generation,
        stalled=twin.stalled,
        max_surge=twin.max_surge,
        max_unavailable=twin.max_unavailable,
        edits=(Edit(("template",), twin.template, cluster.instant(twin.edited_at)),) if twin.edited else (),
        excluded=_excluded(cluster, twin.pool),
        replica_sets=tuple(
            _replica_set(cluster, rs, Attachment.ATTACHED) for rs in cluster.owned_by(twin) if not rs.deleting
        ),
    )


def _excluded(cluster: Cluster, pool: Pool) -> Trouble | None:
    sound = [node for node in cluster.nodes.values() if node.spot and node.ready and not node.doomed]
    if pool is not Pool.SPOT or not cluster.spot_taint or not sound:
        return None
    nodes = f"{len(sound)} of {len(sound)} healthy spot nodes"
    detail = f"{nodes} have a taint that it does not tolerate: {cluster.spot_taint}"
    return Trouble(Reason.TAINT_NOT_TOLERATED, detail)


def _pod_hash(template: str) -> str:
    """Return what pods are made of, wherever they may stand and whenever they were restarted."""
    return template.partition("|")[0].partition("@")[0]


def _replica_set(cluster: Cluster, rs: ReplicaSet, attachment: Attachment) -> ReplicaSetView:
    view = _as_written(cluster, rs, attachment)
    if not rs.deleting:
        return view
    return replace(as_counted(view), deleted=cluster.instant(rs.deleted))


def _as_written(cluster: Cluster, rs: ReplicaSet, attachment: Attachment) -> ReplicaSetView:
    return ReplicaSetView(
        name=rs.name,
        uid=rs.uid,
        resource_version=str(rs.version),
        template_hash=rs.template,
        pod_hash=_pod_hash(rs.template),
        spec_replicas=rs.spec,
        status_replicas=rs.status_replicas,
        available_replicas=rs.status_available,
        created=cluster.instant(rs.created),
        template_labels=dict(rs.template_labels),
        hashes=rs.hashes,
        attachment=attachment,
        orphaned=attachment is Attachment.PARKED and not rs.owner,
        marked=rs.marked,
        refusal=rs.refusal,
        pods=tuple(_pod(cluster, pod) for pod in cluster.pods_of(rs)),
    )


def _node_status(cluster: Cluster, pod: Pod) -> NodeStatus:
    if pod.node is None:
        return NodeStatus.UNBOUND
    node = cluster.nodes.get(pod.node)
    if node is None:
        return NodeStatus.LOST if pod.node in cluster.seen_nodes else NodeStatus.UNSEEN
    if not node.ready:
        return NodeStatus.LOST
    return NodeStatus.DOOMED if node.doomed else NodeStatus.SOUND


def _unready_since(cluster: Cluster, pod: Pod) -> datetime | None:
    """Return when a pod that is not ready was bound, or its node fell silent."""
    if pod.ready_since is not None or pod.ready_due is None:
        return None
    node, bound = cluster.nodes.get(pod.node or ""), pod.ready_due - cluster.start_s
    silent = (
        node.unready_since + UNREADY_AFTER_S if node is not None and node.unready_since is not None else 0
    )
    return cluster.instant(max(bound, silent, pod.unready_since or 0))


def _pod(cluster: Cluster, pod: Pod) -> PodView:
    ever = cluster.seen_nodes.get(pod.node or "")
    return PodView(
        name=pod.name,
        uid=pod.uid,
        node_status=_node_status(cluster, pod),
        node=pod.node,
        node_uid=ever.uid if ever else None,
        on_spot=ever is not None and ever.spot,
        cordoned=ever is not None and ever.cordoned,
        vanished=pod.node is not None and pod.node not in cluster.nodes and ever is not None,
        ready_since=cluster.instant(pod.ready_since) if pod.ready_since is not None else None,
        unready_since=_unready_since(cluster, pod),
        trouble=pod.trouble,
        created=cluster.instant(pod.created),
        terminating=pod.terminating_until is not None,
        finished=pod.finished,
        notice_s=cluster.notice_s,
        unschedulable_since=(
            cluster.instant(pod.unschedulable_since) if pod.unschedulable_since is not None else None
        ),
        born=pod.label,
        revision=pod.hash,
        deletion_cost=pod.cost,
        cost_before=pod.cost_before,
        cost_at=cluster.instant(pod.cost_at) if pod.cost_at is not None else None,
    )

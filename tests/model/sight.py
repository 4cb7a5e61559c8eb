"""What splitter sees of the story's cluster: the part of kube.observe, without an API in between."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from model.cluster import APP, Cluster, Deployment, Pod, ReplicaSet, Split, StatefulSet
from splitter.core.keyed import Edit
from splitter.core.labels_annotations import ANNOTATION_REPLICAS, kept_name
from splitter.core.labels_annotations.saved import parse_saved
from splitter.core.model import Attachment, Observation, ReplicaSetView, SourceView, TwinView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status.view import SplitView
from splitter.core.stateful import StatefulView
from splitter.kube.orphans import as_counted

KEY = Key("Deployment", "shop", "web")
MEMBERS = Key(STATEFUL_SET, "shop", "db")


def observe(cluster: Cluster) -> Observation:
    """Return everything that one reconcile may know."""
    source = cluster.source
    shared = Observation(
        unguardable="nobody may write budgets here",
        key=MEMBERS if cluster.is_stateful else KEY,
        now=cluster.instant(cluster.now),
        source=None,
        split=_split(cluster.split),
        on_demand=_twin(cluster, cluster.twins.get(Pool.ON_DEMAND)),
        spot=_twin(cluster, cluster.twins.get(Pool.SPOT)),
        fit_spot=_fit(cluster) if Pool.SPOT in cluster.twins else 0,
        namespace_annotations={},
    )
    if isinstance(source, StatefulSet):
        own = (_itself(cluster, source),)
        return replace(shared, source=_of_members(cluster, source), replica_sets=own)
    sets = [rs for rs in cluster.replica_sets.values() if rs.owner in {source.uid, ""}]
    there = [rs for rs in sorted(sets, key=lambda rs: rs.name) if not (rs.deleting and rs.controlled)]
    on_demand = [node for node in cluster.nodes.values() if not node.spot]
    lost = sum(1 for node in on_demand if not node.ready)
    return replace(
        shared,
        source=_source(source),
        replica_sets=tuple(_replica_set(cluster, rs, _attachment(rs)) for rs in there),
        view_broken=len(on_demand) >= 3 and lost * 2 > len(on_demand),
        leaving=any(rs.deleting and rs.controlled for rs in cluster.replica_sets.values())
        or _dangles(cluster),
        going=tuple(_going(cluster)),
        orphans=tuple(_pod(cluster, pod) for pod in _orphans(cluster)),
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


def _split(split: Split | None) -> SplitView | None:
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
    view = TwinView(
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
        max_surge=twin.max_surge,
        max_unavailable=twin.max_unavailable,
        edits=(Edit(("template",), twin.template, cluster.instant(twin.edited_at)),) if twin.edited else (),
        replica_sets=tuple(
            _replica_set(cluster, rs, Attachment.ATTACHED) for rs in cluster.owned_by(twin) if not rs.deleting
        ),
    )
    return _with_members(cluster, twin, view) if isinstance(twin, StatefulSet) else view


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


def _pod(cluster: Cluster, pod: Pod) -> Replica:
    ever = cluster.seen_nodes.get(pod.node or "")

    def at(when: int | None) -> datetime | None:
        return cluster.instant(when) if when is not None else None

    return Replica(
        name=pod.name,
        uid=pod.uid,
        node_status=_node_status(cluster, pod),
        node=pod.node,
        node_uid=ever.uid if ever else None,
        on_spot=ever is not None and ever.spot,
        vanished=pod.node is not None and pod.node not in cluster.nodes and ever is not None,
        ready_since=at(pod.ready_since),
        created=at(pod.created),
        terminating=not pod.active,
        unschedulable_since=at(pod.unschedulable_since),
        born=pod.label,
        ordinal=pod.ordinal,
        revision=pod.hash,
        deletion_cost=pod.cost,
        cost_before=pod.cost_before,
    )


# Of a StatefulSet.


def _of_members(cluster: Cluster, source: StatefulSet) -> SourceView:
    saved = parse_saved(source.annotations.get(ANNOTATION_REPLICAS))
    return replace(
        _source(source),
        key=MEMBERS,
        replicas=saved.replicas if saved else source.replicas,
        pod_hash="",
        annotations={**source.annotations, "splitter.io/mode": "twins"},
        rollout_complete=source.observed_generation >= source.generation,
        stateful=StatefulView(
            spec_replicas=source.replicas,
            status_replicas=source.status_replicas,
            available_replicas=source.status_available,
            created=cluster.instant(0),
            saved=saved.replicas if saved else None,
            left=saved.left if saved else 0,
            writer=source.writer,
            partition=source.partition,
            service="db",
        ),
    )


def _members(cluster: Cluster, owner: StatefulSet) -> tuple[Replica, ...]:
    """Return the pods of a StatefulSet; one that is bound and not ready has not been since it was made."""
    views = [_pod(cluster, pod) for pod in cluster.members_of(owner)]
    return tuple(
        replace(view, unready_since=view.created) if view.node and view.ready_since is None else view
        for view in views
    )


def _itself(cluster: Cluster, source: StatefulSet) -> ReplicaSetView:
    pods = _members(cluster, source)
    counted = sum(pod.counts for pod in pods)
    seen = source.observed_generation >= source.generation
    rolls = any(
        pod.active and pod.template != source.template and (pod.ordinal or 0) >= source.partition
        for pod in cluster.members_of(source)
    )
    return ReplicaSetView(
        name=source.name,
        uid=source.uid,
        resource_version=str(source.version),
        template_hash=source.template,
        spec_replicas=source.replicas,
        status_replicas=counted if seen else max(counted, source.status_replicas),
        available_replicas=source.status_available,
        created=cluster.instant(0),
        attachment=Attachment.PARKED,
        first_ordinal=source.first,
        rolls=not seen or rolls,
        pods=pods,
    )


def _with_members(cluster: Cluster, twin: StatefulSet, view: TwinView) -> TwinView:
    """Show its revisions as ReplicaSets."""
    templates = {pod.uid: pod.template for pod in cluster.members_of(twin)}
    old: dict[str, list[Replica]] = {}
    new: list[Replica] = []
    for pod in _members(cluster, twin):
        held_back = (pod.ordinal or 0) - twin.first < twin.partition
        is_new = view.observed and (held_back or templates[pod.uid] == twin.template)
        (new if is_new else old.setdefault(f"revision-{templates[pod.uid]}", [])).append(pod)
    older = [
        _revision(cluster, twin, name, sum(pod.counts for pod in pods), pods) for name, pods in old.items()
    ]
    left = max(0, twin.replicas - sum(rs.spec_replicas for rs in older))
    sets = (_revision(cluster, twin, twin.template, left, new), *older)
    counted = sum(rs.status_replicas for rs in sets)
    return replace(
        view,
        status_replicas=counted if view.observed else max(counted, twin.status_replicas),
        updated_replicas=sets[0].status_replicas,
        first_ordinal=twin.first,
        partition=twin.partition,
        replica_sets=sets,
    )


def _revision(
    cluster: Cluster, twin: StatefulSet, template: str, spec: int, pods: list[Replica]
) -> ReplicaSetView:
    return ReplicaSetView(
        name=template,
        uid=f"{twin.uid}/{template}",
        resource_version=str(twin.version),
        template_hash=template,
        spec_replicas=spec,
        status_replicas=sum(pod.counts for pod in pods),
        available_replicas=sum(pod.counts and pod.ready_since is not None for pod in pods),
        created=cluster.instant(0),
        pods=tuple(pods),
    )

"""What Kubernetes does by itself: controllers, scheduler, garbage collector (`kubelets` plays the nodes).

Each function does one piece of work and says whether anything changed; who acts when is the director's
business. The rules follow pkg/controller/{deployment,replicaset} of Kubernetes 1.36, as far as counts
go: adoption, scaling by a paused Deployment, proportional scaling in a roll, deletion preference.
"""

from collections.abc import Callable, Sequence

from model import kubelets
from model.cluster import APP, Cluster, Deployment, Pod, ReplicaSet
from splitter.core.causes import of_refusal
from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER
from splitter.core.model import Trouble
from splitter.core.reasons import Reason

NO_CLAIM = Trouble(Reason.VOLUME_UNAVAILABLE, 'persistentvolumeclaim "data" not found')


def sync_deployment(cluster: Cluster, deployment: Deployment) -> bool:
    """Do one reconcile of the Deployment controller, which writes no status over what it has not seen."""
    seen = deployment if cluster.informers is None else cluster.informers.deployment(deployment)
    if seen is None:
        return False
    changed = _sync_spec(cluster, seen)
    if seen is not deployment:
        if seen.version != deployment.version:
            return changed
        deployment.progress_at, deployment.stalled = seen.progress_at, seen.stalled
    return _deployment_status(cluster, deployment) or changed


def _sync_spec(cluster: Cluster, deployment: Deployment) -> bool:
    changed = deployment.pool is None and _adopt(cluster)
    owned = cluster.owned_by(deployment)
    new = new_replica_set(owned, deployment)
    if new is not None and ANNOTATION_TAKEN_OVER in deployment.annotations and not new.marked:
        new.marked, new.version, changed = True, cluster.version(), True
    if deployment.paused or _was_scaled(owned, deployment):
        changed = _scale(cluster, deployment, owned, new) or changed
    elif new is None:
        surge = deployment.replicas + deployment.max_surge - sum(rs.spec for rs in owned)
        cluster.make_replica_set(
            deployment,
            deployment.template,
            max(0, min(deployment.replicas, surge)) if owned else deployment.replicas,
        )
        deployment.progress_at, deployment.stalled, changed = cluster.now, False, True
    else:
        changed = _roll(cluster, deployment, owned, new) or changed
    return changed


def rescale(cluster: Cluster, deployment: Deployment) -> bool:
    """Do what a pass of the Deployment controller does where the Deployment is paused or was scaled."""
    owned = cluster.owned_by(deployment)
    if not deployment.paused and not _was_scaled(owned, deployment):
        return False
    return _scale(cluster, deployment, owned, new_replica_set(owned, deployment))


def _adopt(cluster: Cluster) -> bool:
    collected = [rs for rs in cluster.released() if APP in rs.labels]
    for rs in collected:
        rs.owner, rs.controlled, rs.version = cluster.source.uid, True, cluster.version()
    return bool(collected)


def new_replica_set(owned: Sequence[ReplicaSet], deployment: Deployment) -> ReplicaSet | None:
    """Return the oldest one with the Deployment's template: all others are old ones."""
    alike = [rs for rs in owned if rs.template == deployment.template]
    return min(alike, key=lambda rs: (rs.created, rs.name), default=None)


def _was_scaled(owned: Sequence[ReplicaSet], deployment: Deployment) -> bool:
    return any(rs.spec > 0 and rs.desired_replicas not in {None, deployment.replicas} for rs in owned)


def _set(cluster: Cluster, deployment: Deployment, rs: ReplicaSet, spec: int) -> bool:
    wanted = (spec, deployment.replicas, deployment.replicas + deployment.max_surge)
    if (rs.spec, rs.desired_replicas, rs.max_replicas) == wanted:
        return False
    rs.spec, rs.desired_replicas, rs.max_replicas = wanted
    rs.version = cluster.version()
    return True


def _set_all(cluster: Cluster, deployment: Deployment, sizes: dict[str, int]) -> bool:
    changed = False
    for uid, spec in sizes.items():
        changed = _set(cluster, deployment, cluster.replica_sets[uid], spec) or changed
    return changed


def _scale(cluster: Cluster, deployment: Deployment, owned: list[ReplicaSet], new: ReplicaSet | None) -> bool:
    active = [rs for rs in owned if rs.spec > 0]
    if len(active) <= 1:
        only = active[0] if active else new or max(owned, key=lambda rs: rs.created, default=None)
        if only is None or (only.spec == deployment.replicas and cluster.stalls_as_kubernetes):
            return False
        return _set(cluster, deployment, only, deployment.replicas)
    if new is not None and new.spec == new.status_available == new.desired_replicas == deployment.replicas:
        return _set_all(cluster, deployment, {rs.uid: 0 for rs in active if rs is not new})
    allowed = deployment.replicas + deployment.max_surge if deployment.replicas > 0 else 0
    to_add = allowed - sum(rs.spec for rs in active)
    # Up: the largest first; down: the oldest of equals first.
    active.sort(key=lambda rs: (-rs.spec, -rs.created if to_add > 0 else rs.created))
    added, sizes = 0, {}
    for rs in active:
        share = 0
        if to_add and rs.spec:
            maximum = rs.max_replicas or deployment.status_replicas or allowed
            fraction = round(rs.spec * allowed / maximum) - rs.spec if maximum else 0
            left = to_add - added
            share = max(fraction, left) if to_add < 0 else min(fraction, left)
        sizes[rs.uid] = rs.spec + share
        added += share
    sizes[active[0].uid] = max(0, sizes[active[0].uid] + to_add - added)
    return _set_all(cluster, deployment, sizes)


def _roll(cluster: Cluster, deployment: Deployment, owned: list[ReplicaSet], new: ReplicaSet) -> bool:
    wanted = deployment.replicas
    total = sum(rs.spec for rs in owned)
    if new.spec > wanted:
        return _set(cluster, deployment, new, wanted)
    if new.spec < wanted:
        up = min(wanted + deployment.max_surge - total, wanted - new.spec)
        if up > 0:
            return _set(cluster, deployment, new, new.spec + up)
    old = sorted((rs for rs in owned if rs is not new), key=lambda rs: rs.created)
    unavailable = min(deployment.max_unavailable or (0 if deployment.max_surge else 1), wanted)
    least = wanted - unavailable
    most = total - least - (new.spec - new.status_available)
    if most > 0 and any(rs.spec for rs in old):
        changed = _shrink_old(cluster, deployment, owned, old, most, least)
        if changed:
            return True
    elif not any(rs.spec for rs in old) and new.status_available >= wanted:
        return _forget_history(cluster, deployment, old)
    return False


def _shrink_old(  # noqa: PLR0917 - the numbers of one roll
    cluster: Cluster,
    deployment: Deployment,
    owned: list[ReplicaSet],
    old: list[ReplicaSet],
    most: int,
    least: int,
) -> bool:
    cleaned, changed = 0, False
    for rs in old:
        down = min(most - cleaned, rs.spec - rs.status_available)
        if down > 0:
            changed = _set(cluster, deployment, rs, rs.spec - down) or changed
            cleaned += down
    spare = sum(rs.status_available for rs in owned) - least
    for rs in old:
        down = min(rs.spec, spare)
        if down > 0:
            changed = _set(cluster, deployment, rs, rs.spec - down) or changed
            spare -= down
    return changed


def _forget_history(cluster: Cluster, deployment: Deployment, old: list[ReplicaSet]) -> bool:
    empty = [rs for rs in old if rs.spec == 0 and rs.status_replicas == 0]
    gone = empty[: max(0, len(empty) - deployment.history_limit)]
    for rs in gone:
        cluster.remove_replica_set(rs)
    return bool(gone)


def _deployment_status(cluster: Cluster, deployment: Deployment) -> bool:
    owned = cluster.owned_by(deployment)
    holding = [rs for rs in owned if rs.spec or rs.status_replicas]
    if all(rs.spec == rs.status_replicas == deployment.replicas for rs in holding) and len(holding) <= 1:
        deployment.lowered = False
    new = new_replica_set(owned, deployment)
    counts = (
        sum(rs.status_replicas for rs in owned),
        new.status_replicas if new else 0,
        sum(rs.status_available for rs in owned),
    )
    were = (deployment.status_replicas, deployment.status_updated, deployment.status_available)
    stalls = _progress(cluster, deployment, were, counts)
    if not stalls and (deployment.generation, counts) == (deployment.observed_generation, were):
        return False
    deployment.observed_generation = deployment.generation
    deployment.status_replicas, deployment.status_updated, deployment.status_available = counts
    deployment.version = cluster.version()
    return True


def _progress(
    cluster: Cluster, deployment: Deployment, were: tuple[int, int, int], counts: tuple[int, int, int]
) -> bool:
    """Play progressDeadlineSeconds (progress.go); True when the roll stalls now, and did not before.

    Each replica that comes or goes is progress. A pause stops the clock, and takes no verdict back.
    """
    (total, updated, available), (total_was, updated_was, available_was) = counts, were
    if deployment.paused:
        deployment.progress_at = None if deployment.progress_at is None else cluster.now
    elif set(counts) == {deployment.replicas} or (deployment.progress_at is None and total == updated):
        deployment.progress_at, deployment.stalled = None, False  # scaling is no roll
    elif updated > updated_was or available > available_was or total - updated < total_was - updated_was:
        deployment.progress_at, deployment.stalled = cluster.now, False
    elif deployment.progress_at is not None and not deployment.stalled:
        deployment.stalled = cluster.now >= deployment.progress_at + cluster.progress_deadline_s
        return deployment.stalled
    return False


def deletion_order(cluster: Cluster, pods: Sequence[Pod]) -> list[Pod]:
    """Return pods in the order in which a scale-down takes them."""
    del cluster
    return sorted(
        pods,
        key=lambda pod: (
            pod.node is not None,
            pod.ready_since is not None,
            int(pod.cost or 0),
            -(pod.ready_since or 0),
            -pod.created,
            pod.name,
        ),
    )


def sync_replica_set(cluster: Cluster, rs: ReplicaSet) -> bool:
    """Do one reconcile of the ReplicaSet controller: status of what it found, then make or delete pods."""
    if rs.deleting:
        return False
    free = (pod for pod in cluster.pods.values() if pod.active and not pod.owner)
    adopted = [pod for pod in free if pod.hash in rs.hashes and rs.selects in {None, pod.label}]
    for pod in adopted:
        pod.owner, pod.taken_out = rs.uid, False
    active = [pod for pod in cluster.pods_of(rs) if pod.active]
    seen = active if cluster.informers is None else [cluster.informers.pod(pod) for pod in active]
    status = (len(active), sum(map(cluster.is_long_ready, seen)))
    changed = status != (rs.status_replicas, rs.status_available)
    if changed or adopted:
        rs.status_replicas, rs.status_available = status
        rs.version, changed = cluster.version(), True
    refusal = None
    for _ in range(rs.spec - len(active)):
        if cluster.quota is not None and len(cluster.pods) >= cluster.quota:
            refusal = of_refusal(f"exceeded quota: small, requested: pods=1, limited: pods={cluster.quota}")
            break
        name = cluster.name(rs.name)
        pool = next((twin.pool for twin in cluster.twins.values() if twin.uid == rs.owner), None)
        made = Pod(name, f"uid-{name}", rs.uid, pool, rs.template, cluster.now)
        made.label, made.hash = rs.selects, rs.hashes[0]
        cluster.pods[name] = made
        changed = True
    if rs.refusal != refusal:
        rs.refusal, changed = refusal, True
    for pod in deletion_order(cluster, seen)[: max(0, len(active) - rs.spec)]:
        cluster.terminate(cluster.pods[pod.name])
        changed = True
    return changed


def schedule(cluster: Cluster) -> bool:
    """Bind every pod that fits somewhere; say of the others that they do not."""
    used: dict[str, int] = {}
    for pod in cluster.pods.values():
        if pod.node is not None:
            used[pod.node] = used.get(pod.node, 0) + 1
    changed = False
    nodes = list(cluster.nodes.values()) if cluster.informers is None else cluster.informers.nodes()
    for pod in cluster.pods.values():
        if pod.node is not None or not pod.active:
            continue
        fitting = [
            node
            for node in nodes
            if (node.ready or cluster.tolerates_everything)
            and not node.doomed
            and used.get(node.name, 0) < node.slots
            and (pod.pool is None or node.spot == (pod.pool.value == "spot"))
            and not (node.spot and cluster.spot_taint)
            and cluster.claim_is_there
        ]
        pod.trouble = None if cluster.claim_is_there else NO_CLAIM
        if fitting:
            best = min(fitting, key=lambda node: (used.get(node.name, 0), node.name))
            pod.node, pod.ready_due, pod.unschedulable_since = best.name, cluster.now + cluster.start_s, None
            used[best.name] = used.get(best.name, 0) + 1
            changed = True
        elif pod.unschedulable_since is None:
            pod.unschedulable_since = cluster.now
            changed = True
    return changed


def collect_garbage(cluster: Cluster) -> bool:
    """Free the pods of ReplicaSets that go without them, and let those go."""
    if cluster.now < cluster.collector_refused_until:
        # It tries again, ever more seldom; what has no pods any more goes all the same.
        going = [rs for rs in cluster.replica_sets.values() if rs.deleting and not cluster.pods_of(rs)]
    else:
        going = [
            rs
            for rs in cluster.replica_sets.values()
            if rs.deleting and cluster.now >= rs.deleted + cluster.collector_lag_s
        ]
    for rs in going:
        for pod in cluster.pods_of(rs):
            pod.owner = ""
        del cluster.replica_sets[rs.uid]
    return bool(going)


def adopt_as_rival(cluster: Cluster) -> bool:
    """Let a controller of somebody else's take the pods without an owner: it has enough of its own."""
    taken = cluster.orphans() if cluster.rival else []
    for pod in taken:
        pod.owner = f"uid-{cluster.rival}"
        cluster.terminate(pod)
    return bool(taken)


def next_due(cluster: Cluster) -> list[int]:
    """Return when something may happen by itself."""
    collector = [cluster.collector_refused_until]
    collector += [rs.deleted + cluster.collector_lag_s for rs in cluster.replica_sets.values() if rs.deleting]
    rolls = (one.progress_at for one in cluster.deployments if not one.paused and not one.stalled)
    due = [at + cluster.progress_deadline_s for at in rolls if at is not None]
    return [at for at in (*kubelets.due(cluster), *due, *collector) if at > cluster.now]


def actors(cluster: Cluster) -> list[Callable[[], bool]]:
    """Return everybody who may act now, in the fixed order."""

    def deployment(one: Deployment) -> Callable[[], bool]:
        return lambda: (
            sync_deployment(cluster, one) if any(one is other for other in cluster.deployments) else False
        )

    def replica_set(one: ReplicaSet) -> Callable[[], bool]:
        return lambda: sync_replica_set(cluster, one) if one.uid in cluster.replica_sets else False

    return [
        *(cluster.informers.watches() if cluster.informers is not None else ()),
        lambda: collect_garbage(cluster),
        lambda: adopt_as_rival(cluster),
        lambda: kubelets.run(cluster),
        *(replica_set(rs) for rs in cluster.replica_sets.values()),
        *(deployment(one) for one in cluster.deployments),
        *(replica_set(rs) for rs in cluster.replica_sets.values()),
        lambda: schedule(cluster),
    ]

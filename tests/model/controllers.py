"""What Kubernetes does by itself: controllers, scheduler, garbage collector.

Each function does one piece of work and says whether anything changed; `moves` has them act in any order. The
rules follow pkg/controller/{deployment,replicaset,statefulset} of Kubernetes 1.36, as far as counts go:
adoption, scaling by a paused Deployment, proportional scaling in a roll, deletion preference; of a
StatefulSet one pod a name, highest ordinals first, one at a time if it is OrderedReady, rolls from the top.
"""

from collections.abc import Sequence

from model.cluster import APP, Cluster, Deployment, Pod, ReplicaSet, StatefulSet
from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER


def sync(cluster: Cluster, owner: Deployment) -> bool:
    """Do one reconcile of the controller of a Deployment or a StatefulSet."""
    if isinstance(owner, StatefulSet):
        return _sync_stateful_set(cluster, owner)
    return sync_deployment(cluster, owner)


def sync_deployment(cluster: Cluster, deployment: Deployment) -> bool:
    """Do one reconcile of the Deployment controller."""
    changed = _sync_spec(cluster, deployment)
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
        changed = True
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
    if (deployment.generation, counts) == (deployment.observed_generation, were):
        return False
    deployment.observed_generation = deployment.generation
    deployment.status_replicas, deployment.status_updated, deployment.status_available = counts
    deployment.version = cluster.version()
    return True


def deletion_order(pods: Sequence[Pod]) -> list[Pod]:
    """Return pods in the order in which a scale-down takes them."""
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


def sync_replica_set(cluster: Cluster, rs: ReplicaSet, headroom: int = 10**9) -> bool:
    """Do one reconcile of the ReplicaSet controller: status of what it found, then make or delete pods.

    A quota has room for so many more pods.
    """
    if rs.deleting:
        return False
    free = (pod for pod in cluster.pods.values() if pod.active and not pod.owner)
    adopted = [pod for pod in free if pod.hash in rs.hashes and rs.selects in {None, pod.label}]
    for pod in adopted:
        pod.owner = rs.uid
    active = [pod for pod in cluster.pods_of(rs) if pod.active]
    status = (len(active), sum(pod.ready_since is not None for pod in active))
    changed = status != (rs.status_replicas, rs.status_available)
    if changed or adopted:
        rs.status_replicas, rs.status_available = status
        rs.version, changed = cluster.version(), True
    for _ in range(min(rs.spec - len(active), headroom)):
        name = cluster.name(rs.name)
        pool = next((twin.pool for twin in cluster.twins.values() if twin.uid == rs.owner), None)
        made = Pod(name, f"uid-{name}", rs.uid, pool, rs.template, cluster.now)
        made.label, made.hash = rs.selects, rs.hashes[0]
        cluster.pods[name] = made
        changed = True
    for pod in deletion_order(active)[: max(0, len(active) - rs.spec)]:
        cluster.terminate(pod)
        changed = True
    return changed


def _sync_stateful_set(cluster: Cluster, owner: StatefulSet) -> bool:
    pods = cluster.members_of(owner)
    counts = (len(pods), sum(pod.active and pod.ready_since is not None for pod in pods))
    there = (owner.observed_generation, owner.status_replicas, owner.status_available)
    if there != (owner.generation, *counts):
        owner.observed_generation = owner.generation
        owner.status_replicas, owner.status_available = counts
        owner.version = cluster.version()
        return True
    wanted = range(owner.first, owner.first + owner.replicas)
    known = {pod.ordinal: pod for pod in pods}
    changed = False
    for ordinal in wanted:
        pod = known.get(ordinal)
        if pod is None:
            _create(cluster, owner, ordinal)
            changed = True
        if owner.ordered and (pod is None or not pod.active or pod.ready_since is None):
            return changed
    for pod in reversed(pods):
        if pod.ordinal in wanted:
            continue
        if pod.active:
            cluster.terminate(pod)
            changed = True
        if owner.ordered:
            return changed
    if changed or any(ordinal not in known for ordinal in wanted):
        return changed
    return _roll_members(cluster, owner, [known[ordinal] for ordinal in wanted])


def _create(cluster: Cluster, owner: StatefulSet, ordinal: int) -> None:
    held_back = ordinal - owner.first < owner.partition and owner.old_template
    template = owner.old_template if held_back else owner.template
    name = f"{owner.name}-{ordinal}"
    made = Pod(name, cluster.name(f"uid-{name}"), owner.name, owner.pool, template, cluster.now)
    made.ordinal = ordinal
    cluster.pods[name] = made


def _roll_members(cluster: Cluster, owner: StatefulSet, pods: list[Pod]) -> bool:
    for pod in reversed(pods):
        if (pod.ordinal or 0) - owner.first < owner.partition:
            return False
        if pod.active and pod.template != owner.template:
            cluster.terminate(pod)
            return True
        if not pod.active or pod.ready_since is None:
            return False
    return False


def schedule(cluster: Cluster) -> bool:
    """Bind every pod that fits somewhere; say of the others that they do not."""
    used: dict[str, int] = {}
    for pod in cluster.pods.values():
        if pod.node is not None:
            used[pod.node] = used.get(pod.node, 0) + 1
    changed = False
    for pod in cluster.pods.values():
        if pod.node is not None or not pod.active:
            continue
        fitting = [
            node
            for node in cluster.nodes.values()
            if node.ready
            and not node.doomed
            and used.get(node.name, 0) < node.slots
            and (pod.pool is None or node.spot == (pod.pool.value == "spot"))
        ]
        if fitting:
            best = min(fitting, key=lambda node: (used.get(node.name, 0), node.name))
            pod.node, pod.unschedulable_since = best.name, None
            used[best.name] = used.get(best.name, 0) + 1
            changed = True
        elif pod.unschedulable_since is None:
            pod.unschedulable_since = cluster.now
            changed = True
    return changed


def collect_garbage(cluster: Cluster) -> bool:
    """Free the pods of ReplicaSets that go without them, and let those go."""
    going = [rs for rs in cluster.replica_sets.values() if rs.deleting]
    for rs in going:
        for pod in cluster.pods_of(rs):
            pod.owner = ""
        del cluster.replica_sets[rs.uid]
    return bool(going)

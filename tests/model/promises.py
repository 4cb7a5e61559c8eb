"""The promises, judged from outside: by what the cluster holds, never by what splitter believes.

`Promises` is told before and after everything that happens. What the world does (a node goes, N changes)
may break anything; from then on nothing that splitter or the controllers do may make it worse. So each
check compares with the better of the promise and of what was there before.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from model.cluster import APP, Cluster, Deployment, Pod, ReplicaSet, StatefulSet
from model.controllers import deletion_order, new_replica_set, rescale
from splitter.core.actions import Action, Scale
from splitter.core.labels_annotations import ANNOTATION_REPLICAS, ANNOTATION_TAKEN_OVER, LABEL_SPLIT
from splitter.core.replica import Pool
from stories.reported import BrokenPromiseError

CONTROLLER = "a controller"


@dataclass(frozen=True)
class NodeStatus:
    """What is left once every controller has done what is written by now (all counts: replicas)."""

    available: int
    serving: int  # the doomed, too


def floor(cluster: Cluster) -> int:
    """Return F, or what the user's own strategy allows where a roll has to use it."""
    source = cluster.source
    if cluster.is_stateful:
        return max(0, cluster.wanted - any(_rolls(cluster, one) for one in cluster.deployments))
    rolling = any(twin.max_unavailable and _is_rolling(cluster, twin) for twin in cluster.twins.values())
    own = not source.paused and (_is_rolling(cluster, source) or not cluster.owned_by(source))
    allowed = source.max_unavailable if source.max_surge == 0 or rolling or own else 0
    if own:  # its controller takes the doomed and the lost for as good as any other
        pods = [pod for rs in cluster.owned_by(source) for pod in cluster.pods_of(rs) if pod.active]
        allowed += sum(pod.ready_since is not None and not cluster.available(pod) for pod in pods)
    return max(0, source.replicas - allowed)


def _is_rolling(cluster: Cluster, deployment: Deployment) -> bool:
    return any(
        (rs.spec or rs.status_replicas) and rs.template != deployment.template
        for rs in cluster.owned_by(deployment)
    )


def destined(cluster: Cluster) -> NodeStatus:
    """Return what survives of what answers now; orphans go by the ReplicaSet that selects them."""
    if cluster.is_stateful:
        kept = sum(_kept_members(cluster, one) for one in cluster.deployments)
        return NodeStatus(kept, kept)
    left = _left_by_adoption(cluster)
    # One on its way back gets the source's count as soon as it is adopted.
    for rs in (rs for rs in cluster.released() if not rs.deleting):
        spec = min(rs.spec, cluster.source.replicas) if APP in rs.labels else rs.spec
        left += _left(cluster, rs, spec)
    for deployment in cluster.deployments:
        left += _left_by_controller(cluster, deployment)
    return NodeStatus(sum(map(cluster.available, left)), sum(map(cluster.serves, left)))


def _kept_members(cluster: Cluster, owner: Deployment) -> int:
    """Count what a StatefulSet keeps; a roll takes one at a time."""
    assert isinstance(owner, StatefulSet)
    kept = range(owner.first, owner.first + owner.replicas)
    pods = [pod for pod in cluster.members_of(owner) if pod.ordinal in kept and cluster.serves(pod)]
    return min(len(pods), owner.replicas - 1) if pods and _rolls(cluster, owner, pods) else len(pods)


def _rolls(cluster: Cluster, owner: Deployment, pods: list[Pod] | None = None) -> bool:
    """Whether a StatefulSet holds pods of another template than its own, a partition left aside."""
    assert isinstance(owner, StatefulSet)
    return any(
        pod.active and pod.template != owner.template and (pod.ordinal or 0) - owner.first >= owner.partition
        for pod in (cluster.members_of(owner) if pods is None else pods)
    )


def _left_by_controller(cluster: Cluster, deployment: Deployment) -> list[Pod]:
    owned = cluster.owned_by(deployment)
    active = [rs for rs in owned if rs.spec > 0 and not rs.deleting]
    # A paused one ends a roll, too: once the new ReplicaSet has what it is to have, the old ones go.
    wanted, new = deployment.replicas, new_replica_set(owned, deployment)
    if any(rs is not new for rs in active) and not (deployment.paused and len(active) == 1):
        return _left_by_roll(cluster, deployment)
    sizes = [(rs, min(rs.spec, wanted) if len(active) == 1 else rs.spec) for rs in active]
    return [pod for rs, spec in sizes for pod in _left(cluster, rs, spec)]


def _left_by_adoption(cluster: Cluster) -> list[Pod]:
    """Return the pods that have no owner, or lose it now, and that no ReplicaSet selects: all of them stay.

    No controller acts on a pod that it does not own, and a twin's own ReplicaSet has a hash of its own. What
    a twin's count does to them is decided by the write of the ReplicaSet that adopts them, and judged there.
    """
    sets = cluster.replica_sets.values()
    free = [pod for pod in cluster.orphans() if not any(_selects(rs, pod) for rs in sets)]
    return free + [pod for rs in sets if rs.deleting for pod in cluster.pods_of(rs) if pod.active]


def _left_by_roll(cluster: Cluster, deployment: Deployment) -> list[Pod]:
    """Return what a roll keeps if no new pod ever becomes ready: it takes what is ready above its least.

    A change of the count comes first, from all ReplicaSets in proportion. Then the oldest goes first. Its
    controller takes a doomed or lost pod for as good as any other, and before all of them what the statuses
    of older ReplicaSets do not show as available, ready by now or not.
    """
    cluster = cluster.with_own_replica_sets()
    # A raise of the Deployment keeps no pod that its ReplicaSet ends before the controller looks.
    asked = {rs.uid: rs.spec for rs in cluster.owned_by(deployment)}
    rescale(cluster, deployment)
    active = [rs for rs in cluster.owned_by(deployment) if rs.spec > 0]
    least = max(0, deployment.replicas - deployment.max_unavailable)
    kept = {
        rs.uid: _left(cluster, rs, min(asked.get(rs.uid, 0), rs.spec, deployment.replicas)) for rs in active
    }
    new = new_replica_set(cluster.owned_by(deployment), deployment)
    old = sorted((rs for rs in active if rs is not new), key=lambda rs: rs.created)
    unseen = max(0, sum(rs.spec for rs in active) - least - _starting(cluster, deployment))
    for rs in old:
        cleaned = max(0, min(unseen, rs.spec - rs.status_available))
        kept[rs.uid] = kept[rs.uid][max(0, cleaned - (rs.spec - len(kept[rs.uid]))) :]
        unseen -= cleaned
    spare = sum(pod.ready_since is not None for left in kept.values() for pod in left) - least
    for rs in old:
        ready = [pod for pod in kept[rs.uid] if pod.ready_since is not None]
        taken = max(0, min(spare, len(ready)))
        gone = deletion_order(ready)[:taken]
        kept[rs.uid] = [pod for pod in kept[rs.uid] if pod not in gone]
        spare -= taken
    return [pod for left in kept.values() for pod in left]


def _starting(cluster: Cluster, deployment: Deployment) -> int:
    """Count the replicas of the newest ReplicaSet that are not ready; its status may say so any moment."""
    new = new_replica_set(cluster.owned_by(deployment), deployment)
    if new is None:
        return 0
    ready = sum(pod.active and pod.ready_since is not None for pod in cluster.pods_of(new))
    return new.spec - max(new.status_available, ready)


def _selects(rs: ReplicaSet, pod: Pod) -> bool:
    return not rs.deleting and pod.hash in rs.hashes and rs.selects in {None, pod.label}


def _left(cluster: Cluster, rs: ReplicaSet, spec: int) -> list[Pod]:
    active = [pod for pod in cluster.pods_of(rs) if pod.active]
    active += [pod for pod in cluster.orphans() if _selects(rs, pod)]
    return deletion_order(active)[max(0, len(active) - spec) :]


def placed(cluster: Cluster) -> int:
    """Count the pods that are not ending and that a node has, or may have at once.

    What a twin's own controller has taken from one of its ReplicaSets to give it to another goes at once.
    """
    count = len(cluster.orphans())
    for rs in cluster.replica_sets.values():
        collected = [pod for pod in cluster.pods_of(rs) if pod.active]
        stuck = sum(1 for pod in collected if pod.unschedulable_since is not None)
        twin = next((twin for twin in cluster.twins.values() if twin.uid == rs.owner), None)
        replaced = twin is not None and rs.template != twin.template
        count += (min(len(collected), rs.spec) if replaced else len(collected)) - stuck
    return count


def potential(cluster: Cluster) -> int:
    """Count what may be there without a further write."""
    if cluster.is_stateful:
        return sum(_may_be(cluster, one) for one in cluster.deployments)
    free = cluster.orphans()
    sets = len(free)
    for rs in cluster.replica_sets.values():
        adopted = sum(pod.hash in rs.hashes and rs.selects in {None, pod.label} for pod in free)
        active = sum(pod.active for pod in cluster.pods_of(rs))
        # What it finds without an owner it need not make.
        sets += active if rs.deleting else max(rs.spec - adopted, active)
    growing = 0
    for deployment in cluster.deployments:
        held = sum(rs.spec for rs in cluster.owned_by(deployment))
        growing += max(0, _most(cluster, deployment) - held)
    return sets + growing


def _may_be(cluster: Cluster, owner: Deployment) -> int:
    """Count what a StatefulSet may have; what finds no node takes no room."""
    active = [pod for pod in cluster.members_of(owner) if pod.active]
    return max(owner.replicas, len(active)) - sum(pod.unschedulable_since is not None for pod in active)


def _most(cluster: Cluster, deployment: Deployment) -> int:
    if deployment.paused and not cluster.owned_by(deployment):
        return 0
    return deployment.replicas + (deployment.max_surge if _is_rolling(cluster, deployment) else 0)


class Promises:
    """Judges each step from one state to the next."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.allowance = cluster.source.replicas + max(1, cluster.source.max_surge)
        self.excused = False
        """Splitter cannot know yet what the world has just done: its cache lags."""
        self.seen: NodeStatus | None = None
        """What splitter saw when it planned the writes of this reconcile."""
        self.seen_ceiling = 0

    def look(self) -> None:
        """Remember what splitter sees as it plans a reconcile."""
        self.seen, self.seen_ceiling = destined(self.cluster), self.ceiling()

    @contextmanager
    def world(self) -> Iterator[None]:
        """Let the world do what it likes, and allow what follows from it."""
        yield
        self.allowance = max(self.ceiling(), potential(self.cluster))

    def settle(self) -> int:
        """Return the allowance as the next step will find it, so that equal states look equal."""
        return max(self.ceiling(), min(self.allowance, potential(self.cluster)))

    @contextmanager
    def step(self, who: str) -> Iterator[None]:
        """Judge one step of splitter or of a controller; a StatefulSet's was judged when it was written."""
        if who == CONTROLLER and self.cluster.is_stateful:
            yield
            return
        replicas, before = self.cluster.source.replicas, destined(self.cluster)
        if who != CONTROLLER and self.seen is not None:
            # What became ready after it looked is not its to know.
            before = NodeStatus(
                min(before.available, self.seen.available), min(before.serving, self.seen.serving)
            )
        bound, mistaken, most = floor(self.cluster), self._shown_and_cut(), potential(self.cluster)
        is_saved = ANNOTATION_REPLICAS in self.cluster.source.annotations
        yield
        after = destined(self.cluster)
        bound = min(bound, floor(self.cluster))
        if self.cluster.source.replicas != replicas and not is_saved:
            raise BrokenPromiseError(f"{who} wrote the source's replicas before N was saved")
        if self.cluster.is_stateful:
            self._compare("available", who, before.available, after.available, bound)
            self._may_come(who, most)
            return
        if not self.excused:
            self._judge(who, before, after, bound - (mistaken if who == CONTROLLER else 0))
        if who != CONTROLLER:  # a lost pod that was evicted meanwhile was to be replaced all the same
            self.allowance = max(self.allowance, min(self.seen_ceiling, potential(self.cluster)))
        self._check_surge(who)

    def _judge(self, who: str, before: NodeStatus, after: NodeStatus, bound: int) -> None:
        # The source's own controller knows of no notice, and may take what its user's strategy allows.
        source = self.cluster.source
        itself = who == CONTROLLER and bool(not source.paused or self.cluster.owned_by(source))
        if itself:
            bound = min(bound, source.replicas - source.max_unavailable - self._looking_ready())
        if not itself:
            self._compare("available", who, before.available, after.available, bound)
        if not (itself and self._is_strange()):  # without splitter nothing is judged
            self._compare("serving", who, before.serving, after.serving, bound)

    def _is_strange(self) -> bool:
        """Whether splitter has written nothing yet, or nothing of what it wrote is left."""
        cluster = self.cluster
        marked = ANNOTATION_TAKEN_OVER in cluster.source.annotations
        return not (marked or cluster.twins or cluster.released() or cluster.orphans())

    def _looking_ready(self) -> int:
        """Count the dead pods that every controller takes for ready."""
        pods = [pod for pod in self.cluster.pods.values() if pod.active and pod.ready_since is not None]
        return sum(not self.cluster.serves(pod) for pod in pods)

    def _shown_and_cut(self) -> int:
        """Count the older replicas of a roll that are cut already, and that statuses still show.

        A controller takes as many once more, with splitter or without (ADR 90). Of a twin only if nothing has
        lowered its count since it was at rest: a lowering of splitter's has to reckon with that.
        """
        cluster = self.cluster
        return sum(
            max(0, rs.status_available - rs.spec)
            for one in (cluster.source, *(twin for twin in cluster.twins.values() if not twin.lowered))
            for rs in cluster.owned_by(one)
            if rs.template != one.template
        )

    def _compare(self, what: str, who: str, before: int, after: int, bound: int) -> None:
        if after < before and after < bound:
            raise BrokenPromiseError(f"{who}: {what} {before} -> {after}, floor {bound} (promise 1)")

    def _may_come(self, who: str, before: int) -> None:
        most = potential(self.cluster)
        if most > max(before, self.ceiling()):
            raise BrokenPromiseError(f"{who}: {most} pods, at most {self.ceiling()} (promise 2)")

    def _check_surge(self, who: str) -> None:
        cluster = self.cluster
        own = any(rs.spec for rs in cluster.owned_by(cluster.source))
        if not cluster.source.paused or own or self.excused:
            self.allowance = max(self.ceiling(), potential(cluster))
            return
        self.allowance = max(self.ceiling(), min(self.allowance, potential(cluster)))
        if placed(cluster) > self.allowance:
            raise BrokenPromiseError(f"{who}: {placed(cluster)} pods, at most {self.allowance} (promise 2)")

    def ceiling(self) -> int:
        """Return N + S, and what an emergency adds."""
        cluster, source = self.cluster, self.cluster.source
        if cluster.is_stateful:
            return cluster.wanted + 1 + (cluster.wanted if self._short() else 0)
        hurt = [pod for pod in cluster.pods.values() if pod.node and not self._sound(pod)]
        going = sum(1 for pod in hurt if pod.active)
        # One that is ending already was lost all the same, and may not have been answered yet.
        emergency = max(source.replicas, self._starting()) if hurt or self._short() else 0
        return source.replicas + max(1, source.max_surge) + going + emergency

    def _starting(self) -> int:
        """Count what is about to serve: more than N after a scale-in that a freeze has held back."""
        pods = self.cluster.pods.values()
        return sum(pod.active and pod.ready_since is None and self._sound(pod) for pod in pods)

    def _sound(self, pod: Pod) -> bool:
        node = self.cluster.nodes.get(pod.node or "")
        return node is not None and node.ready and not node.doomed

    def _short(self) -> bool:
        split = self.cluster.split
        memory: Any = split.status.get("memory", {}) if split else {}
        known = bool(memory.get("rebalance", {}).keys() & {"lost", "shortSince"})
        return known or any(pod.unschedulable_since is not None for pod in self.cluster.pods.values())


def check_action(cluster: Cluster, action: Action) -> None:
    """Refuse the writes that must never be tried."""
    match action:
        case Scale() if action.name == cluster.source.name and not cluster.is_stateful:
            raise BrokenPromiseError("the source's replicas are the user's")
        case Scale() if action.replicas < action.was and action.resource_version is None:
            raise BrokenPromiseError(f"{action.name} is lowered without a precondition")
        case Scale() if action.replicas < 0:
            raise BrokenPromiseError(f"{action.name} gets {action.replicas}")
        case _:
            pass


def traces(cluster: Cluster) -> list[str]:
    """Name everything of splitter's that is still there (promise 4)."""
    collected = [f"twin {twin.name}" for twin in cluster.twins.values()]
    collected += [
        f"pod of {pod.owner}"
        for pod in cluster.pods.values()
        if pod.ordinal is not None and pod.pool and pod.active
    ]
    if cluster.is_stateful:
        source, ours = cluster.source, {ANNOTATION_TAKEN_OVER, ANNOTATION_REPLICAS}
        collected += [*(["Split"] if cluster.split else []), *sorted(ours & source.annotations.keys())]
        ready = sum(map(cluster.serves, cluster.members_of(source)))
        return collected + ([] if ready == source.replicas else [f"source {source.replicas}/{ready}"])
    collected += [f"parked {rs.name}" for rs in cluster.released()]
    collected += [f"label on {rs.name}" for rs in cluster.replica_sets.values() if LABEL_SPLIT in rs.labels]
    collected += [f"labels of {rs.name}" for rs in cluster.replica_sets.values() if APP not in rs.labels]
    collected += [f"mark on {rs.name}" for rs in cluster.replica_sets.values() if rs.marked]
    collected += ["Split"] if cluster.split else []
    collected += ["mark"] if ANNOTATION_TAKEN_OVER in cluster.source.annotations else []
    collected += ["pause"] if cluster.source.paused else []
    collected += [
        f"label on pod {pod.name}" for pod in cluster.pods.values() if pod.active and pod.label is not None
    ]
    collected += stale(cluster)
    running = [rs for rs in cluster.owned_by(cluster.source) if rs.spec]
    if [(rs.spec, rs.template) for rs in running] != [(cluster.source.replicas, cluster.source.template)]:
        wanted = f"{cluster.source.replicas} of {cluster.source.template}"
        if cluster.source.replicas or running:
            collected.append(f"runs {[(rs.name, rs.spec, rs.template) for rs in running]}, not {wanted}")
    return collected


def stale(cluster: Cluster) -> list[str]:
    """Name the pods that run something else than their ReplicaSet says: no rollout would replace them."""
    return [
        f"{pod.name} of {rs.name} runs {pod.template}, not {rs.template}"
        for rs in cluster.replica_sets.values()
        for pod in cluster.pods_of(rs)
        if pod.active and pod.template.partition("|")[0] != rs.template.partition("|")[0]
    ]


def unsettled(cluster: Cluster, on_demand: int) -> list[str]:
    """Name what keeps a split workload from being at rest with `on_demand` replicas there."""
    wanted = {Pool.ON_DEMAND: on_demand, Pool.SPOT: cluster.wanted - on_demand}
    if cluster.is_stateful:
        return list(_unsettled_members(cluster, wanted))
    lines = stale(cluster)
    for pool, replicas in wanted.items():
        twin = cluster.twins.get(pool)
        if twin is None:
            lines.append(f"no twin for {pool}")
            continue
        running = [(rs.spec, rs.template) for rs in cluster.owned_by(twin) if rs.spec]
        expected = [(replicas, twin.template)] if replicas else []
        if running != expected or twin.replicas != replicas:
            lines.append(f"{twin.name} has {twin.replicas} as {running}, wanted {expected}")
        if not twin.template.startswith(cluster.source.template):
            lines.append(f"{twin.name} runs {twin.template}")
    lines += [f"parked {rs.name} holds {rs.spec}" for rs in cluster.released() if rs.spec]
    lines += [f"attached {rs.name}" for rs in cluster.owned_by(cluster.source)]
    available = sum(cluster.available(pod) for pod in cluster.pods.values())
    if available != cluster.source.replicas:
        lines.append(f"{available} available")
    return lines


def _unsettled_members(cluster: Cluster, wanted: Mapping[Pool, int]) -> Iterator[str]:
    if cluster.source.replicas:
        yield f"source at {cluster.source.replicas}"
    for pool, replicas in wanted.items():
        twin = cluster.twins.get(pool)
        ready = sum(map(cluster.serves, cluster.members_of(twin))) if twin else 0
        if twin is None or (twin.replicas, ready) != (replicas, replicas):
            yield f"{pool}: {twin.replicas if twin else None}/{ready}, wanted {replicas}"
        elif not twin.template.startswith(cluster.source.template):
            yield f"{pool} runs {twin.template}"
    shown = cluster.split.replicas if cluster.split is not None else None
    if shown != cluster.wanted:
        yield f"the Split shows {shown}"

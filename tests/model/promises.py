"""The promises, judged from outside: by what the cluster holds, never by what splitter believes.

`Promises` is told before and after everything that happens. What the world does (a node goes, N changes)
may break anything; from then on nothing that splitter or the controllers do may make it worse. So each
check compares with the better of the promise and of what was there before.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from model.cluster import APP, Cluster, Deployment, Pod, ReplicaSet
from model.controllers import deletion_order, new_replica_set, rescale
from splitter.core.actions import Action, HolderKind, Scale
from splitter.core.handover import Step
from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER, LABEL_SPLIT
from splitter.core.model import Observation, Pool
from splitter.core.plan import Plan
from splitter.core.reasons import State

CONTROLLER = "a controller"
# The way back has no division, also where a dry run holds it.
BACK = frozenset({Step.UNPAUSE, Step.SHRINK_OURS, Step.CLEAN_UP, Step.OFFBOARD, Step.BRING_HOME})


class BrokenPromiseError(AssertionError):
    """Something that must never happen has happened."""


@dataclass(frozen=True)
class NodeStatus:
    """What is left once every controller has done what is written by now (all counts: replicas)."""

    available: int
    serving: int  # the doomed, too


def check_reported(observed: Observation, planned: Plan) -> None:
    """Raise when a plan tells of a move that it does not write, calls steady what is not, or wants not N."""
    pods = [
        (twin, rs, pod)
        for twin in observed.twins
        for rs in twin.replica_sets
        for pod in rs.pods
        if pod.counts
    ]
    old = [pod.name for twin, rs, pod in pods if rs.template_hash != twin.template_hash or not pod.available]
    if planned.state is State.STEADY and (
        old or len(pods) < sum(twin.spec_replicas for twin in observed.twins)
    ):
        raise BrokenPromiseError(f"Steady with {len(pods)} pods, and these are old or not available: {old}")
    wanted, source = planned.wanted_on_demand + planned.wanted_spot, observed.source
    back = planned.state in {State.GIVING_BACK, State.CONFLICT} or planned.step in BACK
    if source is not None and observed.twins and not back and wanted != source.replicas:
        raise BrokenPromiseError(f"{planned.step}: {wanted} wanted in both pools, of {source.replicas}")
    written = {(one.name, one.was, one.replicas) for one in planned.actions if isinstance(one, Scale)}
    for note in (*planned.notes, planned.verdict):
        reported = re.match(r"scale (on-demand|spot) (\d+) -> (\d+)", note.message)
        if reported and (f"web-{reported[1]}", int(reported[2]), int(reported[3])) not in written:
            raise BrokenPromiseError(f"told, and not among the writes {sorted(written)}: {note.message}")


def floor(cluster: Cluster) -> int:
    """Return F, or what the user's own strategy allows where a roll has to use it."""
    source = cluster.source
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
    """Return what survives of what answers now; orphans go by the ReplicaSet that selects them.

    A controller that sees late may act by what it knew: then the fewest count that survive either way. So
    what it takes late is taken by the write that asked for it, and a later one neither saves it nor is to
    blame for it.
    """
    either = [_all_there_is] if cluster.informers is None else [_all_there_is, cluster.informers.late_pod]
    holders = [[_left_by_adoption(cluster)]]
    # One on its way back gets the source's count as soon as it is adopted.
    released = [
        (rs, min(rs.spec, cluster.source.replicas) if APP in rs.labels else rs.spec)
        for rs in cluster.released()
        if not rs.deleting
    ]
    holders += [[_left(cluster, rs, spec, sees) for sees in either] for rs, spec in released]
    for deployment in cluster.deployments:
        versions = _versions(cluster, deployment)
        holders.append([_left_by_controller(cluster, one, sees) for one in versions for sees in either])
    available = sum(min(sum(map(cluster.available, left)) for left in lefts) for lefts in holders)
    serving = sum(min(sum(map(cluster.serves, left)) for left in lefts) for lefts in holders)
    return NodeStatus(available, serving)


Sees = Callable[[Pod], Pod]  # what a controller knows of a pod


def _all_there_is(pod: Pod) -> Pod:
    return pod


def _versions(cluster: Cluster, deployment: Deployment) -> list[Deployment]:
    """Return what its controller may act by: the Deployment as it is, and before that as it is still seen."""
    late = None if cluster.informers is None else cluster.informers.late(deployment)
    return [deployment] if late is None else [deployment, late]


def _left_by_controller(cluster: Cluster, deployment: Deployment, sees: Sees) -> list[Pod]:
    owned = cluster.owned_by(deployment)
    active = [rs for rs in owned if rs.spec > 0 and not rs.deleting]
    # A paused one ends a roll, too: once the new ReplicaSet has what it is to have, the old ones go.
    wanted, new = deployment.replicas, new_replica_set(owned, deployment)
    if any(rs is not new for rs in active) and not (deployment.paused and len(active) == 1):
        return _left_by_roll(cluster, deployment, sees)
    sizes = [(rs, min(rs.spec, wanted) if len(active) == 1 else rs.spec) for rs in active]
    return [pod for rs, spec in sizes for pod in _left(cluster, rs, spec, sees)]


def _left_by_adoption(cluster: Cluster) -> list[Pod]:
    """Return the pods that have no owner, or lose it now, and that no ReplicaSet selects: all of them stay.

    No controller acts on a pod that it does not own, and a twin's own ReplicaSet has a hash of its own. What
    a twin's count does to them is decided by the write of the ReplicaSet that adopts them, and judged there.
    """
    sets = cluster.replica_sets.values()
    free = [pod for pod in cluster.orphans() if not any(_selects(rs, pod) for rs in sets)]
    return free + [pod for rs in sets if rs.deleting for pod in cluster.pods_of(rs) if pod.active]


def _left_by_roll(cluster: Cluster, deployment: Deployment, sees: Sees) -> list[Pod]:
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
        rs.uid: _left(cluster, rs, min(asked.get(rs.uid, 0), rs.spec, deployment.replicas), sees)
        for rs in active
    }
    new = new_replica_set(cluster.owned_by(deployment), deployment)
    old = sorted((rs for rs in active if rs is not new), key=lambda rs: rs.created)
    unseen = max(0, sum(rs.spec for rs in active) - least - _starting(cluster, deployment))
    for rs in old:
        cleaned = max(0, min(unseen, rs.spec - rs.status_available))
        kept[rs.uid] = kept[rs.uid][max(0, cleaned - (rs.spec - len(kept[rs.uid]))) :]
        unseen -= cleaned
    spare = sum(cluster.is_long_ready(pod) for left in kept.values() for pod in left) - least
    for rs in old:
        ready = [pod for pod in kept[rs.uid] if cluster.is_long_ready(pod)]
        taken = max(0, min(spare, len(ready)))
        gone = _in_order(cluster, ready, sees)[:taken]
        kept[rs.uid] = [pod for pod in kept[rs.uid] if pod not in gone]
        spare -= taken
    return [pod for left in kept.values() for pod in left]


def _starting(cluster: Cluster, deployment: Deployment) -> int:
    """Count the replicas of the newest ReplicaSet that are not ready; its status may say so any moment."""
    new = new_replica_set(cluster.owned_by(deployment), deployment)
    if new is None:
        return 0
    ready = sum(pod.active and cluster.is_long_ready(pod) for pod in cluster.pods_of(new))
    return new.spec - max(new.status_available, ready)


def _selects(rs: ReplicaSet, pod: Pod) -> bool:
    return not rs.deleting and pod.hash in rs.hashes and rs.selects in {None, pod.label}


def _left(cluster: Cluster, rs: ReplicaSet, spec: int, sees: Sees) -> list[Pod]:
    active = [pod for pod in cluster.pods_of(rs) if pod.active]
    if not rs.deleting:  # it adopts what a user has taken out as well, if its labels come back
        active += [pod for pod in cluster.pods.values() if pod.active and not pod.owner and _selects(rs, pod)]
    return _in_order(cluster, active, sees)[max(0, len(active) - spec) :]


def _in_order(cluster: Cluster, pods: list[Pod], sees: Sees) -> list[Pod]:
    return [cluster.pods[pod.name] for pod in deletion_order(cluster, [sees(pod) for pod in pods])]


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
        growing += max(0, *(_most(cluster, one) - held for one in _versions(cluster, deployment)))
    return sets + growing


def _most(cluster: Cluster, deployment: Deployment) -> int:
    if deployment.paused and not cluster.owned_by(deployment):
        return 0
    return deployment.replicas + (deployment.max_surge if _is_rolling(cluster, deployment) else 0)


class Promises:
    """Watches one story."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.allowance = cluster.source.replicas + max(1, cluster.source.max_surge)
        self.world_turns = 0
        self.excused = False
        """Splitter cannot know yet what the world has just done: its cache lags."""
        self.seen: NodeStatus | None = None
        """What splitter saw when it planned the writes of this reconcile."""
        self.seen_ceiling = 0
        self._left: dict[tuple[int, int], NodeStatus] = {}
        """What the last step has left, by the turn of the world and the second."""
        self.most_placed = 0
        self.least_available = 10**9

    def look(self, view: Cluster | None = None) -> None:
        """Remember what splitter sees as it plans a reconcile: all there is, unless its cache lags."""
        self.seen, self.seen_ceiling = destined(view or self.cluster), self._ceiling()

    @contextmanager
    def world(self) -> Iterator[None]:
        """Let the world do what it likes."""
        yield
        self.happened()

    def happened(self) -> None:
        """Allow what follows from what the world has just done."""
        self.world_turns += 1
        self.allowance = max(self._ceiling(), potential(self.cluster))
        self._note()

    @contextmanager
    def step(self, who: str) -> Iterator[None]:
        """Judge one step of splitter or of a controller."""
        # Between two steps only the world and the clock change anything.
        moment, replicas = (self.world_turns, self.cluster.now), self.cluster.source.replicas
        before = self._left.get(moment) or destined(self.cluster)
        if who != CONTROLLER and self.seen is not None:
            # What became ready after it looked is not its to know.
            before = NodeStatus(
                min(before.available, self.seen.available), min(before.serving, self.seen.serving)
            )
        bound, mistaken = floor(self.cluster), self._shown_and_cut()
        yield
        after = destined(self.cluster)
        self._left = {moment: after}
        bound = min(bound, floor(self.cluster))
        if self.cluster.source.replicas != replicas:
            raise BrokenPromiseError(f"{who} wrote the source's replicas")
        if not self.excused:
            # The source's own controller knows of no notice, and may take what its user's strategy allows.
            itself = who == CONTROLLER and self._runs_itself()
            if itself:
                bound = min(bound, replicas - self.cluster.source.max_unavailable - self._looking_ready())
            if who == CONTROLLER:
                bound -= mistaken
            if not itself:
                self._compare("available", who, before.available, after.available, bound)
            # A roll takes what is ready and not available for nothing. Without splitter nothing is judged.
            if not self.cluster.min_ready_s and not (itself and self._is_strange()):
                self._compare("serving", who, before.serving, after.serving, bound)
        if who != CONTROLLER:  # a lost pod that was evicted meanwhile was to be replaced all the same
            self.allowance = max(self.allowance, min(self.seen_ceiling, potential(self.cluster)))
        self._check_surge(who)
        self._note()

    def _runs_itself(self) -> bool:
        return bool(not self.cluster.source.paused or self.cluster.owned_by(self.cluster.source))

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

    def _check_surge(self, who: str) -> None:
        cluster = self.cluster
        own = any(rs.spec for rs in cluster.owned_by(cluster.source))
        if not cluster.source.paused or own or self.excused:
            self.allowance = max(self._ceiling(), potential(cluster))
            return
        self.allowance = max(self._ceiling(), min(self.allowance, potential(cluster)))
        if placed(cluster) > self.allowance:
            raise BrokenPromiseError(f"{who}: {placed(cluster)} pods, at most {self.allowance} (promise 2)")

    def _ceiling(self) -> int:
        cluster, source = self.cluster, self.cluster.source
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
        rebalance = split.status.get("rebalance", {}) if split else {}
        known = isinstance(rebalance, dict) and ("lost" in rebalance or "shortSince" in rebalance)
        return known or any(pod.unschedulable_since is not None for pod in self.cluster.pods.values())

    def _note(self) -> None:
        self.most_placed = max(self.most_placed, placed(self.cluster))
        available = sum(self.cluster.available(pod) for pod in self.cluster.pods.values())
        self.least_available = min(self.least_available, available)


def check_action(cluster: Cluster, action: Action) -> None:
    """Refuse the writes that must never be tried."""
    match action:
        case Scale(kind=HolderKind.DEPLOYMENT) if action.name == cluster.source.name:
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
    wanted = {Pool.ON_DEMAND: on_demand, Pool.SPOT: cluster.source.replicas - on_demand}
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
    available = sum(cluster.available(pod) for pod in cluster.pods.values() if not pod.taken_out)
    if available != cluster.source.replicas:
        lines.append(f"{available} available")
    return lines

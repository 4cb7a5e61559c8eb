"""PodDisruptionBudgets in memory, who evicts by them, and the judge of it.

Plays the disruption controller and the eviction API of Kubernetes 1.36 (pkg/controller/disruption,
pkg/registry/core/pod/storage/eviction.go), and drainers that know nothing of splitter. What is promised is
that of the guard: without a sign one may be missing (G2), after one none (G3), and a drain ends.
"""

from collections.abc import Callable
from dataclasses import dataclass

from model.cluster import APP, Budget, Cluster, Pod
from model.controllers import sync_replica_set
from model.promises import BrokenPromiseError
from splitter.core.actions import SetBudget
from splitter.core.evictions import BudgetView
from splitter.core.handover import Step
from splitter.core.labels_annotations import LABEL_POOL, LABEL_SOURCE
from splitter.core.labels_annotations.policy import Policy, parse_policy
from splitter.core.model import Pool
from splitter.core.plan import Plan

DISRUPTED_S = 120  # so long an eviction counts whose pod shows no sign of it
RETRY_S = 5
GUARD = "web-guard"


def selected(cluster: Cluster, budget: Budget) -> list[Pod]:
    """Return the pods that a budget selects."""
    return [pod for pod in cluster.pods.values() if _selects(budget, pod)]


def _selects(budget: Budget, pod: Pod) -> bool:
    return not budget.selects or (pod.label is not None and budget.selects in {LABEL_SOURCE, pod.label.value})


def views(cluster: Cluster) -> tuple[BudgetView, ...]:
    """Return what splitter sees of all budgets."""
    split = cluster.split.uid if cluster.split is not None else ""
    return tuple(
        BudgetView(
            one.name,
            one.uid,
            one.name == GUARD and one.split in {"", split},
            one.min_available if one.split else None,
            ((APP, "In", ("web",)), *_terms(one.selects)),
        )
        for one in cluster.budgets.values()
    )


def _terms(selects: str) -> list[tuple[str, str, tuple[str, ...]]]:
    if selects == LABEL_SOURCE:
        return [(LABEL_SOURCE, "In", ("web",))]
    return [(LABEL_POOL, "In", (selects,))] if selects else []


def write(cluster: Cluster, action: SetBudget) -> bool:
    """Write a budget of splitter's; False when it was refused."""
    until = cluster.budgets_refused_until
    if until is None:
        raise AssertionError("nobody may write budgets here")
    if cluster.now < until or cluster.split is None:
        return cluster.split is None  # of whom nothing is written, and nothing remembered
    there = cluster.budgets.get(action.name)
    if action.min_available is None:
        if there is not None and there.uid == action.uid:
            del cluster.budgets[action.name]
        return True
    if not action.uid:
        if there is not None:
            return False
        uid = cluster.name("uid-budget")
        cluster.budgets[action.name] = Budget(
            action.name, uid, cluster.split.uid, action.min_available, selects=LABEL_SOURCE
        )
        return True
    if there is None or there.uid != action.uid:
        return False
    there.split = cluster.split.uid
    if there.min_available != action.min_available:
        there.min_available, there.generation = action.min_available, there.generation + 1
    return True


def sync(cluster: Cluster, budget: Budget) -> bool:
    """Do what the disruption controller does for one budget."""
    pods = selected(cluster, budget)
    disrupted = {
        uid: at
        for uid, at in budget.disrupted.items()
        if cluster.now - at < DISRUPTED_S and any(pod.uid == uid and pod.active for pod in pods)
    }
    healthy = sum(pod.active and pod.uid not in disrupted and pod.ready_since is not None for pod in pods)
    least = budget.min_available
    if least is None:
        least = max(0, _scale(cluster, pods) - budget.max_unavailable)
    status = (budget.generation, max(0, healthy - least) if pods else 0, disrupted)
    if status == (budget.observed_generation, budget.allowed, budget.disrupted):
        return False
    budget.observed_generation, budget.allowed, budget.disrupted = status
    return True


def _scale(cluster: Cluster, pods: list[Pod]) -> int:
    """Return the replicas of the controllers behind pods."""
    sets = {pod.owner for pod in pods} & set(cluster.replica_sets)
    owners = {cluster.replica_sets[uid].owner for uid in sets}
    return sum(one.replicas for one in cluster.deployments if one.uid in owners)


def evict(cluster: Cluster, pod: Pod) -> bool:
    """Ask the eviction API for the end of a pod; False when it refuses, or has nothing to do."""
    if not pod.active:
        return False
    if pod.ready_since is not None:  # else it is Pending, or none of these budgets keeps it
        budgets = [one for one in cluster.budgets.values() if _selects(one, pod)]
        if len(budgets) > 1:
            return False  # a 500: "does not support more than one"
        for budget in budgets:
            if budget.observed_generation < budget.generation or budget.allowed < 1:
                return False
            budget.allowed -= 1
            budget.disrupted[pod.uid] = cluster.now
    cluster.terminate(pod)
    return True


def collect_garbage(cluster: Cluster) -> bool:
    """Delete the budgets whose Split is gone."""
    split = cluster.split.uid if cluster.split is not None else ""
    gone = [one.name for one in cluster.budgets.values() if one.split and one.split != split]
    for name in gone:
        del cluster.budgets[name]
    return bool(gone)


def actors(cluster: Cluster) -> list[Callable[[], bool]]:
    """Return who acts on budgets, but for those who evict."""

    def controller(one: Budget) -> Callable[[], bool]:
        return lambda: sync(cluster, one) if cluster.budgets.get(one.name) is one else False

    return [lambda: collect_garbage(cluster), *(controller(one) for one in cluster.budgets.values())]


@dataclass
class Looked:
    """What splitter could know when it last looked, and has written what follows from it."""

    replicas: int
    doomed: frozenset[str]  # nodes


class Guarded:
    """Judges evictions beside a budget of splitter's (all counts: replicas)."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.served: set[str] = set()  # when the first of the nodes that go went, or since
        self.since = 0
        self.looking: Looked | None = None
        self.looked: Looked | None = None

    def look(self, planned: Plan) -> None:
        """Remember what splitter has seen as it planned a reconcile."""
        held = {"splitter.io/freeze", "splitter.io/dry-run"} & set(self.cluster.source.annotations)
        asked = sum(twin.replicas for twin in self.cluster.twins.values())
        replicas = self.cluster.source.replicas
        refused = any(rs.refusal for rs in self.cluster.replica_sets.values())
        if planned.step not in {Step.RUN, Step.OFFBOARD} or len(self.cluster.twins) < len(Pool):
            self.looking = None
            return
        if "splitter.io/dry-run" in self.cluster.source.annotations:
            # The budget stays as it was written last, if all of that was.
            replicas = min(replicas, self.looked.replicas if self.looked is not None else 0)
        doomed = frozenset(one.name for one in self.cluster.nodes.values() if one.doomed)
        ready = {one.uid for one in self.cluster.pods.values() if one.active and one.ready_since is not None}
        self.served = self.served if len(self.served) >= len(ready) and doomed else ready
        self.since = self.since if doomed else self.cluster.now
        if doomed and self.cluster.notice_s is not None:
            self.looking = None  # who has to end is let go, whoever is missing (G6)
            return
        self.looking = Looked(
            min(replicas, asked) if held else replicas, frozenset() if held or refused else doomed
        )

    def written(self) -> None:
        """Remember that all of a reconcile is written."""
        until = self.cluster.budgets_refused_until or 0
        self.looked = self.looking if self.cluster.now >= until else None

    def missed(self) -> None:
        """Forget what is known: a write was refused."""
        self.looking = self.looked = None

    def evict(self, pod: Pod) -> bool:
        """Have a pod evicted, and raise where the budget should have kept it."""
        for budget in self.cluster.budgets.values():
            sync(self.cluster, budget)  # what it lags behind is nobody's here
        before, node = self._ready(), pod.node or ""
        if not evict(self.cluster, pod):
            return False
        after, guard = self._ready(), self.cluster.budgets.get(GUARD)
        guarded = guard is not None and guard.split and _selects(guard, pod)
        if after < before and self.looked is not None and guarded:
            replicas = min(self.looked.replicas, self.cluster.source.replicas)
            least = self._least(replicas) if node in self.looked.doomed else replicas - 1
            if after < least:
                raise BrokenPromiseError(
                    f"{pod.name} of {node} was evicted: {before} -> {after} of {replicas}"
                )
        if (rs := self.cluster.replica_sets.get(pod.owner)) is not None:
            sync_replica_set(self.cluster, rs)  # a roll that goes by an older status is nobody's, too
        return True

    def _least(self, replicas: int) -> int:
        """Return how many an eviction leaves that was announced: who was ill before is not waited for.

        One goes when none of those that come instead has come up for the grace, or none comes at all.
        """
        pods = self.cluster.pods.values()
        waiting = [pod.created for pod in pods if pod.active and pod.ready_since is None]
        least = Policy(grace_s=30)  # where none is asked for, it follows the starts that were seen
        grace_s = (parse_policy(self.cluster.source.annotations, least, None).policy or least).grace_s
        given_up = all(self.cluster.now - since > grace_s for since in (*waiting, self.since))
        unready = [pod for pod in pods if pod.uid in self.served and pod.ready_since is None]
        ill = sum(
            pod.trouble is not None or self.cluster.now - (pod.unready_since or pod.created) > grace_s
            for pod in unready
        )
        return min(replicas, len(self.served) - ill) - given_up

    def _ready(self) -> int:
        return sum(pod.active and pod.ready_since is not None for pod in self.cluster.pods.values())

    def drain(self) -> bool:
        """Do one round of all who drain nodes; a node that is empty leaves, or comes back."""
        cluster, changed = self.cluster, False
        for name, comes_back in list(cluster.drains.items()):
            node = cluster.nodes.get(name)
            pods = [pod for pod in cluster.pods.values() if pod.node == name]
            changed = sum(map(self.evict, pods)) > 0 or changed
            if node is not None and pods:
                continue
            del cluster.drains[name]
            changed = True
            if node is not None and comes_back:
                node.doomed = node.cordoned = False
            elif node is not None:
                cluster.vanish(name)
        return changed


def unsettled(cluster: Cluster) -> list[str]:
    """Name what keeps the guard of a split workload from being at rest."""
    evictions = cluster.source.annotations.get("splitter.io/evictions", "")
    guard = cluster.budgets.get(GUARD)
    lines = [f"{name} is still drained" for name in cluster.drains]
    users = [name for name in cluster.budgets if name != GUARD]
    if users or evictions == "unguarded":
        return (
            [*lines, f"guarded beside {users or evictions}"] if guard is not None and guard.split else lines
        )
    wanted = cluster.source.replicas - (0 if evictions == "surge-first" else 1)
    if guard is None or guard.min_available != max(0, wanted):
        lines.append(f"guard {guard}, wanted {wanted}")
    return lines


def of_a_user(cluster: Cluster, kind: str) -> None:
    """Have a user write a budget, of all pods or of one pool's."""
    name, replicas = f"mine-{kind}", cluster.source.replicas
    least = {"least": max(0, replicas - 1), "all": replicas}.get(kind)
    selects = kind if kind in set(Pool) else ""
    cluster.budgets[name] = Budget(name, cluster.name("uid-budget"), "", least, 1, selects)

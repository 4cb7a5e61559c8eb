"""PodDisruptionBudgets in memory: what splitter sees of them, and its writes."""

from model.cluster import APP, Budget, Cluster, Pod
from splitter.core.actions import SetBudget
from splitter.core.evictions import BudgetView
from splitter.core.labels_annotations import LABEL_POOL, LABEL_SOURCE

RETRY_S = 5
GUARD = "web-guard"


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

"""The guard: a PodDisruptionBudget of splitter's own, so that an eviction waits for the replacement.

At rest it lets one eviction through. From the first sign that a node under the workload goes it lets through
as many as there are replacements. A budget of the user's wins: Kubernetes refuses to evict a pod that two
select. Source of the rules: docs/adr/0039; `planner` asks after each pass of a workload that runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import orjson

from splitter.core.actions import SetBudget
from splitter.core.desired import pod_labels
from splitter.core.model import BudgetView, Evictions, PodView, Standing, seconds_between
from splitter.core.plan import Pass, Plan
from splitter.core.rebalance import RebalanceState
from splitter.core.surface import guard_name


def guarded(this: Pass, found: Plan) -> Plan:
    """Return the plan with what its budget needs: a raised one is written first, a lowered one last."""
    ours = next((one for one in this.observed.budgets if one.is_ours), None)
    if why := _unguarded(this):
        gone = (SetBudget(ours.name, None, ours.uid),) if ours is not None else ()
        return replace(found, actions=(*found.actions, *gone), guard=why)
    keeps, again_s = _min_available(this, found, ours)
    guard = f"{guard_name(this.source.key)} keeps {keeps} of {this.source.replicas}"
    wakes = [wait_s for wait_s in (again_s, found.wake_after_s) if wait_s is not None]
    found = replace(found, guard=guard, wake_after_s=min(wakes, default=None))
    if ours is not None and ours.min_available == keeps:
        return found
    write = SetBudget(guard_name(this.source.key), keeps, ours.uid if ours is not None else "")
    is_raised = keeps >= this.source.replicas
    return replace(found, actions=(write, *found.actions) if is_raised else (*found.actions, write))


def _unguarded(this: Pass) -> str:
    """Say why there is to be no budget of ours; nothing when there is."""
    if this.policy.evictions is Evictions.UNGUARDED:
        return "none: splitter.io/evictions is unguarded"
    if why := this.observed.unguardable:
        return f"none: {why}"
    others = [one for one in this.observed.budgets if not one.is_ours]
    name = guard_name(this.source.key)
    if any(one.name == name for one in others):
        return f"none: PodDisruptionBudget {name} is not splitter's"
    labels = list(_labels(this)) if others else []
    users = sorted(one.name for one in others if any(selects(one, each) for each in labels))
    return f"your PodDisruptionBudget {', '.join(users)}" if users else ""


def _labels(this: Pass) -> Iterator[Mapping[str, str]]:
    """Yield the labels of the pods of each twin: the source's, and ours."""
    template = orjson.loads(this.source.manifest_json)["spec"]["template"]
    written = (template.get("metadata") or {}).get("labels") or {}
    for twin in this.observed.twins:
        yield {**written, **pod_labels(this.source.key.name, twin.pool)}


def selects(budget: BudgetView, labels: Mapping[str, str]) -> bool:
    """Whether a budget selects a pod with these labels; an operator that nobody knows might."""
    if budget.selector is None:
        return False
    return all(_matches(labels, *one) for one in budget.selector)


def _matches(labels: Mapping[str, str], key: str, operator: str, values: tuple[str, ...]) -> bool:
    match operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return True


def _min_available(this: Pass, found: Plan, ours: BudgetView | None) -> tuple[int, float | None]:
    """Return how many pods evictions have to leave, and in how many seconds time alone changes that."""
    replicas, now = this.source.replicas, this.observed.now
    pods = [pod for twin in this.observed.twins for pod in twin.pods if pod.counts]
    going = [pod for pod in pods if pod.standing is Standing.DOOMED]
    at_rest = replicas if this.policy.evictions is Evictions.SURGE_FIRST else max(0, replicas - 1)
    if this.policy.freeze:  # nothing is replaced, so nothing is worth waiting for
        return min(at_rest, max(0, replicas - 1)), None
    if going:
        stops = [stop for pod in going if (stop := _stop(pod, found.rebalance)) is not None]
        # Who has to begin to end now is let go: a machine that dies under a pod is worse than a gap.
        late = sum(stop <= now for stop in stops)
        left_s = min((seconds_between(now, stop) for stop in stops if stop > now), default=None)
        return max(0, replicas - late), left_s
    is_raised = ours is not None and ours.min_available is not None and ours.min_available >= replicas
    if is_raised and sum(pod.available for pod in pods) < replicas:
        return replicas, None  # the replacements are on their way
    return at_rest, None


def _stop(pod: PodView, state: RebalanceState | None) -> datetime | None:
    """Return when a pod has to begin to end, so that it has ended when its machine goes."""
    end = pod.deadline
    if end is None and pod.notice_s is not None and state is not None and state.doomed_since is not None:
        end = state.doomed_since + timedelta(seconds=pod.notice_s)
    return end - timedelta(seconds=pod.termination_s) if end is not None else None

"""Decides about the PodDisruptionBudget that makes an eviction wait for the replacement.

At rest it lets one eviction through. From the first sign that a node under the workload goes it lets through
as many as there are replacements. A budget of the user's wins: Kubernetes refuses to evict a pod that two
select. Placement has none (G14), and what asks no budget is not covered (G15). `planner` asks at the end of
each reconcile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zlib import crc32

import orjson

from splitter.core.actions import Scale, SetBudget, SetDeletionCost
from splitter.core.awaited import Awaited, Moment, awaited
from splitter.core.desired.twin import pod_labels
from splitter.core.evictions import BudgetView, Evictions
from splitter.core.handover import Step
from splitter.core.label_sets import LabelSets
from splitter.core.labels_annotations import guard_name
from splitter.core.limits import MAX_BUDGETS
from splitter.core.model import Note, Observation, ReplicaSetView, seconds_between
from splitter.core.plan import Plan, PlanInput
from splitter.core.reasons import Reason
from splitter.core.replica import Pool, Replica, ReplicaState
from splitter.core.split_status import RebalanceState
from splitter.core.start_times import cover_s

# Its pods go home, and still are the twins': the budget follows them, and none is made any more.
_LEAVING = frozenset({Step.OFFBOARD, Step.SHRINK_OURS, Step.HAND_BACK})
_GONE = frozenset({Step.CLEAN_UP, Step.RELEASE})
# The label is set again on that way: what holds these steps may be a drain that waits for the budget. Or it
# was given back in a conflict, and the budget could not be deleted then: the Split stays, and would keep it.
_HOME = frozenset({Step.WAIT_ROLLOUT, Step.ADOPT_PODS, Step.NOTHING})
# Karpenter looks every 10 s, and once more 15 s later before it takes what it found.
_OPEN_S = 60.0
_OPENS_EVERY_S = 600.0
# Many that start at once take longer than one did.
_STARTS = 2.0
# So long replacements have at least, and so long a pod has to end in any case: who drains asks again after
# five seconds, and the others are for its last requests.
_LEAST_S = 10.0
_UNKNOWN_START_S = 60.0
# So long the count of a budget may lag behind; then a pod is written, for as long at most.
_LAGS_S = 5.0
_RECOUNT_S = 1.0


def guarded(this: PlanInput, step: Step, plan: Plan) -> Plan:
    """Return the plan with what its budget needs: a raised one is written first, a lowered one last (G4)."""
    if this.observed.split is None:
        return plan  # nobody would own what is written
    ours = next((one for one in this.observed.budgets if one.is_ours), None)
    if ours is not None and (step in _GONE or (step in _HOME and not this.observed.unguardable)):
        return replace(plan, actions=(*plan.actions, _end(ours)))  # G13
    if ours is not None and (plan.raises or step in _LEAVING):
        return _kept(this, plan, ours)
    if step is Step.RUN and len(this.observed.twins) == len(Pool):
        return _kept(this, plan, ours)
    return plan


def _kept(this: PlanInput, plan: Plan, ours: BudgetView | None) -> Plan:
    name = guard_name(this.source.key)
    refused = this.observed.unguardable
    users = _users(this)
    if why := _yields(this, name, users):
        if ours is not None and refused:
            return _unguarded(plan, f"{why}. {name} is there as well, and cannot be deleted: {refused}")
        gone = (_end(ours),) if ours is not None else ()
        plan = replace(plan, actions=(*plan.actions, *gone), guard=why)
        if _too_many(this):
            return _unguarded(plan, why)
        return _counted_anew(this, plan, users[0], yields=ours is not None) if len(users) == 1 else plan
    there = ours.min_available if ours is not None else None
    if refused:
        left = f"{_says(this, name, there)}, and cannot be changed" if there is not None else "none"
        return _unguarded(plan, f"{left}: {refused}")
    keeps, waits = _min_available(this, plan, ours)
    said = _says(this, name, keeps) + (f": {waits}" if waits else "")
    plan = replace(plan, guard=said)
    if there == keeps:
        return plan
    raised = keeps >= this.source.replicas if there is None else keeps > there
    write = SetBudget(name, keeps, ours.uid if ours is not None else "", raised=raised)
    return replace(plan, actions=(write, *plan.actions) if raised else (*plan.actions, write))


def _unguarded(plan: Plan, guard: str) -> Plan:
    """Say why nothing can be written of the budget; everything else goes on (G12)."""
    message = f"evictions of its pods may not wait for replacements, or be refused (guard: {guard})"
    return replace(plan, guard=guard, advice=(*plan.advice, Note(Reason.UNGUARDED, message, warning=True)))


def _says(this: PlanInput, name: str, keeps: int) -> str:
    return f"{name} keeps {keeps} of {this.source.replicas}"


def _end(ours: BudgetView) -> SetBudget:
    return SetBudget(ours.name, None, ours.uid)


def _counted_anew(this: PlanInput, plan: Plan, theirs: BudgetView, *, yields: bool) -> Plan:
    """Return the plan with a write on a pod where Kubernetes has missed that it is ready.

    While two budgets select a pod, what becomes of it is counted for one of them alone. If that was ours,
    theirs would refuse evictions until something becomes of another pod (G8, docs/adr/0039): any write will
    do. The pod's cost stays what it is, and the next reconcile takes off what is remembered of it. It is
    written when ours `yields`, and later by the clock, after twice the time each: maybe nobody counts.
    """
    if plan.step is not Step.RUN or theirs.refuses_since is None:
        return plan
    ready = [pod for rs in _taken(this, theirs) for pod in rs.pods if pod.ready]
    if len(ready) <= theirs.healthy:
        return plan
    refused_s = max(0.0, seconds_between(theirs.refuses_since, this.observed.now))
    due_s = _LAGS_S
    while due_s + _RECOUNT_S <= refused_s:
        due_s *= 2
    costed = {one.uid for one in plan.actions if isinstance(one, SetDeletionCost)}
    free = (one for one in ready if one.available and one.cost_before is None and one.uid not in costed)
    if (yields or refused_s >= due_s) and (pod := next(free, None)) is not None:
        write = SetDeletionCost(pod.name, pod.uid, pod.deletion_cost, remember=pod.deletion_cost or "")
        plan = replace(plan, actions=(*plan.actions, write))
    again_s = (due_s if refused_s < due_s else 2 * due_s) - refused_s
    this.observed.waits.look_in(again_s)
    return plan


def _users(this: PlanInput) -> list[BudgetView]:
    """Return the budgets of the user's that select a pod of the twins, by name; none of too many (G17)."""
    others = [one for one in this.observed.budgets if not one.is_ours]
    if not others or _too_many(this):
        return []
    sets = _label_sets(this)
    selecting = (one for one in others if one.selector is not None and sets.selected(one.selector))
    return sorted(selecting, key=lambda one: one.name)


def _taken(this: PlanInput, theirs: BudgetView) -> list[ReplicaSetView]:
    """Return the ReplicaSets whose pods a budget selects; new ones of a StatefulSet's, by its template."""
    sets, holders = LabelSets(), list[ReplicaSetView]()
    for twin in this.observed.twins:
        ours = pod_labels(this.source.key.name, twin.pool)
        made = this.source if isinstance(this.rendered, Note) else this.rendered[twin.pool]
        plain = [rs for rs in twin.replica_sets if not rs.template_labels]
        sets.add(_template_labels(made.manifest_json), *(ours for _ in plain))
        own = [rs for rs in twin.replica_sets if rs.template_labels]
        for rs in own:
            sets.add(rs.template_labels, ours)
        holders += [*plain, *own]
    taken = sets.selected(theirs.selector) if theirs.selector is not None else 0
    return [rs for number, rs in enumerate(holders) if taken >> number & 1]


def _yields(this: PlanInput, name: str, users: Sequence[BudgetView]) -> str:
    """Say who or what has it that there is no budget of ours; nothing when there may be one (G8)."""
    if this.policy.evictions is Evictions.UNGUARDED:
        return "none: splitter.io/evictions is unguarded"
    if len(users) > 1:
        names = ", ".join(one.name for one in users)
        return (
            f"your PodDisruptionBudgets {names}: Kubernetes refuses every eviction of a pod that two select"
        )
    if users:
        return f"your PodDisruptionBudget {users[0].name}" + (f" ({users[0].says})" if users[0].says else "")
    if many := _too_many(this):
        return many
    if any(one.name == name for one in this.observed.budgets if not one.is_ours):
        return f"none: PodDisruptionBudget {name} is not splitter's"
    return ""


def _too_many(this: PlanInput) -> str:
    if sum(not one.is_ours for one in this.observed.budgets) <= MAX_BUDGETS:
        return ""
    return (
        f"none: namespace {this.source.key.namespace} has more than {MAX_BUDGETS} PodDisruptionBudgets that"
        " are not splitter's, too many to tell which select its pods; delete those that are not needed"
    )


def _label_sets(this: PlanInput) -> LabelSets:
    """Return the labels of pods that there are, or are to be: of each revision, and of both templates.

    A template set may add some; and pods of an earlier revision have those that they were made with.
    """
    sets, twins = LabelSets(), this.observed.twins
    made = () if isinstance(this.rendered, Note) else this.rendered.values()
    ours = {twin.pool: pod_labels(this.source.key.name, twin.pool) for twin in twins}
    for text in (this.source.manifest_json, *(one.manifest_json for one in made)):
        if written := _template_labels(text):
            sets.add(written, *ours.values())
    for twin in twins:
        for rs in twin.replica_sets:
            if rs.pods and rs.template_labels:
                sets.add(rs.template_labels, ours[twin.pool])
    return sets


def _template_labels(manifest: str) -> Mapping[str, str]:
    template = (orjson.loads(manifest).get("spec") or {}).get("template") or {}
    labels: Mapping[str, str] = (template.get("metadata") or {}).get("labels") or {}
    return labels


def _min_available(this: PlanInput, plan: Plan, ours: BudgetView | None) -> tuple[int, str]:
    """Return how many pods evictions have to leave, and for which they wait.

    G11: replicas that it does not select are not counted: the source's own, and those that a foreign unpause
    has made, while they bear no label of ours. But one that is about to go stands for none of the twins'.
    """
    observed, waits = this.observed, this.observed.waits
    counts = {one.name: one.replicas for one in plan.actions if isinstance(one, Scale)}
    elsewhere = sum(
        min(sum(pod.available and pod.born is None for pod in rs.pods), counts.get(rs.name, rs.spec_replicas))
        for rs in observed.replica_sets
    )
    replicas = max(0, this.source.replicas - elsewhere)
    still = this.policy.freeze or this.policy.dry_run
    if still:  # what is not there is not made either
        replicas = min(replicas, sum(twin.spec_replicas for twin in observed.twins))
    at_rest = replicas if this.policy.evictions is Evictions.SURGE_FIRST else max(0, replicas - 1)  # G9, G2
    if still:  # G7: nothing is replaced, so nothing is worth waiting for
        return min(at_rest, max(0, replicas - 1)), ""
    pods = _selected(observed)
    going = [pod for pod in pods if pod.state is ReplicaState.DOOMED]
    if going:  # G3
        others = _others(this, plan, counts)
        serving = [pod for pod in going if pod.ready]  # others are let go in any case
        keeps = _raised(this, others, replicas, going)
        start_s = cover_s(this.in_force.starts)
        stops = [
            stop for pod in serving if (stop := _stop(pod, plan.rebalance, start_s, waits.now)) is not None
        ]
        # Who has to begin to end now is let go: a machine that dies under a pod is worse than a gap.
        late = sum(not waits.until_s(stop) for stop in stops)
        ready = sum(pod.ready for pod in pods)  # as the budget counts: the doomed too
        keeps = min(keeps, max(0, ready - late)) if late else keeps
        return keeps, others.sentence if serving else ""
    is_raised = ours is not None and ours.min_available is not None and ours.min_available > at_rest
    if is_raised and sum(pod.available for pod in pods) < replicas:
        others = _others(this, plan, counts)
        if others.coming or others.missing:
            return replicas, others.sentence  # G5: the replacements are on their way
    if at_rest < replicas or observed.consolidates is None:
        return at_rest, ""
    opened = _opens(this)
    return max(0, replicas - 1) if opened and observed.consolidates else replicas, ""


def _others(this: PlanInput, plan: Plan, counts: Mapping[str, int]) -> Awaited:
    """Sort the replicas that stay; `counts` are the twins' counts that the plan writes."""
    twins, now = this.observed.twins, this.observed.now
    asked = sum(counts.get(twin.name, twin.spec_replicas) for twin in twins)
    state = plan.rebalance or this.observed.rebalance
    signs = [one for one in (state.doomed_since, state.on_demand_doomed_since) if one is not None]
    sign = min(signs, default=now)
    return awaited(twins, asked, Moment(this.observed.waits, sign, this.policy.grace_s, this.in_force.starts))


def _selected(observed: Observation) -> list[Replica]:
    """Return the pods that it selects: the twins', and those that change their owner and bear our labels."""
    pods = [pod for twin in observed.twins for pod in twin.pods]
    pods += [pod for rs in observed.replica_sets for pod in rs.pods if pod.born is not None]
    known = {pod.uid for pod in pods}
    return [pod for pod in (*pods, *(one for one in observed.orphans if one.uid not in known)) if pod.counts]


def _raised(this: PlanInput, others: Awaited, replicas: int, going: Sequence[Replica]) -> int:
    """Return what evictions have to leave while nodes go: N, less whom nobody waits for (G3, G7).

    Nobody makes up for those that were ill before, so evictions wait for the replacements alone. One goes
    when these do not come up, or none is asked for, as where on-demand has one more already.
    """
    if any(rs.refused for twin in this.observed.twins for rs in twin.replica_sets):
        return max(0, replicas - 1)  # a full quota: one goes, and its place is free
    doomed = sum(pod.ready for pod in going)
    ill = others.explained(replicas, len(going), doomed)
    keeps = max(0, replicas - ill)
    if others.is_all and others.expected < replicas and not (ill and others.ill_since):
        keeps = max(0, keeps - 1, min(keeps, others.serving + doomed - 1))
    return keeps


def _opens(this: PlanInput) -> bool:
    """Return whether this is the minute in ten in which Karpenter may find that it can have a node back.

    G10: Karpenter looks at budgets before it says which nodes it wants, and would never ask for one that they
    keep. What it wants it taints first, which raises the budget again. Each workload has a minute of its own,
    by its UID and the clock: nobody has to remember one (docs/adr/0040).
    """
    into_s = (this.observed.now.timestamp() + crc32(this.source.uid.encode())) % _OPENS_EVERY_S
    this.observed.waits.look_in((_OPEN_S if into_s < _OPEN_S else _OPENS_EVERY_S) - into_s)
    return into_s < _OPEN_S


def _stop(pod: Replica, state: RebalanceState | None, start_s: int | None, now: datetime) -> datetime | None:
    """Return from when on a pod's eviction waits for no replacement, so that it ends before its machine (G6).

    That is its whole grace before the end; later where replacements need longer and still start in time. They
    are given two starts; where no start was seen, half of the notice, a minute at most (docs/adr/0080).
    """
    end = pod.deadline
    since = state.doomed_since if state is not None and pod.on_spot else None  # it is of spot alone
    if end is None and pod.notice_s is not None and since is not None:
        end = since + timedelta(seconds=pod.notice_s)
    if end is None:
        return None
    stop = end - timedelta(seconds=pod.termination_s)
    if since is None:
        return stop
    if pod.notice_s is not None and (announced := end - timedelta(seconds=pod.notice_s)) <= now:
        since = max(since, announced)  # a machine that is announced after others has a notice of its own
    notice_s = seconds_between(since, end)
    if (start_s or 0) > notice_s:
        return stop
    unknown_s = min(notice_s / 2, _UNKNOWN_START_S)
    waits_s = unknown_s if start_s is None else max(_STARTS * start_s, _LEAST_S)
    return max(stop, since + timedelta(seconds=min(waits_s, notice_s - _LEAST_S)))

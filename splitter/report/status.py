"""The status of a Split: what a person or a dashboard reads about one workload.

The reconciler builds it after each reconcile from what was observed and planned; it is written only when it
differs. It also carries what must survive a restart: the rebalancing state, the write conflicts, the last
good annotations. Pure: data in, data out.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from splitter.core.labels_annotations import (
    ANNOTATION_DRY_RUN,
    ANNOTATION_EVICTIONS,
    ANNOTATION_FREEZE,
    ANNOTATION_GRACE,
    ANNOTATION_ON_DEMAND_BASE,
    ANNOTATION_ON_DEMAND_MAX,
    ANNOTATION_RANK,
    ANNOTATION_ROLLOUT_ORDER,
    ANNOTATION_SOAK,
    ANNOTATION_SPOT_AFFINITY,
    ANNOTATION_SPOT_MAX,
    ANNOTATION_SPOT_PERCENT,
    ANNOTATION_TEMPLATE,
)
from splitter.core.labels_annotations.policy import Level
from splitter.core.model import NodeStatus, Note, Observation, PodView, Policy, Pool, TwinView
from splitter.core.packed import unpacked
from splitter.core.plan import Plan, PolicyInForce
from splitter.core.reasons import Reason, State
from splitter.core.rebalance import RebalanceState
from splitter.core.twins.onboard import MAX_WRITE_CONFLICTS, recent_write_conflicts
from splitter.core.usage import Usage, begun, held
from splitter.report.nodes import going

_DECISIONS = 20
_MESSAGE = 1024
_AS_EXPECTED = "AsExpected"
_LEVELS = {
    Level.SOURCE: "Source",
    Level.NAMESPACE: "Namespace",
    Level.DEFAULT: "Default",
    Level.LEARNED: "Learned",
    Level.LAST_GOOD: "LastGood",
}
# Fields of `status.policy`, and the annotation that each is written with.
POLICY_FIELDS = {
    "onDemandBase": ANNOTATION_ON_DEMAND_BASE,
    "spotPercent": ANNOTATION_SPOT_PERCENT,
    "onDemandMax": ANNOTATION_ON_DEMAND_MAX,
    "spotMax": ANNOTATION_SPOT_MAX,
    "spotAffinity": ANNOTATION_SPOT_AFFINITY,
    "grace": ANNOTATION_GRACE,
    "soak": ANNOTATION_SOAK,
    "freeze": ANNOTATION_FREEZE,
    "dryRun": ANNOTATION_DRY_RUN,
    "templateSet": ANNOTATION_TEMPLATE,
    "rolloutOrder": ANNOTATION_ROLLOUT_ORDER,
    "evictions": ANNOTATION_EVICTIONS,
    "rank": ANNOTATION_RANK,
}


def build(observed: Observation, plan: Plan, in_force: PolicyInForce, *, written: bool) -> dict[str, Any]:
    """Return the status to show; `written` says whether the plan's actions were carried out."""
    before: dict[str, Any] = unpacked(observed.split.status) if observed.split else {}
    write_conflicts, conflicting_writer = (
        list(recent_write_conflicts(observed, observed.now)),
        str(before.get("fighter", "")),
    )
    if plan.write_conflict and written:
        same = plan.conflicting_writer == conflicting_writer or not write_conflicts
        write_conflicts, conflicting_writer = (
            [*(write_conflicts if same else ()), observed.now],
            plan.conflicting_writer,
        )
    conflict = bool(before.get("conflict")) or len(write_conflicts) >= MAX_WRITE_CONFLICTS
    source = observed.source
    rebalance = (
        plan.rebalance.to_json()
        if plan.rebalance is not None and written
        else remembered(observed, plan).get("rebalance", {})
    )
    taken = plan.state is not State.REFUSED
    on_demand, spot = _pools(observed, plan)
    status: dict[str, Any] = {
        "observedGeneration": observed.split.generation if observed.split else 0,
        "sourceGeneration": source.generation if source else 0,
        "state": plan.state.value,
        "reason": plan.verdict.reason.value,
        "message": plan.verdict.message[:_MESSAGE],
        "desired": source.replicas if source else 0,
        "ready": _ready(observed),
        "cover": max(0, on_demand["spec"] - plan.wanted_on_demand) if taken else 0,
        "onDemand": on_demand,
        "spot": spot,
        "policy": (policy := _policy(in_force.policy)),
        "policyFrom": {
            field: _LEVELS[in_force.levels.get(POLICY_FIELDS[field], Level.DEFAULT)] for field in policy
        },
        "conditions": _conditions(observed, plan, in_force, before.get("conditions", ()), conflict=conflict),
        "decisions": _decisions(before.get("decisions", ()), plan.notes if written else (), observed.now),
    }
    status |= _usage(observed, plan, before.get("usage"))
    if guard := plan.guard or (str(before.get("guard", "")) if observed.twins else ""):
        status["guard"] = guard
    if nodes := going(observed):
        status["nodes"] = nodes
    # An empty map would be written as null, which the schema refuses.
    if rebalance:
        status["rebalance"] = rebalance
    if in_force.good_annotations:
        status["policyAnnotations"] = dict(in_force.good_annotations)
    if source is not None and source.stateful is not None:
        status["replicas"] = _counted(observed)
        status["selector"] = source.selector
    if write_conflicts:
        status["fights"] = [_time(at) for at in write_conflicts[-10:]]
    if conflicting_writer and (write_conflicts or conflict):
        status["fighter"] = conflicting_writer
    if conflict:
        status["conflict"] = True
    return _with_starts(status, observed, in_force, before)


def remembered(observed: Observation, plan: Plan) -> dict[str, Any]:
    """Return the status with what a reconcile has seen, when what it decided is not written (yet)."""
    before: dict[str, Any] = unpacked(observed.split.status) if observed.split else {}
    if plan.rebalance is None:
        return before
    known = RebalanceState.from_json(before.get("rebalance", {}))
    rebalance = plan.rebalance.unwritten(known).to_json()
    rest = {field: value for field, value in before.items() if field != "rebalance"}
    return {**rest, "rebalance": rebalance} if rebalance else rest


def _usage(observed: Observation, plan: Plan, before: object) -> dict[str, Any]:
    """Return what the replicas have used; nothing of a workload that is only refused."""
    if observed.split is None or not observed.split.takes_over:
        return {}
    used = Usage.from_json(before) or begun(observed.now)
    divided = plan.wanted_on_demand + plan.wanted_spot > 0
    holds = held(observed, plan.wanted_on_demand if divided else None)
    return {"usage": used.holding(holds, observed.now).to_json()}


def _with_starts(
    status: dict[str, Any], observed: Observation, in_force: PolicyInForce, before: Mapping[str, Any]
) -> dict[str, Any]:
    """Add what was learned of starts, where a workload is split; alone it is no reason for a write."""
    starts = in_force.starts.to_json()
    if not starts or observed.split is None or not observed.split.takes_over:
        return status
    if status == {field: value for field, value in before.items() if field != "starts"}:
        return dict(before)
    return {**status, "starts": starts}


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _spec(twin: TwinView | None) -> int:
    return twin.spec_replicas if twin else 0


def _available(pods: Sequence[PodView]) -> int:
    return sum(1 for pod in pods if pod.available)


def _ready(observed: Observation) -> int:
    own = sum(_available(rs.pods) for rs in observed.replica_sets)
    # Pods whose owner is changing serve as before.
    return own + sum(_available(twin.pods) for twin in observed.twins) + _available(observed.orphans)


def _counted(observed: Observation) -> int:
    """Count the pods of all holders: what an autoscaler takes for the present number."""
    return sum(pod.counts for rs in observed.holders for pod in rs.pods)


def _pools(observed: Observation, plan: Plan) -> tuple[dict[str, int], dict[str, int]]:
    """Count both pools: the twins' pods, or in placement mode the members, by what they stand on."""
    split, source = observed.split, observed.source
    if split is None or split.ordinals is None or source is None:
        return (
            _pool(_spec(observed.on_demand), _of_pool(observed, Pool.ON_DEMAND), plan.wanted_on_demand),
            _pool(_spec(observed.spot), _of_pool(observed, Pool.SPOT), plan.wanted_spot),
        )
    ordinals = frozenset(split.ordinals)
    members: dict[bool, list[PodView]] = {True: [], False: []}
    for pod in (pod for own in observed.replica_sets for pod in own.pods):
        members[_is_of_spot(pod, ordinals)].append(pod)
    in_force = sum(pod.ordinal in ordinals for pods in members.values() for pod in pods if pod.counts)
    return (
        _pool(in_force, members[False], plan.wanted_on_demand),
        _pool(max(0, source.replicas - in_force), members[True], plan.wanted_spot),
    )


def _of_pool(observed: Observation, pool: Pool) -> list[PodView]:
    twin = observed.twin(pool)
    return [*(twin.pods if twin else ()), *(pod for pod in observed.orphans if pod.born is pool)]


def _is_of_spot(pod: PodView, ordinals: Collection[int]) -> bool:
    """Whether a member stands on spot; one without a node, whether it may."""
    return pod.ordinal not in ordinals if pod.node_status is NodeStatus.UNBOUND else pod.on_spot


def _pool(spec: int, of_pool: Sequence[PodView], wanted: int) -> dict[str, int]:
    pods = [pod for pod in of_pool if pod.counts]
    return {
        "wanted": wanted,
        "spec": spec,
        "ready": _available(pods),
        "doomed": sum(1 for pod in pods if pod.node_status is NodeStatus.DOOMED),
        "pending": sum(1 for pod in pods if pod.node_status is NodeStatus.UNBOUND),
    }


def _policy(policy: Policy) -> dict[str, Any]:
    values: dict[str, Any] = {
        "onDemandBase": policy.on_demand_base,
        "spotPercent": policy.spot_percent,
        "spotAffinity": policy.spot_affinity.value,
        "grace": f"{policy.grace_s:.0f}s",
        "soak": f"{policy.soak_s:.0f}s",
        "freeze": policy.freeze,
        "dryRun": policy.dry_run,
        "templateSet": policy.template_set,
        "rolloutOrder": policy.rollout_order.value,
        "evictions": policy.evictions.value,
        "rank": policy.rank,
    }
    if policy.on_demand_max is not None:
        values["onDemandMax"] = policy.on_demand_max
    if policy.spot_max is not None:
        values["spotMax"] = policy.spot_max
    return values


def _conditions(
    observed: Observation,
    plan: Plan,
    in_force: PolicyInForce,
    before: Sequence[Mapping[str, Any]],
    *,
    conflict: bool,
) -> list[dict[str, Any]]:
    """Return the conditions in the Kubernetes convention; a transition time changes with its status only."""
    ready, desired = _ready(observed), observed.source.replicas if observed.source else 0
    verdict = plan.verdict
    objection = verdict if plan.state is State.REFUSED else plan.objection
    wanting = plan.wanted_spot
    spot_ready = _pools(observed, plan)[1]["ready"]
    problem = in_force.problems[0] if in_force.problems else None
    cause = plan.troubles[0] if plan.troubles else verdict
    spot = f"{observed.spot.name}: " if observed.spot else " "
    spots = next((trouble for trouble in plan.troubles if trouble.about.startswith(spot)), verdict)
    moving = plan.state in {State.TAKING_OVER, State.MOVING, State.ROLLING, State.GIVING_BACK}
    conditions = [
        _condition("Eligible", objection is None, objection),
        _condition("PolicyValid", in_force.valid, problem),
        _enough("Ready", ready, desired, "replicas", cause.reason),
        _condition("PodsHealthy", not plan.troubles, _together(plan.troubles)),
        _condition("Progressing", moving, verdict),
        _enough("SpotAvailable", spot_ready, wanting, "wanted spot replicas", spots.reason),
        _condition("Conflict", conflict, verdict if conflict else None),
    ]
    since = {old.get("type"): old for old in before}
    for condition in conditions:
        old = since.get(condition["type"])
        same = old is not None and old.get("status") == condition["status"]
        condition["lastTransitionTime"] = (
            old["lastTransitionTime"] if same and old is not None else _time(observed.now)
        )
        if observed.split is not None:
            condition["observedGeneration"] = observed.split.generation
    return conditions


def _enough(kind: str, available: int, wanted: int, what: str, cause: Reason) -> dict[str, Any]:
    """Return a condition about a count; what is in order has no cause."""
    condition = _condition(
        kind, available >= wanted, Note(cause, f"{available} of {wanted} {what} are available")
    )
    return condition if available < wanted else {**condition, "reason": _AS_EXPECTED}


def _together(troubles: Sequence[Note]) -> Note | None:
    if not troubles:
        return None
    return Note(troubles[0].reason, " ".join(trouble.message for trouble in troubles))


def _condition(kind: str, holds: bool, note: Note | None) -> dict[str, Any]:  # noqa: FBT001 (its value is the point)
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": note.reason.value if note else _AS_EXPECTED,
        "message": note.message[:_MESSAGE] if note else "",
    }


def _decisions(
    before: Sequence[Mapping[str, Any]], notes: Sequence[Note], now: datetime
) -> list[dict[str, Any]]:
    """Return the last decisions, oldest first; one said again within a minute is not listed twice."""
    decisions = [dict(decision) for decision in before]
    horizon = _time(now - timedelta(seconds=60))
    recent = {
        (old.get("reason"), old.get("message")) for old in decisions if str(old.get("time", "")) > horizon
    }
    decisions.extend(
        {"time": _time(now), "reason": note.reason.value, "message": note.message[:_MESSAGE]}
        for note in notes
        if (note.reason.value, note.message[:_MESSAGE]) not in recent
    )
    return decisions[-_DECISIONS:]

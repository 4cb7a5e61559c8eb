"""The status of a Split: what a person or a dashboard reads about one workload.

The reconciler builds it after each reconcile from what was observed and planned; it is written only when it
differs. Everything is decided elsewhere: here pods are counted, and what is said is put together. Pure.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from splitter.core.conditions import conditions
from splitter.core.labels_annotations.reported import levels_of, values_of
from splitter.core.model import Observation, TwinView
from splitter.core.plan import Plan, PolicyInForce, remembered
from splitter.core.reasons import State
from splitter.core.replica import NodeStatus, Pool, Replica, ReplicaState
from splitter.core.split_status import (
    DECISIONS_MAX,
    LET_GO,
    NODES_MAX,
    TEXT_MAX,
    GoingNode,
    Memory,
    PastDecision,
    PoolCounts,
    SplitStatus,
    Usage,
)
from splitter.core.split_status.starts import NOTHING_LEARNED
from splitter.core.split_status.usage import begun
from splitter.core.twins import write_conflicts
from splitter.core.usage import held

_LAST = datetime.max.replace(tzinfo=UTC)
_STATES = {NodeStatus.DOOMED: "Doomed", NodeStatus.LOST: "Lost"}


def build(observed: Observation, plan: Plan, in_force: PolicyInForce, *, written: bool) -> SplitStatus:
    """Return the status to show; `written` says whether the plan's actions were carried out."""
    before, source = observed.reported, observed.source
    conflicts, writer, conflict = write_conflicts.counted(observed, plan, written=written)
    on_demand, spot = _pools(observed, plan)
    ready = _ready(observed)
    policy = values_of(in_force.policy)
    stateful = source if source is not None and source.stateful is not None else None
    decided, known = plan.rebalance if written else None, remembered(plan, observed).memory
    taken = observed.split is not None and observed.split.takes_over
    status = SplitStatus(
        observed_generation=observed.split.generation if observed.split else 0,
        source_generation=source.generation if source else 0,
        state=plan.state.value,
        reason=plan.verdict.reason.value,
        message=plan.verdict.message[:TEXT_MAX],
        desired=source.replicas if source else 0,
        ready=ready,
        cover=max(0, on_demand.spec - plan.wanted_on_demand) if plan.state is not State.REFUSED else 0,
        on_demand=on_demand,
        spot=spot,
        policy=policy,
        policy_from=levels_of(policy, in_force.levels),
        conditions=conditions(
            observed, plan, in_force, ready=ready, spot_ready=spot.ready, conflict=conflict
        ),
        decisions=_decisions(before.decisions, plan, observed.now) if written else before.decisions,
        usage=_usage(observed, plan) if taken else None,
        relief=plan.relief if written and plan.relief is not None else before.relief,
        guard=plan.guard or (before.guard if observed.twins else ""),
        nodes=_going(observed),
        memory=Memory(
            rebalance=decided or known.rebalance,
            followed=known.followed,
            starts=in_force.starts if taken else NOTHING_LEARNED,
            good_annotations=in_force.good_annotations,
        ),
        replicas=_counted(observed) if stateful is not None else None,
        selector=stateful.selector if stateful is not None else "",
        write_conflicts=conflicts,
        conflicting_writer=writer,
        conflict=conflict,
    )
    # A start that was seen is alone no reason for a write.
    unseen = replace(status, memory=replace(status.memory, starts=before.memory.starts))
    return before if unseen == before else status


def _usage(observed: Observation, plan: Plan) -> Usage:
    """Return what the replicas of a workload that is split have used."""
    divided = plan.wanted_on_demand + plan.wanted_spot > 0
    holds = held(observed, plan.wanted_on_demand if divided else None)
    return (observed.reported.usage or begun(observed.now)).holding(holds, observed.now)


def _spec(twin: TwinView | None) -> int:
    return twin.spec_replicas if twin else 0


def _available(pods: Sequence[Replica]) -> int:
    return sum(1 for pod in pods if pod.available)


def _ready(observed: Observation) -> int:
    own = sum(_available(rs.pods) for rs in (*observed.replica_sets, *observed.going))
    # Pods whose owner is changing serve as before.
    return own + sum(_available(twin.pods) for twin in observed.twins) + _available(observed.orphans)


def _counted(observed: Observation) -> int:
    """Count the pods of all holders: what an autoscaler takes for the present number."""
    return sum(pod.counts for rs in observed.holders for pod in rs.pods)


def _pools(observed: Observation, plan: Plan) -> tuple[PoolCounts, PoolCounts]:
    """Count both pools: the twins' pods, or in placement mode the members, by what they stand on."""
    split, source = observed.split, observed.source
    if split is None or split.ordinals is None or source is None:
        return (
            _pool(_spec(observed.on_demand), _of_pool(observed, Pool.ON_DEMAND), plan.wanted_on_demand),
            _pool(_spec(observed.spot), _of_pool(observed, Pool.SPOT), plan.wanted_spot),
        )
    ordinals = frozenset(split.ordinals)
    members: dict[bool, list[Replica]] = {True: [], False: []}
    for pod in (pod for own in observed.replica_sets for pod in own.pods):
        members[_is_of_spot(pod, ordinals)].append(pod)
    in_force = sum(pod.ordinal in ordinals for pods in members.values() for pod in pods if pod.counts)
    return (
        _pool(in_force, members[False], plan.wanted_on_demand),
        _pool(max(0, source.replicas - in_force), members[True], plan.wanted_spot),
    )


def _of_pool(observed: Observation, pool: Pool) -> list[Replica]:
    twin = observed.twin(pool)
    loose = [pod for rs in (*observed.going, *observed.replica_sets) if rs.deleted for pod in rs.pods]
    between = (pod for pod in (*observed.orphans, *loose) if pod.born is pool)
    return [*(twin.pods if twin else ()), *between]


def _is_of_spot(pod: Replica, ordinals: Collection[int]) -> bool:
    """Whether a member stands on spot; one without a node, whether it may."""
    return pod.ordinal not in ordinals if pod.node_status is NodeStatus.UNBOUND else pod.on_spot


def _pool(spec: int, of_pool: Sequence[Replica], wanted: int) -> PoolCounts:
    pods = [pod for pod in of_pool if pod.counts]
    return PoolCounts(
        wanted=wanted,
        spec=spec,
        ready=_available(pods),
        doomed=sum(pod.state is ReplicaState.DOOMED for pod in pods),
        pending=sum(pod.node_status is NodeStatus.UNBOUND for pod in pods),
    )


def _going(observed: Observation) -> tuple[GoingNode, ...]:
    """Return the nodes that are doomed or lost under replicas, the earliest deadline first."""
    node_status: dict[str, list[Replica]] = defaultdict(list)
    for replica_set in observed.holders:
        for pod in replica_set.pods:
            if pod.counts and pod.node_status in _STATES and pod.node is not None:
                node_status[pod.node].append(pod)
    nodes = [_node(name, pods) for name, pods in node_status.items()]
    return tuple(sorted(nodes, key=lambda node: (node.deadline or _LAST, node.name))[:NODES_MAX])


def _node(name: str, pods: list[Replica]) -> GoingNode:
    first = pods[0]
    deadline = first.deadline.replace(microsecond=0) if first.deadline is not None else None
    return GoingNode(name, _STATES[first.node_status], len(pods), first.signal[:TEXT_MAX], deadline)


def _decisions(before: Sequence[PastDecision], plan: Plan, now: datetime) -> tuple[PastDecision, ...]:
    """Return the last decisions, oldest first; one said again within a minute is not listed twice.

    Nor is one that only stands for as long as it does: with each look it would push out what was done.
    """
    now = now.replace(microsecond=0)
    said = [PastDecision(now, note.reason.value, note.message[:TEXT_MAX]) for note in plan.notes]
    last = [(old.reason, old.message) for old in before[-len(said) :]]
    if not plan.actions and last == [(one.reason, one.message) for one in said]:
        return tuple(before)
    recent = {(old.reason, old.message) for old in before if old.at > now - timedelta(seconds=60)}
    new = (one for one in said if (one.reason, one.message) not in recent or one.message.startswith(LET_GO))
    return (*before, *new)[-DECISIONS_MAX:]

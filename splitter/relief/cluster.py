"""Turns what the cache and a reconcile know into what `relief.decide` looks at."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from splitter.core.desired.scheduling import ReservationRules
from splitter.core.label_sets import LabelSets
from splitter.core.labels_annotations import HELD_FOR_RELIEF
from splitter.core.model import Observation, SourceView, seconds_between
from splitter.core.names import Key
from splitter.core.nodes.facts import Health, Tier
from splitter.core.nodes.fit import NodeHeadroom, PodRequest, SpreadConstraint, Toleration, may_run_on
from splitter.core.placeable import Reach
from splitter.core.placement.relief import leaves_from
from splitter.core.placement.reservations import placeholder_manifest
from splitter.core.relief.model import Amounts
from splitter.core.replica import Pool, Replica
from splitter.kube import parse
from splitter.kube.cache import Cache
from splitter.kube.real_use import RealUse
from splitter.relief.loads import (
    Cluster,
    Domains,
    NodeLoad,
    PastMove,
    Qos,
    ReplicaLoad,
    SpreadLoad,
    WorkloadLoad,
)

# The scheduler tries every pod again within five minutes: who waits longer waits for something else.
_WAITS_S: Final = 300.0
# So many more answers than twice as many as are needed are kept, of templates that nobody has any more.
_SPARE_ANSWERS: Final = 32
# Above the value of any PriorityClass.
_AFTER_ALL: Final = 2**32


class _Nodes:
    """The nodes as they are labelled and tainted; what is asked of them is found once for all alike."""

    def __init__(self, nodes: Sequence[NodeHeadroom]) -> None:
        self._nodes = nodes
        self._admitting: dict[tuple[object, ...], frozenset[str]] = {}
        self._domains: dict[tuple[object, ...], Domains] = {}

    @property
    def answers(self) -> int:
        """How many answers are kept, each of up to as many names as there are nodes."""
        return len(self._admitting) + len(self._domains)

    def are_like(self, nodes: Sequence[NodeHeadroom]) -> bool:
        """Whether the same would be found of other nodes."""
        pairs = zip(self._nodes, nodes, strict=False)
        return len(self._nodes) == len(nodes) and all(
            (one.node.name, one.node.labels, one.node.taints)
            == (other.node.name, other.node.labels, other.node.taints)
            for one, other in pairs
        )

    def admitting(self, request: PodRequest) -> frozenset[str]:
        """Return the nodes, by name, that let such a pod onto them."""
        where = _where(request)
        if where not in self._admitting:
            looked_at = self._nodes[: request.most_nodes]
            names = (one.node.name for one in looked_at if may_run_on(request, one.node))
            self._admitting[where] = frozenset(names)
        return self._admitting[where]

    def domains(
        self, one: SpreadConstraint, beside: Collection[SpreadConstraint], request: PodRequest
    ) -> Domains:
        """Return where a constraint counts: as the scheduler, on nodes that have all keys of its kind."""
        if not one.honors_affinity:
            request = replace(request, node_selector={}, affinity=())
        if not one.honors_taints:
            request = replace(request, tolerations=(Toleration(operator="Exists"),))
        keys = frozenset(other.key for other in beside if other.strict is one.strict)
        asked = (one.key, keys, *_where(request))
        if asked not in self._domains:
            names = self.admitting(request)
            states = (each.node for each in self._nodes if each.node.name in names)
            of_node = {state.name: state.labels[one.key] for state in states if keys <= state.labels.keys()}
            self._domains[asked] = Domains(of_node, frozenset(of_node.values()))
        return self._domains[asked]


def _where(request: PodRequest) -> tuple[object, ...]:
    return tuple(sorted(request.node_selector.items())), request.affinity, request.tolerations


def replica_loads(observed: Observation) -> tuple[ReplicaLoad, ...]:
    """Return the replicas of both twins."""
    return tuple(_load_of(pod, twin.pool) for twin in observed.twins for pod in twin.pods if pod.counts)


def _load_of(pod: Replica, pool: Pool) -> ReplicaLoad:
    return ReplicaLoad(
        pod=pod.name,
        uid=pod.uid,
        node=pod.node or "",
        pool=pool,
        requests=amounts_of(dict(pod.requests)),
        ready_since=pod.ready_since if pod.available else None,
        priority=pod.priority,
        # The rest of it is in the limits, which nobody keeps.
        qos=Qos.BURSTABLE if pod.requests else Qos.BEST_EFFORT,
    )


def spread_loads(
    observed: Observation, constraints: Mapping[Pool, tuple[SpreadConstraint, ...]]
) -> tuple[tuple[Pool, SpreadLoad], ...]:
    """Return the constraints of each twin, with whom they count; where they count is not known yet."""
    holders = [(twin.pool, rs) for twin in observed.twins for rs in twin.replica_sets if rs.pods]
    uids = [frozenset(pod.uid for pod in rs.pods if pod.counts) for _, rs in holders]
    sets, counted, spreads = LabelSets(), dict[int, frozenset[str]](), []
    for _, rs in holders:
        sets.add(rs.template_labels, {})
    for (pool, rs), own in zip(holders, uids, strict=True):
        for one in constraints.get(pool, ()):
            like = _counted_by(one, rs.template_labels, sets)
            if like not in counted:
                those = (each for number, each in enumerate(uids) if like >> number & 1)
                counted[like] = frozenset[str]().union(*those)
            spreads.append((pool, SpreadLoad(one, own, counted[like])))
    return tuple(spreads)


def _counted_by(one: SpreadConstraint, own: Mapping[str, str], sets: LabelSets) -> int:
    """Return which sets of labels a constraint counts, on a pod that bears its `own`; as one by one."""
    keys = [(key, "In", (own[key],)) for key in one.label_keys if key in own]
    if one.selector is None or not (one.selector or keys):
        return 0
    return sets.selected((*((each.key, each.operator, each.values) for each in one.selector), *keys))


Members = tuple[tuple[ReplicaLoad, PodRequest | None], ...]
"""The members of a StatefulSet, and where each may stand; None: it is not to be restarted."""


def member_loads(observed: Observation, source: SourceView, rules: ReservationRules | None) -> Members:
    """Return the members of a StatefulSet in placement mode that asks for restarts.

    Any replica that can be moved without a restart goes first: they come after all priorities.
    """
    manifest = json.loads(source.manifest_json)
    known: dict[tuple[Pool, str], PodRequest | None] = {}  # volumes in one zone ask for the same
    members = []
    for pod in (pod for holder in observed.replica_sets for pod in holder.pods if pod.counts):
        pool, request = leaves_from(observed, source, pod), None
        if pool is not None and rules is not None:
            asked = pool, observed.related.reach.get(pod.ordinal or 0, Reach()).terms_json
            if asked not in known:
                known[asked] = None
                with suppress(ValueError):  # nothing tells spot nodes from others
                    known[asked] = parse.pod_request(placeholder_manifest(manifest, pool, rules, asked[1]))
            request = known[asked]
        load = _load_of(pod, Pool.SPOT if pod.on_spot else Pool.ON_DEMAND)
        load = replace(load, priority=load.priority + _AFTER_ALL)
        members.append((load if request is not None else replace(load, ready_since=None), request))
    return tuple(members)


def amounts_of(resources: dict[str, int]) -> Amounts:
    """Return CPU and memory of what is requested."""
    return Amounts(float(resources.get("cpu", 0)), float(resources.get("memory", 0)))


# --- the whole cluster ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KnownWorkload:
    """What the last reconcile of a workload has seen, in so far as relief needs it."""

    load: WorkloadLoad
    moves: tuple[PastMove, ...]
    members: Members = ()
    """Of a StatefulSet that asks for restarts; empty of twins."""
    one_a_node: bool = False
    """No two of its pods may stand on one node."""
    spreads: tuple[tuple[Pool, SpreadLoad], ...] = ()
    """How the pods of each twin ask to be spread."""


class ClusterLooks:
    """Looks at the cluster; where replicas may stand is kept from one to the next, while that stays so."""

    def __init__(self, cache: Cache) -> None:
        """Keep nothing yet."""
        self._cache = cache
        self._nodes = _Nodes(())
        self._most_answers = _SPARE_ANSWERS
        self._loads = dict[Key, tuple[KnownWorkload, WorkloadLoad]]()

    def look(self, known: Iterable[KnownWorkload], used: RealUse, now: datetime) -> Cluster:
        """Return this moment as relief looks at it."""
        if used.missing:
            return Cluster(now)
        nodes, loads = list(self._cache.headroom(now)), self._loads
        # A tenant may ask for other nodes with each template.
        is_anew = self._nodes.answers > self._most_answers or not self._nodes.are_like(nodes)
        if is_anew:
            self._nodes, loads = _Nodes(nodes), {}
        self._loads = {
            one.load.key: kept
            if (kept := loads.get(one.load.key)) is not None and kept[0] is one
            else (one, _with_nodes(self._cache, one, self._nodes))
            for one in known
        }
        if is_anew:
            self._most_answers = 2 * self._nodes.answers + _SPARE_ANSWERS
        workloads = tuple(load for _, load in self._loads.values())
        pods = {
            replica.uid: sample
            for load in workloads
            for replica in load.replicas
            if (sample := used.pods.get((load.key.namespace, replica.pod))) is not None
        }
        return Cluster(
            now=now,
            nodes=tuple(map(_node_load, nodes)),
            workloads=workloads,
            node_samples=used.nodes,
            pod_samples=pods,
            waiting=_waiting(self._cache, now),
            alarm=next((_alarm_of(node) for node in nodes if _is_alarming(self._cache, node)), ""),
        )


def _with_nodes(cache: Cache, known: KnownWorkload, nodes: _Nodes) -> WorkloadLoad:
    load = known.load
    if known.members:
        return _with_members(known, nodes)
    twins = {record.pool: record for record in cache.twins.find("source", load.key)}
    names = {pool: nodes.admitting(twin.request) for pool, twin in twins.items()}
    replicas = tuple(replace(one, may_run_on=names.get(one.pool, frozenset())) for one in load.replicas)
    spreads = tuple(
        replace(spread, domains=nodes.domains(spread.constraint, twins[pool].spreads, twins[pool].request))
        for pool, spread in known.spreads
        if pool in twins
    )
    return replace(load, replicas=replicas, spreads=spreads)


def _with_members(known: KnownWorkload, nodes: _Nodes) -> WorkloadLoad:
    """Return a StatefulSet with where each of its members may stand."""
    taken = frozenset(one.node for one, _ in known.members) if known.one_a_node else frozenset[str]()
    replicas = tuple(
        one if request is None else replace(one, may_run_on=nodes.admitting(request) - taken)
        for one, request in known.members
    )
    return replace(known.load, replicas=replicas)


def _waiting(cache: Cache, now: datetime) -> tuple[Amounts, ...]:
    """Return what pods request that wait for a node: not those that have waited in vain for long."""
    pods = (
        pod.requests
        for pod in cache.pods.values()
        if pod.node is None
        and not (pod.terminating or pod.finished or pod.held_for.startswith(HELD_FOR_RELIEF))
        and seconds_between(pod.created, now) < _WAITS_S
    )
    return tuple(amounts_of(dict(requests)) for requests in sorted(set(pods)))


def _is_alarming(cache: Cache, node: NodeHeadroom) -> bool:
    """Whether a node goes or is gone under a workload that is split; a cordon may stay for ever."""
    state = node.node
    goes = state.health in {Health.DOOMED, Health.GONE} and state.tier is not Tier.CORDON
    return goes and cache.carries_split(state.name)


def _node_load(one: NodeHeadroom) -> NodeLoad:
    """Return a node, with what is requested there."""
    state = one.node
    return NodeLoad(
        name=state.name,
        uid=state.uid,
        pool=Pool.SPOT if state.is_spot else Pool.ON_DEMAND,
        allocatable=amounts_of(dict(state.allocatable)),
        requested=amounts_of(dict(one.used)),
        free_pods=state.allocatable.get("pods", 0) - one.used.get("pods", 0),
        sound=state.health is Health.HEALTHY,
    )


def _alarm_of(one: NodeHeadroom) -> str:
    """Say that a node goes."""
    return f"{one.node.name} is going or gone ({one.node.signal}), and what stood there comes first"

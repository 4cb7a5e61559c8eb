"""Turns what the cache and a reconcile know into what `core.relief` looks at."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from splitter.core.desired.scheduling import ReservationRules
from splitter.core.model import Observation, PodView, Pool, SourceView
from splitter.core.nodes.facts import Health
from splitter.core.nodes.fit import NodeHeadroom, PodRequest, may_run_on
from splitter.core.placeable import Reach
from splitter.core.placement.relief import leaves_from
from splitter.core.placement.reservations import placeholder_manifest
from splitter.core.relief.model import Amounts, NodeLoad, Qos, ReplicaLoad, WorkloadLoad
from splitter.kube import parse

Admitted = dict[tuple[object, ...], frozenset[str]]
"""By what a twin asks of a node: the names of those that would do."""

# Above the value of any PriorityClass.
_AFTER_ALL: Final = 2**32


def admitting(request: PodRequest, nodes: Sequence[NodeHeadroom], admitted: Admitted) -> frozenset[str]:
    """Return the nodes, by name, that let such a pod onto them; asked once for all that ask alike."""
    where = (tuple(sorted(request.node_selector.items())), request.affinity, request.tolerations)
    if where not in admitted:
        looked_at = nodes[: request.most_nodes]
        admitted[where] = frozenset(one.node.name for one in looked_at if may_run_on(request, one.node))
    return admitted[where]


def replica_loads(observed: Observation) -> tuple[ReplicaLoad, ...]:
    """Return the replicas of both twins."""
    return tuple(_load_of(pod, twin.pool) for twin in observed.twins for pod in twin.pods if pod.counts)


def _load_of(pod: PodView, pool: Pool) -> ReplicaLoad:
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


Members = tuple[tuple[ReplicaLoad, PodRequest | None], ...]
"""The members of a StatefulSet, and where each may stand; None: it is not to be restarted."""


def member_loads(observed: Observation, source: SourceView, rules: ReservationRules | None) -> Members:
    """Return the members of a StatefulSet in placement mode that asks for restarts.

    Any replica that can be moved without a restart goes first: they come after all priorities.
    """
    manifest = json.loads(source.manifest_json)
    members = []
    for pod in (pod for holder in observed.replica_sets for pod in holder.pods if pod.counts):
        pool, request = leaves_from(observed, source, pod), None
        if pool is not None and rules is not None:
            reach = observed.related.reach.get(pod.ordinal or 0, Reach())
            with suppress(ValueError):  # nothing tells spot nodes from others
                request = parse.pod_request(placeholder_manifest(manifest, pool, rules, reach.terms_json))
        load = _load_of(pod, Pool.SPOT if pod.on_spot else Pool.ON_DEMAND)
        load = replace(load, priority=load.priority + _AFTER_ALL)
        members.append((load if request is not None else replace(load, ready_since=None), request))
    return tuple(members)


def with_members(
    load: WorkloadLoad,
    members: Members,
    nodes: Sequence[NodeHeadroom],
    admitted: Admitted,
    *,
    one_a_node: bool,
) -> WorkloadLoad:
    """Return a StatefulSet with where each of its members may stand; `one_a_node`: no two on the same."""
    taken = frozenset(one.node for one, _ in members) if one_a_node else frozenset[str]()
    replicas = tuple(
        one if request is None else replace(one, may_run_on=admitting(request, nodes, admitted) - taken)
        for one, request in members
    )
    return replace(load, replicas=replicas)


def amounts_of(resources: dict[str, int]) -> Amounts:
    """Return CPU and memory of what is requested."""
    return Amounts(float(resources.get("cpu", 0)), float(resources.get("memory", 0)))


def node_load(one: NodeHeadroom) -> NodeLoad:
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


def alarm_of(one: NodeHeadroom) -> str:
    """Say that a node goes."""
    return f"{one.node.name} is going or gone ({one.node.signal}), and what stood there comes first"

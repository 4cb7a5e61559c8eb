"""Turns what the cache and a reconcile know into what `core.relief` looks at."""

from collections.abc import Sequence

from splitter.core.model import Observation, Pool
from splitter.core.nodes.facts import Health
from splitter.core.nodes.fit import NodeHeadroom, PodRequest, may_run_on
from splitter.core.relief.model import Amounts, NodeLoad, Qos, ReplicaLoad

Admitted = dict[tuple[object, ...], frozenset[str]]
"""By what a twin asks of a node: the names of those that would do."""


def admitting(request: PodRequest, nodes: Sequence[NodeHeadroom], admitted: Admitted) -> frozenset[str]:
    """Return the nodes, by name, that let such a pod onto them; asked once for all that ask alike."""
    where = (tuple(sorted(request.node_selector.items())), request.affinity, request.tolerations)
    if where not in admitted:
        looked_at = nodes[: request.most_nodes]
        admitted[where] = frozenset(one.node.name for one in looked_at if may_run_on(request, one.node))
    return admitted[where]


def replica_loads(observed: Observation) -> tuple[ReplicaLoad, ...]:
    """Return the replicas of both twins."""
    return tuple(
        ReplicaLoad(
            pod=pod.name,
            uid=pod.uid,
            node=pod.node or "",
            pool=twin.pool,
            requests=amounts_of(dict(pod.requests)),
            ready_since=pod.ready_since if pod.available else None,
            priority=pod.priority,
            # The rest of it is in the limits, which nobody keeps.
            qos=Qos.BURSTABLE if pod.requests else Qos.BEST_EFFORT,
        )
        for twin in observed.twins
        for pod in twin.pods
        if pod.counts
    )


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

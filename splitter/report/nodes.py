"""The nodes under a workload that go: which signal says so, until when, and how many replicas.

`status` shows them in the Split while there are any. Pure: data in, data out.
"""

from collections import defaultdict
from datetime import UTC, datetime

from splitter.core.model import NodeStatus, Observation, PodView
from splitter.core.split_status import NODES_MAX, TEXT_MAX, GoingNode

_LAST = datetime.max.replace(tzinfo=UTC)
_STATES = {NodeStatus.DOOMED: "Doomed", NodeStatus.LOST: "Lost"}


def going(observed: Observation) -> tuple[GoingNode, ...]:
    """Return the nodes that are doomed or lost under replicas, the earliest deadline first."""
    node_status: dict[str, list[PodView]] = defaultdict(list)
    for replica_set in observed.holders:
        for pod in replica_set.pods:
            if pod.counts and pod.node_status in _STATES and pod.node is not None:
                node_status[pod.node].append(pod)
    nodes = [_node(name, pods) for name, pods in node_status.items()]
    return tuple(sorted(nodes, key=lambda node: (node.deadline or _LAST, node.name))[:NODES_MAX])


def _node(name: str, pods: list[PodView]) -> GoingNode:
    first = pods[0]
    deadline = first.deadline.replace(microsecond=0) if first.deadline is not None else None
    return GoingNode(name, _STATES[first.node_status], len(pods), first.signal[:TEXT_MAX], deadline)

"""The nodes under a workload that go: which signal says so, until when, and how many replicas.

`status` shows them in the Split while there are any. Pure: data in, data out.
"""

from collections import defaultdict
from typing import Any

from splitter.core.model import NodeStatus, Observation, PodView

NODES = 10
"""So many are named, the most urgent first: a status is read by people, and the pools have the counts."""

_STATES = {NodeStatus.DOOMED: "Doomed", NodeStatus.LOST: "Lost"}


def going(observed: Observation) -> list[dict[str, Any]]:
    """Return the nodes that are doomed or lost under replicas, the earliest deadline first.

    Example: {"name": "spot-a", "state": "Doomed", "replicas": 3, "signal": "taint karpenter.sh/disrupted",
    "deadline": "2026-01-05T10:02:00Z"}.
    """
    node_status: dict[str, list[PodView]] = defaultdict(list)
    for replica_set in observed.holders:
        for pod in replica_set.pods:
            if pod.counts and pod.node_status in _STATES and pod.node is not None:
                node_status[pod.node].append(pod)
    nodes = [_node(name, pods) for name, pods in node_status.items()]
    return sorted(nodes, key=lambda node: (node.get("deadline", "9999"), node["name"]))[:NODES]


def _node(name: str, pods: list[PodView]) -> dict[str, Any]:
    first = pods[0]
    node = {
        "name": name,
        "state": _STATES[first.node_status],
        "replicas": len(pods),
        "signal": first.signal,
    }
    if first.deadline is not None:
        node["deadline"] = first.deadline.strftime("%Y-%m-%dT%H:%M:%SZ")
    return node

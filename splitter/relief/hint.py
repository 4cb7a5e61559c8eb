"""Which nodes a new replica is to be kept off: those that it must not stay on and that might draw it.

The scheduler goes by requests and does not see real use. A placeholder on each of these nodes tells it which
ones to prefer not to take (`core.twins.hints`); where it stands in anybody's way, none is made.
Source: docs/adr/0070.
"""

from collections.abc import Collection
from typing import Final

from splitter.core.relief.model import HINT, Amounts, Resource
from splitter.relief.loads import Cluster, NodeLoad, ReplicaLoad

HINTS_MAX: Final = 8
"""On so many nodes at most for one move: those with the lowest requests, which draw most."""


def drawing(cluster: Cluster, avoid: Collection[str], replica: ReplicaLoad) -> tuple[str, ...]:
    """Return the nodes to avoid that might draw a new one of these replicas, by name; the emptiest first.

    Not a node that has no room for it anyway, nor one whose room somebody's pod may be waiting for.
    """
    nodes = [
        node
        for node in cluster.nodes
        if node.name in avoid
        and node.name in replica.may_run_on
        and node.sound
        and _has_room(node, replica.requests + HINT, pods=2)
        and not any(_has_room(node, asked) for asked in cluster.waiting)
    ]
    return tuple(node.name for node in sorted(nodes, key=lambda one: (_requested(one), one.name))[:HINTS_MAX])


def _has_room(node: NodeLoad, asked: Amounts, pods: int = 1) -> bool:
    return node.free_pods >= pods and (node.requested + asked).within(node.allocatable)


def _requested(node: NodeLoad) -> float:
    return sum(node.requested.of(one) / node.allocatable.of(one) for one in Resource)

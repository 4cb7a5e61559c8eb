"""Counts how much of each node its pods request; kept until a pod there changes.

`cache` owns the one `NodeUsage` and tells it of each change of a pod. In a storm every workload's reconcile
asks about the same nodes: counted anew each time, a thousand workloads walked ten thousand pods a thousand
times (docs/performance.md). Nothing here knows which nodes are healthy.
"""

from collections.abc import Mapping

from splitter.kube.records import PodRecord
from splitter.kube.store import Indexer


class NodeUsage:
    """What the pods of each node request, `pods` itself among it."""

    def __init__(self, pods: Indexer[PodRecord]) -> None:
        self._pods = pods  # with the index `node`
        self._used: dict[str, Mapping[str, int]] = {}

    def pod_changed(self, old: PodRecord | None, new: PodRecord | None) -> None:
        """Forget what was counted on the nodes that a pod was on and is on."""
        for record in (old, new):
            if record is not None and record.node is not None:
                self._used.pop(record.node, None)

    def used(self, node_name: str) -> Mapping[str, int]:
        """Return the sum of the requests on a node, in the units of `NodeFacts.allocatable`."""
        used = self._used.get(node_name)
        if used is None:
            used = self._used[node_name] = self._count(node_name)
        return used

    def _count(self, node_name: str) -> Mapping[str, int]:
        used: dict[str, int] = {"pods": 0}
        for pod in self._pods.find("node", node_name):
            if pod.finished:
                continue
            used["pods"] += 1
            for resource, amount in pod.requests:
                used[resource] = used.get(resource, 0) + amount
        return used

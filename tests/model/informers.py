"""What the controllers of Kubernetes know: each reads a cache that a watch fills, in its own time.

Without `Informers` the controllers of a cluster know everything at once. With them each kind of object is
seen as its watch last brought it, LAG_S ago at most. What a controller has done itself it knows:
that of a ReplicaSet does nothing before it has seen its own pods come and go (its expectations), and none
writes over what it has not seen (the `resourceVersion`).
"""

from collections.abc import Callable
from functools import partial

from model.cluster import Cluster, Deployment, Node, Pod, T, copied

LAG_S = 5


class Informers:
    """The caches of one cluster's controllers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._current_at: dict[str, int] = {}
        self._pods: dict[str, Pod] = {}
        self._nodes: dict[str, Node] = {}
        self._deployments: dict[str, Deployment] = {}

    def pod(self, pod: Pod) -> Pod:
        """Return a pod as the ReplicaSet controller sees it: one that it made itself at once."""
        self._hasten("pods")
        return self._pods.get(pod.name, pod)

    def deployment(self, deployment: Deployment) -> Deployment | None:
        """Return a Deployment as its controller sees it; None before it has seen any of it."""
        self._hasten("deployments")
        return self._deployments.get(deployment.uid)

    def late(self, deployment: Deployment) -> Deployment | None:
        """Return the older version that its controller may still act by; None where it knows the latest."""
        seen = None if self._is_old("deployments") else self._deployments.get(deployment.uid)
        return None if seen is None or seen.generation == deployment.generation else seen

    def late_pod(self, pod: Pod) -> Pod:
        """Return a pod as the ReplicaSet controller may still see it."""
        return pod if self._is_old("pods") else self._pods.get(pod.name, pod)

    def nodes(self) -> list[Node]:
        """Return the nodes as the scheduler sees them."""
        self._hasten("nodes")
        return list(self._nodes.values())

    def watches(self) -> list[Callable[[], bool]]:
        """Return what brings the caches up to date; each says whether anything was new."""
        return [partial(self._tell, kind) for kind in ("pods", "nodes", "deployments")]

    def _is_old(self, kind: str) -> bool:
        return self.cluster.now > self._current_at.get(kind, 0) + LAG_S

    def _hasten(self, kind: str) -> None:
        if self._is_old(kind):
            self._tell(kind)

    def _tell(self, kind: str) -> bool:
        self._current_at[kind] = self.cluster.now
        if kind == "pods":
            return _follow(self._pods, self.cluster.pods)
        if kind == "nodes":
            return _follow(self._nodes, self.cluster.nodes)
        return _follow(self._deployments, {one.uid: one for one in self.cluster.deployments})


def _follow(cache: dict[str, T], objects: dict[str, T]) -> bool:
    if cache == objects:
        return False
    cache.clear()
    cache.update((name, copied(one)) for name, one in objects.items())
    return True

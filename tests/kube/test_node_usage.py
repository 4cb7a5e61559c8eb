"""How many pods stand on the spot nodes that may be healthy."""

from builders import NOW
from kube.cached import cache, pod_on
from kube.raw import node, spot_node
from splitter.kube.cache import Cache


def used(result: Cache) -> dict[str, int]:
    """Return the pods that are counted on each spot node with hope."""
    return {one.node.name: one.used["pods"] for one in result.spot_headroom(NOW)}


class TestNodeUsage:
    """What is promised on the spot nodes that may be healthy."""

    def test_follows_the_pods(self) -> None:
        """Bound, moved (a name used again), finished or gone: the count of each node is that of now."""
        result = cache()
        result.nodes.replace(
            map(result.nodes.read, [spot_node("a", 1), spot_node("b", 2), node("on-demand", 3)]), None, 4
        )
        assert used(result) == {"a": 0, "b": 0}
        result.pods.upsert(pod_on("a", "one", 10))
        result.pods.upsert(pod_on("a", "two", 11))
        assert used(result) == {"a": 2, "b": 0}
        result.pods.upsert(pod_on("b", "two", 12))
        assert used(result) == {"a": 1, "b": 1}
        result.pods.upsert({**pod_on("b", "two", 13), "status": {"phase": "Succeeded"}})
        result.pods.remove(pod_on("a", "one", 14))
        assert used(result) == {"a": 0, "b": 0}

    def test_leaves_out_nodes_without_hope(self) -> None:
        """A node that is NotReady is not walked, and is again when it is back."""
        result = cache()
        result.nodes.replace(
            map(result.nodes.read, [spot_node("a", 1), spot_node("b", 2, ready="Unknown")]), None, 3
        )
        assert used(result) == {"a": 0}
        result.nodes.upsert(spot_node("b", 5))
        assert used(result) == {"a": 0, "b": 0}

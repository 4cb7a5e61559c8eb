"""What the cache knows beyond its shelves: nodes that are gone."""

from splitter.core.model import Key
from splitter.core.nodes import assess
from splitter.kube.cache import Cache

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def cache() -> Cache:
    """Make a cache that tells nobody."""

    def wake(key: Key, *, urgent: bool) -> None:
        del key, urgent

    return Cache(assess, wake)


def pod_on(node: str, name: str, version: int) -> dict[str, object]:
    """Return a pod as it is watched, bound to a node."""
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-05T09:00:00Z",
        },
        "spec": {"nodeName": node, "containers": []},
        "status": {},
    }


def node(name: str, version: int) -> dict[str, object]:
    """Return a Ready node."""
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-05T08:00:00Z",
    }
    return {"metadata": metadata, "spec": {}, "status": READY}


class TestNodesThatWentUnseen:
    """A node may go while splitter is down: no event tells of it afterwards."""

    def test_older_pods_of_an_unlisted_node_stand_on_a_vanished_one(self) -> None:
        """The pod was there before the nodes were listed, its node was not."""
        found = cache()
        found.nodes.replace([node("here", 5)], None, 20)
        found.pods.replace([pod_on("here", "a", 10), pod_on("gone", "b", 11)], None, 21)
        found.find_vanished()
        assert set(found.vanished) == {"gone"}

    def test_younger_pods_of_an_unlisted_node_wait_for_it(self) -> None:
        """A pod is often seen before its brand-new node: neither lost nor doomed."""
        found = cache()
        found.nodes.replace([], None, 20)
        found.pods.replace([pod_on("new", "a", 21)], None, 22)
        found.find_vanished()
        assert found.vanished == {}

    def test_a_node_that_comes_back_is_there(self) -> None:
        """Its name is no longer remembered as gone."""
        found = cache()
        found.nodes.replace([], None, 20)
        found.pods.replace([pod_on("gone", "a", 10)], None, 21)
        found.find_vanished()
        found.nodes.upsert(node("gone", 30))
        assert found.vanished == {}


class TestNamesUsedAgain:
    """Clouds give a new machine the name of one that is gone."""

    def test_the_successor_is_remembered_by_its_uid(self) -> None:
        """A pod bound before it was made stands on the one that is gone, and may be deleted."""
        found = cache()
        found.nodes.upsert(node("spot-a", 10))
        found.nodes.remove(node("spot-a", 11))
        later = node("spot-a", 12)
        later["metadata"] = {**later["metadata"], "uid": "uid-later"}  # type: ignore[dict-item]
        found.nodes.upsert(later)
        assert found.successors == {"spot-a": "uid-later"}

    def test_a_node_that_nobody_saw_before_succeeds_nobody(self) -> None:
        """Without the end of another one nothing is known about its name."""
        found = cache()
        found.nodes.upsert(node("spot-a", 10))
        assert found.successors == {}

"""What the cache knows beyond its shelves: nodes that are gone, and the room on those that are there."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kube.raw import deployment, owner, pod, replica_set
from splitter.core.model import PodView, Standing
from splitter.core.names import Key
from splitter.core.nodes import assess
from splitter.kube.cache import Cache
from splitter.kube.observe import Observer

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


def node(name: str, version: int) -> dict[str, Any]:
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
        found.nodes.replace(map(found.nodes.read, [node("here", 5)]), None, 20)
        found.pods.replace(map(found.pods.read, [pod_on("here", "a", 10), pod_on("gone", "b", 11)]), None, 21)
        found.find_vanished()
        assert set(found.vanished) == {"gone"}

    def test_younger_pods_of_an_unlisted_node_wait_for_it(self) -> None:
        """A pod is often seen before its brand-new node: neither lost nor doomed."""
        found = cache()
        found.nodes.replace([], None, 20)
        found.pods.replace(map(found.pods.read, [pod_on("new", "a", 21)]), None, 22)
        found.find_vanished()
        assert found.vanished == {}

    def test_a_node_that_comes_back_is_there(self) -> None:
        """Its name is no longer remembered as gone."""
        found = cache()
        found.nodes.replace([], None, 20)
        found.pods.replace(map(found.pods.read, [pod_on("gone", "a", 10)]), None, 21)
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
        later["metadata"] = {**later["metadata"], "uid": "uid-later"}
        found.nodes.upsert(later)
        assert found.successors == {"spot-a": "uid-later"}

    @staticmethod
    def seen(bound: str, *, spot: bool = True) -> PodView:
        """Return how a pod, bound at a time, is seen on a node that was made at 08:00; nobody saw another."""
        found = cache()
        found.nodes.upsert(spot_node("spot-a", 10) if spot else node("spot-a", 10))
        raw = pod_on("spot-a", "a", 9)
        conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}]
        raw["status"] = {"conditions": conditions}
        found.pods.upsert(raw)
        [record] = found.pods.values()
        return Observer(None, found)._pod(record, NOW)  # type: ignore[arg-type] # noqa: SLF001

    @pytest.mark.parametrize("spot", [False, True])
    def test_a_node_that_nobody_saw_before(self, *, spot: bool) -> None:
        """Its kubelet has read the pods of its name: they are believed, or their cover would never go."""
        view = self.seen("2026-01-05T07:59:59Z", spot=spot)
        assert (view.standing, view.vanished, view.successor) == (Standing.SOUND, False, "")

    def test_a_pod_of_this_one(self) -> None:
        """Bound in the same second or later, it stands on the node that is there."""
        view = self.seen("2026-01-05T08:00:00Z")
        assert (view.standing, view.vanished, view.successor) == (Standing.SOUND, False, "")


NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


def spot_node(name: str, version: int, ready: str = "True") -> dict[str, Any]:
    """Return a node of Karpenter's, Ready or not."""
    raw = node(name, version)
    labels = {"karpenter.sh/capacity-type": "spot"}
    conditions = [{"type": "Ready", "status": ready}]
    raw["metadata"] = {**raw["metadata"], "labels": labels}
    return {**raw, "status": {"conditions": conditions}}


def used(found: Cache) -> dict[str, int]:
    """Return the pods that are counted on each spot node with hope."""
    return {room.node.name: room.used["pods"] for room in found.spot_rooms(NOW)}


class TestRooms:
    """What is promised on the spot nodes that may be healthy."""

    def test_follows_the_pods(self) -> None:
        """Bound, moved (a name used again), finished or gone: the count of each node is that of now."""
        found = cache()
        found.nodes.replace(
            map(found.nodes.read, [spot_node("a", 1), spot_node("b", 2), node("on-demand", 3)]), None, 4
        )
        assert used(found) == {"a": 0, "b": 0}
        found.pods.upsert(pod_on("a", "one", 10))
        found.pods.upsert(pod_on("a", "two", 11))
        assert used(found) == {"a": 2, "b": 0}
        found.pods.upsert(pod_on("b", "two", 12))
        assert used(found) == {"a": 1, "b": 1}
        found.pods.upsert({**pod_on("b", "two", 13), "status": {"phase": "Succeeded"}})
        found.pods.remove(pod_on("a", "one", 14))
        assert used(found) == {"a": 0, "b": 0}

    def test_leaves_out_nodes_without_hope(self) -> None:
        """A node that is NotReady is not walked, and is again when it is back."""
        found = cache()
        found.nodes.replace(
            map(found.nodes.read, [spot_node("a", 1), spot_node("b", 2, ready="Unknown")]), None, 3
        )
        assert used(found) == {"a": 0}
        found.nodes.upsert(spot_node("b", 5))
        assert used(found) == {"a": 0, "b": 0}


class TestView:
    """When most of on-demand seems to be gone, it is our view that is broken."""

    def test_is_broken_while_most_on_demand_nodes_are_not_ready(self) -> None:
        """More than half of three or more; spot nodes do not count; looked at anew after each change."""
        found = cache()
        away = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
        seen = []
        found.nodes.replace(
            map(found.nodes.read, [{**node("a", 1), "status": away}, {**node("b", 2), "status": away}]),
            None,
            3,
        )
        seen.append(found.view_broken)
        found.nodes.upsert(node("c", 4))
        seen.append(found.view_broken)
        found.nodes.upsert(node("a", 5))
        seen.append(found.view_broken)
        for number in range(5):
            found.nodes.upsert(spot_node(f"spot-{number}", 6, ready="Unknown"))
        seen.append(found.view_broken)
        assert seen == [False, True, False, False]

    def test_wakes_all_that_it_held_when_it_is_whole_again(self) -> None:
        """They stand on other nodes than those that came back or went (found by chaos: a storm of nodes)."""
        woken: list[tuple[Key, bool]] = []
        found = Cache(assess, lambda key, *, urgent: woken.append((key, urgent)))
        web = deployment(labels={"splitter.io/split": "enabled"})
        found.sources.upsert(web)
        marks = {"splitter.io/split": "twin", "splitter.io/pool": "spot", "splitter.io/source": "web"}
        owners = [owner("Deployment", "web")]
        found.twins.upsert(deployment("web-spot", labels=marks, ownerReferences=owners))
        away = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
        for version, name in enumerate("abc", start=1):
            found.nodes.upsert({**node(name, version), "status": away})
        assert found.view_broken
        woken.clear()
        found.nodes.upsert(node("a", 4))
        assert (woken, found.view_broken) == ([], True)
        found.nodes.upsert(node("b", 5))
        assert woken == [(Key("Deployment", "shop", "web"), True)]


class TestStrangers:
    """Who an object says it belongs to counts within its own namespace only."""

    def woken(self) -> tuple[Cache, list[Key]]:
        """Return a cache with the Deployment shop/web and its ReplicaSet, and who is woken from now on."""
        keys: list[Key] = []
        found = Cache(assess, lambda key, *, urgent: keys.append(key) if not urgent else None)
        found.sources.upsert(deployment(labels={"splitter.io/split": "enabled"}))
        found.replica_sets.upsert(replica_set(version=2))
        keys.clear()
        return found, keys

    def test_pods_of_another_namespace(self) -> None:
        """A pod that names somebody's ReplicaSet by its UID is none of its pods, and wakes nobody."""
        found, keys = self.woken()
        found.pods.upsert(pod("fake", namespace="evil"))
        assert not keys
        assert found.pods.find("owner", ("evil", "uid-web-1"))
        assert not found.pods.find("owner", ("shop", "uid-web-1"))
        found.pods.upsert(pod("own"))
        assert keys == [Key("Deployment", "shop", "web")]

    def test_owners_that_nobody_is_called(self) -> None:
        """A ReplicaSet whose owner's name is a path is nobody's; the watch that tells of it goes on."""
        found, keys = self.woken()
        forged = [owner("Deployment", "../../shop/deployments/web")]
        found.replica_sets.upsert(replica_set("fake", namespace="evil", ownerReferences=forged))
        assert not keys
        assert found.workloads() == {Key("Deployment", "shop", "web")}

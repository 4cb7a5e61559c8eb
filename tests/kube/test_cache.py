"""What the cache knows beyond its indexers: nodes that are gone, and the room on those that are there."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube.cached import cache, pod_on
from kube.raw import deployment, node, owner, pod, replica_set, spot_node
from splitter.core.names import Key
from splitter.core.nodes.signals import assess
from splitter.core.replica import NodeStatus, Replica
from splitter.kube.cache import Cache
from splitter.kube.observe import Observer


class TestNodesThatWentUnseen:
    """A node may go while splitter is down: no event tells of it afterwards."""

    def test_older_pods_of_an_unlisted_node_stand_on_a_vanished_one(self) -> None:
        """The pod was there before the nodes were listed, its node was not."""
        result = cache()
        result.nodes.replace(map(result.nodes.read, [node("here", 5)]), None, 20)
        result.pods.replace(
            map(result.pods.read, [pod_on("here", "a", 10), pod_on("gone", "b", 11)]), None, 21
        )
        result.find_vanished()
        assert set(result.vanished) == {"gone"}

    def test_younger_pods_of_an_unlisted_node_wait_for_it(self) -> None:
        """A pod is often seen before its brand-new node: neither lost nor doomed."""
        result = cache()
        result.nodes.replace([], None, 20)
        result.pods.replace(map(result.pods.read, [pod_on("new", "a", 21)]), None, 22)
        result.find_vanished()
        assert result.vanished == {}

    def test_each_pod_says_what_its_own_node_was(self) -> None:
        """On one node stood pods of two tenants: whose is seen first decides nothing for the other."""
        result = cache()
        result.nodes.replace([], None, 100)
        pools = {"evil": "on-demand", "shop": "spot"}
        for namespace, pool in pools.items():
            name = f"web-{pool}"
            its_own: dict[str, Any] = {"namespace": namespace, "uid": f"uid-{namespace}"}
            labels = {"splitter.io/split": "twin", "splitter.io/pool": pool}
            result.twins.upsert(
                deployment(name, **its_own, labels=labels, ownerReferences=[owner("Deployment", "web")])
            )
            controller = {**owner("Deployment", name), "uid": f"uid-{namespace}"}
            its_own["uid"] = f"uid-rs-{namespace}"
            result.replica_sets.upsert(replica_set(**its_own, ownerReferences=[controller]))
            bound = pod(spec={"nodeName": "gone"}, namespace=namespace, uid=f"uid-pod-{namespace}")
            bound["metadata"]["ownerReferences"][0]["uid"] = its_own["uid"]
            result.pods.upsert(bound)
        result.find_vanished()
        observer = Observer(None, result)  # type: ignore[arg-type]
        seen = {
            record.namespace: observer._pod(record, NOW)  # noqa: SLF001
            for record in result.pods.values()
        }
        assert all(view.vanished for view in seen.values())
        assert {namespace: view.on_spot for namespace, view in seen.items()} == {"evil": False, "shop": True}

    def test_a_node_that_comes_back_is_there(self) -> None:
        """Its name is no longer remembered as gone."""
        result = cache()
        result.nodes.replace([], None, 20)
        result.pods.replace(map(result.pods.read, [pod_on("gone", "a", 10)]), None, 21)
        result.find_vanished()
        result.nodes.upsert(node("gone", 30))
        assert result.vanished == {}


class TestManyReplicaSets:
    async def test_no_more_are_looked_at(self) -> None:
        """Whoever may create them chooses how many there are: those with replicas count, and the newest."""
        result = cache()
        result.sources.upsert(deployment())
        result.replica_sets.upsert(replica_set("holds"))
        for number in range(300):
            result.replica_sets.upsert(replica_set(f"old-{number}", {"replicas": 0}))
        observed = await Observer(_Nothing(), result).observe(Key("Deployment", "shop", "web"), NOW)  # type: ignore[arg-type]
        assert len(observed.replica_sets) == 251
        assert "holds" in {one.name for one in observed.replica_sets}


class _Nothing:
    """An API server that has nothing."""

    async def find(self, _: object) -> None:
        """Find nothing."""

    async def pages(self, _: object) -> AsyncIterator[dict[str, Any]]:
        """Yield an empty list."""
        yield {"items": []}


class TestNamesUsedAgain:
    """Clouds give a new machine the name of one that is gone."""

    def test_the_successor_is_remembered_by_its_uid(self) -> None:
        """A pod bound before it was made stands on the one that is gone, and may be deleted."""
        result = cache()
        result.nodes.upsert(node("spot-a", 10))
        result.nodes.remove(node("spot-a", 11))
        later = node("spot-a", 12)
        later["metadata"] = {**later["metadata"], "uid": "uid-later"}
        result.nodes.upsert(later)
        assert {uid: state.uid for uid, state in result.predecessors.items()} == {"uid-later": "uid-spot-a"}

    @staticmethod
    def seen(bound: str, *, spot: bool = True) -> Replica:
        """Return how a pod, bound at a time, is seen on a node that was made at 08:00; nobody saw another."""
        result = cache()
        result.nodes.upsert(spot_node("spot-a", 10) if spot else node("spot-a", 10))
        raw = pod_on("spot-a", "a", 9)
        conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}]
        raw["status"] = {"conditions": conditions}
        result.pods.upsert(raw)
        [record] = result.pods.values()
        return Observer(None, result)._pod(record, NOW)  # type: ignore[arg-type] # noqa: SLF001

    @pytest.mark.parametrize("spot", [False, True])
    def test_a_node_that_nobody_saw_before(self, *, spot: bool) -> None:
        """Its kubelet has read the pods of its name: they are believed, or their cover would never go."""
        view = self.seen("2026-01-05T07:59:59Z", spot=spot)
        assert (view.node_status, view.vanished, view.successor) == (NodeStatus.SOUND, False, "")

    def test_a_pod_of_this_one(self) -> None:
        """Bound in the same second or later, it stands on the node that is there."""
        view = self.seen("2026-01-05T08:00:00Z")
        assert (view.node_status, view.vanished, view.successor) == (NodeStatus.SOUND, False, "")

    @pytest.mark.parametrize(("provider", "notice_s"), [("aws:///eu/i-1", 120.0), ("", 30.0)])
    def test_a_pod_tells_when_it_was_bound_and_how_long_a_notice_lasts(
        self, provider: str, notice_s: float
    ) -> None:
        """For what is learned of starts, while nothing is wrong with its node."""
        result = cache()
        result.nodes.upsert({**spot_node("spot-a", 10), "spec": {"providerID": provider}})
        raw = pod_on("spot-a", "a", 9)
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-05T08:00:00Z"}
        raw["status"] = {"conditions": [bound]}
        result.pods.upsert(raw)
        [record] = result.pods.values()
        view = Observer(None, result)._pod(record, NOW)  # type: ignore[arg-type] # noqa: SLF001
        assert view.bound_since == datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
        assert (view.usual_notice_s, view.notice_s) == (notice_s, None)


class TestNodesThatRegisterAnew:
    """`kubectl delete node`, then a kubelet that is started again: the same machine, or another one."""

    @staticmethod
    def seen(before: str, after: str, *, ready_at: str = "09:01:00", now_s: int = 5) -> Replica:
        """Return how a Ready pod is seen, so long after its node was there again, at 09:59:50."""
        result = cache()
        result.nodes.upsert(machine("od-1", 10, before))
        raw = pod_on("od-1", "db-0", 20)
        conditions = {"PodScheduled": "09:00:00", "Ready": ready_at}
        raw["status"] = {
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": f"2026-01-05T{at}Z"}
                for kind, at in conditions.items()
            ]
        }
        result.pods.upsert(raw)
        result.nodes.remove(machine("od-1", 30, before))
        again = machine("od-1", 31, after)
        again["metadata"] |= {"uid": "uid-again", "creationTimestamp": "2026-01-05T09:59:50Z"}
        result.nodes.upsert(again)
        [record] = result.pods.values()
        at = datetime(2026, 1, 5, 9, 59, 50, tzinfo=UTC) + timedelta(seconds=now_s)
        return Observer(None, result)._pod(record, at)  # type: ignore[arg-type] # noqa: SLF001

    def test_the_same_machine_has_run_its_pods_all_the_time(self) -> None:
        """Its kubelet was started again, not itself: they are Ready as they say."""
        view = self.seen("boot-1", "boot-1")
        assert (view.node_status, view.vanished, view.successor) == (NodeStatus.SOUND, False, "")

    @pytest.mark.parametrize(("before", "after"), [("boot-1", "boot-2"), ("", ""), ("boot-1", "")])
    def test_of_another_one_nothing_is_believed(self, before: str, after: str) -> None:
        """What the pod said last, it said on the one that is gone."""
        view = self.seen(before, after)
        assert (view.node_status, view.vanished, view.successor) == (NodeStatus.LOST, True, "uid-again")

    def test_it_is_lost_with_the_node_that_is_gone(self) -> None:
        """By its UID: that loss was charged when it went, and the name coming back is no second one."""
        assert self.seen("boot-1", "boot-2").node_uid == "uid-od-1"

    def test_but_what_was_said_since(self) -> None:
        """The kubelet that is there has started it."""
        view = self.seen("boot-1", "boot-2", ready_at="09:59:52")
        assert (view.node_status, view.vanished) == (NodeStatus.SOUND, False)

    def test_and_after_a_minute_everything(self) -> None:
        """A kubelet's clock may be behind: a pod that is there for good must not be disbelieved for ever."""
        assert self.seen("boot-1", "boot-2", now_s=61).node_status is NodeStatus.SOUND


class TestNodesThatWent:
    """Since when, and whether somebody had said so."""

    @pytest.mark.parametrize(("ready", "announced"), [("True", False), ("Unknown", True)])
    def test_their_pods(self, ready: str, *, announced: bool) -> None:
        """One that was not Ready had been given up before its object went."""
        result = cache()
        result.nodes.upsert(spot_node("spot-a", 10, ready))
        result.pods.upsert(pod_on("spot-a", "db-4", 20))
        result.nodes.remove(spot_node("spot-a", 30, ready))
        [record] = result.pods.values()
        observer = Observer(None, result)  # type: ignore[arg-type]
        first = observer._pod(record, NOW)  # noqa: SLF001
        later = observer._pod(record, NOW + timedelta(seconds=30))  # noqa: SLF001
        assert first.vanished
        assert first.vanished_since == later.vanished_since == (None if announced else NOW)


def machine(name: str, version: int, boot: str) -> dict[str, Any]:
    """Return a Ready node that says which machine it is and when that was started."""
    raw = node(name, version)
    return {**raw, "status": {**raw["status"], "nodeInfo": {"systemUUID": "machine", "bootID": boot}}}


NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


class TestView:
    """When most of on-demand seems to be gone, it is our view that is broken."""

    def test_is_broken_while_most_on_demand_nodes_are_not_ready(self) -> None:
        """More than half of three or more; spot nodes do not count; looked at anew after each change."""
        result = cache()
        away = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
        seen = []
        result.nodes.replace(
            map(result.nodes.read, [{**node("a", 1), "status": away}, {**node("b", 2), "status": away}]),
            None,
            3,
        )
        seen.append(result.view_broken)
        result.nodes.upsert(node("c", 4))
        seen.append(result.view_broken)
        result.nodes.upsert(node("a", 5))
        seen.append(result.view_broken)
        for number in range(5):
            result.nodes.upsert(spot_node(f"spot-{number}", 6, ready="Unknown"))
        seen.append(result.view_broken)
        assert seen == [False, True, False, False]

    def test_wakes_all_that_it_held_when_it_is_whole_again(self) -> None:
        """They stand on other nodes than those that came back or went (found by chaos: a storm of nodes)."""
        woken: list[tuple[Key, bool]] = []
        result = Cache(assess, lambda key, *, urgent: woken.append((key, urgent)))
        web = deployment(labels={"splitter.io/split": "enabled"})
        result.sources.upsert(web)
        marks = {"splitter.io/split": "twin", "splitter.io/pool": "spot", "splitter.io/source": "web"}
        owners = [owner("Deployment", "web")]
        result.twins.upsert(deployment("web-spot", labels=marks, ownerReferences=owners))
        away = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
        for version, name in enumerate("abc", start=1):
            result.nodes.upsert({**node(name, version), "status": away})
        assert result.view_broken
        woken.clear()
        result.nodes.upsert(node("a", 4))
        assert (woken, result.view_broken) == ([], True)
        result.nodes.upsert(node("b", 5))
        assert woken == [(Key("Deployment", "shop", "web"), True)]


class TestStrangers:
    """Who an object says it belongs to counts within its own namespace only."""

    def woken(self) -> tuple[Cache, list[Key]]:
        """Return a cache with the Deployment shop/web and its ReplicaSet, and who is woken from now on."""
        keys: list[Key] = []
        result = Cache(assess, lambda key, *, urgent: keys.append(key) if not urgent else None)
        result.sources.upsert(deployment(labels={"splitter.io/split": "enabled"}))
        result.replica_sets.upsert(replica_set(version=2))
        keys.clear()
        return result, keys

    def test_pods_of_another_namespace(self) -> None:
        """A pod that names somebody's ReplicaSet by its UID is none of its pods, and enqueues nobody."""
        result, keys = self.woken()
        result.pods.upsert(pod("fake", namespace="evil"))
        assert not keys
        assert result.pods.find("owner", ("evil", "uid-web-1"))
        assert not result.pods.find("owner", ("shop", "uid-web-1"))
        result.pods.upsert(pod("own"))
        assert keys == [Key("Deployment", "shop", "web")]

    def test_owners_that_nobody_is_called(self) -> None:
        """A ReplicaSet whose owner's name is a path is nobody's; the watch that tells of it goes on."""
        result, keys = self.woken()
        forged = [owner("Deployment", "../../shop/deployments/web")]
        result.replica_sets.upsert(replica_set("fake", namespace="evil", ownerReferences=forged))
        assert not keys
        assert result.workloads() == {Key("Deployment", "shop", "web")}

"""The guard: whoever drains evicts, and replacements come first; recorded from outside."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from e2e.support.guard import DRAIN, N, budget, keeps, split, uncordon, under
from lab.fixtures.controller import Controller
from lab.fixtures.database import BY_TWINS, Database
from lab.fixtures.shop import Shape, Shop
from lab.sandbox import ApiError, PatchKind
from lab.sandbox.fleet import Fleet
from world.sandbox import Process


def fail(shop: Shop, name: str) -> None:
    """Have a pod become unready, and stay so."""
    conditions = [{"type": one, "status": "False"} for one in ("Ready", "ContainersReady")]
    path = f"/api/v1/namespaces/{shop.namespace}/pods/{name}/status"
    shop.sandbox.api.patch(path, {"status": {"conditions": conditions}}, kind=PatchKind.STRATEGIC)


@pytest.fixture
def usable(fleet: Fleet, shop: Shop) -> Iterator[None]:
    """Have every node taken back after a test that drains."""
    yield
    for node in (*fleet.names("spot"), *fleet.names("on-demand")):
        uncordon(shop, node)


class TestDrain:
    """`kubectl drain`, which evicts all pods of a node at once."""

    @pytest.mark.usefixtures("usable")
    @pytest.mark.parametrize("evictions", ["one-at-a-time", "surge-first"])
    def test_beside_a_replica_that_is_broken(self, shop: Shop, evictions: str) -> None:
        """Each drain ends, after the replacements, and the Split names whom nobody waits for."""
        split(shop, **{"splitter.io/evictions": evictions})
        shop.until(lambda: keeps(shop) is not None, "the guard")
        spot = (pod for pod in shop.pods() if pod["metadata"]["labels"]["splitter.io/pool"] == "spot")
        broken = next(spot)["metadata"]["name"]
        fail(shop, broken)
        first, *others = [node for node in under(shop) if node.startswith("on-demand")]
        with shop.watch() as watched:
            shop.sandbox.kubectl("cordon", first)
            shop.until(lambda: keeps(shop) == N - 1, "the guard to keep one fewer")
            shop.until(lambda: f"for {broken} (NotReady)" in shop.status().get("guard", ""), "it to be named")
            for node in (first, *others):
                shop.sandbox.kubectl("drain", node, *DRAIN)
                uncordon(shop, node)
            assert watched.lowest() >= N - 1

    @pytest.mark.usefixtures("usable")
    @pytest.mark.parametrize("base", [0, 1])
    def test_a_single_replica(self, shop: Shop, base: int) -> None:
        """With `surge-first` its successor is ready before it goes, on spot and on on-demand."""
        shop.deploy(
            replicas=1,
            annotations={"splitter.io/on-demand-base": str(base), "splitter.io/evictions": "surge-first"},
        )
        shop.label()
        shop.wait_split(on_demand=base, spot=1 - base)
        shop.until(lambda: keeps(shop) == 1, "the guard")
        [node] = under(shop)
        with shop.watch() as watched:
            shop.sandbox.kubectl("drain", node, *DRAIN)
            shop.until(lambda: under(shop) != [node], "it to stand elsewhere")
            assert watched.lowest() >= 1

    @pytest.mark.usefixtures("usable")
    def test_while_nobody_leads(self, shop: Shop, controller: Process) -> None:
        """At rest it lets one eviction through at a time: a drain goes on, and ends."""
        split(shop)
        shop.until(lambda: keeps(shop) == N - 1, "the guard")
        controller.stop()
        try:
            with shop.watch() as watched:
                for node in under(shop):
                    shop.sandbox.kubectl("drain", node, *DRAIN)
                    uncordon(shop, node)
                assert watched.lowest() >= N - 1
        finally:
            controller.start()

    @pytest.mark.usefixtures("usable")
    @pytest.mark.parametrize(("evictions", "least"), [("one-at-a-time", N - 1), ("surge-first", N)])
    def test_each_node_in_turn(self, shop: Shop, evictions: str, least: int) -> None:
        """As in an upgrade of the cluster, on spot and on-demand: every drain ends, and few are missing."""
        split(shop, **{"splitter.io/evictions": evictions})
        rest = N - 1 if evictions == "one-at-a-time" else N
        shop.until(lambda: keeps(shop) == rest, "the guard")
        with shop.watch() as watched:
            for node in under(shop):
                shop.sandbox.kubectl("drain", node, *DRAIN)
                uncordon(shop, node)
                shop.wait_split(on_demand=2, spot=2)
            assert watched.lowest() >= least
        shop.until(lambda: keeps(shop) == rest, "the guard to be at rest")


def evict(shop: Shop, uids: set[str]) -> bool:
    """Evict all of these pods that are left, whatever the answers; return whether none is."""
    left = [pod["metadata"] for pod in shop.pods() if pod["metadata"]["uid"] in uids]
    for one in left:
        identity = {"metadata": {"name": one["name"], "namespace": shop.namespace}}
        with suppress(ApiError):  # 429: a budget refuses; 500: two select it; 404: it has gone
            shop.sandbox.api.create(
                f"/api/v1/namespaces/{shop.namespace}/pods/{one['name']}/eviction", identity
            )
    return not left


class TestEvictions:
    """Whoever evicts without a sign before, over and over, as a descheduler does."""

    @pytest.mark.parametrize("middle", ["nothing", "a budget of the user's"])
    def test_that_never_give_up(self, shop: Shop, middle: str) -> None:
        """One replica at a time is missing, also while another budget takes the place of splitter's."""
        split(shop)
        shop.until(lambda: keeps(shop) == N - 1, "the guard")
        before = shop.pod_uids()
        with shop.watch() as watched:
            shop.until(lambda: evict(shop, before) or len(before & shop.pod_uids()) < N, "the first to go")
            if middle != "nothing":
                shop.apply(budget("mine"))
            shop.until(lambda: evict(shop, before), "all to be evicted")
            shop.wait_split(on_demand=2, spot=2)
            assert watched.lowest() >= N - 1
        assert not before & shop.pod_uids()

    def test_wait_for_ever_where_all_have_to_stay(self, shop: Shop) -> None:
        """With `surge-first` and no sign, none goes through; what the user asks for ends it."""
        split(shop, **{"splitter.io/evictions": "surge-first"})
        shop.until(lambda: keeps(shop) == N, "the guard")
        before = shop.pod_uids()
        for _ in range(20):
            evict(shop, before)
        assert shop.pod_uids() == before
        shop.annotate(evictions="one-at-a-time")
        shop.until(lambda: evict(shop, before), "all to be evicted")


class TestUsers:
    """A budget of the user's wins."""

    def test_comes_and_goes(self, shop: Shop) -> None:
        """Ours is not there meanwhile; `explain` tells which one guards."""
        split(shop)
        shop.until(lambda: keeps(shop) == N - 1, "the guard")
        shop.apply(budget("mine"))
        shop.until(lambda: keeps(shop) is None, "the guard to yield")
        shop.until(lambda: "mine" in shop.status().get("guard", ""), "the status to name it")
        shop.kubectl("delete", "poddisruptionbudget", "mine")
        shop.until(lambda: keeps(shop) == N - 1, "the guard to come back")

    def test_goes_with_the_split(self, shop: Shop) -> None:
        """Given back, nothing of it is left."""
        split(shop)
        shop.until(lambda: keeps(shop) == N - 1, "the guard")
        shop.unlabel()
        shop.wait_given_back()
        shop.until(lambda: keeps(shop) is None, "the guard to go")

    def test_deleted_by_hand(self, shop: Shop) -> None:
        """It is made anew."""
        split(shop)
        shop.until(lambda: keeps(shop) == N - 1, "the guard")
        shop.kubectl("delete", "poddisruptionbudget", "web-guard")
        shop.until(lambda: keeps(shop) == N - 1, "the guard to be made anew")

    def test_follows_the_annotation(self, shop: Shop) -> None:
        """Of whoever wants none, and of whoever wants all to wait."""
        split(shop)
        shop.until(lambda: keeps(shop) == N - 1, "the guard")
        shop.annotate(evictions="unguarded")
        shop.until(lambda: keeps(shop) is None, "no guard")
        shop.annotate(evictions="surge-first")
        shop.until(lambda: keeps(shop) == N, "all to wait")

    def test_counts_right_afterwards(self, shop: Shop, controller: Controller) -> None:
        """Of two budgets that select a pod Kubernetes counts it for one: theirs would refuse for ever."""
        split(shop)
        shop.until(lambda: keeps(shop) == N - 1, "the guard")
        controller.stop()
        try:
            shop.apply(budget("mine"))
            shop.until(lambda: is_miscounted(shop), "a pod to be counted for the other one")
        finally:
            controller.start()
        shop.until(lambda: keeps(shop) is None, "the guard to yield")
        shop.until(lambda: healthy(shop, "mine") == N, "theirs to be counted anew")
        shop.until(lambda: not written_on(shop), "nothing to be left on the pods")


class TestQuorum:
    """The twins of a StatefulSet: one budget over the members of both, who are one majority."""

    @pytest.mark.usefixtures("usable")
    def test_a_node_of_each_pool(self, database: Database) -> None:
        """One member at a time is missing at most, so 3 of 5 always agree; every drain ends.

        The last member of the source does not go before the budget keeps those of the twins in its place.
        With `surge-first`: `world/test_drains.py`, whose clock has room for what `kubectl drain` waits.
        """
        shop = database.shop
        database.deploy(5, annotations=BY_TWINS, ready_after="1s")
        database.label()
        database.wait_split(on_demand=3, spot=2)
        assert keeps(shop, "db-sts-guard") == 4
        shop.until(lambda: "db-sts-guard keeps" in database.status().get("guard", ""), "the guard")
        nodes = {
            pod["metadata"]["labels"]["splitter.io/pool"]: pod["spec"]["nodeName"] for pod in shop.pods("db")
        }
        with database.watch() as watched:
            for node in nodes.values():
                shop.sandbox.kubectl("drain", node, *DRAIN)
                uncordon(shop, node)
                database.wait_split(on_demand=3, spot=2)
            assert watched.lowest() >= 4


def healthy(shop: Shop, name: str) -> int:
    """Return how many pods Kubernetes counts for a budget."""
    path = f"/apis/policy/v1/namespaces/{shop.namespace}/poddisruptionbudgets/{name}"
    return int(shop.sandbox.api.get(path)["status"]["currentHealthy"])


def is_miscounted(shop: Shop) -> bool:
    """Have a pod replaced, and return whether that was counted for splitter's budget alone in the end."""
    shop.kubectl("delete", "pod", shop.pods()[0]["metadata"]["name"])
    shop.until(lambda: shop.shape() == Shape(2, 2, N), "its successor")
    shop.until(lambda: N in {healthy(shop, "mine"), healthy(shop, "web-guard")}, "it to be counted")
    return healthy(shop, "mine") < N


def written_on(shop: Shop) -> set[str]:
    """Return the annotations of splitter's that pods have."""
    names = {name for pod in shop.pods() for name in pod["metadata"].get("annotations") or ()}
    return {name for name in names if name.startswith("splitter.io/")}

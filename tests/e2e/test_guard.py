"""The guard: whoever drains evicts, and replacements come first; recorded from outside."""

from collections.abc import Iterator

import pytest

from e2e.support.guard import DRAIN, N, budget, keeps, split, uncordon, under
from lab.fixtures.controller import Controller
from lab.fixtures.database import BY_TWINS, Database
from lab.fixtures.shop import Shape, Shop
from lab.sandbox.fleet import Fleet

pytestmark = pytest.mark.e2e


@pytest.fixture
def usable(fleet: Fleet, shop: Shop) -> Iterator[None]:
    """Have every node taken back after a test that drains."""
    yield
    for node in (*fleet.names("spot"), *fleet.names("on-demand")):
        uncordon(shop, node)


class TestDrain:
    """`kubectl drain`, which evicts all pods of a node at once."""

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


class TestUsers:
    """A budget of the user's wins."""

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

"""Those who stand beside a split workload and were made for the one before: they go on doing their work.

A PodDisruptionBudget and evictions, a Service's EndpointSlices, a ResourceQuota, a LimitRange; each with the
real controllers, judged by the recorded pods.
"""

from itertools import pairwise

import pytest

from e2e.support.causes import outlast_grace, quota, reported, wait_well
from lab.demo.watching import Watch
from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox.fleet import Fleet

REPLICAS, SURGE = 4, 2
ASKED = {"splitter.io/on-demand-base": "1"}
# The dead count for a quota until Kubernetes collects them, 40 to 60 s later; then a ReplicaSet that was
# refused tries again, each time after twice as long.
FREED_S = 240.0


@pytest.fixture
def split_shop(shop: Shop) -> Shop:
    """Return a namespace with `web` split into 1 + 3."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=REPLICAS - 1)
    return shop


def fullest(shop: Shop, pool: str) -> str:
    """Return the node of a pool that most of the workload's pods stand on."""
    nodes = [node for node in shop.nodes() if node.startswith(pool)]
    return max(nodes, key=nodes.count)


def all_pods(shop: Shop) -> int:
    """Count the pods of the namespace, whatever becomes of them."""
    return len(shop.sandbox.api.list(f"/api/v1/namespaces/{shop.namespace}/pods"))


class TestDisruptionBudget:
    """A budget made for the source counts the pods of both twins, and of nobody else."""

    @staticmethod
    def apply(shop: Shop, **spec: object) -> None:
        """Make a budget over all pods of `web`, and wait until it has been counted."""
        selector = {"matchLabels": {"app": "web"}}
        made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}
        shop.apply({**made, "spec": {"selector": selector, **spec}})
        shop.until(lambda: TestDisruptionBudget.status(shop).get("currentHealthy"), "the budget")

    @staticmethod
    def status(shop: Shop) -> JsonObject:
        """Return what the disruption controller counts."""
        path = f"/apis/policy/v1/namespaces/{shop.namespace}/poddisruptionbudgets/web"
        raw: JsonObject = shop.sandbox.api.get(path).get("status", {})
        return raw

    @staticmethod
    def allows_one(shop: Shop) -> bool:
        """Whether it expects N pods, and would let one of them go."""
        status = TestDisruptionBudget.status(shop)
        return (status["expectedPods"], status["disruptionsAllowed"]) == (REPLICAS, 1)

    def test_counts_as_before(self, shop: Shop) -> None:
        """It expects N pods before the split, while it is split, and after it.

        But for the moments in which its pods have no owner: it counts fewer then (docs/limits.md).
        """
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        self.apply(shop, maxUnavailable=1)
        budgets = f"/apis/policy/v1/namespaces/{shop.namespace}/poddisruptionbudgets"
        expected: list[int] = []
        with Watch(shop.sandbox.api, budgets, lambda _at, raw, _gone: expected.append(_expected(raw))):
            shop.label()
            shop.wait_split(on_demand=1, spot=3)
            shop.until(lambda: self.allows_one(shop), "the budget to expect N, and to allow one disruption")
            shop.unlabel()
            shop.wait_given_back()
            shop.until(lambda: self.allows_one(shop), "the budget to expect N again")
        assert max(expected) <= REPLICAS + SURGE, expected
        fewer = [before >= REPLICAS > after for before, after in pairwise(expected)]
        assert sum(fewer) <= 2, expected  # once on the way there, and once on the way back

    @pytest.mark.parametrize("pool", ["spot", "on-demand"])
    def test_drain(self, split_shop: Shop, fleet: Fleet, pool: str) -> None:
        """A node is drained under a budget that allows no disruption at all: others stand in before."""
        shop = split_shop
        self.apply(shop, minAvailable=REPLICAS)
        node = fullest(shop, pool)
        assert node in fleet.names()
        with shop.watch() as watched:
            shop.kubectl(
                "drain", node, "--ignore-daemonsets", "--force", "--timeout=90s", "--pod-selector=app=web"
            )
            assert node not in shop.nodes()
            shop.kubectl("uncordon", node)
            shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS
        assert watched.highest() <= REPLICAS + SURGE + REPLICAS - 1


def _expected(raw: JsonObject) -> int:
    return int(raw.get("status", {}).get("expectedPods", 0))


class TestQuota:
    """A quota without room for surge (that it stops a take-over is a test of causes)."""

    def test_rollout(self, split_shop: Shop) -> None:
        """A rollout waits for room, breaks nothing, and goes on when there is some."""
        shop = split_shop
        shop.until(lambda: all_pods(shop) == REPLICAS, "N pods")
        quota(shop, REPLICAS)
        with shop.watch() as watched:
            shop.set_image("web:2")
            reported(shop, "QuotaExceeded", "are refused by a quota")
            outlast_grace(shop)
            assert set(shop.images()) == {"web:1"}
            quota(shop, 20)
            shop.until(lambda: set(shop.images()) == {"web:2"}, "web:2 everywhere")
            wait_well(shop, on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS
        assert watched.highest_asked() <= REPLICAS + SURGE

    def test_loss(self, split_shop: Shop, fleet: Fleet) -> None:
        """Spot vanishes where N pods are all that is allowed: on-demand gets every place of the dead.

        No replica waits for spot in one of them; the return needs room for one more.
        """
        shop = split_shop
        shop.until(lambda: all_pods(shop) == REPLICAS, "N pods")
        quota(shop, REPLICAS)
        fleet.kill(fleet.names("spot"))
        shop.until(lambda: shop.shape().on_demand >= REPLICAS, "on-demand to hold all", FREED_S)
        fleet.restore(fleet.names("spot"))
        quota(shop, 20)
        wait_well(shop, on_demand=1, spot=3)

"""What is beside a split workload and was made for the one before goes on doing its work.

A PodDisruptionBudget and evictions, a ResourceQuota, a LimitRange; judged by the recorded pods.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise

import pytest

from e2e.support.causes import outlast_grace, quota, reported, wait_well
from lab.demo.watching import Watch
from lab.fixtures.shop import JsonObject, Shop, manifest
from lab.sandbox import ApiError
from lab.sandbox.fleet import Fleet
from lives.policies import changed, in_force
from world.admission import refusing
from world.kinds import PODS
from world.sandbox import InMemory

REPLICAS, SURGE = 4, 2
REPLACED_S = 2.0  # within which the pod of an eviction is replaced and up: it takes half a second to start
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

    def test_evictions_while_moving(self, shop: Shop, sandbox: InMemory) -> None:
        """What is missing for a moment is what evictions took: splitter's own moves take nothing besides.

        Right after a scale-down the budget itself expects fewer pods and still counts those that are about to
        end, so it may grant a second eviction before the pod of the first one is replaced.
        """
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        self.apply(shop, maxUnavailable=1)
        with shop.watch() as watched, evicting(shop, sandbox) as evicted:
            shop.label()
            shop.wait_split(on_demand=1, spot=3)
            shop.set_image("web:2")
            shop.until(lambda: set(shop.images()) == {"web:2"}, "web:2 everywhere")
            shop.unlabel()
            shop.wait_given_back()
        assert evicted
        together = max(sum(since <= at < since + REPLACED_S for at in evicted) for since in evicted)
        assert watched.lowest() >= REPLICAS - together


@contextmanager
def evicting(shop: Shop, sandbox: InMemory, most: int = 6) -> Iterator[list[float]]:
    """Have evictions asked for all the time, as a drain does; yields when each was granted."""
    done: list[float] = []

    def evict() -> None:
        for pod in shop.pods() if len(done) < most else ():
            path = f"/api/v1/namespaces/{shop.namespace}/pods/{pod['metadata']['name']}/eviction"
            with suppress(ApiError):  # the budget says no (429), or it is gone
                shop.sandbox.api.create(path, {"metadata": {"name": pod["metadata"]["name"]}})
                done.append(time.monotonic())
                return

    with sandbox.beside(evict):
        yield done


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


class TestLimitRange:
    """Defaults and limits are for pods: the twins' templates say what the source's says."""

    def test_defaults(self, shop: Shop) -> None:
        """What it adds to pods is no difference that splitter mends: no twin is written for it."""
        some = {"requests": {"cpu": "50m", "memory": "32Mi"}}
        bare = manifest("web", REPLICAS, annotations=ASKED)
        del bare["spec"]["template"]["spec"]["containers"][0]["resources"]

        def limited(pod: JsonObject) -> JsonObject:
            containers = [{**one, "resources": some} for one in pod["spec"]["containers"]]
            return {**pod, "spec": {**pod["spec"], "containers": containers}}

        with changed(shop, "pods", limited):
            shop.apply(bare)
            shop.wait_rolled_out()
            with shop.watch() as watched:
                shop.label()
                shop.wait_split(on_demand=1, spot=3)
                before = self.templates(shop)
                shop.scale(6)
                shop.wait_split(on_demand=1, spot=5)
        assert watched.lowest() >= REPLICAS
        assert self.templates(shop) == before
        assert [pod["spec"]["containers"][0]["resources"] for pod in shop.pods()] == [some] * 6

    def test_limits(self, shop: Shop) -> None:
        """A limit set later, which new pods exceed, stops a take-over at its first replica, in its words."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        base = 1 if shop.shape().on_demand != 1 else 2  # some replica has to move, wherever they landed
        shop.annotate(on_demand_base=str(base))
        words = 'requests: Invalid value: "100m": must be less than or equal to cpu limit of 50m'
        with shop.watch() as watched:
            with in_force(shop, refusing(words, verb="create", kind=PODS)):
                shop.label()
                reported(shop, "PodsRefused", "must be less than or equal to cpu limit of 50m")
                outlast_grace(shop)
                assert len(shop.pods()) == REPLICAS
            wait_well(shop, on_demand=base, spot=REPLICAS - base)
        assert watched.lowest() >= REPLICAS

    @staticmethod
    def templates(shop: Shop) -> list[JsonObject]:
        """Return the pod templates of both twins."""
        return [shop.deployment(f"web-{pool}")["spec"]["template"] for pool in ("on-demand", "spot")]

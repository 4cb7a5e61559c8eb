"""Those who stand beside a split workload and were made for the one before: they go on doing their work.

A PodDisruptionBudget and evictions, a Service's EndpointSlices, a ResourceQuota, a LimitRange; each with the
real controllers, judged by the recorded pods.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.support.causes import healthy, outlast_grace, reported, wait_well
from lab.demo.watching import Watch
from lab.fixtures.shop import JsonObject, Shop, manifest
from lab.sandbox.errors import SandboxError
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant

pytestmark = pytest.mark.e2e

REPLICAS, SURGE = 4, 2
REPLACED_S = 2.0  # within which the pod of an eviction is replaced and up: it takes half a second to start
ASKED = {"splitter.io/on-demand-base": "1"}


@pytest.fixture
def split_shop(shop: Shop) -> Shop:
    """Return a namespace with `web` split into 1 + 3."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=REPLICAS - 1)
    return shop


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

    def test_evictions_while_moving(self, shop: Shop) -> None:
        """What is missing for a moment is what evictions took: splitter's own moves take nothing besides.

        Right after a scale-down the budget itself expects fewer pods and still counts those that are about to
        end, so it may grant a second eviction before the pod of the first one is replaced.
        """
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        self.apply(shop, maxUnavailable=1)
        with shop.watch() as watched, evicting(shop) as evicted:
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
def evicting(shop: Shop, most: int = 6) -> Iterator[list[float]]:
    """Have somebody ask for evictions all the time, as a drain does; yields when each was granted."""
    done: list[float] = []
    ending = threading.Event()

    def evict() -> None:
        path = f"/api/v1/namespaces/{shop.namespace}/pods"
        while not ending.wait(0.2) and len(done) < most:
            for pod in shop.pods():
                name = pod["metadata"]["name"]
                body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
                try:
                    shop.sandbox.api.create(f"{path}/{name}/eviction", body)
                except SandboxError:  # the budget says no (429), or it is gone
                    continue
                done.append(time.monotonic())
                break

    thread = threading.Thread(target=evict, name="evicting", daemon=True)
    thread.start()
    try:
        yield done
    finally:
        ending.set()
        thread.join()


class TestEndpoints:
    """A Service made for the source finds the pods of all holders, at every moment."""

    @staticmethod
    @contextmanager
    def ready(shop: Shop) -> Iterator[list[int]]:
        """Yield how many endpoints were ready, at each change of the Service's EndpointSlices."""
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
        shop.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
        path = f"/apis/discovery.k8s.io/v1/namespaces/{shop.namespace}/endpointslices"
        collected: list[int] = []
        slices: dict[str, int] = {}

        def changed(_at: Instant, raw: JsonObject, deleted: bool) -> None:
            ready = [one for one in raw.get("endpoints") or [] if one["conditions"].get("ready")]
            slices[raw["metadata"]["name"]] = 0 if deleted else len(ready)
            if collected or sum(slices.values()) == REPLICAS:  # from the moment it is complete
                collected.append(sum(slices.values()))

        with Watch(shop.sandbox.api, path, changed):
            shop.until(lambda: collected, "the Service to have all endpoints")
            yield collected

    def test_planned_moves(self, shop: Shop) -> None:
        """Taken over, rolled, scaled and given back: never fewer than N endpoints."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        with self.ready(shop) as endpoints:
            shop.label()
            shop.wait_split(on_demand=1, spot=3)
            shop.set_image("web:2")
            shop.until(lambda: set(shop.images()) == {"web:2"}, "web:2 everywhere")
            shop.wait_split(on_demand=1, spot=3)
            shop.scale(6)
            shop.wait_split(on_demand=1, spot=5)
            shop.scale(REPLICAS)
            shop.wait_split(on_demand=1, spot=3)
            shop.unlabel()
            shop.wait_given_back()
        assert min(endpoints) >= REPLICAS
        assert max(endpoints) <= 6 + SURGE

    def test_spot_with_notice(self, split_shop: Shop, fleet: Fleet) -> None:
        """All spot nodes are announced to go, go, and come back: never fewer than N endpoints."""
        shop = split_shop
        with self.ready(shop) as endpoints:
            fleet.notice(fleet.names("spot"))
            shop.until(lambda: shop.shape().on_demand >= REPLICAS, "on-demand to hold all")
            shop.until(lambda: not shop.shape().spot, "the doomed replicas to be let go")
            fleet.kill(fleet.names("spot"))
            fleet.restore(fleet.names("spot"))
            shop.wait_split(on_demand=1, spot=3)
        assert min(endpoints) >= REPLICAS

    def test_spot_without_notice(self, split_shop: Shop, fleet: Fleet) -> None:
        """All spot nodes vanish: what stands on on-demand serves, the dead leave at once, the rest follow."""
        shop = split_shop
        with self.ready(shop) as endpoints:
            fleet.kill(fleet.names("spot"))
            shop.until(lambda: shop.shape().on_demand >= REPLICAS, "on-demand to hold all")
            shop.until(lambda: endpoints[-1] == REPLICAS, "all endpoints to be back")
            fleet.restore(fleet.names("spot"))
            shop.wait_split(on_demand=1, spot=3)
        assert min(endpoints) >= 1


class TestLimitRange:
    """Defaults and limits are for pods: the twins' templates say what the source's says."""

    @staticmethod
    def apply(shop: Shop, **limits: JsonObject) -> None:
        """Make a LimitRange for containers."""
        spec = {"limits": [{"type": "Container", **limits}]}
        made = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}}
        shop.apply({**made, "spec": spec})

    def test_defaults(self, shop: Shop) -> None:
        """What it adds to pods is no difference that splitter mends: no twin is written for it."""
        some = {"cpu": "50m", "memory": "32Mi"}
        self.apply(shop, default=some, defaultRequest=some)
        bare = manifest("web", REPLICAS, annotations=ASKED)
        del bare["spec"]["template"]["spec"]["containers"][0]["resources"]
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
        requests = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in shop.pods()]
        assert requests == [some] * 6

    def test_limits(self, shop: Shop) -> None:
        """A limit set later, which new pods exceed, stops a take-over at its first replica, in its words."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        base = 1 if shop.shape().on_demand != 1 else 2  # some replica has to move, wherever they landed
        shop.annotate(on_demand_base=str(base))
        self.apply(shop, max={"cpu": "50m"})
        with shop.watch() as watched:
            shop.label()
            reported(shop, "PodsRefused", "must be less than or equal to cpu limit of 50m")
            outlast_grace(shop)
            assert len(shop.pods()) == REPLICAS
            shop.kubectl("delete", "limitrange", "small")
            wait_well(shop, on_demand=base, spot=REPLICAS - base)
        assert watched.lowest() >= REPLICAS
        assert healthy(shop)[0] == "True"

    @staticmethod
    def templates(shop: Shop) -> list[JsonObject]:
        """Return the pod templates of both twins."""
        return [shop.deployment(f"web-{pool}")["spec"]["template"] for pool in ("on-demand", "spot")]

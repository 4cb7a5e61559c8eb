"""A HorizontalPodAutoscaler on the source: it asks for what the load needs, whatever moves.

On CPU the load is shared by the pods that serve (`world/metrics.py`), so each extra or lost pod changes every
pod's share; what must not change is the count that the autoscaler writes to the source. On a queue's length,
KEDA's way, it is the count alone that follows. A second autoscaler on a twin is nobody's wish, and is named.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from lab.demo.watching import ScaleLog, Watch
from lab.fixtures.metrics_api import A_LITTLE_LESS, TARGET_CPU_M, TARGET_PERCENT, WINDOW_S
from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant
from world.metrics import Metrics
from world.sandbox import InMemory

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 8, 2
FEWEST, MOST = 2, 14
# So long the autoscaler looks again, once a second, before "it wrote nothing" is said.
LOOKS_S = WINDOW_S + 5


@pytest.fixture
def metrics(sandbox: InMemory) -> Metrics:
    """Return the metrics of all pods, which the autoscaler asks for once a second."""
    sandbox.cluster.autoscalers.period_s = 1.0
    sandbox.cluster.metrics.window_s = 1
    return sandbox.cluster.metrics


class Autoscaled:
    """A workload with an autoscaler, its load, and every count that was written to it."""

    def __init__(self, shop: Shop, metrics: Metrics, log: ScaleLog) -> None:
        self._shop = shop
        self._metrics = metrics
        self._log = log

    @property
    def counts(self) -> list[int]:
        """Return the counts that were written to the source, oldest first."""
        return [write.after for write in self._log.writes() if write.name == "web"]

    def load(self, replicas: int) -> None:
        """Have as much traffic as so many replicas carry."""
        self._metrics.loads[self._shop.namespace] = int(replicas * TARGET_CPU_M * A_LITTLE_LESS)

    def outlast_looks(self) -> None:
        """Wait until the autoscaler has looked at the load of now several times, and can count."""
        began = Instant.now().monotonic_s
        self._shop.until(lambda: Instant.now().monotonic_s > began + LOOKS_S, "the autoscaler to look again")
        assert self.conditions()["ScalingActive"] == "True"

    def outlast_ended_pods(self) -> None:
        """Wait until no pod is ending, and the autoscaler has begun a look since.

        It asks for samples first and for pods later. A sample of a pod that is gone by then counts as one
        more replica (`len(metrics)` in Kubernetes' `replica_calculator.go`): in the moment of a loss, when
        one pod carries all load and the others are not yet there again, that is a step too far.
        """
        self._shop.until(lambda: not self._shop.has_terminating(), "no pod to be ending")
        namespace = self._shop.namespace
        before = self._metrics.looks[namespace]
        self._shop.until(lambda: self._metrics.looks[namespace] > before, "the autoscaler to look once more")

    def conditions(self) -> dict[str, str]:
        """Return what the autoscaler says about itself."""
        path = f"/apis/autoscaling/v2/namespaces/{self._shop.namespace}/horizontalpodautoscalers/web"
        raw = self._shop.sandbox.api.get(path)
        return {one["type"]: one["status"] for one in raw.get("status", {}).get("conditions", ())}


@pytest.fixture
def autoscaled(shop: Shop, metrics: Metrics) -> Iterator[Autoscaled]:
    """Yield `web`, not split, of as many replicas as its load needs, with an autoscaler that agrees."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    log = ScaleLog()
    with Watch(shop.sandbox.api, f"/apis/apps/v1/namespaces/{shop.namespace}/deployments", log.see):
        result = Autoscaled(shop, metrics, log)
        result.load(REPLICAS)
        shop.apply(autoscaler())
        shop.until(
            lambda: result.conditions().get("ScalingActive") == "True", "the autoscaler to see metrics"
        )
        yield result


CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": TARGET_PERCENT}},
}
# So many messages a replica are meant to wait in the queue.
MESSAGES = 10
QUEUE = {
    "type": "External",
    "external": {
        "metric": {"name": "queue"},
        "target": {"type": "AverageValue", "averageValue": str(MESSAGES)},
    },
}


def autoscaler(name: str = "web", metric: Mapping[str, object] = CPU) -> dict[str, object]:
    """Return an autoscaler of one Deployment that scales out at once, and in after its window."""
    out, in_ = ({"stabilizationWindowSeconds": seconds} for seconds in (0, WINDOW_S))
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": FEWEST,
            "maxReplicas": MOST,
            "metrics": [metric],
            "behavior": {"scaleUp": out, "scaleDown": in_},
        },
    }


@contextmanager
def unmoved(autoscaled: Autoscaled) -> Iterator[None]:
    """Claim that the autoscaler writes nothing meanwhile, though it looks."""
    before = autoscaled.counts
    yield
    autoscaled.outlast_looks()
    assert autoscaled.counts == before


class TestMoves:
    """Pods beside N, or missing for a while, are no reason to scale."""

    def test_taking_over_and_giving_back(self, shop: Shop, autoscaled: Autoscaled) -> None:
        """Up to N + surge pods share the load while every pod is replaced, twice; N stays."""
        with unmoved(autoscaled), shop.watch() as watched:
            shop.label()
            shop.wait_split(on_demand=1, spot=REPLICAS - 1)
            shop.unlabel()
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert REPLICAS < watched.highest() <= REPLICAS + SURGE

    def test_spot_is_lost_and_returns(self, shop: Shop, autoscaled: Autoscaled, fleet: Fleet) -> None:
        """One pod carries the load of eight, then cover and returning spot share it; N stays all the time."""
        shop.label()
        shop.wait_split(on_demand=1, spot=REPLICAS - 1)
        autoscaled.outlast_ended_pods()
        with unmoved(autoscaled):
            fleet.kill(fleet.names("spot"))
            shop.until(lambda: shop.shape().on_demand >= REPLICAS, "on-demand to hold all")
        with unmoved(autoscaled), shop.watch() as watched:
            fleet.restore(fleet.names("spot"))
            shop.wait_split(on_demand=1, spot=REPLICAS - 1)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() > REPLICAS


class TestLoad:
    """What the load needs is what the source asks for: in one step, and never a step too far."""

    def test_while_split(self, shop: Shop, autoscaled: Autoscaled) -> None:
        """More load, more replicas on spot; less load, fewer; and nobody is missing meanwhile."""
        shop.label()
        shop.wait_split(on_demand=1, spot=REPLICAS - 1)
        # Of a pod that has just become ready it takes no sample yet, and counts it as idle.
        autoscaled.outlast_looks()
        with shop.watch() as watched:
            autoscaled.load(12)
            shop.wait_split(on_demand=1, spot=11)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= 12 + SURGE
        with shop.watch() as watched:
            autoscaled.load(4)
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= 4
        autoscaled.outlast_looks()
        assert autoscaled.counts == [12, 4]

    def test_while_spot_is_lost(self, shop: Shop, autoscaled: Autoscaled, fleet: Fleet) -> None:
        """During an outage it scales out on on-demand, and in again while spot returns.

        The replica that stays asked for of spot is one more pod to the autoscaler, which uses nothing yet: a
        load of 9.4 on 8 replicas is 1.18 x 8 / 9 = 1.04 of the target, within its tolerance of 10 %.
        On the way in it takes each replica that it has no sample of yet, which has just come back on spot,
        for a busy one: so it comes in by steps, as it does with any rollout.
        """
        shop.label()
        shop.wait_split(on_demand=1, spot=REPLICAS - 1)
        autoscaled.outlast_ended_pods()
        fleet.kill(fleet.names("spot"))
        shop.until(lambda: shop.shape().on_demand >= REPLICAS, "on-demand to hold all")
        assert autoscaled.counts == []
        with unmoved(autoscaled):
            autoscaled.load(10)
        with shop.watch() as watched:
            autoscaled.load(12)
            shop.until(lambda: shop.shape().on_demand >= 12, "on-demand to hold all of a higher load")
            assert watched.lowest() >= REPLICAS
        with shop.watch() as watched:
            fleet.restore(fleet.names("spot"))
            shop.until(lambda: shop.shape().spot, "the first replica to return")
            autoscaled.load(6)
            shop.wait_split(on_demand=1, spot=5)
            assert watched.lowest() >= 6
        autoscaled.outlast_looks()
        assert (autoscaled.counts[0], autoscaled.counts[-1]) == (12, 6)
        assert autoscaled.counts == sorted(autoscaled.counts, reverse=True)


class TestQueue:
    """An average of an external metric is divided by `status.replicas`, which is 0 while split."""

    @pytest.fixture
    def queued(self, shop: Shop, metrics: Metrics) -> Iterator[Autoscaled]:
        """Yield `web`, not split, with an autoscaler on a queue that is as long as its replicas like it."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        metrics.queues[shop.namespace] = REPLICAS * MESSAGES
        log = ScaleLog()
        with Watch(shop.sandbox.api, f"/apis/apps/v1/namespaces/{shop.namespace}/deployments", log.see):
            result = Autoscaled(shop, metrics, log)
            shop.apply(autoscaler(metric=QUEUE))
            shop.until(lambda: result.conditions().get("ScalingActive") == "True", "the autoscaler to look")
            yield result

    def test_asks_for_what_the_queue_needs(
        self, shop: Shop, queued: Autoscaled, metrics: Metrics, fleet: Fleet
    ) -> None:
        """Through take-over, outage, return and giving back it writes what the queue's length says, once."""
        with unmoved(queued), shop.watch() as watched:
            shop.label()
            shop.wait_split(on_demand=1, spot=REPLICAS - 1)
            assert watched.lowest() >= REPLICAS
        shop.reported("AutoscalerWithoutTolerance", "HorizontalPodAutoscaler/web")
        with shop.watch() as watched:
            metrics.queues[shop.namespace] = 12 * MESSAGES
            shop.wait_split(on_demand=1, spot=11)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= 12 + SURGE
        with unmoved(queued):
            fleet.kill(fleet.names("spot"))
            shop.until(lambda: shop.shape().on_demand >= 12, "on-demand to hold all")
        metrics.queues[shop.namespace] = 4 * MESSAGES
        shop.until(lambda: queued.counts == [12, 4], "the autoscaler to scale in during the outage")
        fleet.restore(fleet.names("spot"))
        shop.wait_split(on_demand=1, spot=3)
        with unmoved(queued):
            shop.unlabel()
            shop.wait_given_back()
        assert queued.counts == [12, 4]

    def test_follows_each_step_without_tolerance(
        self, shop: Shop, queued: Autoscaled, metrics: Metrics
    ) -> None:
        """A queue 5 % too long is left alone before the split, and costs one replica while it is split."""
        with unmoved(queued):
            metrics.queues[shop.namespace] = REPLICAS * MESSAGES + 4
        shop.label()
        shop.wait_split(on_demand=1, spot=REPLICAS)
        assert queued.counts == [REPLICAS + 1]


class TestSecondAutoscaler:
    """Two autoscalers whose pods overlap disable each other."""

    def test_on_a_twin(self, shop: Shop, autoscaled: Autoscaled) -> None:
        """It is named while both are dead; deleted, the one on the source scales again."""
        # Aimed at the twin before it is Steady: then splitter looks around, and again only minutes later. It
        # is not while it is frozen, since the scheduler has spread its pods over both pools.
        shop.annotate(freeze="true")
        shop.label()
        shop.says("Frozen")
        shop.apply(autoscaler("web-spot"))
        shop.annotate(freeze="false")
        shop.wait_split(on_demand=1, spot=REPLICAS - 1)
        shop.until(lambda: autoscaled.conditions().get("ScalingActive") == "False", "two to be too many")
        shop.reported("AutoscalerOnTwin", "HorizontalPodAutoscaler/web-spot")
        with shop.watch() as watched:
            shop.kubectl("delete", "hpa", "web-spot")
            autoscaled.load(10)
            shop.wait_split(on_demand=1, spot=9)
            assert watched.lowest() >= REPLICAS
        assert autoscaled.counts == [10]

"""A HorizontalPodAutoscaler on the source: it asks for what the load needs, whatever moves.

On CPU the load is shared by the pods that serve (`world/metrics.py`), so each extra or lost pod changes every
pod's share; what must not change is the count that the autoscaler writes to the source. On a queue's length,
KEDA's way, it is the count alone that follows. A second autoscaler on a twin is nobody's wish, and is named.
"""

from collections.abc import Iterator

import pytest

from e2e.support.autoscaled import (
    CPU,
    MESSAGES,
    QUEUE,
    REPLICAS,
    SURGE,
    Autoscaled,
    Measured,
    autoscaler,
    autoscaling,
    unmoved,
)
from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet
from world.metrics import Metrics
from world.sandbox import InMemory


class World:
    """The metrics of all pods, as tests of a control plane set them."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def load(self, namespace: str, cpu_m: int) -> None:
        """Have the traffic of a namespace cost so many thousandths of a CPU from now on."""
        self._metrics.loads[namespace] = cpu_m

    def queue(self, namespace: str, length: int) -> None:
        """Have so many messages wait in a namespace's queue from now on."""
        self._metrics.queues[namespace] = length

    def asked(self, namespace: str) -> int:
        """Return how often its pods' samples were asked for."""
        return self._metrics.looks[namespace]


@pytest.fixture
def metrics(sandbox: InMemory) -> World:
    """Return the metrics of all pods, which the autoscaler asks for once a second."""
    sandbox.cluster.autoscalers.period_s = 1.0
    sandbox.cluster.metrics.window_s = 1
    return World(sandbox.cluster.metrics)


@pytest.fixture
def autoscaled(shop: Shop, metrics: Measured) -> Iterator[Autoscaled]:
    """Yield `web`, not split, with an autoscaler on its CPU."""
    with autoscaling(shop, metrics, CPU) as result:
        yield result


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
    def queued(self, shop: Shop, metrics: Measured) -> Iterator[Autoscaled]:
        """Yield `web` with an autoscaler on a queue that is as long as its replicas like it."""
        with autoscaling(shop, metrics, QUEUE) as result:
            yield result

    def test_asks_for_what_the_queue_needs(
        self, shop: Shop, queued: Autoscaled, metrics: World, fleet: Fleet
    ) -> None:
        """Through take-over, outage, return and giving back it writes what the queue's length says, once."""
        with unmoved(queued), shop.watch() as watched:
            shop.label()
            shop.wait_split(on_demand=1, spot=REPLICAS - 1)
            assert watched.lowest() >= REPLICAS
        shop.reported("AutoscalerWithoutTolerance", "HorizontalPodAutoscaler/web")
        with shop.watch() as watched:
            metrics.queue(shop.namespace, 12 * MESSAGES)
            shop.wait_split(on_demand=1, spot=11)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= 12 + SURGE
        with unmoved(queued):
            fleet.kill(fleet.names("spot"))
            shop.until(lambda: shop.shape().on_demand >= 12, "on-demand to hold all")
        metrics.queue(shop.namespace, 4 * MESSAGES)
        shop.until(lambda: queued.counts == [12, 4], "the autoscaler to scale in during the outage")
        fleet.restore(fleet.names("spot"))
        shop.wait_split(on_demand=1, spot=3)
        with unmoved(queued):
            shop.unlabel()
            shop.wait_given_back()
        assert queued.counts == [12, 4]

    def test_follows_each_step_without_tolerance(
        self, shop: Shop, queued: Autoscaled, metrics: World
    ) -> None:
        """A queue 5 % too long is left alone before the split, and costs one replica while it is split."""
        with unmoved(queued):
            metrics.queue(shop.namespace, REPLICAS * MESSAGES + 4)
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

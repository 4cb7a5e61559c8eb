"""A HorizontalPodAutoscaler on the source, the real one: it asks for what the load needs, whatever moves.

On CPU the load is shared by the pods that serve (`metrics_api.py`), so each extra or lost pod changes every
pod's share; what must not change is the count that the autoscaler writes to the source. On a queue's length,
KEDA's way, it is the count alone that follows. More is played in memory (`lives/test_autoscaler.py`).
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
    autoscaling,
    unmoved,
)
from lab.fixtures.metrics_api import MetricsApi
from lab.fixtures.shop import Shop
from lab.sandbox import Sandbox

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def metrics(sandbox: Sandbox) -> Iterator[MetricsApi]:
    """Yield the metrics of all pods."""
    with MetricsApi(sandbox) as serving:
        yield serving


@pytest.fixture
def autoscaled(shop: Shop, metrics: Measured) -> Iterator[Autoscaled]:
    """Yield `web`, not split, with an autoscaler on its CPU."""
    with autoscaling(shop, metrics, CPU) as result:
        yield result


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


class TestQueue:
    """An average of an external metric is divided by `status.replicas`, which is 0 while split."""

    @pytest.fixture
    def queued(self, shop: Shop, metrics: Measured) -> Iterator[Autoscaled]:
        """Yield `web` with an autoscaler on a queue that is as long as its replicas like it."""
        with autoscaling(shop, metrics, QUEUE) as result:
            yield result

    def test_follows_each_step_without_tolerance(
        self, shop: Shop, queued: Autoscaled, metrics: MetricsApi
    ) -> None:
        """A queue 5 % too long is left alone before the split, and costs one replica while it is split."""
        with unmoved(queued):
            metrics.queue(shop.namespace, REPLICAS * MESSAGES + 4)
        shop.label()
        shop.wait_split(on_demand=1, spot=REPLICAS)
        assert queued.counts == [REPLICAS + 1]

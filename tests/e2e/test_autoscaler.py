"""A HorizontalPodAutoscaler on the source, the real one: it asks for what the load needs, whatever moves.

On CPU the load is shared by the pods that serve (`metrics_api.py`), so each extra or lost pod changes every
pod's share; what must not change is the count that the autoscaler writes to the source. On a queue's length,
KEDA's way, it is the count alone that follows. More is played in memory (`lives/test_autoscaler.py`).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from lab.demo.watching import ScaleLog, Watch
from lab.fixtures.metrics_api import A_LITTLE_LESS, TARGET_CPU_M, TARGET_PERCENT, WINDOW_S, MetricsApi
from lab.fixtures.shop import Shop
from lab.sandbox import Sandbox
from lab.sandbox.instants import Instant

pytestmark = pytest.mark.e2e

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 8, 2
FEWEST, MOST = 2, 14
# So long the autoscaler looks again, once a second, before "it wrote nothing" is said.
LOOKS_S = WINDOW_S + 5


@pytest.fixture(scope="module")
def metrics(sandbox: Sandbox) -> Iterator[MetricsApi]:
    """Yield the metrics of all pods."""
    with MetricsApi(sandbox) as serving:
        yield serving


class Autoscaled:
    """A workload with an autoscaler, its load, and every count that was written to it."""

    def __init__(self, shop: Shop, metrics: MetricsApi, log: ScaleLog) -> None:
        self._shop = shop
        self._metrics = metrics
        self._log = log

    @property
    def counts(self) -> list[int]:
        """Return the counts that were written to the source, oldest first."""
        return [write.after for write in self._log.writes() if write.name == "web"]

    def load(self, replicas: int) -> None:
        """Have as much traffic as so many replicas carry."""
        self._metrics.load(self._shop.namespace, int(replicas * TARGET_CPU_M * A_LITTLE_LESS))

    def outlast_looks(self) -> None:
        """Wait until the autoscaler has looked at the load of now several times, and can count."""
        began = Instant.now().monotonic_s
        self._shop.until(lambda: Instant.now().monotonic_s > began + LOOKS_S, "the autoscaler to look again")
        # A single look may get no answer in time where the machine is busy: then the next one counts.
        self._shop.until(lambda: self.conditions()["ScalingActive"] == "True", "the autoscaler to count")

    def conditions(self) -> dict[str, str]:
        """Return what the autoscaler says about itself."""
        path = f"/apis/autoscaling/v2/namespaces/{self._shop.namespace}/horizontalpodautoscalers/web"
        raw = self._shop.sandbox.api.get(path)
        return {one["type"]: one["status"] for one in raw.get("status", {}).get("conditions", ())}


@pytest.fixture
def autoscaled(shop: Shop, metrics: MetricsApi) -> Iterator[Autoscaled]:
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
    def queued(self, shop: Shop, metrics: MetricsApi) -> Iterator[Autoscaled]:
        """Yield `web`, not split, with an autoscaler on a queue that is as long as its replicas like it."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        metrics.queue(shop.namespace, REPLICAS * MESSAGES)
        log = ScaleLog()
        with Watch(shop.sandbox.api, f"/apis/apps/v1/namespaces/{shop.namespace}/deployments", log.see):
            result = Autoscaled(shop, metrics, log)
            shop.apply(autoscaler(metric=QUEUE))
            shop.until(lambda: result.conditions().get("ScalingActive") == "True", "the autoscaler to look")
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

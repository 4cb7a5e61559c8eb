"""A workload with a HorizontalPodAutoscaler, its load, and every count that was written to it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from lab.demo.watching import ScaleLog, Watch
from lab.fixtures.metrics_api import A_LITTLE_LESS, TARGET_CPU_M, TARGET_PERCENT, WINDOW_S
from lab.fixtures.shop import Shop
from lab.sandbox.instants import Instant

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 8, 2
FEWEST, MOST = 2, 14
# So long the autoscaler looks again, once a second, before "it wrote nothing" is said.
LOOKS_S = WINDOW_S + 5


class Measured(Protocol):
    """What the autoscaler asks: as `lab.fixtures.metrics_api`."""

    def load(self, namespace: str, cpu_m: int) -> None:
        """Have the traffic of a namespace cost so many thousandths of a CPU from now on."""

    def queue(self, namespace: str, length: int) -> None:
        """Have so many messages wait in a namespace's queue from now on."""

    def asked(self, namespace: str) -> int:
        """Return how often somebody began to ask what a namespace's pods use."""


class Autoscaled:
    """A workload with an autoscaler, its load, and every count that was written to it."""

    def __init__(self, shop: Shop, metrics: Measured, log: ScaleLog) -> None:
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

    def outlast_ended_pods(self) -> None:
        """Wait until no pod is ending, and the autoscaler has begun a look since.

        It asks for samples first and for pods later. A sample of a pod that is gone by then counts as one
        more replica (`len(metrics)` in Kubernetes' `replica_calculator.go`): in the moment of a loss, when
        one pod carries all load and the others are not yet there again, that is a step too far.
        """
        self._shop.until(lambda: not self._shop.has_terminating(), "no pod to be ending")
        namespace = self._shop.namespace
        before = self._metrics.asked(namespace)
        self._shop.until(lambda: self._metrics.asked(namespace) > before, "the autoscaler to look once more")

    def conditions(self) -> dict[str, str]:
        """Return what the autoscaler says about itself."""
        path = f"/apis/autoscaling/v2/namespaces/{self._shop.namespace}/horizontalpodautoscalers/web"
        raw = self._shop.sandbox.api.get(path)
        return {one["type"]: one["status"] for one in raw.get("status", {}).get("conditions", ())}


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
def autoscaling(shop: Shop, metrics: Measured, metric: Mapping[str, object]) -> Iterator[Autoscaled]:
    """Yield `web`, not split, of as many replicas as its metric asks for, with an autoscaler that agrees."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    log = ScaleLog()
    with Watch(shop.sandbox.api, f"/apis/apps/v1/namespaces/{shop.namespace}/deployments", log.see):
        result = Autoscaled(shop, metrics, log)
        result.load(REPLICAS)
        metrics.queue(shop.namespace, REPLICAS * MESSAGES)
        shop.apply(autoscaler(metric=metric))
        shop.until(
            lambda: result.conditions().get("ScalingActive") == "True", "the autoscaler to see metrics"
        )
        yield result


@contextmanager
def unmoved(autoscaled: Autoscaled) -> Iterator[None]:
    """Claim that the autoscaler writes nothing meanwhile, though it looks."""
    before = autoscaled.counts
    yield
    autoscaled.outlast_looks()
    assert autoscaled.counts == before

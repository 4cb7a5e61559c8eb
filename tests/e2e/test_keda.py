"""KEDA, built from its own module, scales a split workload between 0 and many through its autoscaler.

`make test-neighbours PYTEST="-s tests/e2e/test_keda.py"` also prints how long each step took and what was
missing meanwhile: figures for docs/how-to/keda.md.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab.demo.watching import ScaleLog, Watch
from lab.fixtures.keda import COOLS_DOWN_S, MOST, PAUSED_REPLICAS, SCALED_OBJECTS, Queue, keda, scaled_object
from lab.fixtures.shop import Shop, Watched
from lab.sandbox import Between, Instant, Sandbox, upstream
from lab.sandbox.fleet import Fleet

pytestmark = pytest.mark.beside

REPLICAS, SURGE = 8, 2
# An autoscaler adds 4 replicas, or as many as there are, in 15 s.
BY_STEPS_S = 120.0
# How long KEDA and its autoscaler look on, once a second, before a test claims that they wrote nothing.
LOOKS_S = COOLS_DOWN_S + 5


@pytest.fixture(scope="module")
def queue(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """Yield the queue that KEDA asks; it is empty in each new namespace."""
    files = upstream.built(upstream.KEDA, print)
    with Queue() as serving, keda(sandbox, files, tmp_path_factory.mktemp("keda")):
        yield serving


class Scaled:
    """`web` under a ScaledObject, and every count that was written to it."""

    def __init__(self, shop: Shop, queue: Queue, log: ScaleLog) -> None:
        self.shop = shop
        self._queue = queue
        self._log = log
        self._path = SCALED_OBJECTS.format(shop.namespace)

    @property
    def counts(self) -> list[int]:
        """Return the counts that were written to the source, oldest first."""
        return [write.after for write in self._log.writes() if write.name == "web"]

    def needs(self, replicas: float) -> Instant:
        """Fill the queue with the messages of this many replicas; return the moment right before."""
        began = Instant.now()
        self._queue.put(self.shop.namespace, replicas)
        return began

    def annotate(self, **annotations: str | None) -> None:
        """Annotate the ScaledObject."""
        self.shop.sandbox.api.patch(f"{self._path}/web", {"metadata": {"annotations": annotations}})

    def conditions(self) -> dict[str, str]:
        """Return what KEDA says of the ScaledObject."""
        return self._conditions(f"{self._path}/web")

    def autoscaler(self, name: str = "web") -> dict[str, str]:
        """Return what Kubernetes says of the autoscaler that KEDA made for a ScaledObject."""
        path = f"/apis/autoscaling/v2/namespaces/{self.shop.namespace}/horizontalpodautoscalers"
        return self._conditions(f"{path}/keda-hpa-{name}")

    def _conditions(self, path: str) -> dict[str, str]:
        raw = self.shop.sandbox.api.get(path)
        return {one["type"]: one["status"] for one in raw.get("status", {}).get("conditions", ())}

    def outlast_looks(self) -> None:
        """Wait until KEDA and its autoscaler have looked several times."""
        began = Instant.now().monotonic_s
        self.shop.until(lambda: Instant.now().monotonic_s > began + LOOKS_S, "KEDA to look again")

    def until_serving(self, replicas: int, watched: Watched) -> Instant:
        """Wait until this many replicas are available, in either pool, and return the moment."""
        self.shop.until(
            lambda: watched.timeline.available.at(Instant.now()) == replicas,
            f"{replicas} replicas to serve",
            BY_STEPS_S,
        )
        return Instant.now()


@pytest.fixture
def scaled(shop: Shop, queue: Queue) -> Iterator[Scaled]:
    """Yield `web`, of 0 replicas and split, under a ScaledObject whose queue is empty."""
    shop.deploy(replicas=0, surge=SURGE)
    log = ScaleLog()
    with Watch(shop.sandbox.api, f"/apis/apps/v1/namespaces/{shop.namespace}/deployments", log.see):
        result = Scaled(shop, queue, log)
        shop.apply(scaled_object(queue, shop.namespace))
        shop.until(lambda: result.conditions()["Ready"] == "True", "KEDA to take the ScaledObject")
        shop.label()
        shop.wait_steady()
        yield result
        shop.kubectl("delete", "scaledobject", "web")


@contextmanager
def unmoved(scaled: Scaled) -> Iterator[None]:
    """Claim that nothing is written to the source meanwhile, though KEDA looks."""
    before = scaled.counts
    yield
    scaled.outlast_looks()
    assert scaled.counts == before


def tell(what: str) -> None:
    """Print a figure."""
    sys.stdout.write(f"\n{what}\n")


def seconds(began: Instant, ended: Instant | None = None) -> float:
    """Return how long it is from one moment to another, or to now."""
    return (ended or Instant.now()).monotonic_s - began.monotonic_s


def missing(watched: Watched, replicas: int, began: Instant) -> str:
    """Return in words how many of these replicas were missing since a moment."""
    stretches = list(watched.timeline.available.stretches(Between(began, Instant.now())))
    lost_s = sum((until - since) * max(0, replicas - value) for since, until, value in stretches)
    short_s = sum(until - since for since, until, value in stretches if value < replicas)
    return f"{lost_s:.1f} replica-seconds lost, fewer than {replicas} for {short_s:.1f} s"


def test_from_zero_to_many_and_back(scaled: Scaled, shop: Shop) -> None:
    """KEDA activates, its autoscaler scales out and in, KEDA deactivates; the twins follow each count."""
    shop.annotate(on_demand_base="1")
    with shop.watch() as watched:
        began = scaled.needs(1)
        first = scaled.until_serving(1, watched)
        shop.wait_split(on_demand=1, spot=0)
        tell(f"0 to 1: {seconds(began, first):.1f} s")
        began = scaled.needs(REPLICAS)
        shop.wait_split(on_demand=1, spot=REPLICAS - 1, deadline_s=BY_STEPS_S)
        tell(f"1 to {REPLICAS}: {seconds(began):.1f} s")
        shop.reported("AutoscalerWithoutTolerance", "HorizontalPodAutoscaler/keda-hpa-web")
        assert watched.lowest(first) >= 1
        in_ = scaled.needs(4)
        shop.wait_split(on_demand=1, spot=3, deadline_s=BY_STEPS_S)
        tell(f"{REPLICAS} to 4: {seconds(in_):.1f} s")
        assert watched.lowest(in_) >= 4
        assert watched.highest() <= REPLICAS + SURGE
        began = scaled.needs(0)
        shop.until(lambda: not shop.pods(), "no replica to be left", BY_STEPS_S)
        tell(f"4 to 0: {seconds(began):.1f} s, with a cool-down of {COOLS_DOWN_S} s")
        assert shop.twins() == (0, 0)
    assert scaled.counts[0] == 1
    assert max(scaled.counts) == REPLICAS
    assert scaled.counts[-1] == 0
    assert shop.deployment()["spec"]["paused"], "KEDA leaves splitter's pause alone"
    assert scaled.conditions()["Ready"] == "True"


def test_a_pause_is_a_count(scaled: Scaled, shop: Shop) -> None:
    """`paused-replicas` holds the twins at that count, whatever the queue says; then the queue counts."""
    shop.annotate(on_demand_base="1")
    scaled.needs(4)
    shop.wait_split(on_demand=1, spot=3, deadline_s=BY_STEPS_S)
    with shop.watch() as watched:
        began = Instant.now()
        scaled.annotate(**{PAUSED_REPLICAS: "6"})
        shop.wait_split(on_demand=1, spot=5)
        tell(f"paused at 6: {seconds(began):.1f} s")
        with unmoved(scaled):
            scaled.needs(MOST)
        scaled.annotate(**{PAUSED_REPLICAS: None})
        shop.wait_split(on_demand=1, spot=MOST - 1, deadline_s=BY_STEPS_S)
        assert watched.lowest() >= 4
        assert watched.highest() <= MOST + SURGE


def test_an_outage_of_spot(scaled: Scaled, shop: Shop, fleet: Fleet) -> None:
    """Lost replicas are covered and KEDA writes nothing; from 0, in the outage, it comes up on on-demand."""
    scaled.needs(REPLICAS)
    shop.wait_split(on_demand=0, spot=REPLICAS, deadline_s=BY_STEPS_S)
    with shop.watch() as watched:
        began = Instant.now()
        with unmoved(scaled):
            fleet.kill(fleet.names("spot"))
            shop.until(lambda: shop.shape().on_demand == REPLICAS, "on-demand to hold all")
        tell(f"all {REPLICAS} lost: {missing(watched, REPLICAS, began)}")
        scaled.needs(0)
        shop.until(lambda: not shop.pods(), "no replica to be left", BY_STEPS_S)
        assert shop.twins() == (0, 0)
        began = scaled.needs(1)
        first = scaled.until_serving(1, watched)
        tell(f"0 to 1 in an outage that was seen: {seconds(began, first):.1f} s")
        assert shop.shape().on_demand == 1
        began = scaled.needs(REPLICAS)
        shop.until(lambda: shop.shape().on_demand == REPLICAS, "on-demand to hold all", BY_STEPS_S)
        tell(f"1 to {REPLICAS} in it: {seconds(began):.1f} s")
        back = Instant.now()
        fleet.restore(fleet.names("spot"))
        shop.wait_split(on_demand=0, spot=REPLICAS)
        assert watched.lowest(back) >= REPLICAS
        assert watched.highest(back) <= REPLICAS + SURGE


def test_an_outage_that_begins_at_zero(scaled: Scaled, shop: Shop, fleet: Fleet) -> None:
    """If spot vanishes while there is no replica, the first one waits the grace out, and then is covered."""
    fleet.kill(fleet.names("spot"))
    with shop.watch() as watched:
        began = scaled.needs(1)
        first = scaled.until_serving(1, watched)
        tell(f"0 to 1 in an outage that was not seen: {seconds(began, first):.1f} s")
        assert shop.shape().on_demand == 1
        scaled.needs(REPLICAS)
        shop.until(lambda: shop.shape().on_demand == REPLICAS, "on-demand to hold all", BY_STEPS_S)
        back = Instant.now()
        fleet.restore(fleet.names("spot"))
        shop.wait_split(on_demand=0, spot=REPLICAS)
        assert watched.lowest(back) >= REPLICAS


def test_a_second_one_on_a_twin(scaled: Scaled, shop: Shop, queue: Queue) -> None:
    """The two autoscalers disable each other, and a workload with such a second one is not split again."""
    scaled.needs(4)
    shop.wait_split(on_demand=0, spot=4, deadline_s=BY_STEPS_S)
    shop.apply(scaled_object(queue, shop.namespace, "web-spot"))
    shop.until(lambda: scaled.autoscaler()["ScalingActive"] == "False", "two to be too many")
    shop.unlabel()
    shop.wait_given_back()
    shop.label()
    shop.says("AutoscalerOnTwin", "keda-hpa-web-spot")
    shop.kubectl("delete", "scaledobject", "web-spot")
    shop.wait_split(on_demand=0, spot=4)
    scaled.needs(6)
    shop.wait_split(on_demand=0, spot=6, deadline_s=BY_STEPS_S)

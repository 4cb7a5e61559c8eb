"""A node that is hot by real use is relieved of a replica: with the right, and one more before one goes."""

from collections import Counter
from collections.abc import Iterator

import pytest

from e2e.support.metrics_api import MetricsApi
from e2e.support.mortal import Mortal
from e2e.support.shop import Shop, manifest
from splitter.bundled import bundled_path
from splitter.sandbox import Sandbox
from splitter.sandbox.fleet import Fleet

N = 6
# Of the 8 CPUs of a machine: six replicas make it hot, and with four it is as cool as it has to be.
USED_M = 1200


@pytest.fixture
def metrics(sandbox: Sandbox) -> Iterator[MetricsApi]:
    """Yield the metrics of all nodes and pods."""
    with MetricsApi(sandbox) as serving:
        yield serving


@pytest.fixture
def right(sandbox: Sandbox) -> Iterator[str]:
    """Yield the file that gives splitter the right to read them; it is taken back."""
    path = str(bundled_path("manifests/relief.yaml"))
    yield path
    sandbox.kubectl("delete", "--ignore-not-found", "-f", path)


def piled(shop: Shop, fleet: Fleet, ready_after: str) -> str:
    """Have a workload split that asks for relief, with all its replicas on one machine; return that one."""
    full, *empty = fleet.names("spot")
    shop.sandbox.kubectl("cordon", *empty)
    app = manifest("web", N, annotations={"splitter.io/relief": "cpu=85"}, ready_after=ready_after)
    app["metadata"]["labels"]["splitter.io/split"] = "enabled"
    shop.apply(app)
    shop.wait_split(on_demand=0, spot=N)
    assert set(shop.nodes()) == {full}
    shop.sandbox.kubectl("uncordon", *empty)
    shop.wait_steady()
    return full


def costs(shop: Shop) -> list[str]:
    """Return the deletion costs on the workload's pods, and what is remembered of the user's."""
    annotations = [pod["metadata"].get("annotations") or {} for pod in shop.pods()]
    return [key for written in annotations for key in written if "deletion-cost" in key]


@pytest.mark.e2e
def test_a_hot_node_is_relieved(
    shop: Shop, fleet: Fleet, metrics: MetricsApi, right: str, sandbox: Sandbox
) -> None:
    """Without the right the Split says what is missing; with it a replica moves, and nobody misses one."""
    full = piled(shop, fleet, "3s")
    metrics.uses("web", USED_M)
    shop.reported("ReliefPaused", "splitter may not list nodes and pods of metrics.k8s.io")
    with shop.watch() as watched:
        sandbox.kubectl("apply", "-f", right)
        said = shop.reported("Relieved", "goes, the new replica is ready elsewhere")
        assert said.startswith(f"scale spot {N + 1} -> {N} (-1): web-")
        shop.until(lambda: Counter(shop.nodes())[full] < N, "a replica to leave the hot machine")
        # Given back in the middle of the second move.
        shop.until(lambda: shop.twins() == (0, N + 1), "a second move")
        assert watched.lowest() == N
        assert watched.highest() <= N + 1
        shop.unlabel()
        shop.until(lambda: not shop.deployments() - {"web"}, "the workload to be given back")
        shop.wait_rolled_out()
        assert watched.lowest() == N
    assert costs(shop) == []


@pytest.mark.campaign
def test_it_dies_at_each_write_of_a_move(
    mortal: Mortal, fleet: Fleet, metrics: MetricsApi, right: str, sandbox: Sandbox
) -> None:
    """Killed after each write, no replica is missing, one at most is too many, and none stays so."""
    shop = mortal.shop
    piled(shop, fleet, "500ms")
    sandbox.kubectl("apply", "-f", right)
    with shop.watch() as watched:
        metrics.uses("web", USED_M)
        mortal.dies_at(lambda write: write.kind != "events")
        mortal.until(lambda: shop.status().get("relief", {}).get("moves"), "a move")
        mortal.until(
            lambda: any("ended" in move for move in shop.status().get("relief", {}).get("moves", ())),
            "a move that has ended",
        )
        deaths = sum(write.fatal for write in mortal.gateway.writes)
        mortal.survives()
        assert deaths >= 4
        shop.annotate(relief="off")
        shop.until(lambda: shop.twins() == (0, N) and shop.shape().total == N and not costs(shop), "calm")
        assert watched.lowest() == N
        assert watched.highest() <= N + 1
        assert "lastLoss" not in shop.status()["rebalance"]

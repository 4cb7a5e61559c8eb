"""A node that is hot by real use is relieved of a replica: with the right, and one more before one goes."""

from collections import Counter
from collections.abc import Iterator

import pytest

from e2e.support.metrics_api import MetricsApi
from e2e.support.shop import Shop, manifest
from splitter.bundled import bundled_path
from splitter.sandbox import Sandbox
from splitter.sandbox.fleet import Fleet

pytestmark = pytest.mark.e2e

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


def test_a_hot_node_is_relieved(
    shop: Shop, fleet: Fleet, metrics: MetricsApi, right: str, sandbox: Sandbox
) -> None:
    """Without the right the Split says what is missing; with it a replica moves, and nobody misses one."""
    full, *empty = fleet.names("spot")
    for node in empty:
        sandbox.kubectl("cordon", node)
    app = manifest("web", N, annotations={"splitter.io/relief": "cpu=85"}, ready_after="3s")
    app["metadata"]["labels"]["splitter.io/split"] = "enabled"
    shop.apply(app)
    shop.wait_split(on_demand=0, spot=N)
    assert set(shop.nodes()) == {full}
    for node in empty:
        sandbox.kubectl("uncordon", node)
    shop.wait_steady()
    metrics.uses("web", USED_M)
    shop.reported("ReliefPaused", "splitter may not list nodes and pods of metrics.k8s.io")
    with shop.watch() as watched:
        sandbox.kubectl("apply", "-f", right)
        said = shop.reported("Relieved", "goes, the new replica is ready elsewhere")
        assert said.startswith(f"scale spot {N + 1} -> {N} (-1): web-")
        assert Counter(shop.nodes())[full] == N - 1
        # Given back in the middle of the second move.
        shop.until(lambda: shop.twins() == (0, N + 1), "a second move")
        assert watched.lowest() == N
        assert watched.highest() <= N + 1
        shop.unlabel()
        shop.until(lambda: not shop.deployments() - {"web"}, "the workload to be given back")
        shop.wait_rolled_out()
        assert watched.lowest() == N
    marks = [pod["metadata"].get("annotations") or {} for pod in shop.pods()]
    assert not [mark for mark in marks if any("deletion-cost" in key for key in mark)]

"""`kubectl drain` ends, a node of each pool in turn, and no member is missed."""

from http import HTTPStatus
from typing import Final

import pytest

from lab.fixtures.database import BY_TWINS, manifest
from leaping import passing
from splitter.kube.client import ApiError
from splitter.kube.paths import ResourcePath
from world.cluster import POOL, Cluster
from world.kinds import NODES, STATEFUL_SETS, Raw, Ref
from world.process import splitting
from world.recorder import Recorder
from world.workloads import changed, moments, until

N: Final = 5
SURGE: Final = 2
DB: Final = Ref(STATEFUL_SETS, "shop", "db")
_AGAIN_S: Final = 5.0  # kubectl's, of one that was refused


def cordon(cluster: Cluster, node: str, *, on: bool) -> None:
    """Do what `kubectl cordon` and `uncordon` do."""

    def change(raw: Raw) -> None:
        raw["spec"]["unschedulable"] = on

    changed(cluster, Ref(NODES, "", node), change)


async def drain(cluster: Cluster, node: str, within_s: float) -> None:
    """Do what `kubectl drain` does: it asks by name, whichever pod bears that name by then.

    Source: staging/src/k8s.io/kubectl/pkg/drain/drain.go (evictPods) of Kubernetes 1.36.
    """
    cordon(cluster, node, on=True)
    left = [pod["metadata"]["name"] for pod in cluster.pods() if pod["spec"].get("nodeName") == node]
    ends_s = moments() + within_s
    while left := [name for name in left if not await is_evicted(cluster, name)]:
        assert moments() < ends_s, f"{left} could not be evicted"
        await passing(_AGAIN_S)


async def is_evicted(cluster: Cluster, pod: str) -> bool:
    """Ask for an eviction; return whether kubectl asks no more."""
    eviction = {"metadata": {"name": pod, "namespace": "shop"}}
    try:
        path = ResourcePath("/api/v1", "pods", "shop", pod, "eviction")
        await cluster.api.send("POST", path, eviction)
    except ApiError as error:
        if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS}:
            raise
        return error.status == HTTPStatus.NOT_FOUND
    return True


def is_divided(cluster: Cluster) -> bool:
    """Whether three members serve on on-demand, two on spot, and there is no other."""
    ready = cluster.ready()
    on_spot = sum(pod["spec"]["nodeName"].startswith("spot") for pod in ready)
    alone = cluster.objects.get(DB)["spec"]["replicas"] == 0
    return alone and len(cluster.pods()) == len(ready) == N and on_spot == 2


@pytest.mark.parametrize("start_s", [1, 20])
@pytest.mark.parametrize("lag_s", [0.02, 1.0])
async def test_surge_first(lag_s: float, start_s: int) -> None:
    """However slow members and controllers are, each has its successor before it goes."""
    cluster = Cluster(1, lag_s=lag_s)
    for number in range(4):
        for pool in ("on-demand", "spot"):
            cluster.add_node(f"{pool}-{number}", {POOL: pool})
    annotations = {**BY_TWINS, "splitter.io/evictions": "surge-first"}

    def label(raw: Raw) -> None:
        raw["metadata"]["labels"]["splitter.io/split"] = "enabled"

    async with cluster.running():
        database = manifest(N, annotations=annotations, ready_after=f"{start_s}s")
        cluster.objects.create(STATEFUL_SETS, "shop", database, "user")
        await until(lambda: len(cluster.ready()) == N)
        await passing(5.0)
        recorder = Recorder(cluster, N, N + SURGE)
        async with splitting(cluster):
            changed(cluster, DB, label)
            await until(lambda: is_divided(cluster), 600.0)
            for pool in ("on-demand", "spot"):
                # The highest member goes first if a twin is lowered, and its name is free for another.
                node = max(
                    (pod["metadata"]["name"], pod["spec"]["nodeName"])
                    for pod in cluster.pods()
                    if pod["spec"]["nodeName"].startswith(pool)
                )[1]
                await drain(cluster, node, within_s=90.0)
                cordon(cluster, node, on=False)
                await until(lambda: is_divided(cluster), 7200.0)
        recorder.stop()
    assert not recorder.broken, recorder.broken[0]

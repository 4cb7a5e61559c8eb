"""Lives of a Deployment under the real process: taken over, spot gone and back, rolled, given back."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from leaping import passing
from world.cluster import POOL, Cluster
from world.kinds import DEPLOYMENTS, PODS, REPLICA_SETS, SPLITS, Raw
from world.process import splitting
from world.recorder import Recorder
from world.workloads import WEB, changed, deployment, moments, set_image, until

N: Final = 10
SURGE: Final = 3  # 25 %, rounded up
NOTICE: Final = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
SPLIT: Final = "splitter.io/split"
SPOT: Final = ("spot-0", "spot-1", "spot-2")


def on(cluster: Cluster, pool: str) -> int:
    """Return how many pods serve on a pool's nodes."""
    return sum(pod["spec"]["nodeName"].startswith(pool) for pod in cluster.ready())


def label(raw: Raw) -> None:
    """Have it split."""
    raw["metadata"].setdefault("labels", {})[SPLIT] = "enabled"


def unlabel(raw: Raw) -> None:
    """Have it given back."""
    del raw["metadata"]["labels"][SPLIT]


def is_steady(cluster: Cluster) -> bool:
    """Whether all are on spot, and the Split says that this is as it is asked for."""
    states = [raw["status"].get("state") for raw in cluster.objects.all(SPLITS)]
    return states == ["Steady"] and on(cluster, "spot") == N == len(cluster.pods())


def is_given_back(cluster: Cluster) -> bool:
    """Whether nothing of splitter's is left, and the Deployment has all of its pods."""
    web = cluster.objects.get(WEB)
    alone = len(cluster.objects.all(DEPLOYMENTS)) == 1 and not cluster.objects.all(SPLITS)
    return alone and not web["spec"].get("paused") and web["status"].get("availableReplicas") == N


def ours(cluster: Cluster) -> list[str]:
    """Return what bears a label of splitter's."""
    return [
        raw["metadata"]["name"]
        for kind in (PODS, REPLICA_SETS, DEPLOYMENTS)
        for raw in cluster.objects.all(kind)
        if any("splitter.io" in key for key in raw["metadata"].get("labels") or {})
    ]


@asynccontextmanager
async def split(cluster: Cluster) -> AsyncIterator[Recorder]:
    """Have a Deployment of ten split, all of them on spot; a recorder judges from before it is labelled."""
    for number in range(3):
        cluster.add_node(f"on-demand-{number}", {POOL: "on-demand"})
    for name in SPOT:
        cluster.add_node(name, {POOL: "spot"})
    async with cluster.running():
        cluster.objects.create(DEPLOYMENTS, "shop", deployment(N), "user")
        await until(lambda: len(cluster.ready()) == N)
        await passing(5.0)
        recorder = Recorder(cluster, N, N + SURGE)
        async with splitting(cluster):
            await passing(5.0)
            changed(cluster, WEB, label)
            await until(lambda: is_steady(cluster), 600.0)
            yield recorder
        recorder.stop()


async def spot_returns(cluster: Cluster) -> None:
    """Have three new machines, and wait until all are there again."""
    for number in range(3):
        cluster.add_node(f"spot-new-{number}", {POOL: "spot"})
    await until(lambda: is_steady(cluster), 3600.0)


async def test_announced() -> None:
    """No replica is missed at any moment: by no move, no notice, and no loss that was announced."""
    began_s = time.perf_counter()
    cluster = Cluster(1)
    async with split(cluster) as recorder:
        for name in SPOT:
            recorder.doomed.add(name)
            cluster.taint(name, [NOTICE])
        await until(lambda: on(cluster, "on-demand") == N, 30.0)
        await passing(90.0)
        for name in SPOT:
            recorder.vanish(name)
        await passing(120.0)
        assert on(cluster, "on-demand") == N
        await spot_returns(cluster)
        changed(cluster, WEB, unlabel)
        await until(lambda: is_given_back(cluster), 900.0)
        await passing(60.0)
    assert not recorder.broken, recorder.broken[0]
    assert (recorder.fewest, recorder.highest) == (N, N + SURGE)
    assert len(cluster.pods()) == N == len(cluster.ready())
    assert not ours(cluster)
    print(f"{moments():.0f} s in {time.perf_counter() - began_s:.1f} s")  # noqa: T201 (shown with -s)


async def test_lost() -> None:
    """What machines take at once is all that is missed, and made up for within half a minute."""
    cluster = Cluster(2)
    async with split(cluster) as recorder:
        gone = on(cluster, "spot-0") + on(cluster, "spot-1")
        recorder.most = 2 * N  # what covers, and what comes back, each as fast as it can
        recorder.vanish("spot-0")
        recorder.vanish("spot-1")
        assert len(cluster.ready()) == N - gone
        await until(lambda: len(cluster.ready()) >= N, 30.0)
        await spot_returns(cluster)
    assert not recorder.broken, recorder.broken[0]
    assert recorder.fewest == N - gone


async def test_silent() -> None:
    """A silent machine is gone when Kubernetes says so, after 50 s; then all is covered."""
    cluster = Cluster(3)
    async with split(cluster) as recorder:
        gone = on(cluster, "spot-0")
        recorder.lost += gone
        cluster.silence("spot-0")
        await passing(40.0)
        assert len(cluster.ready()) == N - gone
        await until(lambda: len(cluster.ready()) >= N, 40.0)
        await passing(600.0)
        cluster.speak("spot-0")
        await until(lambda: is_steady(cluster), 3600.0)
    assert not recorder.broken, recorder.broken[0]


async def test_a_new_image() -> None:
    """A roll of what is split keeps within the numbers of its owner's strategy."""
    cluster = Cluster(4)
    async with split(cluster) as recorder:
        recorder.least = N - 2  # maxUnavailable, 25 %, rounded down
        set_image(cluster, "web:2")
        await until(lambda: images(cluster) == {"web:2"}, 900.0)
        await until(lambda: is_steady(cluster), 3600.0)
    assert not recorder.broken, recorder.broken[0]


def images(cluster: Cluster) -> set[str]:
    """Return what runs."""
    return {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()}


@pytest.mark.parametrize("lag_s", [0.2, 1.0, 3.0])
async def test_controllers_that_lag(lag_s: float) -> None:
    """However late each informer is, none is missed, and it comes to an end both ways."""
    cluster = Cluster(5, lag_s=lag_s)
    async with split(cluster) as recorder:
        changed(cluster, WEB, unlabel)
        await until(lambda: is_given_back(cluster), 900.0)
    assert recorder.fewest == N
    assert not ours(cluster)


async def test_controllers_that_lag_cost_no_replica() -> None:
    """With informers up to a second late no replica is missed; for a moment there may be twice as many.

    A ReplicaSet's controller may see that it is to adopt before it sees what (docs/limits.md).
    """
    cluster = Cluster(5, lag_s=1.0)
    async with split(cluster) as recorder:
        changed(cluster, WEB, unlabel)
        await until(lambda: is_given_back(cluster), 900.0)
    assert recorder.fewest >= N
    assert N + SURGE < recorder.highest <= 2 * N
    assert len(cluster.ready()) == N

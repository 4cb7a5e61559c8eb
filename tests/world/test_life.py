"""The life of a Deployment under the real process: taken over, split, spot announced and gone, back, given back."""

import os
import time

import pytest

from leaping import passing
from world.cluster import POOL, Cluster
from world.kinds import DEPLOYMENTS, PODS, REPLICA_SETS, SPLITS, Raw
from world.pods import is_ready
from world.process import splitting
from world.recorder import Recorder
from world.test_deployment import WEB, changed, deployment

LAG = float(os.environ.get("LAG", "0.02"))
N, SURGE = 10, 3
NOTICE = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
SPLIT = "splitter.io/split"


def show(cluster):
    import asyncio
    from collections import Counter

    c = Counter(
        (
            p["metadata"].get("labels", {}).get("splitter.io/pool", "-"),
            p["spec"].get("nodeName"),
            is_ready(p),
            (p["metadata"].get("ownerReferences") or [{"name": "none"}])[0]["name"],
        )
        for p in cluster.objects.all(PODS, "shop")
    )
    print(f"{asyncio.get_running_loop().time():.1f}")
    for k, v in sorted(c.items(), key=str):
        print("   ", v, k)
    for s in cluster.objects.all(SPLITS):
        print("   ", s["status"].get("state"), s["status"].get("reason"), s["status"].get("message"))
    for d in (*cluster.objects.all(DEPLOYMENTS), *cluster.objects.all(REPLICA_SETS)):
        print(
            "   ",
            d["kind"],
            d["metadata"]["name"],
            d["spec"]["replicas"],
            d["spec"].get("paused"),
            d["metadata"].get("annotations"),
            [o.get("name") for o in d["metadata"].get("ownerReferences", ())],
            {k: v for k, v in d["status"].items() if k != "conditions"},
        )
    print(cluster.objects.refused[-5:])


async def until(holds, within_s=100, cluster=None):
    from world.test_deployment import until as u

    try:
        await u(holds, within_s)
    except AssertionError:
        show(C[0])
        raise


C = [0]


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
    """Whether the Split says that all is as it is asked for."""
    return [raw["status"].get("state") for raw in cluster.objects.all(SPLITS)] == ["Steady"]


def is_given_back(cluster: Cluster) -> bool:
    """Whether nothing of splitter's is left, and the Deployment has all of its pods."""
    web = cluster.objects.get(WEB)
    alone = len(cluster.objects.all(DEPLOYMENTS)) == 1 and not cluster.objects.all(SPLITS)
    return alone and not web["spec"].get("paused") and web["status"].get("availableReplicas") == N


@pytest.mark.parametrize("seed", range(int(os.environ.get("A", "0")), int(os.environ.get("B", "1"))))
async def test_a_life(seed: int) -> None:
    """No replica is missed at any moment: by no move, no notice, no loss that was announced."""
    began_s = time.perf_counter()
    cluster = Cluster(seed, lag_s=LAG)
    for number in range(3):
        cluster.add_node(f"on-demand-{number}", {POOL: "on-demand"})
        cluster.add_node(f"spot-{number}", {POOL: "spot"})
    C[0] = cluster
    async with cluster.running():
        cluster.objects.create(DEPLOYMENTS, "shop", deployment(N), "user")
        await until(lambda: len(cluster.ready()) == N)
        await passing(5.0)
        recorder = Recorder(cluster, N, N + SURGE)
        async with splitting(cluster):
            await passing(5.0)
            changed(cluster, WEB, label)
            await until(lambda: is_steady(cluster) and on(cluster, "spot") == N, 600.0)

            for number in range(3):
                recorder.doomed.add(f"spot-{number}")
                cluster.taint(f"spot-{number}", [NOTICE])
            await until(lambda: on(cluster, "on-demand") == N, 30.0)
            await passing(60.0)
            for number in range(3):
                recorder.vanish(f"spot-{number}")
            await passing(120.0)
            assert on(cluster, "on-demand") == N

            for number in range(3, 6):
                cluster.add_node(f"spot-{number}", {POOL: "spot"})
            await until(lambda: is_steady(cluster) and on(cluster, "spot") == N, 3600.0)

            changed(cluster, WEB, unlabel)
            await until(lambda: is_given_back(cluster), 900.0)
            await passing(60.0)
        recorder.stop()
        assert not recorder.broken, recorder.broken[0]
        assert len(cluster.pods()) == N == len(cluster.ready())
        marked = [
            raw["metadata"]["name"]
            for kind in (PODS, REPLICA_SETS, DEPLOYMENTS)
            for raw in cluster.objects.all(kind)
            if any("splitter.io" in key for key in raw["metadata"].get("labels") or {})
        ]
        assert not marked
    virtual_s = cluster_time_s()
    print(recorder.fewest, recorder.highest, f"{virtual_s:.0f} s in {time.perf_counter() - began_s:.1f} s")  # noqa: T201 (shown with -s)


def cluster_time_s() -> float:
    """Return the loop's time."""
    import asyncio

    return asyncio.get_running_loop().time()

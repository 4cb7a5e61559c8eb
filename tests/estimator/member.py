"""A member cluster in the world, and an estimator that follows it beside splitter."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from splitter.estimator import Following
from splitter.estimator.wire import Message
from splitter.settings import Settings
from world.cluster import POOL, Cluster
from world.workloads import deployment

TAINT: Final = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"}
NOTICE: Final = {"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}


def with_nodes(on_demand: int, spot: int, cpu: str = "16") -> Cluster:
    """Return a cluster with one on-demand node of so many CPU, and so many tainted spot nodes."""
    cluster = Cluster(1)
    cluster.add_node("on-demand-0", {POOL: "on-demand"}, cpu=str(on_demand))
    for number in range(spot):
        add_spot(cluster, number, cpu)
    return cluster


def add_spot(cluster: Cluster, number: int, cpu: str = "16") -> None:
    """Have a spot machine join."""
    cluster.add_node(f"spot-{number}", {POOL: "spot"}, [TAINT], cpu=cpu)


def workload(replicas: int, name: str = "web", cpu: str = "1") -> dict[str, object]:
    """Return a Deployment."""
    raw = deployment(replicas)
    raw["metadata"]["name"] = name
    labels = {"app": name}
    raw["spec"]["selector"]["matchLabels"] = raw["spec"]["template"]["metadata"]["labels"] = labels
    raw["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return raw


class Asked:
    """An estimator, asked as Karmada asks it."""

    def __init__(self, following: Following) -> None:
        self.following = following

    def __call__(self, method: str, raw: bytes) -> int:
        """Return the number that is answered. Raises RefusedError."""
        return Message(self.following.estimator.answer(method, raw)).number(1)


@asynccontextmanager
async def estimating(cluster: Cluster, **settings: object) -> AsyncIterator[Asked]:
    """Have an estimator follow a cluster."""
    chosen = {"estimator_cluster": "m1", "own_namespace": "", **settings}
    following = Following(cluster.api, Settings.model_validate(chosen))
    tasks = [asyncio.create_task(one.run()) for one in following.reflectors]
    assert await following.filled() == []
    tasks.append(asyncio.create_task(following.look()))
    try:
        yield Asked(following)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

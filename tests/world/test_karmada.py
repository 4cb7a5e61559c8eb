"""Karmada writes the source of a split workload in a member, with splitter's interpreters and without."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest

from karmada import retained
from leaping import passing
from world.cluster import POOL, Cluster
from world.karmada import Karmada, Retain, everything
from world.kinds import DEPLOYMENTS, EVENTS, SPLITS, STATEFUL_SETS, Raw, Ref
from world.process import splitting
from world.recorder import Recorder
from world.workloads import WEB, deployment, until

N: Final = 6
SURGE: Final = 2  # 25 %, rounded up
DB: Final = Ref(STATEFUL_SETS, "shop", "web")


def stateful_set() -> Raw:
    """Return a StatefulSet that may have twins."""
    made = deployment(N, serviceName="web")
    return {**made, "metadata": {"name": "web", "annotations": {"splitter.io/mode": "twins"}}}


@asynccontextmanager
async def propagated(
    cluster: Cluster, ref: Ref, template: Raw, retain: Retain
) -> AsyncIterator[tuple[Karmada, Recorder]]:
    """Have Karmada bring a workload into a member with splitter; its label is written at the hub."""
    cluster.add_node("on-demand-0", {POOL: "on-demand"})
    cluster.add_node("spot-0", {POOL: "spot"})
    karmada = Karmada(cluster, ref, template, retain)
    async with cluster.running(), asyncio.TaskGroup() as group:
        running = group.create_task(karmada.run())
        await until(lambda: len(cluster.ready()) == N)
        recorder = Recorder(cluster, N, N + SURGE)
        async with splitting(cluster):
            await passing(5.0)
            karmada.change(label)
            yield karmada, recorder
        recorder.stop()
        running.cancel()


def label(raw: Raw) -> None:
    """Have it split."""
    raw["metadata"].setdefault("labels", {})["splitter.io/split"] = "enabled"


def unlabel(raw: Raw) -> None:
    """Have it given back."""
    del raw["metadata"]["labels"]["splitter.io/split"]


def scale(replicas: int) -> Callable[[Raw], None]:
    """Have another count."""

    def change(raw: Raw) -> None:
        raw["spec"]["replicas"] = replicas

    return change


def image(name: str) -> Callable[[Raw], None]:
    """Have another template."""

    def change(raw: Raw) -> None:
        raw["spec"]["template"]["spec"]["containers"][0]["image"] = name

    return change


def state(cluster: Cluster) -> str:
    """Return what the Split says."""
    return next((raw["status"].get("state", "") for raw in cluster.objects.all(SPLITS)), "")


def is_steady(cluster: Cluster, count: int = N) -> bool:
    """Whether so many run, none of them in the source."""
    return state(cluster) == "Steady" and len(cluster.ready()) == count == len(cluster.pods())


def reasons(cluster: Cluster) -> set[str]:
    """Return what was said."""
    return {raw["reason"] for raw in cluster.objects.all(EVENTS)}


@pytest.mark.parametrize(
    ("ref", "template"), [(WEB, deployment(N)), (DB, stateful_set())], ids=["Deployment", "StatefulSet"]
)
async def test_a_life_with_the_interpreters(ref: Ref, template: Raw) -> None:
    """Split, scaled, rolled and given back from the hub; no replica is missed, and nothing is a conflict."""
    cluster = Cluster(1)
    async with propagated(cluster, ref, template, retained) as (karmada, recorder):
        await until(lambda: is_steady(cluster), 900.0)
        writes = karmada.writes
        await passing(600.0)
        assert karmada.writes == writes
        recorder.most = 2 * N + SURGE
        karmada.change(scale(2 * N))
        await until(lambda: is_steady(cluster, 2 * N), 900.0)
        karmada.change(scale(N))
        await until(lambda: is_steady(cluster), 900.0)
        recorder.least = N - 2
        karmada.change(image("web:2"))
        await until(
            lambda: {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"web:2"}, 900.0
        )
        await until(lambda: is_steady(cluster), 900.0)
        karmada.change(unlabel)
        await until(lambda: not cluster.objects.all(SPLITS), 900.0)
        await passing(60.0)
    assert not recorder.broken, recorder.broken[0]
    assert not reasons(cluster) & {"ForeignUnpause", "ForeignScale", "Conflict", "IntruderParked"}
    assert len(cluster.ready()) == N == len(cluster.pods())
    assert len(cluster.objects.all(ref.kind)) == 1


@pytest.mark.parametrize(
    ("ref", "template"), [(WEB, deployment(N)), (DB, stateful_set())], ids=["Deployment", "StatefulSet"]
)
async def test_without_the_interpreters(ref: Ref, template: Raw) -> None:
    """Karmada takes each pause away: a conflict. The workload is given back, and no replica is missed."""
    cluster = Cluster(2)
    async with propagated(cluster, ref, template, everything) as (_, recorder):
        await until(lambda: state(cluster) == "Conflict", 120.0)
        await passing(120.0)
        assert state(cluster) == "Conflict"
    assert not recorder.broken, recorder.broken[0]
    assert len(cluster.ready()) == N == len(cluster.pods())
    assert len(cluster.objects.all(DEPLOYMENTS)) + len(cluster.objects.all(STATEFUL_SETS)) == 1

"""Karmada writes the source of a split workload in a member, with splitter's interpreters and without."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest

from karmada import Json, is_healthy, reflected, retained
from leaping import passing
from splitter.kube.client import ApiError
from world.admission import Request
from world.cluster import POOL, Cluster
from world.karmada import Karmada, Retain, everything
from world.keep_paused import keep_paused
from world.kinds import DEPLOYMENTS, EVENTS, SPLITS, STATEFUL_SETS, Raw, Ref
from world.objects import Event
from world.process import splitting
from world.recorder import Recorder
from world.workloads import WEB, changed, deployment, until

N: Final = 6
SURGE: Final = 2  # 25 %, rounded up
NOTICE: Final = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
_COUNTS: Final = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
DB: Final = Ref(STATEFUL_SETS, "shop", "web")


def stateful_set() -> Raw:
    """Return a StatefulSet that may have twins."""
    made = deployment(N, serviceName="web")
    return {**made, "metadata": {"name": "web", "annotations": {"splitter.io/mode": "twins"}}}


_KINDS: Final = [(WEB, deployment(N)), (DB, stateful_set())]


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


def condition(source: Raw) -> Json | None:
    """Return splitter's condition."""
    return next(
        (one for one in source["status"].get("conditions") or () if "splitter.io" in one["type"]), None
    )


def shown(source: Raw) -> Json:
    """Return the counts that the hub hears of."""
    return {name: count for name, count in reflected(source).items() if name in _COUNTS}


def seen_of(source: Raw) -> tuple[int, int, bool]:
    """Return what the hub hears: how many are ready, how many available, and whether it is healthy."""
    counts = shown(source)
    return counts["readyReplicas"], counts["availableReplicas"], is_healthy(source)


def images(cluster: Cluster) -> set[str]:
    """Return what runs."""
    return {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()}


def reasons(cluster: Cluster) -> set[str]:
    """Return what was said."""
    return {raw["reason"] for raw in cluster.objects.all(EVENTS)}


@pytest.mark.parametrize(("ref", "template"), _KINDS, ids=["Deployment", "StatefulSet"])
async def test_a_life_with_the_interpreters(ref: Ref, template: Raw) -> None:
    """Split, scaled, rolled and given back from the hub; no replica is missed, and nothing is a conflict."""
    cluster = Cluster(1)
    async with propagated(cluster, ref, template, retained) as (karmada, recorder):
        await until(lambda: is_steady(cluster), 900.0)
        await passing(5.0)
        source = cluster.objects.get(ref)
        assert is_healthy(source)
        assert shown(source) == dict.fromkeys(_COUNTS, N)
        writes, generation = karmada.writes, source["metadata"]["generation"]
        await passing(600.0)
        assert karmada.writes == writes
        assert cluster.objects.get(ref)["metadata"]["generation"] == generation
        recorder.most = 2 * N + SURGE
        karmada.change(scale(2 * N))
        await until(lambda: is_steady(cluster, 2 * N), 900.0)
        karmada.change(scale(N))
        await until(lambda: is_steady(cluster), 900.0)
        recorder.least = N - 2
        karmada.change(image("web:2"))
        await until(lambda: images(cluster) == {"web:2"}, 900.0)
        await until(lambda: is_steady(cluster), 900.0)
        karmada.change(unlabel)
        await until(lambda: not cluster.objects.all(SPLITS), 900.0)
        await passing(60.0)
    assert not recorder.broken, recorder.broken[0]
    assert not reasons(cluster) & {"ForeignWrite", "Conflict"}
    assert len(cluster.ready()) == N == len(cluster.pods())
    [left] = cluster.objects.all(ref.kind)
    assert condition(left) is None
    assert shown(left) == dict.fromkeys(_COUNTS, N)


@pytest.mark.parametrize(("ref", "template"), _KINDS, ids=["Deployment", "StatefulSet"])
async def test_a_notice(ref: Ref, template: Raw) -> None:
    """Replicas on an announced node serve and are not ready: Karmada divides again, and evicts none."""
    cluster = Cluster(3)
    async with propagated(cluster, ref, template, retained) as (_, recorder):
        await until(lambda: is_steady(cluster), 900.0)
        await passing(5.0)
        before = cluster.objects.get(ref)
        going = sum(pod["spec"]["nodeName"] == "spot-0" for pod in cluster.ready())
        recorder.doomed.add("spot-0")
        cluster.taint("spot-0", [NOTICE])
        seen: list[tuple[int, int, bool]] = []
        cluster.objects.follow(
            ref.kind, lambda event: seen.append(seen_of(event.new)) if event.ref == ref else None
        )
        await until(lambda: shown(cluster.objects.get(ref))["readyReplicas"] < N, 10.0)
        await until(lambda: shown(cluster.objects.get(ref))["readyReplicas"] == N, 120.0)
    assert min(ready for ready, _, _ in seen) == N - going < N
    assert {(available, healthy) for _, available, healthy in seen} == {(N, True)}
    assert cluster.objects.get(ref)["metadata"]["generation"] == before["metadata"]["generation"]
    assert not recorder.broken, recorder.broken[0]


async def test_a_roll() -> None:
    """The hub calls it complete when the twins' pods have the new template, and no moment before."""
    cluster = Cluster(6)
    all_there = dict.fromkeys(_COUNTS, N)
    running: list[set[str]] = []  # what ran whenever the hub would have called it complete

    def look(event: Event) -> None:
        if event.ref != WEB:
            return
        status = reflected(event.new)
        aligned = status["observedGeneration"] >= status["generation"]
        if aligned and status["resourceTemplateGeneration"] == 3 and shown(event.new) == all_there:
            running.append(images(cluster))

    async with propagated(cluster, WEB, deployment(N), retained) as (karmada, _):
        await until(lambda: is_steady(cluster), 900.0)
        cluster.objects.follow(DEPLOYMENTS, look)
        karmada.change(image("web:2"))
        await until(lambda: images(cluster) == {"web:2"}, 900.0)
        await until(lambda: is_steady(cluster), 900.0)
        await passing(5.0)
    assert {name for there in running for name in there} == {"web:2"}


async def test_a_hub_that_is_away() -> None:
    """The member goes on with the count that it has, and covers a loss; nothing is a conflict afterwards."""
    cluster = Cluster(5)
    async with propagated(cluster, WEB, deployment(N), retained) as (karmada, recorder):
        await until(lambda: is_steady(cluster), 900.0)
        karmada.away = True
        writes = karmada.writes
        karmada.change(scale(N + 2))
        await passing(60.0)
        cluster.vanish("spot-0")
        recorder.least = 0  # what has vanished is missed until it is covered
        await until(lambda: len(cluster.ready()) == N, 60.0)
        await passing(60.0)
        assert (karmada.writes, cluster.objects.get(WEB)["spec"]["replicas"]) == (writes, N)
        karmada.come_back()
        await until(lambda: len(cluster.ready()) == N + 2, 120.0)
        await passing(60.0)
        assert not {reason for reason in reasons(cluster) if reason.startswith("Foreign")}


async def test_a_right_that_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    """Without it nothing else changes, and the log says so once."""
    cluster = Cluster(4)

    def forbid(request: Request) -> None:
        if request.ref == WEB and request.part == "status" and request.user == "splitter":
            raise ApiError(403, "Forbidden", "splitter may not patch deployments/status")

    cluster.objects.rules.append(forbid)
    async with propagated(cluster, WEB, deployment(N), retained) as (karmada, recorder):
        await until(lambda: is_steady(cluster), 900.0)
        await passing(600.0)
        source = cluster.objects.get(WEB)
        assert is_healthy(source)
        assert condition(source) is None
        recorder.most = 2 * N  # a ReplicaSet that adopts (docs/limits.md)
        karmada.change(unlabel)
        await until(lambda: not cluster.objects.all(SPLITS), 900.0)
    assert not recorder.broken, recorder.broken[0]
    logged = [record for record in caplog.records if record.name == "splitter.availability"]
    assert [record.levelname for record in logged] == ["WARNING"]
    assert 3 <= len(cluster.objects.refused) <= 12


async def test_people_wait_for_it() -> None:
    """Without Karmada, if the settings ask for it: True again when what was lost has been made up for."""
    cluster = Cluster(5)
    for name in ("on-demand-0", "spot-0"):
        cluster.add_node(name, {POOL: name[:-2]})
    async with cluster.running(), splitting(cluster, available_condition=True):
        cluster.objects.create(DEPLOYMENTS, "shop", deployment(N), "user")
        await until(lambda: len(cluster.ready()) == N)
        changed(cluster, WEB, label)
        await until(lambda: is_steady(cluster), 900.0)
        assert (condition(cluster.objects.get(WEB)) or {})["status"] == "True"
        cluster.vanish("spot-0")
        await until(lambda: (condition(cluster.objects.get(WEB)) or {})["status"] == "False", 10.0)
        await until(lambda: (condition(cluster.objects.get(WEB)) or {})["status"] == "True", 60.0)


@pytest.mark.parametrize(("ref", "template"), _KINDS, ids=["Deployment", "StatefulSet"])
async def test_with_the_policy_alone(ref: Ref, template: Raw) -> None:
    """The policy in the member takes the place of retention: each write of the whole changes nothing."""
    cluster = Cluster(7)
    cluster.objects.rules.append(keep_paused)
    async with propagated(cluster, ref, template, everything) as (karmada, recorder):
        await until(lambda: is_steady(cluster), 900.0)
        await passing(600.0)
        writes = karmada.writes
        await passing(600.0)
        assert karmada.writes == writes
        recorder.most = 2 * N + SURGE
        karmada.change(scale(2 * N))
        await until(lambda: is_steady(cluster, 2 * N), 900.0)
        if ref == DB:  # splitter's first raise of it brings Karmada's count of all: no pause is left to keep
            recorder.most = 4 * N
        karmada.change(unlabel)
        await until(lambda: not cluster.objects.all(SPLITS), 900.0)
    assert not recorder.broken, recorder.broken[0]
    assert not reasons(cluster) & {"ForeignWrite", "Conflict"}


@pytest.mark.parametrize(("ref", "template"), _KINDS, ids=["Deployment", "StatefulSet"])
async def test_without_the_interpreters(ref: Ref, template: Raw) -> None:
    """Karmada takes each pause away: a conflict. The workload is given back, and no replica is missed.

    The Event says whose write it is, and what to apply.
    """
    cluster = Cluster(2)
    async with propagated(cluster, ref, template, everything) as (_, recorder):
        recorder.most = 2 * N  # an unpaused source makes pods of its own
        await until(lambda: state(cluster) == "Conflict", 120.0)
        await passing(120.0)
        assert state(cluster) == "Conflict"
    assert not recorder.broken, recorder.broken[0]
    assert len(cluster.ready()) == N == len(cluster.pods())
    notes = [raw["note"] for raw in cluster.objects.all(EVENTS) if raw["reason"].startswith("Foreign")]
    assert all("Karmada writes the whole source" in note and "interpreters.yaml" in note for note in notes)
    assert notes
    assert len(cluster.objects.all(DEPLOYMENTS)) + len(cluster.objects.all(STATEFUL_SETS)) == 1

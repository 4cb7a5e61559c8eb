"""What the reconciler writes first in a storm, on the world's API server."""

import asyncio
from typing import Any

import pytest

from bench.offline import REPLICAS, Run, names_of
from splitter.core.replica import Pool
from splitter.kube.client import ApiError
from splitter.kube.paths import ResourcePath
from splitter.reconciler.losses import can_wait
from world.kinds import ref_of

DEADLINE_S = 30.0


async def test_whose_node_is_doomed_comes_first_after_a_start() -> None:
    """Nodes are listed before pods: when the doomed one was seen, nobody stood on it."""
    run = Run(30)
    name = names_of(run.api.nodes, Pool.SPOT)[0]
    run.api.tainted([name])
    run.fill()
    run.cache.put_endangered_first()
    doomed = [pod for pod in run.api.pods if pod["spec"]["nodeName"] == name]
    hurt = {pod["metadata"]["labels"]["splitter.io/source"] for pod in doomed}
    assert 0 < len(hurt) < 30
    order: list[str] = []
    while len(order) < 30:
        key = await run.queue.take()
        order.append(key.name)
        run.queue.done(key)
    assert set(order[: len(hurt)]) == hurt


@pytest.mark.parametrize("why", ["others are to be raised", "many replicas are missing"])
async def test_deletion_costs_wait(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """While somebody waits to be raised, or many are missing, no pod is written; then each doomed one is."""
    monkeypatch.setattr("splitter.reconciler._CALMER_S", 0.01)
    run = Run(3)
    spot = names_of(run.api.nodes, Pool.SPOT)
    doomed = sum(pod["spec"]["nodeName"] in spot for pod in run.api.pods)
    costed: set[str] = set()
    send = run.api.send

    async def seen(method: str, path: ResourcePath, *rest: Any, **more: Any) -> Any:  # noqa: ANN401
        if path.plural == "pods":
            costed.add(str(path))
        return await send(method, path, *rest, **more)

    monkeypatch.setattr(run.api, "send", seen)
    hurry = asyncio.Event()
    hurry.set()
    if why == "others are to be raised":
        monkeypatch.setattr(run.queue, "hurried", hurry.is_set)
    else:
        hold = "splitter.reconciler.losses.Losses.hold"
        monkeypatch.setattr(hold, lambda _losses, _key, planned: hurry.is_set() and can_wait(planned))
    run.fill()
    task = asyncio.create_task(run.reconciler.run(2, 1))
    for node in run.api.tainted(spot):
        run.cache.nodes.upsert(node)
    async with asyncio.timeout(DEADLINE_S):
        while len({path for path, _ in run.api.raises}) < 3 or len(run.queue):
            await asyncio.wait([task], timeout=0.01)
        assert not costed
        hurry.clear()
        while len(costed) < doomed:
            await asyncio.wait([task], timeout=0.01)
    task.cancel()


async def test_a_loss_is_answered_while_twins_are_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template set that takes long holds neither a worker nor the raises of its own users."""
    run = Run(3)
    spot = names_of(run.api.nodes, Pool.SPOT)

    async def not_yet(*_: object) -> None:
        """Have nothing rendered."""

    monkeypatch.setattr("splitter.reconciler.rendering.Rendering.twins_in_time", not_yet)
    run.fill()
    task = asyncio.create_task(run.reconciler.run(2, 1))
    async with asyncio.timeout(DEADLINE_S):
        while len(run.queue):
            await asyncio.wait([task], timeout=0.01)
        assert run.api.writes == 0
        for node in run.api.tainted(spot):
            run.cache.nodes.upsert(node)
        while len({path for path, _ in run.api.raises}) < 3:
            await asyncio.wait([task], timeout=0.01)
    task.cancel()


async def test_a_loss_is_remembered_while_writes_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the raise nor the status can be written; the pods are gone at the next try, and it comes."""
    monkeypatch.setattr("splitter.reconciler._RETRY_S", 0.01)
    monkeypatch.setattr("splitter.reconciler.status_writer._INTERVAL_S", 0.01)
    run = Run(1)
    spot = names_of(run.api.nodes, Pool.SPOT)
    send, refusing, tries = run.api.send, True, 0

    async def refused(method: str, path: ResourcePath, *rest: Any, **more: Any) -> Any:  # noqa: ANN401
        nonlocal tries
        if refusing:
            tries += path.name.endswith("-on-demand")
            raise ApiError(500, "InternalError", "failed calling webhook")
        return await send(method, path, *rest, **more)

    monkeypatch.setattr(run.api, "send", refused)
    run.fill()
    task = asyncio.create_task(run.reconciler.run(2, 1))
    for node in run.api.nodes:
        if node["metadata"]["name"] in spot:
            run.cache.nodes.forget(node["metadata"]["uid"])
    async with asyncio.timeout(DEADLINE_S):
        while tries < 2:  # so that the first has been dealt with
            await asyncio.wait([task], timeout=0.01)
        for pod in run.api.pods:
            if pod["spec"]["nodeName"] in spot:
                run.cache.pods.forget(pod["metadata"]["uid"])
        refusing = False
        while not run.api.raises:
            await asyncio.wait([task], timeout=0.01)
    task.cancel()
    assert run.api.objects.get(ref_of(run.api.raises[0][0]))["spec"]["replicas"] == REPLICAS

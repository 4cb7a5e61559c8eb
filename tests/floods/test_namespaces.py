"""With `watch_namespaces`: one that is gone or not there yet stands still, and the others do not notice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from bench.offline import deployment_status, source_deployment
from floods.api import Api
from kube.raw import Raw
from leaping import passing
from splitter.kube.access import check_access
from splitter.operator import _Doorway
from splitter.settings import Settings

DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments/web"


def labelled(namespace: str) -> Raw:
    """Return a Deployment that was labelled a moment ago."""
    raw = source_deployment(namespace, "web", 4)
    del raw["metadata"]["annotations"], raw["metadata"]["managedFields"], raw["spec"]["paused"]
    return {**raw, "status": deployment_status(4)}


def cluster(*namespaces: str) -> Api:
    """Return an API server with a labelled Deployment in each namespace, and one node."""
    api = Api()
    for namespace in namespaces:
        api.put(DEPLOYMENTS.format(namespace), labelled(namespace))
    return api


def served(api: Api, namespace: str, since_s: float) -> bool:
    """Whether anything was written in a namespace since."""
    return any(
        f"/namespaces/{namespace}/" in path and verb in {"PATCH", "POST"}
        for at_s, verb, path in api.asked
        if at_s >= since_s
    )


@asynccontextmanager
async def standing_by(api: Api, *namespaces: str, forbidden: Sequence[str] = ()) -> AsyncIterator[_Doorway]:
    """Run a process with full caches that does not lead yet."""
    settings = Settings(watch_namespaces=namespaces, own_namespace="splitter", leader_election="on")
    doorway = _Doorway(api, settings, forbidden)
    for reflector in doorway._reflectors:
        doorway._spawn(reflector.run())
    await doorway._fill()
    try:
        yield doorway
    finally:
        doorway._tasks.reverse()  # the term first
        for task in doorway._tasks:
            task.cancel()
            await asyncio.wait((task,))
        doorway._renderer.close()


async def lead(doorway: _Doorway) -> None:
    """Take the Lease, and serve for a while."""
    assert doorway._election is not None
    doorway._spawn(doorway._election.run())
    doorway._terms = doorway._spawn(doorway._serve_terms())
    await passing(20.0)
    assert doorway._election.leading


def now() -> float:
    """Return the loop's time."""
    return asyncio.get_running_loop().time()


async def test_one_that_was_deleted(caplog: pytest.LogCaptureFixture) -> None:
    """A new leader looks after the others, says which it does not see, and follows it once it is back."""
    api = cluster("a", "b")
    async with standing_by(api, "a", "b") as doorway:
        api.delete_namespace("b")
        await passing(120.0)
        await lead(doorway)
        assert doorway._queue.served
        assert served(api, "a", 0.0)
        assert "in namespace b until it can be seen" in caplog.text
        assert {namespace for _, namespace in doorway._failing()} == {"b"}

        again_s = now()
        api.gone.clear()
        api.put(DEPLOYMENTS.format("b"), labelled("b"))
        await passing(60.0)
        assert served(api, "b", again_s)
        assert not doorway._failing()


async def test_one_that_is_not_there_yet() -> None:
    """The start says it and goes on; its rights are asked for again when it can be listed."""
    api = cluster("a")
    api.gone.add("b")
    api.objects["/apis/splitter.io/v1alpha1"] = {"metadata": {}}
    forbidden = await check_access(api, ["a", "b"], "splitter")
    assert forbidden == ("b",)
    async with standing_by(api, "a", "b", forbidden=forbidden) as doorway:
        assert now() < 10.0
        await lead(doorway)
        assert served(api, "a", 0.0)
        assert not served(api, "b", 0.0)
        api.gone.clear()
        api.put(DEPLOYMENTS.format("b"), labelled("b"))
        await passing(120.0)
        assert served(api, "b", 0.0)


async def test_one_that_goes_while_it_is_led() -> None:
    """Where nothing can be listed any more, nothing is written on an old view; next door it goes on."""
    api = cluster("a", "b")
    async with standing_by(api, "a", "b") as doorway:
        await lead(doorway)
        assert served(api, "b", 0.0)
        api.delete_namespace("b")
        await passing(300.0)
        before_s = now()
        assert doorway._views.failing_for("b") is not None
        assert doorway._views.failing_for("a") is None
        api.put(DEPLOYMENTS.format("a"), {**labelled("a"), "spec": {**labelled("a")["spec"], "replicas": 5}})
        await passing(30.0)
        assert served(api, "a", before_s)
        assert not served(api, "b", before_s)


async def test_all_that_are_gone_cost_little() -> None:
    """Three namespaces that are not there: under five requests a second in all."""
    api = cluster("a")
    async with standing_by(api, "a", "b", "c", "d") as doorway:
        for namespace in "bcd":
            api.delete_namespace(namespace)
        await lead(doorway)
        began_s = now()
        await passing(600.0)
        assert sum(api.rates(began_s).values()) < 5 * 600

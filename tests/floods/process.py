"""A process of splitter's over the API server in memory: caches, election and reconciler, without kopf."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.offline import deployment_status, source_deployment
from kube.raw import Raw
from leaping import passing
from splitter.operator import _Operator as OperatorProcess  # what kopf calls
from splitter.settings import Settings
from world.api import Api
from world.process import filled

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
async def standing_by(
    api: Api, *namespaces: str, forbidden: Sequence[str] = (), moves: int | None = None
) -> AsyncIterator[OperatorProcess]:
    """Run a process with full caches that does not lead yet; `moves`: how many take-overs at a time."""
    chosen = {} if moves is None else {"max_concurrent_moves": moves}
    settings = Settings(watch_namespaces=namespaces, own_namespace="splitter", leader_election="on", **chosen)
    async with filled(OperatorProcess(api, settings, forbidden)) as operator:
        yield operator


async def lead(operator: OperatorProcess) -> None:
    """Take the Lease, and serve for a while."""
    assert operator._election is not None
    operator._spawn(operator._election.run())
    operator._terms = operator._spawn(operator._serve_terms())
    await passing(20.0)
    assert operator._election.leading


def now() -> float:
    """Return the loop's time."""
    return asyncio.get_running_loop().time()

"""The world's API server behind a real socket, for what asks by HTTP: the page, and commands."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread

import orjson
from aiohttp import web

from splitter.kube.client import ApiError
from splitter.kube.paths import ResourcePath
from world.api import Api
from world.kinds import Raw

_PATCHES = {
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}


def application(api: Api) -> web.Application:
    """Return what answers as an API server does."""

    async def answer(request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        try:
            path = ResourcePath.read(request.path)
        except ValueError:
            return _refused(ApiError(404, "NotFound", "the server could not find the requested resource"))
        try:
            if "watch" in query:
                return await _watch(api, request, path, query)
            text = await request.read()
            body: Raw | None = orjson.loads(text) if text else None
            patch = _PATCHES.get(request.content_type, "")
            return _json(await api.send(request.method, path, body, patch=patch, query=query))
        except ApiError as error:
            return _refused(error)

    result = web.Application()
    result.router.add_route("*", "/{path:.*}", answer)
    return result


async def _watch(
    api: Api, request: web.Request, path: ResourcePath, query: dict[str, str]
) -> web.StreamResponse:
    async with api.stream(path, query, 0.0) as lines:
        response = web.StreamResponse()
        await response.prepare(request)
        # aiohttp sends the head of an answer with its first bytes.
        since = {"kind": "Thing", "metadata": {"resourceVersion": query.get("resourceVersion", "0")}}
        try:
            await response.write(orjson.dumps({"type": "BOOKMARK", "object": since}) + b"\n")
            async for line in lines:
                await response.write(line + b"\n")
        except ConnectionError:
            pass  # the client has left
        return response


def _json(body: Raw, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")


def _refused(error: ApiError) -> web.Response:
    status = {"kind": "Status", "code": error.status, "reason": error.reason, "message": error.message}
    return _json(status, error.status)


@asynccontextmanager
async def served(api: Api) -> AsyncIterator[str]:
    """Serve on a free port of loopback, and yield the address."""
    runner = web.AppRunner(application(api), shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=128).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@contextmanager
def serving(api: Api, kubeconfig: Path) -> Iterator[None]:
    """Serve in a thread with a clock of its own, and write a kubeconfig that leads there."""
    begun, over = Future[str](), asyncio.Event()
    loop = asyncio.SelectorEventLoop()

    async def serve() -> None:
        async with served(api) as address:
            begun.set_result(address)
            await over.wait()

    thread = Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        kubeconfig.write_text(json.dumps(_kubeconfig(begun.result(30.0))), encoding="utf-8")
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def _kubeconfig(address: str) -> Raw:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {}}],
    }

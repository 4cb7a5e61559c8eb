"""An API server that answers what a test tells it to, on loopback: what the client and the watches meet."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web
from kubernetes.aio.client import ApiClient, Configuration

from splitter.kube.client import Answered, Client, at_the_last_moment

Json = dict[str, Any]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

TOKEN = "a-token"
CERTIFICATE = Path(__file__).parents[1] / "worthless.pem"  # nobody has to vouch for plain HTTP on loopback


@dataclass(slots=True)
class Asked:
    """One request, as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: object


@dataclass(slots=True)
class Script:
    """What to answer, one request after the other; the last answer is given again and again.

    Watches have answers of their own.
    """

    answers: deque[Answer] = field(default_factory=deque)
    watches: deque[Answer] = field(default_factory=deque)
    asked: list[Asked] = field(default_factory=list)

    def then(self, *answers: Answer) -> "Script":
        """Add answers."""
        self.answers.extend(answers)
        return self

    def watched(self, *answers: Answer) -> "Script":
        """Add answers to watches."""
        self.watches.extend(answers)
        return self

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request, and remember it."""
        text = await request.read()
        self.asked.append(
            Asked(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                orjson.loads(text) if text else None,
            )
        )
        answers = self.watches if self.watches and "watch" in request.query else self.answers
        chosen = answers.popleft() if len(answers) > 1 else answers[0]
        return await chosen(request)


def json(body: object, status: int = 200) -> Answer:
    """Answer with a JSON document."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")

    return answer


def echo(**fields: object) -> Answer:
    """Answer with what was sent, and `fields` of its metadata, as an API server that changes nothing."""

    async def answer(request: web.Request) -> web.Response:
        body = orjson.loads(await request.read() or b"{}")
        body["metadata"] = {**body.get("metadata", {}), **fields}
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    return answer


def text(body: str, status: int = 200) -> Answer:
    """Answer with plain text, as a proxy in between may."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    return answer


def refusal(status: int, reason: str, message: str) -> Answer:
    """Answer with a Kubernetes Status."""
    return json({"kind": "Status", "code": status, "reason": reason, "message": message}, status)


def page(*items: Json, version: int, more: str = "") -> Answer:
    """Answer with one page of a list."""
    values: Json = {"resourceVersion": str(version)}
    if more:
        values["continue"] = more
    return json({"metadata": values, "items": list(items)})


def event(kind: str, raw: Json) -> bytes:
    """Return one line of a watch."""
    return orjson.dumps({"type": kind, "object": raw}) + b"\n"


def bookmark(version: int) -> bytes:
    """Return a bookmark's line."""
    return event("BOOKMARK", {"kind": "Thing", "metadata": {"resourceVersion": str(version)}})


def error(code: int, reason: str) -> bytes:
    """Return the line with which a watch says what went wrong."""
    return event("ERROR", {"kind": "Status", "code": code, "reason": reason, "message": "too old"})


def watch(*pieces: bytes) -> Answer:
    """Answer with a stream that ends properly, as a server does at the end of timeoutSeconds."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _stream(request, pieces)

    return answer


def broken(*pieces: bytes) -> Answer:
    """Answer with a stream whose connection breaks in the middle."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = await _stream(request, pieces, end=False)
        if request.transport is not None:
            request.transport.abort()
        return response

    return answer


def open_watch(*pieces: bytes) -> Answer:
    """Answer with a stream that stays open until the client leaves."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = await _stream(request, pieces, end=False)
        await asyncio.Event().wait()
        return response

    return answer


async def _stream(request: web.Request, pieces: tuple[bytes, ...], *, end: bool = True) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
    if end:
        await response.write_eof()
    return response


def hang_up() -> Answer:
    """Break the connection instead of answering."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    return answer


def silence() -> Answer:
    """Never answer."""

    async def answer(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    return answer


@asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[str]:
    """Serve what answers each request on a free port, and yield its address."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(
    script: Script, timeout_s: float = 5.0, answered: Answered = lambda *_: None
) -> AsyncIterator[Client]:
    """Yield a client of a server that answers by the script."""
    async with serve(script.answer) as address, client_of(address, timeout_s, answered) as client:
        yield client


@asynccontextmanager
async def client_of(
    address: str, timeout_s: float = 5.0, answered: Answered = lambda *_: None
) -> AsyncIterator[Client]:
    """Yield a client of an address, whoever is there."""
    configuration = Configuration()
    configuration.host = address
    configuration.proxy = None
    # Without one, all of the system's are read for each client: 30 ms, as long as many a test.
    configuration.ssl_ca_cert = str(CERTIFICATE)
    configuration.trace_configs = [at_the_last_moment()]
    configuration.api_key["BearerToken"] = TOKEN
    configuration.api_key_prefix["BearerToken"] = "Bearer"
    client = Client(ApiClient(configuration=configuration), timeout_s, answered)
    try:
        yield client
    finally:
        await client.close()

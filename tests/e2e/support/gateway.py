"""A gateway on loopback between one controller and the API server, which can let it die at a write.

The controller's kubeconfig names the gateway; requests, answers and watches pass through as they are. A
write that `Gateway.fatal` picks is carried out, but its answer is not delivered, and from that moment on
nothing passes any more: as far as the cluster is concerned, the controller died between that write and
the next. A write that changed nothing (the answer shows the resourceVersion of an earlier one) is noted
and never fatal: the cluster cannot tell it from none. `struck` tells the test, which kills the process,
calls `reopen` and starts another one.
"""

import asyncio
import base64
import json
import re
import ssl
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Self

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from splitter.sandbox.credentials import write_private
from splitter.sandbox.instants import Instant

_WRITING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_WATCHED_KINDS = frozenset({"deployments", "statefulsets", "replicasets", "pods", "splits", "placements"})
_OBJECT = re.compile(r"/apis?/.*?/?namespaces/(?P<namespace>[^/]+)/(?P<kind>[a-z]+)(?P<rest>/.*)?")
# What belongs to one connection and not to the message (RFC 9110, 7.6.1), what aiohttp counts itself, and
# compression, so that answers can be read.
_OF_THE_CONNECTION = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "accept-encoding"}
)
_START_DEADLINE_S = 30.0
_LET_GO_S = 0.25
_SHOWN = 160
_SENT = web.RequestKey("sent", Instant)


@dataclass(frozen=True, slots=True)
class Write:
    """One write to a workload, a pod or an object of ours that the API server has answered."""

    sent: Instant
    at: Instant
    method: str
    namespace: str
    kind: str
    rest: str
    body: str
    status: int
    changed: bool
    fatal: bool = False

    @property
    def name(self) -> str:
        """What it was sent to by name; nothing of one that creates."""
        return self.rest.removeprefix("/").partition("/")[0]

    def __str__(self) -> str:
        """Return one line for a person."""
        end = "  -> dies" if self.fatal else "" if self.changed else "  (changes nothing)"
        return f"{self.method} {self.kind}{self.rest} {self.body[:_SHOWN]} {self.status}{end}"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, of anything and by any method, and how it was answered."""

    method: str
    path: str
    watches: bool
    status: int


def never(_write: Write) -> bool:
    """Let the controller live."""
    return False


class Gateway:
    """Forwards everything (writes one at a time, noted in `writes`) and closes at those that `fatal` picks.

    Runs in a thread of its own, within a `with`. `fatal` is asked in that thread, once for each write.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._config = yaml.safe_load(kubeconfig.read_text())
        cluster = self._config["clusters"][0]["cluster"]
        self._server = cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._trust = ssl.create_default_context(cadata=authority)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway", daemon=True)
        self._port = 0
        self._refuse: Callable[[bool], Coroutine[None, None, None]] | None = None
        self._close: Callable[[], Coroutine[None, None, None]] | None = None
        self.fatal: Callable[[Write], bool] = never
        self.struck = threading.Event()
        self.writes: list[Write] = []
        self.requests: set[Request] = set()
        self.others: list[str] = []  # what else was asked for that is no read: Events, dry runs, reviews
        self._versions: set[str] = set()
        self._life = 0  # of the controller that is connected
        self._connected: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()
        self._one_write = asyncio.Lock()  # so that none is under way when it dies at another

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig of the same user that leads through the gateway, and return its path."""
        cluster = {"name": self._config["clusters"][0]["name"], "cluster": {"server": self._url}}
        return write_private(path, yaml.safe_dump({**self._config, "clusters": [cluster]}))

    def refuse(self, *, refused: bool = True) -> None:
        """Break connections off and refuse new ones, like a server that is not there; or be there again."""
        if self._refuse is None:
            raise AssertionError("the gateway is used within a with")
        asyncio.run_coroutine_threadsafe(self._refuse(refused), self._loop).result(_START_DEADLINE_S)

    def reopen(self) -> None:
        """Let requests through again; those that came while it was closed stay unanswered for ever."""
        self._life += 1
        self.struck.clear()

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_START_DEADLINE_S)
        return self

    def __exit__(self, *_: object) -> None:
        """End; whoever is still connected is cut off."""
        if self._close is not None:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(_START_DEADLINE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_DEADLINE_S)
        self._end_tasks()
        self._loop.close()

    def _end_tasks(self) -> None:
        """Let those that were cut off let go of their connections: a loop that is closed cannot."""
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.wait(left) if left else self._loop.shutdown_asyncgens())
        # The end of a TLS connection takes some more turns (aiohttp, "Graceful shutdown").
        self._loop.run_until_complete(let_pass(_LET_GO_S))

    async def _listen(self) -> None:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._trust, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        app = web.Application(client_max_size=0)

        async def forward(request: web.Request) -> web.StreamResponse:
            request[_SENT] = Instant.now()
            return await self._forward(session, request)

        app.router.add_route("*", "/{path:.*}", forward)
        # Cancelled with its connection: what a killed controller had asked for does not outlive it.
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._port = runner.addresses[0][1]

        async def refuse(refused: bool) -> None:
            nonlocal site
            if not refused:
                site = web.TCPSite(runner, "127.0.0.1", self._port)
                await site.start()
                return
            await site.stop()
            for transport in list(self._connected):
                transport.abort()

        async def close() -> None:
            await runner.cleanup()
            await session.close()

        self._refuse = refuse
        self._close = close

    async def _forward(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            self._connected.add(request.transport)
        life = self._life
        body = await request.read()
        target = _target_of(request)
        if target is None:
            if request.method in _WRITING:
                self.others.append(f"{request.method} {request.path_qs}")
            await self._let_live(life)
            return await self._carried_out(session, request, body, life)
        async with self._one_write:
            await self._let_live(life)
            answer = await self._carried_out(session, request, body, life)
            self._note(request, target, body, answer)
        await self._let_live(life)
        return answer

    async def _carried_out(
        self, session: aiohttp.ClientSession, request: web.Request, body: bytes, life: int
    ) -> web.StreamResponse:
        async with session.request(
            request.method,
            URL(self._server + request.raw_path, encoded=True),
            headers=_of_the_message(request.headers.items()),
            data=body or None,
            skip_auto_headers=("Accept-Encoding", "Content-Type", "User-Agent"),
        ) as answer:
            watches = "watch" in request.query
            self.requests.add(Request(request.method, request.path, watches=watches, status=answer.status))
            headers = _of_the_message(answer.headers.items())
            if not watches:
                return web.Response(status=answer.status, body=await answer.read(), headers=headers)
            response = web.StreamResponse(status=answer.status, headers=headers)
            with suppress(ConnectionError, aiohttp.ClientError):  # either side may end it
                await response.prepare(request)
                async for piece in self._watched(request, answer.content.iter_any()):
                    await self._let_live(life)
                    await response.write(piece)
                await response.write_eof()
            return response

    async def _watched(self, _request: web.Request, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield what a watch tells, in pieces as they come; `chaos.proxy` spoils some."""
        async for piece in pieces:
            yield piece

    async def _let_live(self, life: int) -> None:
        """Wait for ever when its sender is as good as dead: until the connection ends, and this with it."""
        if self.struck.is_set() or life != self._life:
            await asyncio.Event().wait()

    def _note(
        self, request: web.Request, target: re.Match[str], body: bytes, answer: web.StreamResponse
    ) -> None:
        content = answer.body if isinstance(answer, web.Response) else b""
        write = Write(
            sent=request[_SENT],
            at=Instant.now(),
            method=request.method,
            namespace=target["namespace"],
            kind=target["kind"],
            rest=target["rest"] or "",
            body=body.decode(errors="replace"),
            status=answer.status,
            changed=answer.status < HTTPStatus.BAD_REQUEST
            and isinstance(content, bytes)
            and self._is_new(content),
        )
        if write.changed and self.fatal(write):
            write = replace(write, fatal=True)
            self.struck.set()
        self.writes.append(write)

    def _is_new(self, answer: bytes) -> bool:
        """Whether no earlier write was answered with this version; versions are unique in a cluster."""
        version = json.loads(answer).get("metadata", {}).get("resourceVersion", "")
        if version in self._versions:
            return False
        if version:
            self._versions.add(version)
        return True


async def let_pass(seconds: float) -> None:
    """Let others have their turn for so long."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)


def _target_of(request: web.Request) -> re.Match[str] | None:
    """Return what a request writes to, None for everything else."""
    match = _OBJECT.fullmatch(request.path)
    if request.method not in _WRITING or "dryRun" in request.query:
        return None
    return match if match is not None and match["kind"] in _WATCHED_KINDS else None


def _of_the_message(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _OF_THE_CONNECTION]

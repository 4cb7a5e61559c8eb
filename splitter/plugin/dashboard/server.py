"""Serves the page on 127.0.0.1: whole views, and a stream of what changes in them.

Every request is looked at by `guard` first. A stream ends when its browser is gone or does not read, and
there are few at a time.
"""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.typedefs import Handler

from splitter.core.names import Key
from splitter.plugin.dashboard.clusters import MEMBERS
from splitter.plugin.dashboard.fleet import element_id
from splitter.plugin.dashboard.guard import HEADERS, Guard
from splitter.plugin.dashboard.model import Model
from splitter.plugin.dashboard.simulator import Simulator
from splitter.plugin.dashboard.views import FILES, ClustersViews, Views, key_at, sent

logger = logging.getLogger("splitter.dashboard")

HOST = "127.0.0.1"
STREAMS = 32
# Changes come in swarms: what comes within this is sent together.
_TOGETHER_S = 0.03
# Times that are told, and what is missing, change without a change of the cluster.
_LOOK_S = 1.0
# Pictures move on with the time.
_PICTURES_S = 2.0
_WRITE_S = 20.0
_ROWS_AT_ONCE = 200
_NAME = 3 * 253  # of what is not shown: no name of Kubernetes' is longer
_STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Served:
    """A page that is served."""

    address: str
    guard: Guard


@asynccontextmanager
async def serve(model: Model, views: Views, simulator: Simulator, port: int = 0) -> AsyncIterator[Served]:
    """Serve the page until the end of the block; port 0: any that is free.

    Raises OSError where the port is taken.
    """
    async with _serve({"": _Page(model, views, simulator)}, port) as served:
        yield served


@asynccontextmanager
async def serve_clusters(
    views: ClustersViews, members: Sequence[tuple[Model, Views, Simulator]], port: int = 0
) -> AsyncIterator[Served]:
    """Serve the view of several clusters, and below it all views of each one; otherwise as `serve`."""
    pages: dict[str, _Pages] = {"": _ClustersPage(views)}
    pages |= {f"/{MEMBERS}/{number}": _Page(*member) for number, member in enumerate(members)}
    async with _serve(pages, port) as served:
        yield served


@asynccontextmanager
async def _serve(pages: Mapping[str, "_Pages"], port: int) -> AsyncIterator[Served]:
    loop = asyncio.get_running_loop()
    listening = socket.create_server((HOST, port), backlog=64)
    guard = Guard(int(listening.getsockname()[1]))
    application = web.Application(middlewares=[_guarded(guard)])
    application.on_response_prepare.append(_protect)
    for below, page in pages.items():
        application.add_routes(page.routes(f"/{guard.token}{below}"))
    # A handler ends when its browser is gone, in the middle of a plan too.
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.5)
    await runner.setup()
    options: dict[str, Any] = {"manager": runner.server, "loop": loop, "access_log": None}
    accepting = await loop.create_server(partial(_Connection, **options), sock=listening)
    try:
        yield Served(guard.address, guard)
    finally:
        for page in pages.values():
            page.end()
        accepting.close()
        await runner.cleanup()


class _Connection(web.RequestHandler):
    """A connection. aiohttp alone would repeat what is no request, in the log, with a traceback."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what no handler has answered: a bug, or bytes that are no request or are too many."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        is_long = isinstance(exc, LineTooLong) or "Too many headers" in exc.message
        known = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if is_long else HTTPStatus.BAD_REQUEST
        answer = web.Response(status=known, text=known.phrase, headers=HEADERS)
        answer.force_close()
        return answer


async def _protect(_: web.Request, answer: web.StreamResponse) -> None:
    answer.headers.update(HEADERS)


def _guarded(guard: Guard) -> Any:  # noqa: ANN401 - aiohttp's own kind of function
    @web.middleware
    async def look(request: web.Request, handler: Handler) -> web.StreamResponse:
        refused = guard.refusal(request.method, request.path, request.headers)
        if refused is not None:
            allow = {"Allow": "GET, HEAD"} if refused.status == HTTPStatus.METHOD_NOT_ALLOWED else {}
            return web.Response(status=refused.status, text=refused.message, headers=allow)
        try:
            return await handler(request)
        except web.HTTPException as error:
            return web.Response(status=error.status, text=error.text or HTTPStatus(error.status).phrase)
        except Exception:
            logger.exception("a request could not be answered, this is a bug of splitter's")
            complaint = "this could not be shown; the terminal of `splitter dashboard` says why"
            return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR, text=complaint)

    return look


class _Pages:
    """Answers requests that were let in: files, and few streams at a time."""

    def __init__(self) -> None:
        self._streams: set[asyncio.Task[Any]] = set()

    def routes(self, root: str) -> list[web.RouteDef]:
        """Return what is answered, all of it below the token."""
        return [web.get(f"{root}/static/{{name}}", self._static)]

    def end(self) -> None:
        """End all streams."""
        for task in self._streams:
            task.cancel()

    async def _static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in _STATIC:
            raise web.HTTPNotFound(text="there is no such file")
        text = await asyncio.to_thread((FILES / "static" / name).read_text, "utf-8")
        return web.Response(text=text, content_type=_STATIC[name])

    async def _stream(
        self, request: web.Request, messages: "AsyncGenerator[Message, None]"
    ) -> web.StreamResponse:
        if len(self._streams) >= STREAMS:
            raise web.HTTPServiceUnavailable(text=f"{STREAMS} views are open already; close some")
        task = asyncio.current_task()
        if task is not None:
            self._streams.add(task)
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            async with aclosing(messages):
                async for name, message, change in messages:
                    await _write(response, name, message, change)
        except (ConnectionError, TimeoutError):
            pass  # the browser is gone, or does not read
        finally:
            if task is not None:
                self._streams.discard(task)
        return response


class _ClustersPage(_Pages):
    """The view of several clusters."""

    def __init__(self, views: ClustersViews) -> None:
        super().__init__()
        self._views = views

    def routes(self, root: str) -> list[web.RouteDef]:
        """Return what is answered, all of it below the token."""
        events = web.get(f"{root}/events/clusters", self._events, allow_head=False)
        return [web.get(f"{root}/", self._all), events, *super().routes(root)]

    async def _all(self, _: web.Request) -> web.Response:
        return _html(self._views.page())

    async def _events(self, request: web.Request) -> web.StreamResponse:
        return await self._stream(request, self._messages())

    async def _messages(self) -> "AsyncGenerator[Message, None]":
        """Yield what has changed, each second, without end; an empty one is a heartbeat."""
        before: dict[str, str] = {}
        while True:
            parts = _changed_parts(before, sent(self._views.parts()))
            yield "parts", {"parts": parts} if parts else {}, 0
            await asyncio.sleep(_LOOK_S)


class _Page(_Pages):
    """The views of one cluster."""

    def __init__(self, model: Model, views: Views, simulator: Simulator) -> None:
        super().__init__()
        self._model = model
        self._views = views
        self._simulator = simulator
        self._planning = asyncio.Lock()

    def routes(self, root: str) -> list[web.RouteDef]:
        """Return what is answered, all of it below the token."""
        workload = "{namespace}/{kind}/{name}"
        return [
            web.get(f"{root}/", self._fleet),
            web.get(f"{root}/workload/{workload}", self._workload),
            web.get(f"{root}/plan/workload/{workload}", self._plan),
            web.get(f"{root}/simulator", self._simulate),
            web.get(f"{root}/replay", self._replay),
            web.get(f"{root}/events/fleet", self._fleet_events, allow_head=False),
            web.get(f"{root}/events/workload/{workload}", self._workload_events, allow_head=False),
            *super().routes(root),
        ]

    async def _fleet(self, _: web.Request) -> web.Response:
        return _html(self._views.fleet_page())

    async def _workload(self, request: web.Request) -> web.Response:
        try:
            key = self._key(request)
        except web.HTTPNotFound:
            result = request.match_info
            name = f"{result['namespace']}/{result['kind']}/{result['name']}"[:_NAME]
            return _html(self._views.missing_page(name), HTTPStatus.NOT_FOUND)
        return _html(self._views.workload_page(key))

    async def _plan(self, request: web.Request) -> web.Response:
        key = self._key(request)
        if self._planning.locked():
            return _html("<p class=quiet>Another plan is being made; try again in a moment.</p>")
        async with self._planning:
            return _html(await self._views.plan_part(key))

    async def _simulate(self, request: web.Request) -> web.Response:
        key = key_at(request.query.get("workload", ""))
        status = self._model.statuses.get(key) if key is not None else None
        form = self._simulator.form(status, request.query)
        return _html(self._views.page("simulator", base="", title="Simulator", key=key, **form))

    async def _replay(self, request: web.Request) -> web.Response:
        key = key_at(request.query.get("workload", ""))
        status = self._model.statuses.get(key) if key is not None else None
        result = await self._simulator.replay(status, request.query)
        return _html(self._views.page("parts/replay", **result))

    def _key(self, request: web.Request) -> Key:
        result = request.match_info
        key = key_at(f"{result['namespace']}/{result['kind']}/{result['name']}")
        if key is None or key not in self._model.statuses:
            raise web.HTTPNotFound(text="no such workload is split here, or it may not be seen")
        return key

    # --- streams ----------------------------------------------------------------------------------

    async def _fleet_events(self, request: web.Request) -> web.StreamResponse:
        stream = _FleetStream(self._model, self._views, _after(request))
        return await self._stream(request, _listening(self._model, stream))

    async def _workload_events(self, request: web.Request) -> web.StreamResponse:
        stream = _WorkloadStream(self._model, self._views, self._key(request))
        return await self._stream(request, _listening(self._model, stream))


Message = tuple[str, dict[str, Any], int]
"""The name of an event, what it says, and up to which change."""


async def _listening(model: Model, stream: "_FleetStream | _WorkloadStream") -> AsyncGenerator[Message, None]:
    with model.listened() as changed:
        async with aclosing(stream.messages(changed)) as messages:
            async for message in messages:
                yield message


class _FleetStream:
    """The events of the first view for one browser: only what it has not got yet."""

    def __init__(self, model: Model, views: Views, after: int) -> None:
        self._model = model
        self._views = views
        # Of another run of this command, which has counted other changes.
        self._after = after if after <= model.last_change else -1
        self._membership = -1
        self._parts: dict[str, str] = {}
        self._pictured_s = float("-inf")

    async def messages(self, changed: asyncio.Event) -> AsyncGenerator[Message, None]:
        """Yield messages without end; an empty one is a heartbeat."""
        clock = asyncio.get_running_loop().time
        while True:
            changed.clear()
            model, until = self._model, self._model.last_change
            touched = model.since(self._after)
            message: dict[str, Any] = {}
            if model.membership != self._membership:
                self._membership = model.membership
                message["order"] = [element_id(key) for key in model.keys()]  # noqa: SIM118 (keys in order)
            pictured = clock() - self._pictured_s >= _PICTURES_S
            if pictured:
                self._pictured_s = clock()
            message["parts"] = _changed_parts(self._parts, sent(self._views.fleet_parts(pictures=pictured)))
            keys = sorted(touched, key=str)
            for begin in range(0, len(keys) or 1, _ROWS_AT_ONCE):
                some = [key for key in keys[begin : begin + _ROWS_AT_ONCE] if key in model.statuses]
                message["rows"] = {element_id(key): str(self._views.row(key)) for key in some}
                # What was sent so far counts when all of it was.
                is_last = begin + _ROWS_AT_ONCE >= len(keys)
                yield (
                    "parts",
                    {name: one for name, one in message.items() if one},
                    until if is_last else self._after,
                )
                message = {}
            self._after = until
            await _pause(changed)


class _WorkloadStream:
    """The events of the second view for one browser."""

    def __init__(self, model: Model, views: Views, key: Key) -> None:
        self._model = model
        self._views = views
        self._key = key
        self._parts: dict[str, str] = {}

    async def messages(self, changed: asyncio.Event) -> AsyncGenerator[Message, None]:
        """Yield messages until the workload is no longer split."""
        while self._key in self._model.statuses:
            changed.clear()
            parts = _changed_parts(self._parts, sent(self._views.workload_parts(self._key)))
            yield "parts", {"parts": parts} if parts else {}, self._model.last_change
            before = self._model.changes.get(self._key)
            for _ in range(round(_PICTURES_S / _LOOK_S)):
                await _pause(changed)
                changed.clear()
                if self._model.changes.get(self._key) != before:
                    break
        yield "ended", {"ended": True}, self._model.last_change


async def _pause(changed: asyncio.Event) -> None:
    """Wait for a change, and for those that come with it; or for a while."""
    try:
        async with asyncio.timeout(_LOOK_S):
            await changed.wait()
    except TimeoutError:
        return
    await asyncio.sleep(_TOGETHER_S)


def _changed_parts(before: dict[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return the parts that are not as they were, and remember them."""
    result = {name: text for name, text in now.items() if before.get(name) != text}
    before.update(result)
    return result


async def _write(response: web.StreamResponse, name: str, message: dict[str, Any], change: int) -> None:
    """Write one event, or where there is nothing to say a comment. Raises OSError, TimeoutError."""
    text = f"id: {change}\nevent: {name}\ndata: {json.dumps(message)}\n\n" if message else ":\n\n"
    async with asyncio.timeout(_WRITE_S):
        await response.write(text.encode())


def _after(request: web.Request) -> int:
    text = request.headers.get("Last-Event-ID") or request.query.get("after", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else -1  # noqa: PLR2004 (of 64 bits)


def _html(text: str, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return web.Response(text=str(text), content_type="text/html", status=status)

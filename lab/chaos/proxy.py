"""The gateway that fails: what `faults` names is done here to the requests of one controller.

`run` puts one before each controller, `strike`s and `mend`s. What passes, passes as it is. It decides nothing
but by the dice of each stroke, and leads only to a server on loopback.
"""

import asyncio
import json
import random
import threading
import weakref
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from lab.chaos.faults import KINDS, RIGHTS, Fault, Reach, Stroke
from lab.fixtures.gateway import Gateway, let_pass

_SLOW_S = (0.1, 3.0)
_REASONS = {
    Fault.THROTTLED: (HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests"),
    Fault.SERVER_ERROR: (HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError"),
    Fault.UNAVAILABLE: (HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable"),
    Fault.CONFLICT: (HTTPStatus.CONFLICT, "Conflict"),
    Fault.UNAUTHORIZED: (HTTPStatus.UNAUTHORIZED, "Unauthorized"),
    Fault.FORBIDDEN: (HTTPStatus.FORBIDDEN, "Forbidden"),
}
_EXPIRED = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "code": 410,
    "reason": "Expired",
    "message": "chaos: too old resource version",
}
# An answer that is replayed is at least one round old, and at most two.
_KEPT_S = 60.0


class NotLoopbackError(ValueError):
    """Chaos was about to be brought to a cluster that is not its own."""


def check_loopback(server: str) -> None:
    """Raise NotLoopbackError unless the server is on this machine, by number: names may lead anywhere."""
    host = URL(server).host or ""
    with suppress(ValueError):
        if ip_address(host).is_loopback:
            return
    raise NotLoopbackError(
        f"chaos is only for the sandbox that it starts itself, on loopback; this server is {server!r}."
    )


@dataclass
class _Lasting:
    """A stroke that lasts, with its dice."""

    stroke: Stroke
    dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.stroke.seed)

    def strikes(self, reach: Reach, request: web.Request) -> bool:
        kind = KINDS[self.stroke.fault]
        if kind.reach is not reach:
            return False
        if self.stroke.fault is Fault.FORBIDDEN:
            method, where = RIGHTS[self.stroke.right]
            return request.method == method and where in request.path
        return self.dice.random() < kind.share


@dataclass(frozen=True, slots=True)
class _Kept:
    at_s: float
    status: int
    body: bytes
    headers: list[tuple[str, str]]


class FaultProxy(Gateway):
    """A gateway whose requests fail while strokes last; `struck_by` counts what was struck, by fault."""

    def __init__(self, kubeconfig: Path) -> None:
        check_loopback(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
        super().__init__(kubeconfig)
        self.struck_by: Counter[Fault] = Counter()
        self.watches = 0  # that are open now
        self._lasting: list[_Lasting] = []
        self._guard = threading.Lock()  # strokes come from another thread than requests
        self._watching: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()
        self._lists: dict[str, tuple[_Kept, _Kept]] = {}

    def strike(self, stroke: Stroke) -> None:
        """Begin."""
        with self._guard:
            self._lasting.append(_Lasting(stroke))
        if stroke.fault is Fault.REFUSED:
            self.struck_by[Fault.REFUSED] += 1
            self.refuse()
        if stroke.fault is Fault.STALE_LIST:
            self._loop.call_soon_threadsafe(self._cut_watches)

    def mend(self, stroke: Stroke) -> None:
        """End; what was already struck stays so."""
        with self._guard:
            self._lasting = [each for each in self._lasting if each.stroke != stroke]
        if stroke.fault is Fault.REFUSED:
            self.refuse(refused=False)

    # --- in the gateway's thread ------------------------------------------------------------------

    def _cut_watches(self) -> None:
        for transport in list(self._watching):
            transport.abort()

    def _drawn(self, reach: Reach, request: web.Request) -> _Lasting | None:
        with self._guard:
            result = next((each for each in self._lasting if each.strikes(reach, request)), None)
        if result is not None:
            self.struck_by[result.stroke.fault] += 1
        return result

    async def _forward(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        reaches = (Reach.ANY,) if request.method == "GET" else (Reach.WRITES, Reach.ANY)
        for reach in reaches:
            if (result := self._drawn(reach, request)) is None:
                continue
            if result.stroke.fault is not Fault.SLOW:
                await request.read()
                return _refusal(result.stroke.fault)
            await let_pass(result.dice.uniform(*_SLOW_S))
        try:
            return await super()._forward(session, request)
        except aiohttp.ClientConnectionError:  # the server was killed: its client sees what it would see
            return await _reset(request)

    async def _carried_out(
        self, session: aiohttp.ClientSession, request: web.Request, body: bytes, life: int
    ) -> web.StreamResponse:
        if "watch" in request.query:
            if request.transport is not None:
                self._watching.add(request.transport)
            self.watches += 1
            try:
                with suppress(_WatchBrokenError):
                    return await super()._carried_out(session, request, body, life)
            finally:
                self.watches -= 1
            return await _reset(request)
        answer = await super()._carried_out(session, request, body, life)
        if not isinstance(answer, web.Response):
            return answer
        answer = self._as_listed(request, answer)
        match self._drawn(Reach.ANSWERS, request):
            case None:
                return answer
            case _Lasting(stroke=Stroke(fault=Fault.ANSWER_LOST)):
                return await _reset(request)
            case _:
                return await _half(request, answer)

    def _as_listed(self, request: web.Request, answer: web.Response) -> web.Response:
        """Keep what a list was, and return an older one while lists are stale."""
        content = answer.body
        if request.method != "GET" or answer.status != HTTPStatus.OK or not isinstance(content, bytes):
            return answer
        if not content.startswith(b'{"kind":') or b'List","' not in content[:80]:
            return answer
        key, now_s = request.path_qs, self._loop.time()
        kept = _Kept(now_s, answer.status, content, list(answer.headers.items()))
        older, newer = self._lists.get(key, (kept, kept))
        if self._drawn(Reach.LISTS, request) is not None:
            return web.Response(status=older.status, body=older.body, headers=older.headers)
        if now_s - newer.at_s > _KEPT_S:
            self._lists[key] = (newer, kept)
        else:
            self._lists.setdefault(key, (older, newer))
        return answer

    async def _watched(self, request: web.Request, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            result = self._drawn(Reach.WATCHES, request)
            match result.stroke.fault if result is not None else None:
                case None:
                    yield piece
                case Fault.WATCH_CUT:
                    yield piece[: len(piece) // 2]
                    return
                case Fault.WATCH_BROKEN:
                    yield piece[: len(piece) // 2]
                    raise _WatchBrokenError
                case Fault.WATCH_GONE:
                    yield json.dumps({"type": "ERROR", "object": _EXPIRED}).encode() + b"\n"
                    return
                case _:  # silent: until the client gives up
                    await asyncio.Event().wait()


class _WatchBrokenError(Exception):
    """The connection of a watch is to be reset."""


def _refusal(fault: Fault) -> web.Response:
    code, reason = _REASONS[fault]
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code.value,
        "reason": reason,
        "message": f"chaos: {KINDS[fault].says}",
    }
    headers = {"Retry-After": "1"} if fault is Fault.THROTTLED else {}
    return web.json_response(status, status=code, headers=headers)


async def _reset(request: web.Request) -> NoReturn:
    """Break the connection off; this task is cancelled with it."""
    if request.transport is not None:
        request.transport.abort()
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def _half(request: web.Request, answer: web.Response) -> web.StreamResponse:
    content = answer.body if isinstance(answer.body, bytes) else b""
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.content_length = len(content)
    with suppress(ConnectionError, aiohttp.ClientError):
        await response.prepare(request)
        await response.write(content[: len(content) // 2])
    return await _reset(request)

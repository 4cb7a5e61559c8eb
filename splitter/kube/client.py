"""One connection to one API server: raw JSON requests, streams, and readable failures.

`connect` makes the one that there is; `watch`, `observe` and `apply` send through it. It sits on
`kubernetes.aio` (credentials, TLS, connection pool) and leaves the generated models alone: pydantic models
are slow on hot paths, so bodies are parsed by orjson into plain dicts that never leave this folder. It takes
no answer about anything else than it has asked for, and none that is too large (`answers`). It never decides
anything and never caches.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

import aiohttp
import orjson
from kubernetes.aio.client import ApiClient
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from splitter import __version__
from splitter.kube.answers import MAX_ANSWER_BYTES, MAX_PAGE_BYTES, Answers, TooLargeError, keep_alive
from splitter.kube.documents import read_json
from splitter.kube.paths import ResourcePath

PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
FIELD_MANAGER = "splitter"
# Queries of our writes: as splitter, and by an apply whatever fields others have set.
OURS = {"fieldManager": FIELD_MANAGER}
FORCED = {**OURS, "force": "true"}
_TRY_AGAIN = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
# The kind is not there: our CRD was deleted while we run, or the server is too old to know it. There are
# two ways to say so; both differ from what is said of an object that is not there.
KIND_MISSING = "KindMissing"
_NO_KIND = frozenset({"404 page not found", "the server could not find the requested resource"})
# An answer about something else than was asked for: of a broken proxy, or of somebody who wants to be heard.
WRONG_ANSWER = "WrongAnswer"
# An answer that would take the memory of all, or takes too long to arrive.
TOO_LARGE = "TooLarge"
# So many pages are as small as the last one had to be before larger ones are asked for again.
_SMALL_PAGES = 8
# A write that was not sent: this process does not lead (any more).
NOT_LEADING = "NotLeading"
# An answer, or a line of a watch, that was cut off on its way is no JSON.
_GONE_WRONG = (aiohttp.ClientError, TimeoutError, ConnectionError, OSError, orjson.JSONDecodeError)

Json = dict[str, Any]
# Told of each request when its answer begins: the verb, the HTTP status (0: no answer), the seconds it took.
Answered = Callable[[str, int, float], None]
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class ApiError(Exception):
    """An answer that is not a success.

    `status` is the HTTP status (0: no answer), `reason` Kubernetes' word, `message` its sentence.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def is_lost_race(self) -> bool:
        """Whether another client wrote in between, or the object is another one by now.

        A policy refuses with 422 as well, which is also the answer to a foreign UID.
        """
        if self.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            return "metadata.uid" in self.message or "UID in precondition" in self.message
        return self.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}


class Allowing:
    """Goes on behind its block where an ApiError with one of these statuses ended that."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = statuses

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _: object, error: object, __: object) -> bool:
        """Return whether the error is one of those."""
        return isinstance(error, ApiError) and error.status in self._statuses


class Permit(Protocol):
    """Says whether this process may write."""

    def left_s(self) -> float:
        """Return how many seconds a write sent now may take; 0: it may not be sent."""


# Of the write that is being sent by this task.
_permit: ContextVar[Permit | None] = ContextVar("permit", default=None)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What kopf needs to connect to the same server as the same user."""

    server: str
    ca_path: str | None
    insecure: bool
    token: str | None
    certificate_path: str | None
    private_key_path: str | None
    proxy_url: str | None


class Client:
    """Sends requests; every failure is an ApiError with Kubernetes' own words."""

    def __init__(
        self,
        api: ApiClient,
        timeout_s: float,
        answered: Answered = lambda *_: None,
        permit: Permit | None = None,
    ) -> None:
        self._api = api
        self._timeout_s = timeout_s
        self._answered = answered
        self._permit = permit
        self._under_way: set[asyncio.Task[Json]] = set()
        self._answers = Answers()

    @property
    def server(self) -> str:
        """The API server's address, for messages."""
        return str(self._api.configuration.host)

    def under(self, permit: Permit) -> "Client":
        """Return a client of the same connections whose writes are sent only while `permit` allows it."""
        client = Client(self._api, self._timeout_s, self._answered, permit)
        client._answers = self._answers
        return client

    async def settled(self, within_s: float) -> bool:
        """Wait for the writes under a permit that are under way; return whether all have ended."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=within_s)
        return not self._under_way

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def credentials(self) -> Credentials:
        """Return how this client connects, for kopf's own session."""
        config = self._api.configuration
        token = await config.get_api_key_with_prefix("BearerToken", alias="authorization")
        return Credentials(
            server=config.host,
            ca_path=config.ssl_ca_cert,
            insecure=not config.verify_ssl,
            token=token.removeprefix("Bearer ") if token else None,
            certificate_path=config.cert_file,
            private_key_path=config.key_file,
            proxy_url=config.proxy,
        )

    async def get(self, path: ResourcePath, **query: str) -> Json:
        """GET one object or list; transient failures are tried again.

        Raises ApiError: 404 when it is not there, 403 when we may not, 0 when nobody answers.
        """
        async for attempt in AsyncRetrying(
            retry=retry_if_exception(_is_transient),
            wait=wait_random_exponential(multiplier=0.1, max=2),
            stop=stop_after_attempt(4),
            reraise=True,
        ):
            with attempt:
                return await self.send("GET", path, query=query)
        raise AssertionError  # AsyncRetrying returns or raises

    async def find(self, path: ResourcePath) -> Json | None:
        """GET one object or list; None when it, or its kind, is not there or not for us to see.

        Raises ApiError for anything else.
        """
        with Allowing(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            return await self.get(path)
        return None

    async def pages(self, path: ResourcePath, limit: int = 500, **query: str) -> AsyncIterator[Json]:
        """GET a collection page by page, `limit` objects each; fewer where these are too large. As `get`.

        A page is emptied when the next one is asked for: there are never two in memory.
        """
        asked, small = limit, 0
        while True:
            try:
                page = await self.get(path, limit=str(limit), **query)
            except ApiError as error:
                if error.reason != TOO_LARGE or limit == 1:
                    raise
                limit, small = max(1, limit // 4), 0
                continue
            yield page
            token = (page.get("metadata") or {}).get("continue")
            page.clear()
            if not token:
                return
            query["continue"] = token
            small += 1
            if small % _SMALL_PAGES == 0:
                limit = min(asked, 2 * limit)

    async def send(
        self,
        method: str,
        path: ResourcePath,
        body: Json | None = None,
        *,
        patch: str = "",
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Json:
        """Send one request and return the parsed answer; never repeated by itself.

        Raises ApiError with Kubernetes' reason and message. A write under a permit that has run out is not
        sent (NotLeading); one that was sent goes on to its end when the caller is cancelled (`settled`).
        """
        request = _Request(method, path, body, PATCHES.get(patch, "application/json"), query or {})
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        if self._permit is None or method == "GET":
            return await self._answer(request, timeout_s)
        left_s = self._permit.left_s()
        if left_s <= 0:
            raise _not_leading()
        sent = asyncio.create_task(self._answer(request, min(timeout_s, left_s)))
        self._under_way.add(sent)
        sent.add_done_callback(self._under_way.discard)
        # Whose caller was cancelled fails unheard; asyncio would print a traceback.
        sent.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(sent)

    async def _answer(self, request: "_Request", timeout_s: float) -> Json:
        path = request.path
        _permit.set(self._permit if request.method != "GET" else None)
        try:
            response = await self._request(request, aiohttp.ClientTimeout(total=timeout_s))
            content = await self._whole(response, request)
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise _error(path, response.status, content)
            answer: Json = read_json(content) if content else {}
        except _GONE_WRONG as error:
            raise ApiError(0, "NoAnswer", f"{type(error).__name__}: {error}") from error
        if not path.is_answered_by(answer):
            raise ApiError(0, WRONG_ANSWER, f"what came back is not {path}; what stands between?")
        return answer

    async def text(self, path: ResourcePath, **query: str) -> str:
        """GET what is no JSON, such as a log; never repeated by itself. Raises ApiError as `get`."""
        request = _Request("GET", path, query=query, accept="*/*")
        try:
            response = await self._request(request, aiohttp.ClientTimeout(total=self._timeout_s))
            content = await self._whole(response, request)
        except _GONE_WRONG as error:
            raise ApiError(0, "NoAnswer", f"{type(error).__name__}: {error}") from error
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _error(path, response.status, content)
        return content.decode(errors="replace")

    @asynccontextmanager
    async def stream(
        self, path: ResourcePath, query: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch: yields an iterator over its lines, one JSON document each.

        `silence_s` bounds the silence between two reads, not the whole. Raises ApiError.
        """
        deadline = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence_s)
        response = None
        try:
            response = await self._request(_Request("GET", path, query=query), deadline)
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise _error(path, response.status, await self._answers.whole(response))
            keep_alive(response)
            yield self._answers.lines(response)
        except TooLargeError as error:
            raise _too_large(path, error) from error
        except _GONE_WRONG as error:
            raise ApiError(0, "NoAnswer", f"{type(error).__name__}: {error}") from error
        finally:
            if response is not None:
                response.close()

    async def _whole(self, response: aiohttp.ClientResponse, request: "_Request") -> bytes:
        try:
            return await self._answers.whole(response, request.most_bytes)
        except TooLargeError as error:
            raise _too_large(request.path, error) from error

    async def _request(self, request: "_Request", deadline: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        headers = {
            "Accept": request.accept,
            "Content-Type": request.content_type,
            "User-Agent": f"splitter/{__version__}",
        }
        await self._api.update_params_for_auth(
            headers, [], ["BearerToken"], str(request.path), request.method, request.body
        )
        url = f"{self.server}{request.path}"
        if request.query:
            url += "?" + self._api.parameters_to_url_query(dict(request.query), {})
        began_s, status = time.perf_counter(), 0
        try:
            answer = await self._api.rest_client.request(
                request.method, url, headers=headers, body=request.body, _request_timeout=deadline
            )
            response: aiohttp.ClientResponse = answer.response
            status = response.status
            return response
        finally:
            self._answered(request.verb, status, time.perf_counter() - began_s)


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: ResourcePath
    body: Json | None = None
    content_type: str = "application/json"
    query: Mapping[str, str] = field(default_factory=dict)
    accept: str = "application/json"

    @property
    def verb(self) -> str:
        """The verb as rights are given for it; a list counts as `get`."""
        return "watch" if "watch" in self.query else _VERBS[self.method]

    @property
    def most_bytes(self) -> int:
        """How large its answer may be: that of one object may be large, whose pages cannot be smaller."""
        return MAX_PAGE_BYTES if self.query.get("limit", "1") != "1" else MAX_ANSWER_BYTES


async def _check_permit(*_: object) -> None:
    """Refuse, at the moment in which the first byte would leave, a write that has waited too long before."""
    permit = _permit.get()
    if permit is not None and permit.left_s() <= 0:
        raise _not_leading()


def _not_leading() -> ApiError:
    return ApiError(0, NOT_LEADING, "not sent: this process does not lead")


def at_the_last_moment() -> aiohttp.TraceConfig:
    """Return what has each session check the permit of a write when its connection is there.

    A write may wait for a free connection, for TLS, for a token, or in a process that is stopped. aiohttp
    tells of headers before it queues them, and of the body before both leave together.
    """
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_check_permit)
    trace.on_request_chunk_sent.append(_check_permit)
    return trace


def _too_large(path: ResourcePath, error: TooLargeError) -> ApiError:
    return ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TOO_LARGE, f"{path} {error}")


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, ApiError) and (error.status == 0 or error.status in _TRY_AGAIN)


def _error(path: ResourcePath, status: int, content: bytes) -> ApiError:
    try:
        answer = orjson.loads(content)
        error = ApiError(status, str(answer.get("reason", "")), str(answer.get("message", "")))
    except (orjson.JSONDecodeError, AttributeError):
        error = ApiError(status, "", content[:300].decode(errors="replace").strip())
    if status == HTTPStatus.NOT_FOUND and error.message in _NO_KIND:
        kind = "Placements" if path.plural == "placements" else "Splits"
        ours = f"this cluster does not know {kind} ({kind.lower()}.splitter.io); apply manifests/crd.yaml"
        return ApiError(status, KIND_MISSING, ours if path.is_ours else error.message)
    return error

"""Follows one collection of the API server: a paged LIST, then a WATCH, for ever.

`cache` gives each reflector a parser and a store; the store is told of each change and of each
complete re-list. This is our own, and small, because it is the hot path: kopf.on.event costs about
1.1 ms of CPU an event, this about 0.13 ms (docs/adr/0004). It never interprets an object.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, NoReturn, Protocol

from splitter.kube.client import KIND_MISSING, ApiError, Client
from splitter.kube.documents import read_json
from splitter.kube.paths import ResourcePath

logger = logging.getLogger("splitter.watch")

# The server ends a watch after this long and we ask again; spread, so that watches do not all end at once.
# So short because of the silence below: a new watch goes on from the last bookmark, of which the server sends
# one right before the end, so that nothing is listed again and one costs no more than a request.
_WATCH_S = (45, 60)
# Longer than a watch lasts, so silence means a connection that is dead and does not say so; and no longer,
# for as long nobody hears of a notice, of which the longest are 120 s.
_SILENCE_S = 80.0
# A page is held as it was sent, parsed, until it is read: 500 pods are 50 MB of small objects among which the
# records are left, and Python gives little of it back (docs/performance.md).
_PAGE = 100
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 10.0
# Neither news nor failure for so long: not the server's silence, which ends before, but a fault of ours.
_STUCK_S = _SILENCE_S + 150.0
# What splitter does without: not allowed, or no such kind in this cluster. It may come later.
# An expired token (401) says neither: it is renewed within seconds.
_OFF = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
# An API server that has just started refuses everything until it has read who may do what (RBAC): what was
# followed until then is believed to be gone after the second refusal only, and asked for ever more seldom.
_OFF_FIRST_WAIT_S, _OFF_WAIT_S = 5.0, 300.0
_FOREVER = 2**63  # newer than any resourceVersion


class Store(Protocol):
    """Who hears about a collection."""

    def read(self, raw: dict[str, Any]) -> Any:  # noqa: ANN401 - the store's own affair
        """Return what to keep of an object until its list is complete, and tell nobody."""

    def replace(self, listed: Iterable[Any], namespace: str | None, version: int) -> None:
        """Take a complete list as of `version`, each object as read; what is not in it is gone.

        It is the list of one namespace, or of all.
        """

    def upsert(self, raw: dict[str, Any]) -> object:
        """Take a new or changed object."""

    def remove(self, raw: dict[str, Any]) -> None:
        """Forget an object: deleted, or no longer matching the selector."""


class Reflector:
    """Keeps one store in step with one collection; `synced` is set after the first complete list.

    One with a sentence in `without` is optional: where it may not be read or does not exist, that is said
    once at INFO, with this sentence, and asked again, ever more seldom. The first pass waits for an `awaited`
    one all the same, until it is listed or known not to be there. Of a list the store reads each page as
    it comes (10,000 pods take 600 MB as they are sent), and hears of all of them at once, at its end.
    """

    def __init__(
        self,
        client: Client,
        path: ResourcePath,
        store: Store,
        selector: str = "",
        *,
        fields: str = "",
        without: str = "",
        awaited: bool = False,
    ) -> None:
        self._client = client
        self._namespace = path.namespace or None
        self._path = path
        self._store = store
        self._selector = {"labelSelector": selector} if selector else {}
        if fields:
            self._selector["fieldSelector"] = fields
        self._without = without
        self._awaited = awaited or not without
        self._off = False
        self._followed = False  # a watch was open since the last refusal
        self.synced = asyncio.Event()
        self.restarts = 0
        self.error: ApiError | None = None  # the last failure, None after a success
        self._heard_s = self._tried_s = time.monotonic()

    @property
    def path(self) -> ResourcePath:
        """The collection's path, for messages."""
        return self._path

    @property
    def label(self) -> str:
        """The collection's path with its selector: two watches may follow one collection."""
        selector = self._selector.get("labelSelector", "")
        return f"{self._path}?{selector}" if selector else str(self._path)

    @property
    def optional(self) -> bool:
        """Whether splitter does without it."""
        return bool(self._without)

    @property
    def awaited(self) -> bool:
        """Whether nothing may be decided before it is synced."""
        return self._awaited

    @property
    def silent_s(self) -> float:
        """For how long the server has said nothing, not even a bookmark."""
        return time.monotonic() - self._heard_s

    @property
    def stuck(self) -> bool:
        """Whether nothing has happened here for longer than any silence or time-out lasts."""
        return time.monotonic() - self._tried_s > _STUCK_S

    def _heard(self) -> None:
        self._heard_s = self._tried_s = time.monotonic()

    async def run(self) -> None:
        """List and watch until cancelled; failures are logged once each and waited out."""
        wait_s, off_wait_s = _FIRST_WAIT_S, _OFF_FIRST_WAIT_S
        while True:
            try:
                version = await self._list()
                wait_s = _FIRST_WAIT_S
                await self._watch(version)
            except ApiError as error:
                self._tried_s = time.monotonic()
                if self.optional and error.status in _OFF:
                    if self._followed:
                        self._followed, off_wait_s = False, _OFF_FIRST_WAIT_S
                    else:
                        self._do_without(error)
                    await asyncio.sleep(off_wait_s * random.uniform(0.5, 1.5))  # noqa: S311 (jitter, no secret)
                    off_wait_s = min(_OFF_WAIT_S, off_wait_s * 2)
                    continue
                if self.error is None or self.error.status != error.status:
                    logger.warning("watch of %s interrupted: %s", self._path, error)
                if error.reason == KIND_MISSING and self._path.is_ours:
                    # Our CRD was deleted, and all objects with it, even if nobody told of the last of them.
                    # Of other kinds it is not believed: a proxy that has lost its way answers the same.
                    self._store.replace((), self._namespace, _FOREVER)
                self.error = error
                self.restarts += 1
                # Not a race hidden: the server is asked again, ever more seldom, with jitter.
                await asyncio.sleep(wait_s * random.uniform(0.5, 1.5))  # noqa: S311 (jitter, no secret)
                wait_s = min(_LONGEST_WAIT_S, wait_s * 2)

    async def list_once(self) -> None:
        """Fill the store, beside a watch or without one. Raises ApiError, but for what splitter does without.

        A watch that runs may lag behind the list; the store keeps what is newer.
        """
        try:
            await self._list()
        except ApiError as error:
            if not self.optional:
                raise
            self.error = error
            logger.debug("%s is left out: %s", self._path, error)

    def _do_without(self, error: ApiError) -> None:
        """Forget what was known, and say so once: nobody would tell us that it is no longer so."""
        if not self._off:
            logger.info("%s is not there or not allowed (%s): %s", self._path, error.status, self._without)
        self._off, self.error = True, error
        self._store.replace((), self._namespace, _FOREVER)
        self.synced.set()

    async def _list(self) -> str:
        listed: list[Any] = []
        version = "0"
        async for page in self._client.pages(self._path, _PAGE, **self._selector):
            self._heard()
            listed.extend(map(self._store.read, page["items"]))
            version = str(page["metadata"]["resourceVersion"])
        self._store.replace(listed, self._namespace, int(version))
        if self._off:
            logger.info("%s is followed from now on", self._path)
        self._off, self.error = False, None
        self.synced.set()
        return version

    async def _watch(self, version: str) -> None:
        """Follow changes from `version` on; returns when the server says it is too old (410)."""
        handlers: dict[str, Callable[[dict[str, Any]], object]] = {
            "ADDED": self._store.upsert,
            "MODIFIED": self._store.upsert,
            "DELETED": self._store.remove,
        }
        while True:
            query = {
                "watch": "true",
                "resourceVersion": version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": str(random.randint(*_WATCH_S)),  # noqa: S311 (spread, no secret)
                **self._selector,
            }
            try:
                async with self._client.stream(self._path, query, _SILENCE_S) as lines:
                    self._followed = True
                    async for line in lines:
                        self._heard()
                        event = read_json(line)
                        raw = event["object"]
                        if event["type"] == "ERROR":
                            _refuse(raw)
                        version = raw["metadata"]["resourceVersion"]
                        if (handler := handlers.get(event["type"])) is not None:
                            handler(raw)
            except ApiError as error:
                if error.status in {HTTPStatus.GONE, HTTPStatus.GATEWAY_TIMEOUT}:
                    self.restarts += 1
                    return
                raise


def _refuse(status: dict[str, Any]) -> NoReturn:
    raise ApiError(status.get("code", 0), status.get("reason", ""), status.get("message", ""))

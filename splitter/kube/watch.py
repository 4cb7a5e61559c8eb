"""Follows one collection of the API server: a paged LIST, then a WATCH, without end.

`cache` gives each reflector a parser and a store; the store is told of each change and of each
complete re-list. This is our own, and small, because it is the hot path: kopf.on.event costs about
1.1 ms of CPU an event, this about 0.13 ms (docs/adr/0004). It never interprets an object.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Protocol

from splitter.kube.client import KIND_MISSING, WRONG_ANSWER, ApiError, Client
from splitter.kube.documents import read_json
from splitter.kube.pace import Backoff, Spacing
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
# A watch that lasted so long was none that ends at once: what ends it is no repeat.
_FIRST_WAIT_S, _LONGEST_WAIT_S, _HELD_S = 0.2, 10.0, 10.0
# A watched namespace that is gone may be gone for ever, and has eight watches.
_REFUSED_WAIT_S = 30.0
# The list after a 410 comes at once, since a loss may hide in it; one 410 after the other does not make the
# API server list everything again and again.
_LIST_EVERY_S, _LISTS_AT_ONCE = 10.0, 2
# Watches are opened again after the API server was away, and no more often than this.
_REOPEN_EVERY_S = 30.0
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
    """Receives the objects of a collection."""

    def read(self, raw: dict[str, Any]) -> Any:  # noqa: ANN401 - the store's own affair
        """Return what to keep of an object until its list is complete, without a notification."""

    def replace(self, listed: Iterable[Any], namespace: str | None, version: int) -> None:
        """Take a complete list as of `version`, each object as read; what is not in it is gone.

        It is the list of one namespace, or of all.
        """

    def discard(self, listed: Iterable[Any]) -> None:
        """Take note that a list was not read to its end."""

    def upsert(self, raw: dict[str, Any]) -> object:
        """Take a new or changed object."""

    def remove(self, raw: dict[str, Any]) -> None:
        """Forget an object: deleted, or no longer matching the selector."""


class Reflector:
    """Keeps one store in step with one collection; `synced` is set after the first complete list.

    One with a sentence in `without` is optional: where it may not be read or does not exist, that is said
    once at INFO, with this sentence, and asked again, ever more seldom. The first reconcile waits for an
    `awaited` one all the same, until it is listed or known not to be there. Of a list the store reads each
    page as it comes (10,000 pods take 600 MB as they are sent), and hears of all of them at once, at its end.
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
        self.namespace = path.namespace  # the only one that it follows; empty: the whole cluster
        self.path = path
        self._store = store
        self._selector = {"labelSelector": selector} if selector else {}
        if fields:
            self._selector["fieldSelector"] = fields
        self._without = without
        self.awaited = awaited or not without  # nothing may be decided before it is synced
        self.left_out = False  # not there, or not allowed
        self._followed = False  # a watch was open since the last refusal
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()  # listed, or refused
        self.restarts = 0
        self.error: ApiError | None = None  # the last failure, None after a success
        self._last_answer_s = self._tried_s = time.monotonic()
        self._version = ""  # where the watch goes on; empty: to be listed
        self._anew = False  # to be listed whatever the version
        self._opened_s: float | None = None  # when the last watch was opened
        self._broken_at = ""  # the version at which the last watch broke
        self._complained: int | None = None  # the status of the failure that was said last
        self._waits = Backoff(_FIRST_WAIT_S, _LONGEST_WAIT_S, _HELD_S)
        self._refusals = Backoff(_FIRST_WAIT_S, _REFUSED_WAIT_S, _HELD_S)
        self._lists = Spacing(_LIST_EVERY_S, _LISTS_AT_ONCE, _now)
        self._reopens = Spacing(_REOPEN_EVERY_S, 1, _now)
        self._reopening: asyncio.TimerHandle | None = None
        self._open: asyncio.Timeout | None = None  # what bounds the watch that is open
        self._hurried = asyncio.Event()

    @property
    def label(self) -> str:
        """The collection's path with its selector: two watches may follow one collection."""
        selector = self._selector.get("labelSelector", "")
        return f"{self.path}?{selector}" if selector else str(self.path)

    @property
    def optional(self) -> bool:
        """Whether splitter does without it."""
        return bool(self._without)

    @property
    def follows(self) -> bool:
        """Whether it was listed and nothing is wrong with it, or is done without."""
        return self.synced.is_set() and (self.optional or self.error is None)

    @property
    def failing(self) -> bool:
        """Whether it cannot be done without and has failed for so long that what is known is old."""
        old = not self.synced.is_set() or (self.error is not None and self.silent_s > _SILENCE_S)
        return old and not self.optional

    @property
    def silent_s(self) -> float:
        """For how long the server has said nothing, not even a bookmark."""
        return time.monotonic() - self._last_answer_s

    @property
    def stuck(self) -> bool:
        """Whether nothing has happened here for longer than any silence or time-out lasts."""
        return time.monotonic() - self._tried_s > _STUCK_S

    def _last_answer(self) -> None:
        self._last_answer_s = self._tried_s = time.monotonic()

    async def run(self) -> None:
        """List and watch until cancelled; failures are logged once each and waited out.

        Nothing is repeated without a pause: see `_lists` and `_waits`.
        """
        off_wait_s = _OFF_FIRST_WAIT_S
        while True:
            self._opened_s = None
            try:
                while self._anew or not self._version:
                    await self._list_in_time()
                await self._watch()
                self._tried_s = time.monotonic()
                if self._version:
                    await self._pause(self._waits.ended_s(self._lasted_s()))
            except ApiError as error:
                self._tried_s = time.monotonic()
                if self.optional and error.status in _OFF:
                    self._version = ""
                    if self._followed:
                        self._followed, off_wait_s = False, _OFF_FIRST_WAIT_S
                    else:
                        self._do_without(error)
                    await self._pause(off_wait_s)
                    off_wait_s = min(_OFF_WAIT_S, off_wait_s * 2)
                    continue
                lasted_s = self._lasted_s()
                self._take_note_of(error)
                # Not a race hidden: the server is asked again, ever more seldom, with jitter.
                refused = self.namespace and error.status in _OFF
                if refused:
                    self.answered.set()
                await self._pause((self._refusals if refused else self._waits).failed_s(lasted_s))

    def reopen(self, *, anew: bool) -> None:
        """Open the watch again: its connection may be dead unnoticed. `anew`: list everything first.

        A watch goes on where it was, which costs one request. Soon after the last time that waits.
        """
        if anew:
            self._anew = True
            self.synced.clear()
        elif (due_s := self._reopens.due_s()) > 0:
            if self._reopening is None:
                self._reopening = asyncio.get_running_loop().call_later(due_s, self._reopen)
            return
        self._reopen()

    def _reopen(self) -> None:
        self._reopening = None
        self._reopens.take()
        self._hurried.set()
        if self._open is not None and not self._open.expired():
            self._open.reschedule(asyncio.get_running_loop().time())

    def _lasted_s(self) -> float:
        """Return how long the last watch was open; one that held is no repeat, and what ends it is news."""
        lasted_s = _now() - self._opened_s if self._opened_s is not None else 0.0
        if lasted_s >= _HELD_S:
            self._complained = None
        return lasted_s

    async def _pause(self, wait_s: float) -> None:
        """Wait, with jitter, or until the watch is to be opened again."""
        self._hurried.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_jittered(wait_s)):
                await self._hurried.wait()

    def _take_note_of(self, error: ApiError) -> None:
        """Decide where to go on after a failure, and say so once until a watch has held."""
        if error.status != self._complained:
            logger.warning("watch of %s interrupted: %s", self.path, error)
        if error.reason == KIND_MISSING and self.path.is_ours:
            # Our CRD was deleted, and all objects with it, even if nobody told of the last of them.
            # Of other kinds it is not believed: a proxy that has lost its way answers the same.
            self._store.replace((), self.namespace or None, _FOREVER)
        # A stream that broke goes on where it broke; twice at the same place, something there is not to be
        # read, or the server has more to say than that: it is listed.
        went_on, self._broken_at = self._version != self._broken_at, self._version
        if error.status or not went_on:
            self._version = ""
        self._complained, self.error = error.status, error
        self.restarts += 1

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
            logger.debug("%s is left out: %s", self.path, error)

    def _do_without(self, error: ApiError) -> None:
        """Forget all objects, and log it once: no event would report that they are gone."""
        if not self.left_out:
            logger.info("%s is not there or not allowed (%s): %s", self.path, error.status, self._without)
        self.left_out, self.error = True, error
        self._store.replace((), self.namespace or None, _FOREVER)
        self.synced.set()
        self.answered.set()

    async def _list_in_time(self) -> None:
        """List, at once when it is no repeat of a repeat."""
        if (due_s := self._lists.due_s()) > 0:
            await asyncio.sleep(due_s)
        self._anew, self._version = False, ""  # and stays so when the list fails
        self._version = await self._list()
        self._lists.take()

    async def _list(self) -> str:
        listed: list[Any] = []
        version = "0"
        try:
            async for page in self._client.pages(self.path, _PAGE, **self._selector):
                self._last_answer()
                listed.extend(map(self._store.read, page["items"]))
                version = str(page["metadata"]["resourceVersion"])
        except BaseException:
            self._store.discard(listed)
            raise
        self._store.replace(listed, self.namespace or None, int(version))
        if self.left_out:
            logger.info("%s is followed from now on", self.path)
        self.left_out, self.error = False, None
        self.answered.set()
        if not self._anew:  # else this list may be older than the wish for a new one
            self.synced.set()
        return version

    async def _watch(self) -> None:
        """Follow changes until the watch ends, or is to be opened again; 410: forget where it was."""
        handlers: dict[str, Callable[[dict[str, Any]], object]] = {
            "ADDED": self._store.upsert,
            "MODIFIED": self._store.upsert,
            "DELETED": self._store.remove,
        }
        query = {
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(*_WATCH_S)),  # noqa: S311 (spread, no secret)
            **self._selector,
        }
        try:
            async with (
                asyncio.timeout(None) as self._open,
                self._client.stream(self.path, query, _SILENCE_S) as lines,
            ):
                self._followed, self.error, self._opened_s = True, None, _now()
                async for line in lines:
                    self._last_answer()
                    self._version = _tell(handlers, line)
                    del line  # the next one may be an hour away
        except TimeoutError:
            return  # to be opened again
        except ApiError as error:
            if error.status not in {HTTPStatus.GONE, HTTPStatus.GATEWAY_TIMEOUT}:
                raise
            self.restarts += 1
            self._version = ""
        finally:
            self._open = None


def _now() -> float:
    return asyncio.get_running_loop().time()


def _jittered(wait_s: float) -> float:
    return wait_s * random.uniform(0.5, 1.5)  # noqa: S311 (jitter, no secret)


def _tell(handlers: Mapping[str, Callable[[dict[str, Any]], object]], line: bytes) -> str:
    """Give the object of a line to who handles the change; keep no more of it than the version.

    A parsed object takes up to 25 times the bytes of its JSON. Raises ApiError.
    """
    change, raw, version = _change(line)
    if (handler := handlers.get(change)) is not None:
        handler(raw)
    return version


def _change(line: bytes) -> tuple[str, dict[str, Any], str]:
    """Return what a line of a watch says: the change, the object, the version. Raises ApiError."""
    try:
        event = read_json(line)
        change, raw = event["type"], event["object"]
        if change == "ERROR":
            raise ApiError(int(raw.get("code", 0)), raw.get("reason", ""), raw.get("message", ""))
        return change, raw, str(int(raw["metadata"]["resourceVersion"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = "a line of a watch is no change of an object; what stands between?"
        raise ApiError(0, WRONG_ANSWER, message) from error

"""Writes Split statuses later and coalesced, so that they never delay an emergency.

The reconciler posts a status after each reconcile that changed it; one task writes them, each workload at
most once a second, more seldom while there are many, and none while an emergency goes on. Until a status is
written, `overlay` lets the next reconcile see it as if it were, so that the rebalancing never forgets what it
has just decided; nor does it while writes fail. Lost in a crash are some seconds (docs/adr/0009).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from http import HTTPStatus

from splitter.core.model import Observation
from splitter.core.names import Key
from splitter.core.split_status import Condition, SplitStatus
from splitter.kube.apply import Writer
from splitter.kube.client import NOT_LEADING, ApiError

logger = logging.getLogger("splitter.status")

_INTERVAL_S, _LONGEST_INTERVAL_S = 1.0, 30.0
# Statuses take a tenth of the time, and more only when all of them need longer than 3 s: one costs the API
# server as much as three to five other writes of a hand-over (docs/performance.md).
_PAUSE = 9.0
_RETRY_MAX_S = 60.0
_AT_ONCE = 4  # connections left free for reconciles


@dataclass(frozen=True, slots=True)
class _Posted:
    observed: Observation
    status: SplitStatus
    shown: Condition | None = None  # for the status of the source; None: nothing is written there
    alone: bool = False  # the Split's is written already


class StatusWriter:
    """Statuses on their way to the API server."""

    def __init__(
        self, writer: Writer, calm: Callable[[], Awaitable[None]], again: Callable[[Key, float], None]
    ) -> None:
        self._writer = writer
        self._calm = calm
        self._again = again  # asks for a reconcile in so many seconds, which posts anew
        self._failures: dict[Key, int] = {}
        self._posted: dict[Key, _Posted] = {}
        self._due: set[Key] = set()  # to be written now: not those that wait for their next try
        self._something = asyncio.Event()

    def overlay(self, observed: Observation) -> Observation:
        """Return the observation with the status that we have decided but not written yet."""
        posted = self._posted.get(observed.key)
        split = observed.split
        if posted is None or split is None or posted.observed.split is None:
            return observed
        if posted.observed.split.uid != split.uid:
            return observed
        return replace(observed, split=replace(split, status=posted.status))

    def post(self, observed: Observation, status: SplitStatus, shown: Condition | None = None) -> None:
        """Have a status written soon, and the source's condition, if they differ from what is known."""
        if observed.split is None:
            return
        alone = observed.split.status == status and observed.key not in self._posted
        if shown is not None and observed.source is not None and observed.source.available == shown:
            shown = None
        if not alone or shown is not None:
            self._posted[observed.key] = _Posted(observed, status, shown, alone)
            self._due.add(observed.key)
            self._something.set()

    async def write(self, observed: Observation, status: SplitStatus, *, surely: bool = False) -> None:
        """Write a status now, before that is done which it tells of; what comes of that is to be posted.

        Raises ApiError when it must not be done: another has written since the Split was observed (409), or
        leads. Where the status cannot be written for any other reason it is kept in mind until it
        can; where it has to be written `surely`, that is raised too.
        """
        before = self._posted.get(observed.key)
        self._posted[observed.key] = _Posted(observed, status)
        try:
            await self._writer.write_status(observed, status, as_seen=True)
        except ApiError as error:
            if not surely and error.status != HTTPStatus.CONFLICT and error.reason != NOT_LEADING:
                return
            if before is not None:
                self._posted[observed.key] = before
            else:
                del self._posted[observed.key]
            raise

    async def run(self) -> None:
        """Write what is posted, until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            began = time.monotonic()
            await self._write_all(self._calm)
            # The rate: what changes meanwhile is one write.
            await asyncio.sleep(pause_s(time.monotonic() - began))

    async def flush(self) -> None:
        """Write everything posted now."""
        await self._write_all(_at_once)

    async def _write_all(self, when: Callable[[], Awaitable[None]]) -> None:
        """Write what is due, a few at a time; what fails is remembered until a reconcile posts it again."""
        limit = asyncio.Semaphore(_AT_ONCE)

        async def write(key: Key) -> None:
            async with limit:
                await when()
                if (posted := self._posted.get(key)) is not None:
                    await self._write(key, posted)

        due, self._due = self._due, set()
        await asyncio.gather(*(write(key) for key in due))

    async def _write(self, key: Key, posted: _Posted) -> None:
        try:
            if not posted.alone:
                await self._writer.write_status(posted.observed, posted.status)
            if posted.shown is not None:
                await self._writer.show_available(posted.observed, posted.shown)
        except ApiError as error:
            level = (
                logging.DEBUG
                if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT} or error.reason == NOT_LEADING
                else logging.WARNING
            )
            logger.log(level, "status of %s not written: %s", key, error)
            if self._failed(key, error):
                return
        else:
            self._failures.pop(key, None)
        if self._posted.get(key) is posted:
            del self._posted[key]

    def _failed(self, key: Key, error: ApiError) -> bool:
        """Have it written anew, ever later: no event need come, and what stands there may be wrong.

        Returns whether it is to be written at all, and by us.
        """
        if error.status == HTTPStatus.NOT_FOUND or error.reason == NOT_LEADING:
            self._failures.pop(key, None)
            return False
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._again(key, min(_RETRY_MAX_S, _INTERVAL_S * 2.0 ** min(failures, 10)))
        return True


def pause_s(took_s: float) -> float:
    """Return how long to leave statuses unwritten after writing all of them took so long.

    >>> pause_s(0.02), pause_s(0.5), pause_s(15.0)
    (1.0, 4.5, 30.0)
    """
    return min(_LONGEST_INTERVAL_S, max(_INTERVAL_S, _PAUSE * took_s))


async def _at_once() -> None:
    """Wait for nothing."""

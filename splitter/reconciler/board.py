"""The Split statuses that are decided and not yet written: coalesced, and never in an emergency's way.

The reconciler posts a status after each pass that changed it; one task writes them, each workload at
most once a second, and none while an emergency goes on. Until a status is written, `overlay` lets the next
pass see it as if it were, so that the rebalancing never forgets what it has just decided. Lost in a crash,
a few seconds of soak are forgotten, which only delays a return.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from typing import Any

import orjson

from splitter.core.model import Key, Observation
from splitter.kube.apply import Writer
from splitter.kube.client import NOT_LEADING, ApiError

logger = logging.getLogger("splitter.status")

_INTERVAL_S = 1.0
_AT_ONCE = 4  # connections left free for passes


@dataclass(frozen=True, slots=True)
class _Posted:
    observed: Observation
    status: dict[str, Any]
    text: str


class StatusBoard:
    """Statuses on their way to the API server."""

    def __init__(self, writer: Writer, calm: Callable[[], Awaitable[None]]) -> None:
        self._writer = writer
        self._calm = calm
        self._posted: dict[Key, _Posted] = {}
        self._something = asyncio.Event()

    def overlay(self, observed: Observation) -> Observation:
        """Return the observation with the status that we have decided but not written yet."""
        posted = self._posted.get(observed.key)
        split = observed.split
        if posted is None or split is None or posted.observed.split is None:
            return observed
        if posted.observed.split.uid != split.uid:
            return observed
        status = posted.status
        return replace(
            observed,
            split=replace(
                split,
                state=status["state"],
                conflict=bool(status.get("conflict")),
                fights=tuple(datetime.fromisoformat(at) for at in status.get("fights", ())),
                fighter=status.get("fighter", ""),
                rebalance=status.get("rebalance", {}),
                good_annotations=status.get("policyAnnotations"),
                status_json=posted.text,
            ),
        )

    def post(self, observed: Observation, status: dict[str, Any]) -> None:
        """Have a status written soon, if it differs from what is known."""
        text = orjson.dumps(status, option=orjson.OPT_SORT_KEYS).decode()
        if observed.split is None or observed.split.status_json == text:
            return
        self._posted[observed.key] = _Posted(observed, status, text)
        self._something.set()

    async def run(self) -> None:
        """Write what is posted, until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            await self._write_all(self._calm)
            await asyncio.sleep(_INTERVAL_S)  # the rate: one write a workload and second

    async def flush(self) -> None:
        """Write everything posted now."""
        await self._write_all(_at_once)

    async def _write_all(self, when: Callable[[], Awaitable[None]]) -> None:
        """Write what is posted now, a few at a time; what fails is dropped, the next pass posts again."""
        limit = asyncio.Semaphore(_AT_ONCE)

        async def write(key: Key) -> None:
            async with limit:
                await when()
                if (posted := self._posted.get(key)) is not None:
                    await self._write(key, posted)

        await asyncio.gather(*(write(key) for key in self._posted))

    async def _write(self, key: Key, posted: _Posted) -> None:
        try:
            await self._writer.write_status(posted.observed, posted.status)
        except ApiError as error:
            level = (
                logging.DEBUG
                if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT} or error.reason == NOT_LEADING
                else logging.WARNING
            )
            logger.log(level, "status of %s not written: %s", key, error)
        if self._posted.get(key) is posted:
            del self._posted[key]


async def _at_once() -> None:
    """Wait for nothing."""

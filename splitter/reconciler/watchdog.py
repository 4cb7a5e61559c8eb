"""Watches from a thread of its own whether the event loop turns, and names the workload that holds it up.

All workloads share one event loop. If a reconcile computes for seconds without a pause, nothing is looked
after, and a new process or leader that takes the same workload is held up as well. So after 5 s the log and
`/healthz` name it, and it is written down where the next leader reads it (`kube.held_up`). In this process it
rests as well. Looks count, and not the clock: what stops a process as a whole is no workload's fault.
Source: H83, docs/adr/0105.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from splitter.core.errors import SplitterError
from splitter.core.names import Key
from splitter.kube.client import ApiError, Json
from splitter.kube.held_up import HeldUp, held_up
from splitter.reconciler.queue import WorkQueue
from splitter.report.health import Health

logger = logging.getLogger("splitter.watchdog")

_EVERY_S = 1.0
# Looks without a turn of the event loop: the seconds after which it is told.
_LOOKS = 5

WriteDown = Callable[[Key], Coroutine[Any, Any, HeldUp]]


class Watchdog:
    """Looks once a second; `begin` has a thread do so until the process ends."""

    def __init__(
        self, queue: WorkQueue, health: Health, write_down: WriteDown | None, lease_duration_s: float
    ) -> None:
        """`write_down` is called in the thread, with an event loop of its own; None: there is no Lease.

        It is to be there before the Lease runs out: a short one is watched more closely.
        """
        self._queue = queue
        self._health = health
        self._write_down = write_down
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shown_s = 0.0
        self._still = 0
        self._looks = max(1, min(_LOOKS, round(lease_duration_s / 2) - 1))

    def begin(self) -> None:
        """Watch the running event loop."""
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def _run(self) -> None:
        never = threading.Event()
        while self._loop is not None and not self._loop.is_closed():
            never.wait(_EVERY_S)
            try:
                self.look()
            except Exception:
                logger.exception("the watchdog has not looked, this is a bug of splitter's")

    def look(self) -> None:
        """Look whether the event loop has shown its health since the last look."""
        before, self._shown_s = self._shown_s, self._health.shown_s
        self._still = self._still + 1 if before == self._shown_s else 0
        if self._still == self._looks:
            self._tell(self._queue.worked_on(self._loop))
        elif not self._still:
            self._health.held_up_by = ""

    def _tell(self, key: Key | None) -> None:
        if key is None:
            logger.error("the event loop has not turned for %d s: no workload is worked on", self._looks)
            return
        self._health.held_up_by = str(key)
        message = (
            "the event loop has not turned for %d s, and nothing is looked after: workload=%s holds it up"
        )
        logger.error(message, self._looks, key)
        this = HeldUp(key, datetime.now(UTC))
        if self._write_down is not None:
            try:
                this = asyncio.run(self._write_down(key))
            except (ApiError, SplitterError, TimeoutError) as error:
                logger.warning("the next leader is not told of workload=%s: %s", key, error)
        if self._loop is not None and not self._loop.is_closed():
            rest_s = this.rest_s(this.at)
            self._loop.call_soon_threadsafe(self._queue.leave_alone, key, rest_s)


def leave_alone(queue: WorkQueue, lease: Json) -> None:
    """Have those wait that have held up this process or another: everybody else comes first."""
    now = datetime.now(UTC)
    for one in held_up(lease, now):
        if (rest_s := one.rest_s(now)) > 0:
            queue.leave_alone(one.key, rest_s)
            message = "left alone for %.0f s, because a process was held up by it: workload=%s times=%d"
            logger.warning(message, rest_s, one.key, one.times)

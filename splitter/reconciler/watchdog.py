"""Watches from a thread of its own whether the event loop turns, and names the workload that holds it up.

All workloads share one event loop. If a reconcile computes for seconds without a pause, nothing is looked
after, and a new process or leader that takes the same workload is held up as well. So after 5 s the log and
`/healthz` name it, and it is written down where the next leader reads it (`kube.held_up`). In this process it
rests as well. It is named only if one task of one reconcile ran at each of five looks in a row: a turn may
also take long because many workloads are worked on in it. Looks count, and not the clock: what stops a
process as a whole is no workload's fault.
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
from splitter.reconciler.queue import Work, WorkQueue
from splitter.report.health import Health

logger = logging.getLogger("splitter.watchdog")

_EVERY_S = 1.0
# Looks in a row without a turn of the event loop, at each of which the same task runs.
_LOOKS = 5

WriteDown = Callable[[Key], Coroutine[Any, Any, HeldUp]]


class Watchdog:
    """Looks once a second; `begin` has a thread do so until the process ends."""

    def __init__(self, queue: WorkQueue, health: Health, write_down: WriteDown | None) -> None:
        """`write_down` is called in the thread, with an event loop of its own; None: there is no Lease."""
        self._queue = queue
        self._health = health
        self._write_down = write_down
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shown_s = 0.0
        self._still = 0  # looks since the last turn
        self._work: Work | None = None  # seen by the last of them
        self._same = 0  # and by how many in a row

    def begin(self) -> None:
        """Watch the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_task_factory(self._queue.task_of)
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
        if before != self._shown_s:
            self._still, self._work, self._same, self._health.held_up_by = 0, None, 0, ""
            return
        work = self._queue.worked_on(self._loop)
        self._same = self._same + 1 if work == self._work else 1
        self._still, self._work = self._still + 1, work
        if work is not None and self._same == _LOOKS:
            self._tell(work)
        elif self._still == _LOOKS:
            message = "the event loop has not turned for %d s: no workload has been at work all that time"
            logger.error(message, _LOOKS)

    def _tell(self, work: Work) -> None:
        key = work.key
        self._health.held_up_by = str(key)
        message = (
            "the event loop has not turned for %d s, and nothing is looked after: workload=%s holds it up"
        )
        logger.error(message, self._still, key)
        if self._queue.worked_on(self._loop) != work:
            return  # it goes on, now that the log does
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

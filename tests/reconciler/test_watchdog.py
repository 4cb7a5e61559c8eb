"""What holds up the event loop is named within seconds, written down, and left alone for a while."""

import asyncio
import logging
import time
from datetime import UTC, datetime

import orjson
import pytest

from splitter.core.names import Key
from splitter.kube.client import ApiError
from splitter.kube.held_up import ANNOTATION, HeldUp
from splitter.reconciler import watchdog
from splitter.reconciler.queue import WorkQueue
from splitter.reconciler.watchdog import Watchdog, leave_alone
from splitter.report.health import Check, Health

EVIL, WEB = Key("Deployment", "evil", "web"), Key("Deployment", "shop", "web")
DEADLINE_S = 20.0


async def turn() -> None:
    """Let the event loop turn."""


class Process:
    """A queue, its health and its watchdog, which looks every few milliseconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, status: int = 0) -> None:
        monkeypatch.setattr(watchdog, "_EVERY_S", 0.02)
        self.status = status
        self.queue, self.health = WorkQueue(), Health()
        self.written: list[Key] = []
        self.watchdog = Watchdog(self.queue, self.health, self.write_down, 12)

    async def write_down(self, key: Key) -> HeldUp:
        """Take note, or refuse."""
        if self.status:
            raise ApiError(self.status, "Forbidden", "no")
        self.written.append(key)
        return HeldUp(key, datetime.now(UTC), 3)

    async def run(self, reconcile_s: float, *, subtask: bool = False) -> None:
        """Work on a key, without a turn of the event loop for so long."""
        self.queue.add(EVIL)
        self.health.show([])
        self.watchdog.begin()
        key = await self.queue.take()

        async def compute() -> None:
            began_s = time.monotonic()
            while time.monotonic() - began_s < reconcile_s and not self.written:
                pass  # as a computation does, and no sleep: the thread has to get its turn

        await (asyncio.create_task(compute(), name="another") if subtask else compute())
        self.queue.done(key)


class TestHeldUp:
    async def test_is_named_and_written_down(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The log and /healthz name it while the event loop does not turn."""
        process = Process(monkeypatch)
        await process.run(DEADLINE_S)
        assert process.written == [EVIL]
        assert "workload=evil/web holds it up" in caplog.text
        assert process.health.held_up_by == "evil/web"
        result = process.health.answer("/healthz")
        assert result is not None
        assert "evil/web holds it up" in orjson.dumps(result[1]).decode()

    async def test_rests(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In this process, too: others come, and it does not, whatever asks for it."""
        process = Process(monkeypatch)
        await process.run(DEADLINE_S)
        await asyncio.create_task(turn())  # what the thread asked for is done
        process.queue.add(EVIL, urgent=True)
        process.queue.add(WEB)
        assert await process.queue.take() == WEB
        assert not len(process.queue)

    async def test_cannot_be_written_down(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """That is said, and it rests here at least."""
        process = Process(monkeypatch, 403)
        await process.run(2.0)
        assert "the next leader is not told of workload=evil/web: 403" in caplog.text

    async def test_something_else(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """What computes for no workload is blamed on none that waits."""
        process = Process(monkeypatch)
        await process.run(2.0, subtask=True)
        assert process.written == []
        assert "no workload is worked on" in caplog.text

    async def test_while_it_turns(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A reconcile that waits for the API server holds up nothing, however long."""
        monkeypatch.setattr(watchdog, "_EVERY_S", 3600.0)
        process = Process(monkeypatch)
        process.queue.add(EVIL)
        process.watchdog.begin()
        await process.queue.take()
        for _ in range(100):
            process.health.show([Check("passes", "1 workload waits")])
            process.watchdog.look()
        assert (process.written, caplog.records) == ([], [])


async def test_the_next_leader_leaves_it_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Everybody else is looked after first; it comes when its time is over."""
    caplog.set_level(logging.WARNING)
    at = datetime.now(UTC).isoformat()
    entry = {"kind": "Deployment", "namespace": "evil", "name": "web", "times": 1, "at": at}
    lease = {"metadata": {"annotations": {ANNOTATION: orjson.dumps([entry]).decode()}}}
    queue = WorkQueue()
    leave_alone(queue, lease)
    queue.add(EVIL)
    queue.add(WEB)
    assert await queue.take() == WEB
    assert not len(queue)
    assert "left alone for 60 s" in caplog.text
    queue.leave_alone(EVIL, 0.01)
    async with asyncio.timeout(DEADLINE_S):
        assert await queue.take() == EVIL

"""What holds up the event loop is named within seconds, written down, and left alone for a while."""

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
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
LOOKS = 5


async def turn() -> None:
    """Let the event loop turn."""


class Process:
    """A queue, its health, and a watchdog that looks when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, status: int = 0, every_s: float = 3600.0) -> None:
        monkeypatch.setattr(watchdog, "_EVERY_S", every_s)
        self.status = status
        self.queue, self.health = WorkQueue(), Health()
        self.written: list[Key] = []
        self.watchdog = Watchdog(self.queue, self.health, self.write_down)
        self.health.show([])
        self.watchdog.begin()
        self.look()

    async def write_down(self, key: Key) -> HeldUp:
        """Take note, or refuse."""
        if self.status:
            raise ApiError(self.status, "Forbidden", "no")
        self.written.append(key)
        return HeldUp(key, datetime.now(UTC), 3)

    def look(self, times: int = 1) -> None:
        """Have another thread look, while this one waits and the event loop does not turn."""
        for _ in range(times):
            thread = threading.Thread(target=self.watchdog.look)
            thread.start()
            thread.join()

    async def stuck(self, times: int) -> None:
        """Be a coroutine in which the event loop is looked at so often, and does not turn."""
        self.look(times)

    async def work(self, key: Key, times: int = LOOKS) -> None:
        """Reconcile a key, in a task of its own, without a turn of the event loop for so many looks."""
        self.queue.add(key)
        assert await self.queue.take() == key
        self.look(times)
        self.queue.done(key)


class TestHeldUp:
    async def test_is_named_and_written_down(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The log and /healthz name it while the event loop does not turn."""
        process = Process(monkeypatch)
        await process.work(EVIL)
        assert process.written == [EVIL]
        assert "workload=evil/web holds it up" in caplog.text
        assert process.health.held_up_by == "evil/web"
        result = process.health.answer("/healthz")
        assert result is not None
        assert "evil/web holds it up" in orjson.dumps(result[1]).decode()

    async def test_by_the_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It looks by itself."""
        process = Process(monkeypatch, every_s=0.02)
        process.queue.add(EVIL)
        await process.queue.take()
        began_s = time.monotonic()
        while not process.written and time.monotonic() - began_s < DEADLINE_S:
            pass  # as a computation does, and no sleep: the thread has to get its turn
        assert process.written == [EVIL]

    async def test_not_yet(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        """Less than five looks are no proof; and after a turn they are counted from one again."""
        process = Process(monkeypatch)
        for _ in range(3):
            await process.work(EVIL, LOOKS - 1)
            process.health.show([])
            process.look()
        assert (process.written, caplog.records) == ([], [])

    async def test_rests(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In this process, too: others come, and it does not, whatever asks for it."""
        process = Process(monkeypatch)
        await process.work(EVIL)
        await asyncio.create_task(turn())  # what the thread asked for is done
        process.queue.add(EVIL, urgent=True)
        process.queue.add(WEB)
        assert await process.queue.take() == WEB
        assert not len(process.queue)

    async def test_one_that_begins_later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Others ran first in the same turn of the event loop: it is named all the same, and they are not."""
        process = Process(monkeypatch)
        await process.work(WEB, LOOKS - 1)
        await process.work(Key("Deployment", "shop", "db"), LOOKS - 1)
        await process.work(EVIL, LOOKS)
        assert process.written == [EVIL]

    @pytest.mark.parametrize("child", ["task", "gather", "grandchild"])
    async def test_a_part_of_its_reconcile(self, monkeypatch: pytest.MonkeyPatch, child: str) -> None:
        """It computes in a task that its reconcile has begun."""
        process = Process(monkeypatch)
        process.queue.add(EVIL)
        await process.queue.take()
        match child:
            case "task":
                await asyncio.create_task(process.stuck(LOOKS), name="another")
            case "gather":
                await asyncio.gather(process.stuck(LOOKS), turn())
            case _:
                await asyncio.create_task(asyncio.wait_for(asyncio.gather(process.stuck(LOOKS)), DEADLINE_S))
        assert process.written == [EVIL]

    async def test_cannot_be_written_down(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """That is said, and it rests here at least."""
        process = Process(monkeypatch, 403)
        await process.work(EVIL)
        assert "the next leader is not told of workload=evil/web: 403" in caplog.text
        await asyncio.create_task(turn())
        process.queue.add(EVIL)
        assert not len(process.queue)


class TestInnocent:
    async def test_many_that_are_short(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """In a storm a turn takes long, because many are worked on in it: none of them is left alone."""
        process = Process(monkeypatch)
        async with asyncio.TaskGroup() as group:
            for number in range(64):
                group.create_task(process.work(Key("Deployment", "shop", f"web-{number}"), 1))
        assert process.written == []
        assert caplog.text.count("no workload has been at work all that time") == 1

    async def test_the_same_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A key that comes again and again, each time for a moment."""
        process = Process(monkeypatch)
        for _ in range(2 * LOOKS):
            await process.work(EVIL, 1)
        assert process.written == []

    async def test_its_parts_are_short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Many tasks of one reconcile, such as its requests, each of them for a moment."""
        process = Process(monkeypatch)
        process.queue.add(EVIL)
        await process.queue.take()
        await asyncio.gather(*(process.stuck(1) for _ in range(2 * LOOKS)))
        assert process.written == []

    async def test_something_else(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """What computes for no workload is blamed on none that is worked on."""
        process = Process(monkeypatch)
        ready = asyncio.Event()

        async def another() -> None:
            await ready.wait()
            process.look(LOOKS)

        task = asyncio.create_task(another(), name=str(EVIL))
        process.queue.add(EVIL)
        await process.queue.take()
        ready.set()
        await task
        assert process.written == []
        assert "no workload has been at work all that time" in caplog.text

    async def test_the_log_was_held_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """If its line cannot be written for seconds, nor can the watchdog's: it goes on then."""
        process, full, drained = Process(monkeypatch), threading.Event(), threading.Event()

        def error(*_: object) -> None:
            full.set()
            drained.wait()

        monkeypatch.setattr(watchdog.logger, "error", error)
        process.queue.add(EVIL)
        await process.queue.take()
        process.look(LOOKS - 1)
        thread = threading.Thread(target=process.watchdog.look)
        thread.start()
        full.wait()
        loop = asyncio.get_running_loop()
        loop.call_soon(drained.set)  # this task no longer runs then
        with ThreadPoolExecutor() as waiting:
            await loop.run_in_executor(waiting, thread.join)
        assert process.written == []

    async def test_while_it_turns(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A reconcile that waits for the API server holds up nothing, however long."""
        process = Process(monkeypatch)
        process.queue.add(EVIL)
        await process.queue.take()
        for _ in range(100):
            process.health.show([Check("passes", "1 workload waits")])
            process.look()
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

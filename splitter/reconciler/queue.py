"""The queue of workload keys: a set with two lanes and timers.

Watches and timers add keys, workers take them. A key is in the queue at most once and worked on by at
most one worker; added while it is worked on, it comes again afterwards: ten events, one reconcile. Urgent
keys (a node under the workload changed) go before all others, among them by priority and rank (`ranking`).
In a lane one key of each namespace is taken in turn: whoever heaps up a thousand keys waits for them, and
others wait for one of them. No namespace is given more than half of the workers while another waits, nor ever
all of them: slow reconciles of one leave workers for others.

After its reconcile a key rests for a moment, longer while many do: what comes in that time, the echo of the
reconcile's own writes first of all, makes one reconcile at its end. An urgent call never waits for that, nor
does the first call after a rest. In an emergency there is no rest: not after the reconcile of an urgent call,
and not while one is unanswered.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from splitter.core.names import Key
from splitter.reconciler.fair import FairQueue
from splitter.reconciler.ranking import Ranking

# How long a key rests. Pods and their controllers tell of one step of a hand-over for a second or two, some
# fifty times; and nobody waits for the next step so briefly.
REST_S = 0.2
# So much longer for each other key that rests: some 100 ordinary reconciles a second, which cost 2 ms each.
# When very many workloads are at work it is the API server that they wait for.
_REST_EACH_S, _LONGEST_REST_S = 0.01, 2.0
# A storm that does not end must not silence everything for ever.
_PATIENCE_S = 5.0

T = TypeVar("T")


class Work(NamedTuple):
    """A task of a reconcile: its worker, or one that it has begun."""

    task: asyncio.Task[Any]
    key: Key
    since: float


class WorkQueue:
    """Keys to reconcile, urgent ones first."""

    def __init__(
        self,
        coalesce_s: float = 0.0,
        rest_s: float = 0.0,
        *,
        workers: int | None = None,
        emergency_workers: int | None = None,
    ) -> None:
        """Make an empty queue for so many workers; None: no namespace is kept from having all of them."""
        self._workers = {False: workers, True: emergency_workers}
        self._held: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}  # workers, by namespace
        self._taken_by: dict[Key, bool] = {}  # whether a worker for emergencies works on it
        self._coalesce_s = coalesce_s
        self._rest_s = rest_s
        self._resting: dict[Key, asyncio.TimerHandle] = {}
        self._due: set[Key] = set()  # those that rest and were asked for meanwhile
        self._rests: dict[Key, float] = {}  # worked on, and to rest for other than the usual time afterwards
        self.ranking = Ranking()
        self._urgent: FairQueue[Key, None] = FairQueue(self.ranking.of)
        self._normal: FairQueue[Key, None] = FairQueue()
        self._bursts: dict[Key, bool] = {}  # whether another call has come since the burst began
        self._working: dict[Key, float] = {}  # since when
        self._work: WeakKeyDictionary[asyncio.Task[Any], tuple[Key, float]] = WeakKeyDictionary()
        self._left_alone: dict[Key, asyncio.TimerHandle] = {}
        self._missed: dict[Key, float] = {}  # since when an urgent call waits for that to be over
        self._progress_s = 0.0
        self.served = False
        self._again: dict[Key, bool] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._called: dict[Key, float] = {}  # since when an urgent call waits for its reconcile
        self._answering: dict[Key, float] = {}  # and for the reconcile that is under way to succeed
        self._something = asyncio.Event()
        self._emergency = asyncio.Event()
        self._rushed: set[Key] = set()  # worked on, and taken from the urgent lane
        self._calm = asyncio.Event()
        self._calm.set()
        self._stormy_since = 0.0

    def __len__(self) -> int:
        """Return how many keys wait."""
        return len(self._urgent) + len(self._normal)

    def serve(self, *, served: bool) -> None:
        """Say whether workers take keys; the time that keys wait counts from here."""
        self.served = served
        self._called.clear()  # while nobody took keys here, another process answered
        self._answering.clear()
        self._missed = dict.fromkeys(self._missed, asyncio.get_running_loop().time())
        self._progress_s = time.monotonic()

    def stuck_s(self) -> float:
        """Return for how long keys have waited, or been worked on, without one reconcile that ended."""
        if not self and not self._working:
            return 0.0
        return time.monotonic() - self._progress_s

    def longest_reconcile_s(self) -> float:
        """Return for how long the key has been worked on that was taken first."""
        return time.monotonic() - min(self._working.values()) if self._working else 0.0

    def add(self, key: Key, *, urgent: bool = False) -> None:
        """Ask for a reconcile as soon as a worker is free, or when the key has rested.

        Of a burst of urgent calls for one key the first is never delayed, the others make one reconcile after
        `coalesce_s` seconds, and with it the next burst begins: a swarm of notices is one decision in that
        time, not one a node. A call that is not urgent waits until `rest_s` seconds, or more while many keys
        rest, have passed since the key's last reconcile.
        """
        if self._is_left_alone(key, urgent=urgent):
            return  # it comes when that is over
        if urgent:
            self._called.setdefault(key, asyncio.get_running_loop().time())
        if urgent and self._coalesce_s and self._is_burst(key):
            return
        if not self and not self._working:
            self._progress_s = time.monotonic()
        if key in self._working:
            self._again[key] = urgent or self._again.get(key, False)
            return
        if not urgent and key in self._resting:
            self._due.add(key)
            return
        if urgent:
            self._normal.discard(key.namespace, key)
            self._urgent.put(key.namespace, key, None)
            self._emergency.set()
            if self._calm.is_set():
                self._stormy_since = asyncio.get_running_loop().time()
            self._calm.clear()
        elif not self._urgent.has(key.namespace, key):
            self._normal.put(key.namespace, key, None)
        self._something.set()

    def _is_burst(self, key: Key) -> bool:
        if key in self._bursts:
            self._bursts[key] = True
            return True
        self._bursts[key] = False
        asyncio.get_running_loop().call_later(self._coalesce_s, self._burst_over, key)
        return False

    def _burst_over(self, key: Key) -> None:
        if self._bursts.pop(key):
            self.add(key, urgent=True)  # and so the next burst begins

    def add_after(self, key: Key, delay_s: float) -> None:
        """Ask for a reconcile in `delay_s` seconds, unless one is due sooner.

        Asked during a reconcile of the key, for less than its rest, it rests no longer than that.
        """
        if key in self._working and delay_s < self._rest_s:
            self._rests[key] = delay_s
        loop = asyncio.get_running_loop()
        due = loop.time() + delay_s
        timer = self._timers.get(key)
        if timer is not None and not timer.cancelled() and loop.time() < timer.when() <= due:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._timer_due, key)

    def rest(self, key: Key, rest_s: float) -> None:
        """Have a key that is worked on rest for so long afterwards, and come again then."""
        self._rests[key] = rest_s
        self.add_after(key, rest_s)

    def leave_alone(self, key: Key, rest_s: float) -> None:
        """Have a key wait for so long, whatever asks for it; then it comes, urgent if it was once (H83)."""
        if (timer := self._left_alone.pop(key, None)) is not None:
            timer.cancel()
        self._urgent.discard(key.namespace, key)
        self._normal.discard(key.namespace, key)
        if (called := self._called.pop(key, None)) is not None:
            self._missed.setdefault(key, called)
        self._left_alone[key] = asyncio.get_running_loop().call_later(rest_s, self._is_back, key)
        self._calm_down()

    def _is_left_alone(self, key: Key, *, urgent: bool) -> bool:
        """Whether a key waits whatever asks for it; an urgent call is remembered."""
        left_alone = key in self._left_alone
        if left_alone and urgent:
            self._missed.setdefault(key, asyncio.get_running_loop().time())
        return left_alone

    def _is_back(self, key: Key) -> None:
        del self._left_alone[key]
        if (called := self._missed.pop(key, None)) is not None:
            self._called[key] = called
        self.add(key, urgent=called is not None)

    def task_of(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
        **more: object,
    ) -> asyncio.Task[T]:
        """Make a task, as a task factory does; what a reconcile begins is part of it (`worked_on`)."""
        task = asyncio.Task(coroutine, loop=loop, **more)  # type: ignore[arg-type]  # as asyncio gives it
        by = asyncio.current_task(loop)
        if by is not None and (work := self._work.get(by)) is not None:
            self._work[task] = work
        return task

    def worked_on(self, loop: asyncio.AbstractEventLoop | None) -> Work | None:
        """Return what runs in an event loop at this moment, if it is a reconcile. Any thread may ask."""
        task = asyncio.current_task(loop) if loop is not None else None
        work = self._work.get(task) if task is not None else None
        return Work(task, *work) if task is not None and work is not None else None

    def _timer_due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)

    async def take(self, *, only_urgent: bool = False) -> Key:
        """Wait for a key and take it; `done` must follow.

        A worker that takes only urgent keys is free when an emergency comes, whatever the others do.
        """
        lanes = (self._urgent,) if only_urgent else (self._urgent, self._normal)
        arrival = self._emergency if only_urgent else self._something
        while True:
            for lane in lanes:
                if (namespace := self._next_in(lane, lanes, only_urgent=only_urgent)) is not None:
                    key, _ = lane.pop(namespace)
                    if lane is self._urgent:
                        self._rushed.add(key)
                    self._working[key] = time.monotonic()
                    if (task := asyncio.current_task()) is not None:
                        self._work[task] = key, self._working[key]
                    self._taken_by[key] = only_urgent
                    self._held[only_urgent][namespace] += 1
                    self._end_rest(key)  # this reconcile sees whatever came so far
                    if (called := self._called.pop(key, None)) is not None:
                        self._answering.setdefault(key, called)
                    return key
            arrival.clear()
            await arrival.wait()

    def _next_in(
        self, lane: FairQueue[Key, None], lanes: tuple[FairQueue[Key, None], ...], *, only_urgent: bool
    ) -> str | None:
        """Return the namespace whose turn it is in a lane; None while those that wait have their share."""
        waiting, workers = lane.namespaces(), self._workers[only_urgent]
        if not waiting or workers is None:
            return next(iter(waiting), None)
        alone = len(waiting) == 1 and all(set(one.namespaces()) <= set(waiting) for one in lanes)
        most = max(1, workers - 1 if alone else (workers + 1) // 2)
        held = self._held[only_urgent]
        return next((namespace for namespace in waiting if held[namespace] < most), None)

    def waited_s(self, key: Key) -> float | None:
        """Return how long ago the first urgent call came that is not answered yet; None without one."""
        called = self._answering.get(key)
        return asyncio.get_running_loop().time() - called if called is not None else None

    def answered(self, key: Key) -> None:
        """Take note that a reconcile has succeeded, whatever it did; one that fails answers no call."""
        self._answering.pop(key, None)

    def done(self, key: Key) -> None:
        """Give a key back; it comes again when it was added meanwhile."""
        self._working.pop(key, None)
        self._free(key)
        self._progress_s = time.monotonic()
        if self._rest_s and key not in self._rushed and key not in self._answering:
            loop = asyncio.get_running_loop()
            rest_s = max(self._rest_s, min(_LONGEST_REST_S, _REST_EACH_S * len(self._resting)))
            self._resting[key] = loop.call_later(self._rests.get(key, rest_s), self._rested, key)
        self._rushed.discard(key)
        self._rests.pop(key, None)
        if (urgent := self._again.pop(key, None)) is not None:
            self.add(key, urgent=urgent)
        self._calm_down()

    def _calm_down(self) -> None:
        if not self._urgent and not self._rushed:
            self._calm.set()

    def _free(self, key: Key) -> None:
        """Count its worker as free, and let those look again that left a namespace which had its share."""
        if (taken_by := self._taken_by.pop(key, None)) is None:
            return
        held = self._held[taken_by]
        held[key.namespace] -= 1
        if not held[key.namespace]:
            del held[key.namespace]
        if self._urgent:
            self._emergency.set()
        if self:
            self._something.set()

    def _rested(self, key: Key) -> None:
        if self._end_rest(key):
            self.add(key)

    def _end_rest(self, key: Key) -> bool:
        """Forget the rest of a key; returns whether somebody has asked for it meanwhile."""
        if (timer := self._resting.pop(key, None)) is not None:
            timer.cancel()
        asked = key in self._due
        self._due.discard(key)
        return asked

    def hurried(self) -> bool:
        """Whether a workload waits for its emergency, and the storm has not lasted for long."""
        return bool(self._urgent) and asyncio.get_running_loop().time() - self._stormy_since < _PATIENCE_S

    async def calm(self) -> None:
        """Return when no emergency waits or is worked on, or after a while: what is only told can wait.

        In a storm each Event and each status that goes out takes its time from somebody's raise.
        """
        # Not `wait_for`: before Python 3.12 it swallows a cancellation that comes as the wait ends,
        # and then a term is never over.
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await self._calm.wait()

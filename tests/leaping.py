"""A loop whose clock all but stands still while anything runs, and jumps to the next timer when all wait.

What is all timers, the queue first of all, is tested with it: with a real clock a busy machine ends a burst
between two lines of a test.
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVarTuple

_LOOK_S = 1e-7
_Args = TypeVarTuple("_Args")


async def passing(seconds: float) -> None:
    """Let so much time pass on such a loop."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    timer = loop.call_later(seconds, _ended, over)
    try:
        await over
    finally:
        timer.cancel()


def _ended(over: asyncio.Future[None]) -> None:
    if not over.done():  # cancelled in the same moment
        over.set_result(None)


class _Leaping(selectors.DefaultSelector):
    """Counts the time that it was to wait, without waiting, and looks what is there."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return who can read or write; without any timer it waits like any selector."""
        if timeout is None:
            return super().select(None)
        self.now_s += max(0.0, timeout)
        return super().select(0)


class LeapingLoop(asyncio.SelectorEventLoop):
    """Tells the time of its selector."""

    wrong_by_s = 0.0
    """So wrong is the time of day that splitter is told."""

    def __init__(self) -> None:
        self._clock = _Leaping()
        super().__init__(self._clock)

    def time(self) -> float:
        """Return how many seconds were passed so far: a moment more at each look, as with any clock."""
        self._clock.now_s += _LOOK_S
        return self._clock.now_s

    def run_in_executor(  # type: ignore[override] # whatever it returns
        self, executor: Executor | None, func: Callable[[*_Args], object], *args: *_Args
    ) -> asyncio.Future[object]:
        """Do at once what is for a thread of the default executor: the clock would leap while it works."""
        if executor is not None:
            return super().run_in_executor(executor, func, *args)
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 (the caller's own)
            done.set_exception(error)
        return done

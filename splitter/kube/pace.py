"""Decides how soon to retry: the first time almost at once, then later each time.

Whoever repeats asks here: watches, lists, a new leader that catches up. Nothing here sleeps or sends.
"""

from collections.abc import Callable


class Backoff:
    """Waits that double, from `first_s` to `longest_s`; what held for `held_s` seconds starts them anew."""

    def __init__(self, first_s: float, longest_s: float, held_s: float) -> None:
        self._first_s, self._longest_s, self._held_s = first_s, longest_s, held_s
        self._next_s = 0.0

    def ended_s(self, lasted_s: float) -> float:
        """Return how long to wait after what lasted so long, in seconds; 0 for the first in a row."""
        if lasted_s >= self._held_s:
            self._next_s = 0.0
        wait_s = self._next_s
        self._next_s = min(self._longest_s, max(self._first_s, wait_s * 2))
        return wait_s

    def failed_s(self, lasted_s: float = 0.0) -> float:
        """Return how long to wait after a failure, in seconds: never 0."""
        return max(self._first_s, self.ended_s(lasted_s))


class Spacing:
    """A rate limit: one in `every_s` seconds in the long run; after a rest, `burst` at once."""

    def __init__(self, every_s: float, burst: int, clock: Callable[[], float]) -> None:
        self._every_s, self._burst, self._clock = every_s, burst, clock
        self._row, self._last_s = 0, 0.0  # how many came in a row, and when the last did

    def due_s(self) -> float:
        """Return in how many seconds the next one is due; 0: now."""
        if self._row < self._burst:
            return 0.0
        return max(0.0, self._last_s + self._every_s - self._clock())

    def take(self) -> None:
        """Take note of one that is made now."""
        now_s = self._clock()
        rested = now_s - self._last_s >= self._every_s * self._burst
        self._row, self._last_s = 1 if rested else self._row + 1, now_s

"""Moments, on both clocks.

`fleet` returns the moment before each write, `recorder` stamps each change it sees, `timeline` compares
them. Durations come from the monotonic clock; the wall clock is for matching logs and Kubernetes' own
timestamps.
"""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One moment: `monotonic_s` in seconds of time.monotonic(), `wall_s` in seconds since 1970 (UTC)."""

    monotonic_s: float
    wall_s: float

    @classmethod
    def now(cls) -> "Instant":
        """Return this moment."""
        return cls(time.monotonic(), time.time())

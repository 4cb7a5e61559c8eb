"""Failures in a row, each of which doubles the rest before the next try.

Only memories of that kind use it; docs/adr/0127 lists the others. A success is `Backoff()`.
"""

from dataclasses import dataclass
from datetime import datetime

from splitter.core.split_status.values import Kept, instant, kept, number

_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class Backoff(Kept):
    """How many tries have failed in a row."""

    count: int = kept("count", number)
    last: datetime | None = kept("last", instant)
    """When the last one failed; None: the rest begins at something else that is remembered."""

    def failed(self, at: datetime | None = None) -> "Backoff":
        """Return it with one more failure."""
        return Backoff(self.count + 1, at)

    def rest_s(self, base_s: float) -> float:
        """Return the rest in seconds: the base, doubled by each failure, at most ten times; 0 without one.

        >>> Backoff().rest_s(60.0), Backoff(2).rest_s(60.0), Backoff(30).rest_s(60.0)
        (0.0, 240.0, 61440.0)
        """
        return base_s * float(2 ** min(self.count, _DOUBLINGS)) if self.count else 0.0

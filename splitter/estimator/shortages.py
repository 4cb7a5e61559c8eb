"""Remembers since when how many replicas of a workload have had no place; pure.

Karmada asks every few seconds, and only while it believes that replicas are missing. So what lasts cannot be
counted from its questions: `answers` notes each change of the caches (K6).
"""

from collections.abc import Hashable
from datetime import datetime, timedelta


class Shortages:
    """For each workload the shortages that last: at least so many replicas, since then; both ascend."""

    def __init__(self) -> None:
        self._lasting: dict[Hashable, list[tuple[int, datetime]]] = {}

    def note(self, key: Hashable, missing: int, now: datetime) -> None:
        """Take note of how many replicas have no place now."""
        lasting = self._lasting.setdefault(key, [])
        since = now
        while lasting and lasting[-1][0] > missing:
            since = lasting.pop()[1]
        known = lasting[-1][0] if lasting else 0
        if missing > known:
            lasting.append((missing, since))
        if not lasting:
            del self._lasting[key]

    def lasting(self, key: Hashable, threshold_s: float, now: datetime) -> int:
        """Return how many have had no place for as long as the threshold, or longer."""
        until = now - timedelta(seconds=min(threshold_s, _LONGEST_S))
        return max((missing for missing, since in self._lasting.get(key, ()) if since <= until), default=0)


_LONGEST_S = 10.0**9

"""Remembers how many replicas were ready since the page was opened: what no object of the cluster keeps.

Only changes are kept, for some hours, and a bounded number of them.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

KEPT = timedelta(hours=6)
_WORKLOAD, FLEET = 240, 2000  # the sum of all workloads changes more often


@dataclass(frozen=True, slots=True)
class Moment:
    """Replicas from one instant on."""

    at: datetime
    desired: int
    on_demand: int
    spot: int
    going: int = 0
    """Those on nodes that are announced to go: they serve until then, and are in neither of the two."""

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """What was counted."""
        return self.desired, self.on_demand, self.spot, self.going


class Series:
    """Moments in order of time; the oldest go."""

    def __init__(self, most: int = _WORKLOAD) -> None:
        """Keep at most so many changes."""
        self._moments: deque[Moment] = deque(maxlen=most)

    def __iter__(self) -> Iterator[Moment]:
        """Yield them, oldest first."""
        return iter(self._moments)

    def saw(self, moment: Moment) -> None:
        """Take what was counted; nothing is kept where it is what was counted before.

        A clock that was set back takes nothing back: the instant before stands for it.
        """
        last = self._moments[-1] if self._moments else None
        if last is not None and last.counts == moment.counts:
            return
        if last is not None and moment.at < last.at:
            moment = Moment(last.at, *moment.counts)
        self._moments.append(moment)
        # The newest of the too old says how it stood when the kept time begins.
        while len(self._moments) > 1 and self._moments[1].at <= moment.at - KEPT:
            self._moments.popleft()

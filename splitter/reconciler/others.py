"""What the other workloads are at: who is being moved, and which spot room was given away a moment ago.

The reconciler tells it after each pass, and asks it before the next one of somebody else's.
"""

import time
from collections import deque
from collections.abc import Callable

from splitter.core.names import Key

# Two that see the same hole must not both jump into it; after so long its pods are bound, and counted.
PROMISE_S = 10.0
# Longer than a take-over of hundreds of replicas takes. A bad image or a full quota takes for ever.
TURN_S = 300.0


class Others:
    """Counts what one workload has to leave to others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moving: dict[Key, float] = {}  # since when
        self._promises: deque[tuple[float, Key, int]] = deque()

    def has_turn(self, key: Key) -> bool:
        """Whether a workload is in a voluntary move."""
        return key in self._moving

    def moves(self, key: Key, *, still: bool) -> None:
        """Take note that a workload is in a voluntary move, or is no longer."""
        if still:
            self._moving.setdefault(key, self._clock())
        else:
            self._moving.pop(key, None)

    def moving(self, key: Key) -> int:
        """Count the others that are being moved; who does not get on counts no longer than TURN_S."""
        after = self._clock() - TURN_S
        return sum(began > after for other, began in self._moving.items() if other != key)

    def promise(self, key: Key, replicas: int, fits: int) -> None:
        """Take note that a workload was given so many spot replicas just now, where `fits` have room.

        However much it asks for, and however often, it takes no more from others than there is for it.
        """
        given = sum(count for began, one, count in self._promises if one == key and began >= self._horizon)
        if (more := min(replicas, fits - given)) > 0:
            self._promises.append((self._clock(), key, more))

    def promised(self, key: Key) -> int:
        """Count the spot replicas that were given to others just now."""
        while self._promises and self._promises[0][0] < self._horizon:
            self._promises.popleft()
        return sum(count for _, other, count in self._promises if other != key)

    @property
    def _horizon(self) -> float:
        return self._clock() - PROMISE_S

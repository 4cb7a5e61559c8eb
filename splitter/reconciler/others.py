"""Tracks across workloads who is being moved, and which room on spot is reserved.

The reconciler tells it after each reconcile, and asks it before the next one of somebody else's. Who waits
for a turn to move asks once and is woken, one of each namespace after the other, when there is one for it.
"""

from collections import deque
from collections.abc import Callable, Iterator

from splitter.core.names import Key
from splitter.reconciler.fair import FairQueue
from splitter.reconciler.ranking import Ranking

# Two that see the same hole must not both jump into it; after so long its pods are bound, and counted.
RESERVED_S = 10.0
# Longer than a take-over of hundreds of replicas takes. A bad image or a full quota takes for ever.
TURN_S = 300.0
# A turn is kept so long for who was woken for it; a reconcile that fails in that time has lost it.
KEPT_S = 10.0


class Others:
    """Counts what one workload has to leave to others."""

    def __init__(self, limit: int, clock: Callable[[], float], ranking: Ranking) -> None:
        """`limit`: how many may be moved at a time; 0: all. Who waits is woken as `ranking` orders them."""
        self._limit = limit
        self._clock = clock
        self._moving: dict[Key, float] = {}  # since when
        self._waiting: FairQueue[Key, None] = FairQueue(ranking.of)
        self._woken: dict[Key, float] = {}  # since when a turn is kept for it
        self._reservations: deque[tuple[float, Key, int]] = deque()

    def has_turn(self, key: Key) -> bool:
        """Whether a workload is in a voluntary move."""
        return key in self._moving

    def moves(self, key: Key, *, still: bool, waits: bool = False) -> None:
        """Take note that a workload is in a voluntary move, or is no longer, or waits for its turn."""
        self._woken.pop(key, None)
        if waits:
            self._waiting.put(key.namespace, key, None)
        else:
            self._waiting.discard(key.namespace, key)
        if still:
            self._moving.setdefault(key, self._clock())
        else:
            self._moving.pop(key, None)

    def moving(self, key: Key) -> int:
        """Count the others that are being moved; who does not get on counts no longer than TURN_S."""
        return sum(other != key for other, _ in self._running_turns())

    def waits(self, key: Key) -> bool:
        """Whether a workload waits for its turn: it is woken, and needs to ask for nothing until then."""
        return self._waiting.has(key.namespace, key)

    def grant_turns(self) -> list[Key]:
        """Return those that waited and whose turn it is now; it is kept for them until their reconcile."""
        woken = []
        while self._waiting and sum(1 for _ in self._running_turns()) < self._limit:
            key, _ = self._waiting.pop()
            self._woken[key] = self._clock()
            woken.append(key)
        return woken

    def next_turn(self) -> tuple[Key, float] | None:
        """Return who is woken next, and in how many seconds a turn ends by time alone; None: nobody waits."""
        ends_s = min((end_s for _, end_s in self._running_turns()), default=None)
        if not self._waiting or ends_s is None:
            return None
        return self._waiting.first(), ends_s - self._clock()

    def _running_turns(self) -> Iterator[tuple[Key, float]]:
        """Yield who has a turn, and when that ends by time alone."""
        now_s = self._clock()
        for slots, lasts_s in ((self._moving, TURN_S), (self._woken, KEPT_S)):
            for key, since_s in slots.items():
                if (end_s := since_s + lasts_s) > now_s:
                    yield key, end_s

    def reserve_spot(self, key: Key, replicas: int, fits: int) -> None:
        """Take note that a workload was given so many spot replicas just now, where `fits` have room.

        However much it asks for, and however often, it takes no more from others than there is for it.
        """
        given = sum(
            count for began, one, count in self._reservations if one == key and began >= self._horizon
        )
        if (more := min(replicas, fits - given)) > 0:
            self._reservations.append((self._clock(), key, more))

    def reserved(self, key: Key) -> int:
        """Count the spot replicas that were given to others just now."""
        while self._reservations and self._reservations[0][0] < self._horizon:
            self._reservations.popleft()
        return sum(count for _, other, count in self._reservations if other != key)

    @property
    def _horizon(self) -> float:
        return self._clock() - RESERVED_S

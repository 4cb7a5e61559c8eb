"""What every controller is made of: informers that lag, a queue of keys, retries that come ever later.

Source: client-go, tools/cache (an informer's events come in order, some time after the write) and
util/workqueue (5 ms, doubled with each failure, up to 1,000 s).
"""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable

from leaping import passing
from splitter.kube.client import ApiError
from world.kinds import Raw, Ref
from world.objects import Event, Objects

Changed = Callable[[Raw | None, Raw | None], None]  # what was seen of an object before, and what is seen now
Key = tuple[str, str]  # namespace, name

_FIRST_RETRY_S, _LAST_RETRY_S = 0.005, 1000.0
_REQUEST_S = (0.001, 0.004)


class Informer:
    """What a process has seen of one kind: every change, and each of them late."""

    def __init__(self, objects: Objects, kind: str, lag_s: Callable[[], float]) -> None:
        self.seen: dict[Key, Raw] = {}
        self._objects = objects
        self._kind = kind
        self._lag_s = lag_s
        self._due_s = 0.0
        self._late: deque[Event] = deque()  # timers of one moment run in any order
        self._changed: list[Changed] = []
        self._end: Callable[[], None] = lambda: None

    def on_change(self, changed: Changed) -> None:
        """Tell of each change, and of what is there already."""
        self._changed.append(changed)

    def start(self) -> None:
        """List, and follow from there."""
        self._end = self._objects.follow(self._kind, self._follow)
        for raw in self._objects.all(self._kind):
            self._see(raw, deleted=False)

    def stop(self) -> None:
        """See nothing any more."""
        self._end()

    def of(self, namespace: str) -> list[Raw]:
        """Return what is seen in a namespace."""
        return [raw for (within, _), raw in self.seen.items() if within == namespace]

    def _follow(self, event: Event) -> None:
        loop = asyncio.get_running_loop()
        self._due_s = max(self._due_s, loop.time() + self._lag_s())
        self._late.append(event)
        loop.call_at(self._due_s, self._see_next)

    def _see_next(self) -> None:
        event = self._late.popleft()
        self._see(event.new, deleted=event.deleted)

    def _see(self, raw: Raw, *, deleted: bool) -> None:
        key = raw["metadata"].get("namespace", ""), raw["metadata"]["name"]
        old = self.seen.pop(key, None)
        if not deleted:
            self.seen[key] = raw
        for changed in self._changed:
            changed(old, None if deleted else raw)


class Informers:
    """The informers of one process; `lag_s`: up to how late each of them is."""

    def __init__(self, objects: Objects, seed: int, lag_s: float = 0.02) -> None:
        self.objects = objects
        self.lag_s = lag_s
        self.dice = random.Random(seed)
        self._informers: dict[str, Informer] = {}

    def of(self, kind: str) -> Informer:
        """Return the one of a kind."""
        if kind not in self._informers:
            self._informers[kind] = Informer(self.objects, kind, lambda: self.dice.uniform(0.0, self.lag_s))
        return self._informers[kind]

    def start(self) -> None:
        """Start all that are asked for so far."""
        for informer in list(self._informers.values()):
            informer.start()

    def stop(self) -> None:
        """Stop all."""
        for informer in self._informers.values():
            informer.stop()


class Controller:
    """Takes one key after the other and does what is due about it."""

    user = "system:kube-controller-manager"

    def __init__(self, informers: Informers) -> None:
        self.objects = informers.objects
        self.dice = informers.dice
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._waiting: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: Counter[Key] = Counter()

    def enqueue(self, key: Key, after_s: float = 0.0) -> None:
        """Look at a key, now or later; one that waits already is looked at once, as soon as it may."""
        if after_s > 0:
            loop = asyncio.get_running_loop()
            timer = self._timers.get(key)
            if timer is None or timer.when() > loop.time() + after_s:
                if timer is not None:
                    timer.cancel()
                self._timers[key] = loop.call_later(after_s, self._due, key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._queue.put_nowait(key)

    def _due(self, key: Key) -> None:
        del self._timers[key]
        self.enqueue(key)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            key = await self._queue.get()
            self._waiting.discard(key)
            try:
                await self.sync(key)
            except ApiError:
                self.enqueue(key, min(_FIRST_RETRY_S * 2 ** self._failures[key], _LAST_RETRY_S))
                self._failures[key] += 1
            else:
                self._failures.pop(key, None)

    async def sync(self, key: Key) -> None:
        """Do what is due about a key. Raises ApiError to be called again."""
        raise NotImplementedError

    # --- requests, each of which takes a moment -----------------------------------------------------

    async def sent(self) -> None:
        """Let the time of a request pass."""
        await passing(self.dice.uniform(*_REQUEST_S))

    async def update(self, kind: str, new: Raw, part: str = "") -> Raw:
        """Write an object as it is, or its status. Raises ApiError (409) if it was seen too late."""
        await self.sent()
        metadata = new["metadata"]
        ref = Ref(kind, metadata.get("namespace", ""), metadata["name"])
        return self.objects.update(ref, new, part=part, user=self.user)

    async def delete(self, kind: str, raw: Raw, options: Raw | None = None) -> None:
        """Delete an object; one that is gone is no failure."""
        await self.sent()
        self.delete_now(kind, raw, options)

    def delete_now(self, kind: str, raw: Raw, options: Raw | None = None) -> None:
        """Delete an object at this moment."""
        metadata = raw["metadata"]
        ref = Ref(kind, metadata.get("namespace", ""), metadata["name"])
        try:
            self.objects.delete(ref, options, user=self.user)
        except ApiError as error:
            if error.status != 404:
                raise

"""A controller behind a gateway that dies at its writes, and what happened in each stretch of a life.

The gateway (`gateway.py`) carries a write out and keeps its answer back, and the controller is killed: as the
cluster sees it, it died right after that write. The pods are recorded all the time.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from lab.fixtures.controller import Controller
from lab.fixtures.gateway import Gateway, Write, never
from lab.fixtures.shop import Shop, Watched
from lab.sandbox.instants import Instant
from lab.sandbox.timeline import Timeline

# There may be a start after each of some dozens of writes on a busy machine.
DEADLINE_S = 180.0


class Mortal:
    """A controller behind a gateway, started again each time it has died."""

    def __init__(self, gateway: Gateway, controller: Controller, shop: Shop) -> None:
        self.gateway = gateway
        self.controller = controller
        self.shop = shop

    def until(self, look: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
        """Wait for a condition as a shop does; whenever the controller dies meanwhile, start it again."""
        self.shop.until(lambda: self._lives() and look(), what, deadline_s)

    def dies_at(self, fatal: Callable[[Write], bool]) -> None:
        """Have it die from now on at those of its writes to the shop that are picked."""
        self.gateway.fatal = lambda write: write.namespace == self.shop.namespace and fatal(write)

    def survives(self) -> None:
        """Have it live from now on."""
        self.gateway.fatal = never
        self._lives()

    def _lives(self) -> bool:
        if self.gateway.struck.is_set():
            self.controller.kill()
            self.gateway.reopen()
            self.controller.start()
        return True


class Life:
    """What happened in one stretch of a workload's life: the writes, the deaths, the pods."""

    def __init__(self, name: str, mortal: Mortal, watched: Watched) -> None:
        self._name = name
        self._mortal = mortal
        self._watched = watched
        self._first = len(mortal.gateway.writes)
        self.since = Instant.now()

    @property
    def writes(self) -> list[Write]:
        """Return the writes that changed something in the shop."""
        written = self._mortal.gateway.writes[self._first :]
        return [
            write for write in written if write.namespace == self._mortal.shop.namespace and write.changed
        ]

    @property
    def died_each_time(self) -> bool:
        """Whether the controller died at each write so far, and wrote at all."""
        writes = self.writes  # looked at once: another may come meanwhile
        return bool(writes) and all(write.fatal for write in writes)

    @property
    def deaths(self) -> int:
        """Return how many writes the controller died at."""
        return sum(write.fatal for write in self.writes)

    @property
    def lowest(self) -> int:
        """Return the fewest available pods."""
        return self._watched.lowest(self.since)

    @property
    def highest(self) -> int:
        """Return the most pods, terminating ones left out."""
        return self._watched.highest(self.since)

    def tell(self) -> str:
        """Print one line about it, and return the whole story for a failed assertion."""
        kinds = Counter(f"{write.method} {write.kind}{_subresource(write)}" for write in self.writes)
        line = (
            f"{self._name}: {len(self.writes)} writes, {self.deaths} deaths, pods {self.lowest} available at"
            f" least and {self.highest} at most, {Instant.now().monotonic_s - self.since.monotonic_s:.0f} s;"
            f" {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}"
        )
        sys.stdout.write(f"\n{line}\n")
        written = [(write.at.monotonic_s, str(write)) for write in self._mortal.gateway.writes[self._first :]]
        lines = sorted(written + _pods_over_time(self._watched.timeline, self.since))
        return "\n".join([line, *(f"{at - self.since.monotonic_s:8.3f}  {text}" for at, text in lines)])


def _subresource(write: Write) -> str:
    return "/status" if write.rest.endswith("/status") else ""


def _pods_over_time(timeline: Timeline, since: Instant) -> list[tuple[float, str]]:
    steps = timeline.total_without_terminating
    rows = zip(timeline.available.times, timeline.available.values, steps.values, strict=True)
    return [(at, f"    {some} available of {all_}") for at, some, all_ in rows if at >= since.monotonic_s]


def every(_write: Write) -> bool:
    """Let it die at every write."""
    return True


@dataclass(frozen=True, slots=True)
class Dying:
    """A workload's life, stretch by stretch, whose controller dies at each write."""

    mortal: Mortal
    watched: Watched
    fewest: int
    """How many pods are available at every moment."""

    def __call__(
        self, name: str, act: Callable[[], object], reached: Callable[[], bool], *, least: int
    ) -> Life:
        """Do something and wait for its end, which takes `least` deaths; return what happened."""
        life = Life(name, self.mortal, self.watched)
        act()
        try:
            self.mortal.until(reached, f"the end of {name}")
        finally:
            story = life.tell()
        assert life.died_each_time, story
        assert life.deaths >= least, story
        assert life.lowest >= self.fewest, story
        return life

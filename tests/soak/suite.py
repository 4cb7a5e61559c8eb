"""Plays days on a sandbox of its own, hour by hour, and judges the promises of each hour by the recording.

`__main__` and the short run of `make test-campaigns` call it. An hour: what `day` says happens, then all
comes to rest within a bounded time. It never touches a cluster that it has not started itself: `chaos.suite`
starts it, and refuses any address that is not loopback.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.judge import Verdict
from chaos.suite import Suite
from soak.day import FIRST_NODES, HOUR_S, Deed, What, hour
from soak.flat import Finding, Gauge, judge
from soak.gauges import EVERY_S, Gauges
from soak.town import Town
from splitter.sandbox import Instant, SandboxError
from splitter.simulate.trace import Trace

_LOOK_EVERY_S = 0.5
_WORKERS = 16  # machines come in swarms, and each is waited for


@dataclass(frozen=True, slots=True)
class Hour:
    """What was seen of one hour."""

    number: int
    deeds: tuple[Deed, ...]
    verdicts: tuple[Verdict, ...]
    steady_s: float | None
    """From the last thing that happened until all was at rest; None: never."""
    faults: tuple[str, ...]
    """One sentence for each promise that was broken."""
    undone: int
    """How many things could not be done."""
    story: str = ""


class Soak:
    """A suite of chaos in which nothing fails but nodes."""

    def __init__(
        self, suite: Suite, trace: Trace, seed: int, tell: Callable[[str], None], every_s: float
    ) -> None:
        self._suite = suite
        self._town = Town(suite.world)
        self._trace = trace
        self._seed = seed
        self._tell = tell
        self._never = threading.Event()
        self._gauges = Gauges(suite.world.members, every_s)

    @classmethod
    @contextmanager
    def open(
        cls,
        home: Path,
        trace: Trace,
        seed: int,
        tell: Callable[[str], None],
        *,
        every_s: float = EVERY_S,
    ) -> Iterator["Soak"]:
        """Start everything, split the workloads, sample until the end, and end it all."""
        with Suite.open(home, tell, spot=FIRST_NODES) as suite:
            soak = cls(suite, trace, seed, tell, every_s)
            with soak._gauges:
                yield soak

    def play(self, number: int, hour_s: float = HOUR_S) -> Hour:
        """Play one hour, the rest of which is waited for, and judge it."""
        world = self._suite.world
        deeds = hour(self._seed, number, self._trace, len(world.parts), hour_s)
        faults: list[str] = []
        world.opens()
        with world.sandbox.record() as recorder:
            since = Instant.now()
            undone = self._act(deeds, since, faults)
            over_s = Instant.now().monotonic_s
            steady_s = self._suite.wait_steady(faults, over_s)
            if steady_s is None:
                faults.append(f"never at rest: {self._suite.unsteady()}")
            verdicts = self._suite.judge(recorder, since)
            recording = recorder.recording()
        faults += [f"{each.terms.namespace}: {fault}" for each in verdicts for fault in each.faults]
        self._wait(since.monotonic_s + hour_s, faults)
        story = self._suite.story(recording, since) if faults else ""
        return Hour(number, deeds, verdicts, steady_s, tuple(faults), undone, story)

    def findings(self) -> dict[tuple[str, Gauge], Finding]:
        """Return what became of each gauge of each splitter. Raises TooShortError for a run of a minute."""
        return {key: judge(key[1], samples) for key, samples in sorted(self._gauges.samples.items())}

    @property
    def missed(self) -> int:
        """How many samples could not be taken."""
        return self._gauges.missed

    def logs(self) -> Iterator[str]:
        """Yield the whole log of each splitter."""
        return self._suite.logs()

    def _act(self, deeds: tuple[Deed, ...], since: Instant, faults: list[str]) -> int:
        """Do everything at its time; return how much could not be done."""
        with ThreadPoolExecutor(_WORKERS) as doing:
            futures = []
            for deed in deeds:
                self._wait(since.monotonic_s + deed.at_s, faults)
                futures.append(doing.submit(self._does, deed))
        return sum(not future.result() for future in futures)

    def _does(self, deed: Deed) -> bool:
        try:
            self._town.do(deed)
        except SandboxError as fault:
            self._tell(f"did not happen: {deed}: {str(fault).splitlines()[0]}")
            return False
        if deed.what in {What.DEPLOY, What.POLICY, What.NODE_REPLACED}:
            self._tell(str(deed))
        return True

    def _wait(self, until_s: float, faults: list[str]) -> None:
        while (left_s := until_s - Instant.now().monotonic_s) > 0:
            self._suite.check(faults)
            self._never.wait(min(_LOOK_EVERY_S, left_s))

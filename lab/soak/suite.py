"""Plays days on a sandbox of its own, hour by hour, and judges the promises of each hour by the recording.

`__main__` and the short run of `make test-campaigns` call it. An hour: what `day` says happens, then all
comes to rest within a bounded time. It never touches a cluster that it has not started itself:
`lab.chaos.suite` starts it, and refuses any address that is not loopback.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab.chaos.judge import Verdict
from lab.chaos.suite import Suite
from lab.chaos.workload import Part
from lab.sandbox import Instant, Recorder, SandboxError
from lab.sandbox.timeline import Between
from lab.soak.bill import Billed, beside, bill
from lab.soak.day import FIRST_NODES, HOUR_S, Deed, What, hour
from lab.soak.flat import Finding, Gauge, judge
from lab.soak.gauges import EVERY_S, Gauges
from lab.soak.town import Town
from lab.splits import replica_seconds
from lab.traces import Trace

_LOOK_EVERY_S = 0.5
_WORKERS = 16  # machines come in swarms, and each is waited for
_RARE = {What.DEPLOY, What.POLICY, What.NODE_REPLACED, What.RESTARTED, What.LEADER_CHANGES}


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
        self,
        suite: Suite,
        drawn: Callable[[int, float], tuple[Deed, ...]],
        tell: Callable[[str], None],
        gauges: Gauges | None,
        recorder: Recorder,
    ) -> None:
        self._suite = suite
        self._town = Town(suite.world)
        self._drawn = drawn
        self._tell = tell
        self._never = threading.Event()
        self._gauges = gauges
        self._recorder = recorder
        self._since, self._counted = self._counts()

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
        restarts: bool = False,
    ) -> Iterator["Soak"]:
        """Start everything, split the workloads, sample until the end, and end it all.

        With `restarts` splitter is killed and changes its leader, and what a process holds is not sampled.
        """
        with Suite.open(home, tell, spot=FIRST_NODES) as suite, suite.world.sandbox.record() as recorder:
            gauges = None if restarts else Gauges(suite.world.members, every_s)
            parts = len(suite.world.parts)

            def drawn(number: int, hour_s: float) -> tuple[Deed, ...]:
                return hour(seed, number, trace, parts, hour_s, restarts=restarts)

            soak = cls(suite, drawn, tell, gauges, recorder)
            with gauges or nullcontext():
                yield soak

    def play(self, number: int, hour_s: float = HOUR_S) -> Hour:
        """Play one hour, the rest of which is waited for, and judge it."""
        world = self._suite.world
        deeds = self._drawn(number, hour_s)
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
        samples = self._gauges.samples if self._gauges is not None else {}
        return {key: judge(key[1], values) for key, values in sorted(samples.items())}

    def billed(self) -> list[Billed]:
        """Return what each Split has counted since the beginning beside the bill of the recorded pods."""
        until, counted = self._counts()
        recording, between = self._recorder.recording(), Between(self._since, until)
        result = []
        for name, after in counted.items():
            result += beside(name, bill(recording, name, between), self._counted[name], after)
        return result

    @property
    def missed(self) -> int:
        """How many samples could not be taken."""
        return self._gauges.missed if self._gauges is not None else 0

    def logs(self) -> Iterator[str]:
        """Yield the whole log of each splitter."""
        return self._suite.logs()

    def _counts(self) -> tuple[Instant, dict[str, dict[str, float]]]:
        """Return a moment, and what each Split tells of the use until then."""
        kept = {part: part.shop.status(part.face.split_name) for part in self._suite.world.parts}
        now = Instant.now()
        moment = datetime.fromtimestamp(now.wall_s, UTC)
        return now, {part.cast.namespace: _used(part, status, moment) for part, status in kept.items()}

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
        if deed.what in _RARE:
            self._tell(str(deed))
        return True

    def _wait(self, until_s: float, faults: list[str]) -> None:
        while (left_s := until_s - Instant.now().monotonic_s) > 0:
            self._suite.check(faults)
            self._never.wait(min(_LOOK_EVERY_S, left_s))


def _used(part: Part, status: Mapping[str, Any], moment: datetime) -> dict[str, float]:
    """Return what a Split has counted by a moment. Raises SandboxError if it counts nothing."""
    used = replica_seconds(status, moment)
    if used is None:
        raise SandboxError(f"the Split of {part.cast.namespace} says no usage")
    return used

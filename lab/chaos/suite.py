"""Plays rounds of chaos on a sandbox of its own, and judges each.

`__main__` and the short run of `make test-campaigns` call it. A round: what the schedule says goes wrong,
all is mended, and from then on the workloads must be steady within a bounded time. It never touches a
cluster that it has not started itself.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.chaos.faults import Fault, Stroke
from lab.chaos.judge import Sent, Verdict, story
from lab.chaos.judge import judge as judged
from lab.chaos.launcher import CLOCK_FILE
from lab.chaos.proxy import FaultProxy, check_loopback
from lab.chaos.schedule import Entry
from lab.chaos.workload import FACES, PLAYED, Cast, Part
from lab.chaos.world import SIGNALS, Member, World
from lab.fixtures.controller import SHORT, Controller, install
from lab.fixtures.placed import PLACES, POLICY
from lab.fixtures.shop import Shop
from lab.sandbox import Instant, Recorder, Sandbox, SandboxError
from lab.sandbox.ports import HeldPorts
from lab.sandbox.recording import Recording
from lab.sandbox.waiting import wait_until

# Between the mending and rest: a watch that went silent is noticed first, then comes the soak.
STEADY_S = 240.0
_LAUNCHER = Path(__file__).with_name("launcher.py")
_HELD_S = 2.0
_LOOK_EVERY_S = 0.5
_ON_DEMAND, _SPOT = 4, 4
_GROWN_KIB, _GROWN_FILES, _GROWN_WATCHES = 30 * 1024, 16, 2


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one process of splitter holds when all is steady."""

    process_id: int
    kib: int
    files: int
    threads: int
    watches: int

    def growth(self, first: "Footprint") -> Iterator[str]:
        """Yield what has grown since the first one of the same process by more than breath."""
        if self.kib - first.kib > _GROWN_KIB:
            yield f"memory: {first.kib // 1024} MiB became {self.kib // 1024} MiB"
        if self.files - first.files > _GROWN_FILES:
            yield f"open files: {first.files} became {self.files}"
        if self.watches - first.watches > _GROWN_WATCHES:
            yield f"open watches: {first.watches} became {self.watches}"


@dataclass(frozen=True, slots=True)
class Round:
    """What was seen of one round."""

    number: int
    entries: tuple[Entry, ...]
    verdicts: tuple[Verdict, ...]
    steady_s: float | None
    """Seconds from the end of the last fault until all was steady, the mending included; None: never."""
    faults: tuple[str, ...]
    """One sentence for each promise that was broken."""
    footprints: tuple[Footprint, ...]
    struck: dict[Fault, int]
    """How many requests were struck."""
    story: str = ""
    """All that was recorded and written, where a promise was broken."""


class Suite:
    """A sandbox, split workloads of each kind, two splitters behind proxies."""

    def __init__(self, world: World, tell: Callable[[str], None]) -> None:
        self.world = world
        self._tell = tell
        self._never = threading.Event()
        self._first: dict[int, Footprint] = {}

    @classmethod
    @contextmanager
    def open(cls, home: Path, tell: Callable[[str], None], *, spot: int = _SPOT) -> Iterator["Suite"]:
        """Start everything, split the workloads, and end it all."""
        with Sandbox.start(progress=tell) as sandbox, ExitStack() as stack:
            check_loopback(sandbox.url)
            sandbox.fleet.add("on-demand", _ON_DEMAND)
            sandbox.fleet.add("spot", spot)
            account = install(sandbox)
            if PLACES:
                sandbox.kubectl("apply", "-f", POLICY)
            members = []
            for name in ("one", "two"):
                (home / name).mkdir()
                proxy = stack.enter_context(FaultProxy(account))
                member = _member(name, proxy, home / name)
                stack.callback(member.controller.end)
                members.append(member)
            parts = [_part(sandbox, cast) for cast in PLAYED]
            world = World(sandbox, parts, members, tell)
            world.write_set(broken=False)
            for part in parts:
                part.face.deploy(part.cast)
                part.face.label()
            for member in members:
                member.controller.start()
            suite = cls(world, tell)
            if suite.wait_steady() is None:
                raise SandboxError(f"the workloads were not split to begin with: {suite.unsteady()}")
            yield suite

    def play(self, number: int, entries: tuple[Entry, ...]) -> Round:
        """Play one round and judge it."""
        faults: list[str] = []
        before = self._struck()
        self.world.opens()
        with self.world.sandbox.record() as recorder:
            since = Instant.now()
            self._act(entries, since, faults)
            over_s = Instant.now().monotonic_s
            self.world.mend()
            self._tell("all is mended")
            steady_s = self.wait_steady(faults, over_s)
            if steady_s is None:
                faults.append(f"not steady {STEADY_S:g} s after the last fault: {self.unsteady()}")
            verdicts = self.judge(recorder, since)
            recording = recorder.recording()
        faults += [f"{each.terms.namespace}: {fault}" for each in verdicts for fault in each.faults]
        footprints = tuple(self._footprints(faults)) if steady_s is not None else ()
        after = self._struck()
        struck = {fault: after[fault] - before[fault] for fault in Fault if after[fault] > before[fault]}
        return Round(
            number,
            entries,
            verdicts,
            steady_s,
            tuple(faults),
            footprints,
            struck,
            self.story(recording, since) if faults else "",
        )

    def wait_steady(self, faults: list[str] | None = None, since_s: float | None = None) -> float | None:
        """Return after how many seconds all was steady and stayed so, None when it never was."""
        began_s = Instant.now().monotonic_s if since_s is None else since_s
        rests_s: float | None = None
        while (now_s := Instant.now().monotonic_s) - began_s < STEADY_S:
            self.check(faults)
            if self.unsteady():
                rests_s = None
            elif rests_s is None:
                rests_s = now_s
            elif now_s - rests_s >= _HELD_S:
                return rests_s - began_s
            self._never.wait(_LOOK_EVERY_S)
        return None

    def unsteady(self) -> str:
        """Return what is not yet as it should be; nothing when all is steady."""
        try:
            return "; ".join(filter(None, (part.unsteady() for part in self.world.parts)))
        except SandboxError as fault:
            return str(fault)

    def logs(self) -> Iterator[str]:
        """Yield the whole log of each splitter."""
        for member in self.world.members:
            yield member.controller.said()

    # --- playing ----------------------------------------------------------------------------------

    def _act(self, entries: tuple[Entry, ...], since: Instant, faults: list[str]) -> None:
        """Play the schedule.

        What needs an answer of the API server goes to other threads: it may wait for one that was stopped,
        and whoever lets it go on is here.
        """
        agenda = [(entry.at_s, entry, True) for entry in entries]
        agenda += [(entry.at_s + entry.for_s, entry, False) for entry in entries]
        begun: dict[Entry, Future[None]] = {}
        ended: list[Future[None]] = []
        with ThreadPoolExecutor(max_workers=2 * len(entries)) as doing:
            for at_s, entry, begins in sorted(agenda, key=lambda each: each[0]):
                while (left_s := since.monotonic_s + at_s - Instant.now().monotonic_s) > 0:
                    self.check(faults)
                    self._never.wait(min(_LOOK_EVERY_S, left_s))
                self._tell(f"{'begins' if begins else 'ends  '}  {entry}")
                if isinstance(entry.what, Stroke):
                    self._strike(entry.what, begins=begins)
                elif begins:
                    begun[entry] = doing.submit(self._happens, entry, self.world.begin)
                elif entry.what in SIGNALS:
                    self._happens(entry, self.world.end)
                else:
                    ended.append(doing.submit(self._ends, entry, begun[entry]))
        for future in (*begun.values(), *ended):
            future.result()  # raises what is our own fault

    def _strike(self, stroke: Stroke, *, begins: bool) -> None:
        for member in self.world.members:
            if begins:
                member.proxy.strike(stroke)
            else:
                member.proxy.mend(stroke)

    def _ends(self, entry: Entry, begun: Future[None]) -> None:
        begun.result()
        self._happens(entry, self.world.end)

    def _happens(self, entry: Entry, act: Callable[[Entry], None]) -> None:
        try:
            act(entry)
        except SandboxError as fault:  # the world is in its own way, such as a server that was stopped
            self._tell(f"did not happen: {entry.name}: {str(fault).splitlines()[0]}")

    def check(self, faults: list[str] | None) -> None:
        """A splitter that ends by itself is a fault; it is started again, as its Deployment would.

        But for one that was started while nobody answered, or answers were lost: it says so and ends
        (docs/reference/reasons.md).
        """
        self.world.check()
        for member in self.world.members:
            try:
                member.controller.check()
            except SandboxError as fault:
                if faults is None:
                    raise
                if "splitter: ApiUnreachable: " not in str(fault):
                    faults.append(f"splitter {member.name} ended by itself: {fault}")
                member.controller.begin()

    # --- judging ----------------------------------------------------------------------------------

    def judge(self, recorder: Recorder, since: Instant) -> tuple[Verdict, ...]:
        """Return a verdict for each workload, of all that was recorded since."""
        recording = recorder.recording()
        taken = self.world.taken
        sent = [
            Sent(write.sent, write.namespace, write.name)
            for member in self.world.members
            for write in member.proxy.writes
        ]
        return tuple(judged(part.terms, recording, taken, since, sent) for part in self.world.parts)

    def story(self, recording: Recording, since: Instant) -> str:
        """Return what was seen and what splitter wrote, by time."""
        lines = [
            (at_s, f"{part.cast.namespace}  {line}")
            for part in self.world.parts
            for at_s, line in story(part.cast.namespace, recording, self.world.taken, since)
        ]
        lines += [
            (write.at.monotonic_s, f"{write.namespace}  splitter {member.name}: {write}")
            for member in self.world.members
            for write in member.proxy.writes
            if write.at >= since
        ]
        return "\n".join(f"{at_s - since.monotonic_s:8.3f}  {line}" for at_s, line in sorted(lines))

    def _struck(self) -> dict[Fault, int]:
        return {fault: sum(member.proxy.struck_by[fault] for member in self.world.members) for fault in Fault}

    def _footprints(self, faults: list[str]) -> Iterator[Footprint]:
        for member in self.world.members:
            footprint = _footprint(member)
            first = self._first.setdefault(footprint.process_id, footprint)
            faults += [f"splitter {member.name}: {grown}" for grown in footprint.growth(first)]
            yield footprint


def _member(name: str, proxy: FaultProxy, home: Path) -> Member:
    ports = HeldPorts()
    port = ports.take()
    ports.release()
    clock = home / "clock"
    controller = Controller(
        proxy.kubeconfig(home / "kubeconfig"),
        home,
        {**SHORT, "LEADER_ELECTION": "on", "METRICS_PORT": str(port)},
        launcher=_LAUNCHER,
        reported={CLOCK_FILE: str(clock)},
    )
    return Member(name, controller, proxy, clock, port)


def _part(sandbox: Sandbox, cast: Cast) -> Part:
    sandbox.kubectl("create", "namespace", cast.namespace)
    account = f"/api/v1/namespaces/{cast.namespace}/serviceaccounts/default"
    wait_until(lambda: sandbox.api.find(account), what="the service account", deadline_s=30)
    return Part(cast, FACES[cast.kind](Shop(sandbox, cast.namespace, sandbox.check)), cast.least)


def _footprint(member: Member) -> Footprint:
    process = Path("/proc") / str(member.controller.process_id)
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return Footprint(
        member.controller.process_id,
        kib=int(status["VmRSS"].split()[0]),
        files=len(list((process / "fd").iterdir())),
        threads=int(status["Threads"]),
        watches=member.proxy.watches,
    )

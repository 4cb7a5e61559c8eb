"""Judges a step by its recording: was the floor kept, was the bound kept, how fast was the write.

`journey` gives it what the sandbox recorded and what the demo itself did; `screen` prints the verdict.
Pure, and independent of splitter's words: pods are counted by `sandbox.timeline`, splitter's writes are
those seen on the twins. Source of the promises: H4 (make before break) and R32, H55 (bounded surge).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lab.demo.workload import Workload
from lab.sandbox import Between, Instant, Timeline
from lab.sandbox.asked import Asked


@dataclass(frozen=True, slots=True)
class ReplicasWritten:
    """A Deployment's `spec.replicas` was seen to have a new value."""

    at: Instant
    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What a step means for one workload: N before and after, and how many replicas were doomed in it."""

    before: int
    after: int
    doomed: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the demo, from the moment before its first write until it had settled."""

    name: str
    began: Instant
    ended: Instant
    expected: Mapping[str, Expected]
    noticed: Instant | None = None
    """The moment right before the first node's taint, in the outage."""
    floor_is_promised: bool = True
    """False when the cloud's notice is too short for any replacement to start."""
    capacity_probe: bool = False
    """Spot may be asked for one replica more than N, where the workload has no surge of its own."""
    restored: Mapping[str, bool] | None = None
    """Whether each Deployment that was given back is as it was found."""
    stopped: bool = False
    """It did not settle in time."""


@dataclass(frozen=True, slots=True)
class Cell:
    """How one workload fared in one step, in replicas.

    `asked`: the most that its ReplicaSets were asked for together. The bound is about that: Kubernetes may
    start a pod a moment before the one that it replaces begins to end.
    `below_s`: for how many seconds it was below the floor.
    `write_s`: seconds from the first taint to the first raise of on-demand; `cover_s`: until on-demand was
    asked for all N.
    """

    lowest: int
    floor: int | None
    """None: nothing is promised."""
    highest: int
    asked: int
    bound: int
    write_s: float | None = None
    cover_s: float | None = None
    below_s: float = 0.0

    @property
    def floor_kept(self) -> bool:
        """Say whether availability never fell below what is promised."""
        return self.floor is None or self.lowest >= self.floor

    @property
    def bound_kept(self) -> bool:
        """Say whether there were never more replicas asked for than promised."""
        return self.asked <= self.bound


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict about one step."""

    name: str
    took_s: float
    cells: Mapping[str, Cell] = field(default_factory=dict)
    noticed: bool = False
    restored: Mapping[str, bool] | None = None
    stopped: bool = False

    @property
    def kept(self) -> bool:
        """Say whether every promise was kept."""
        counts_kept = all(cell.floor_kept and cell.bound_kept for cell in self.cells.values())
        return counts_kept and not self.stopped and all((self.restored or {}).values())

    def faults(self) -> list[str]:
        """Return one sentence with its numbers for each broken floor and bound."""
        broken = []
        for name, cell in self.cells.items():
            if not cell.floor_kept:
                lowest = f"{self.name}: {name} had {cell.lowest} available, the floor is {cell.floor}"
                broken.append(f"{lowest}; below it for {cell.below_s:.2f} s")
            if not cell.bound_kept:
                broken.append(
                    f"{self.name}: {name} was asked for {cell.asked} pods, the bound is {cell.bound}"
                )
        return broken


def judge(
    step: Step,
    workloads: Sequence[Workload],
    timelines: Mapping[str, Timeline],
    writes: Sequence[ReplicasWritten],
    asked: Asked,
) -> Judged:
    """Return the verdict about one step; `timelines` by workload's name.

    Pods that are terminating count for neither side: Kubernetes starts replacements before old pods are
    gone, and they serve nobody.
    """
    cells = {
        workload.name: _cell(step, workload, timelines[workload.name], writes, asked)
        for workload in workloads
    }
    took_s = step.ended.monotonic_s - step.began.monotonic_s
    return Judged(step.name, took_s, cells, step.noticed is not None, step.restored, step.stopped)


def _cell(
    step: Step,
    workload: Workload,
    timeline: Timeline,
    writes: Sequence[ReplicasWritten],
    asked: Asked,
) -> Cell:
    between = Between(step.began, step.ended)
    expected = step.expected[workload.name]
    floor = min(workload.floor(expected.before), workload.floor(expected.after))
    write_s = cover_s = None
    if step.noticed is not None and expected.doomed:
        raises = [
            write
            for write in writes
            if write.name == f"{workload.name}-on-demand"
            and write.after > write.before
            and write.at >= step.noticed
        ]
        write_s = _seconds_to_reach(1, raises, step.noticed)
        cover_s = _seconds_to_reach(expected.after, raises, step.noticed)
    return Cell(
        lowest=timeline.lowest_available(between),
        floor=floor if step.floor_is_promised or not expected.doomed else None,
        highest=timeline.highest_total(between, with_terminating=False),
        asked=asked.highest(workload.name, step.began, step.ended),
        bound=_bound(step, workload, expected),
        write_s=write_s,
        cover_s=cover_s,
        below_s=timeline.seconds_below(floor, between),
    )


def _bound(step: Step, workload: Workload, expected: Expected) -> int:
    most = max(expected.before, expected.after)
    surge = workload.surge(most)
    return most + (max(1, surge) if step.capacity_probe else surge) + expected.doomed


def _seconds_to_reach(replicas: int, raises: Sequence[ReplicasWritten], after: Instant) -> float | None:
    """Return the seconds until a Deployment was first asked for so many replicas, None when it never was."""
    reached = (write.at for write in raises if write.after >= replicas)
    return next((at.monotonic_s - after.monotonic_s for at in reached), None)

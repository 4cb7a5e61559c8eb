"""What many workloads need, computed from what was measured with fewer; pure.

`docs/capacity.md` has these tables, from `benchmarks/scale.json`, `still.json` and `still-of-2.json`. Nothing
is assumed but that what grew with workloads and with pods goes on growing so; how far that is from what was
measured stands beside it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from bench.scale.tables import Figures, number, piped, published

TARGETS = (3_000, 10_000, 100_000)
PODS_A_CLUSTER = 150_000
"""What Kubernetes is built for: https://kubernetes.io/docs/setup/best-practices/cluster-large/."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: so many workloads of so many replicas; `still` when only splitter moved."""

    workloads: int
    replicas: int
    still: bool
    figures: Figures

    @property
    def pods(self) -> int:
        """How many pods there were."""
        return self.workloads * self.replicas

    def figure(self, measure: str, name: str) -> float | None:
        """Return a figure; None where it was not measured."""
        return number(self.figures.get(measure, {}), name)


@dataclass(frozen=True, slots=True)
class Growth:
    """A figure as `base + per_workload * workloads + per_pod * pods`; `off` is the farthest, as a share."""

    base: float
    per_workload: float
    per_pod: float
    off: float

    def of(self, workloads: int, replicas: int) -> float:
        """Return the figure of so many workloads."""
        return self.base + self.per_workload * workloads + self.per_pod * workloads * replicas


def read(folder: Path) -> list[Measured]:
    """Return all runs of the three files, the smallest first."""
    collected = []
    for name in ("scale.json", "still.json", "still-of-2.json"):
        seen = json.loads((folder / name).read_text(encoding="utf-8"))
        collected += [
            Measured(int(size), seen["replicas"], name.startswith("still"), figures)
            for size, figures in seen["sizes"].items()
        ]
    return sorted(collected, key=lambda run: (run.workloads, run.pods))


def grown(runs: Iterable[Measured], measure: str, name: str) -> Growth:
    """Fit a figure to workloads and pods (least squares). Raises ValueError for fewer than three runs of it.

    The relative error is what is made small: 1 MB of 90 is as much as 3 MB of 270.
    """
    points = [(run, figure) for run in runs if (figure := run.figure(measure, name)) is not None]
    rows = [[1 / at, run.workloads / at, run.pods / at] for run, at in points]
    if len(rows) < 3:
        raise ValueError(f"three runs with {measure}.{name} are needed, there are {len(rows)}")
    normal = [[sum(row[i] * row[j] for row in rows) for j in range(3)] for i in range(3)]
    base, per_workload, per_pod = solved(normal, [sum(row[i] for row in rows) for i in range(3)])
    fit = Growth(base, per_workload, per_pod, 0.0)
    off = max(abs(fit.of(run.workloads, run.replicas) / figure - 1) for run, figure in points)
    return Growth(base, per_workload, per_pod, off)


def solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Return x of matrix * x = right, by Gauss's elimination. Raises ValueError when there is not one x."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda at: abs(rows[at][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if abs(rows[i][i]) < 1e-12:
            raise ValueError("the runs do not differ enough to tell workloads from pods")
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(len(rows)):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


_SHOWN = (
    ("resident after a start", "memory_of_a_new_process", "resident", "MB"),
    ("resident at most, notices on all nodes included", "memory_after_notices", "resident_at_most", "MB"),
    ("start of a process to its first right write", "start", "first_s", "s"),
    ("notice on one node, to the write: p50", "one_node", "p50_ms", "ms"),
    ("the same: p99", "one_node", "p99_ms", "ms"),
    ("notice on all spot nodes: the last write", "all_nodes", "max_ms", "ms"),
    ("idle", "idle", "percent", "% of a core"),
    ("writes while idle, in a minute", "idle", "writes", ""),
    ("leader killed: the last write of a notice", "fail_over", "last_s", "s"),
)


def measured_table(runs: Sequence[Measured]) -> str:
    """Return what one process was seen to need."""
    head = ["one process", *(_title(run) for run in runs)]
    rows = [
        [title, *(published(run.figure(measure, name), unit) for run in runs)]
        for title, measure, name, unit in _SHOWN
    ]
    return piped(head, rows)


def computed_table(runs: Sequence[Measured]) -> str:
    """Return what the targets need, in installs of the sizes that were measured."""
    largest = {run.replicas: run for run in runs}  # the last of each is the largest
    memory, start = _fits(runs)
    head = ["workloads", "pods", "clusters", "installs", "memory each", "memory of all", "start", "all spot"]
    rows = [
        _needs(target, largest[replicas], memory, start)
        for replicas in sorted(largest, reverse=True)
        for target in TARGETS
    ]
    return piped(head, rows)


def _fits(runs: Sequence[Measured]) -> tuple[Growth, Growth]:
    """Return how resident memory (MB) and the time of a start (s) grow."""
    return grown(runs, "memory_of_a_new_process", "resident"), grown(runs, "start", "first_s")


def _needs(target: int, run: Measured, memory: Growth, start: Growth) -> list[str]:
    pods = target * run.replicas
    clusters = ceil(pods / PODS_A_CLUSTER)
    installs = ceil(target / run.workloads)
    each = ceil(target / installs)
    storm_s = (run.figure("all_nodes", "max_ms") or 0.0) / 1000 / run.workloads
    return [
        f"{target:,} of {run.replicas}",
        f"{pods:,}",
        f"{clusters:,}",
        f"{installs:,} of {each:,}",
        published(memory.of(each, run.replicas), "MB"),
        published(memory.of(each, run.replicas) * installs / 1000, "GB"),
        published(start.of(each, run.replicas), "s"),
        published(storm_s * target / clusters, "s"),
    ]


def growth_lines(runs: Sequence[Measured]) -> str:
    """Return the two fits as sentences."""
    memory, start = _fits(runs)
    return (
        f"- Memory: {memory.base:.0f} MB, and {memory.per_workload * 1000:.0f} KB a workload, and"
        f" {memory.per_pod * 1000:.1f} KB a pod; at most {memory.off:.0%} beside what was measured.\n"
        f"- Start: {start.base:.1f} s, and {start.per_workload * 1000:.1f} ms a workload, and"
        f" {start.per_pod * 1000:.2f} ms a pod; at most {start.off:.0%} beside what was measured."
    )


def _title(run: Measured) -> str:
    return f"{run.workloads:,} of {run.replicas}" + (" (still)" if run.still else "")

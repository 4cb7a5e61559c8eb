"""Spot capacity over time: which node came and went when.

The format is that of the public bamboo traces, one change a line: `milliseconds,add|remove,node`.
Traces that only count nodes (SkyPilot's) are turned into the same by `from_counts`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class Change:
    """One node came or went, so many seconds after the start of the trace."""

    at_s: float
    node: str
    added: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """Changes in order of time, and the length of the whole in seconds."""

    name: str
    changes: tuple[Change, ...]
    duration_s: float


def parse_trace(lines: Iterable[str], name: str = "trace") -> Trace:
    """Read `milliseconds,add|remove,node` lines; empty lines and `#` comments are left out.

    The trace ends with its last change. Raises ValueError with the line's number when a line cannot be
    read, when a node is added twice or removed before it was added, or when nothing is left.

    >>> parse_trace(["0,add,a", "60000,remove,a"]).duration_s
    60.0
    """
    changes: list[Change] = []
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#"):
            changes.append(_change(line.strip(), f"{name}, line {number}"))
    changes.sort(key=lambda change: change.at_s)
    here: set[str] = set()
    for change in changes:
        if change.added == (change.node in here):
            what = "added twice" if change.added else "removed while it was not there"
            raise ValueError(f"{name}: {change.node} is {what} at {change.at_s:g} s")
        here ^= {change.node}
    if not changes:
        raise ValueError(f"{name} has no changes; it needs lines such as 60000,add,node1")
    return Trace(name, tuple(changes), changes[-1].at_s)


def read_trace(path: Path) -> Trace:
    """Read a trace file; it is named after the file. Raises OSError, or ValueError as `parse_trace`."""
    with path.open(encoding="utf-8") as lines:
        return parse_trace(lines, path.stem)


def from_counts(counts: Sequence[int], gap_s: float, name: str = "trace") -> Trace:
    """Make a trace from how many nodes could be had every `gap_s` seconds; the newest go first.

    >>> [(change.at_s, change.node, change.added) for change in from_counts([1, 0], 300).changes]
    [(0.0, 'node-1', True), (300.0, 'node-1', False)]
    """
    changes: list[Change] = []
    here: list[str] = []
    born = 0
    for tick, count in enumerate(counts):
        while len(here) < count:
            born += 1
            here.append(f"node-{born}")
            changes.append(Change(tick * gap_s, here[-1], added=True))
        while len(here) > count:
            changes.append(Change(tick * gap_s, here.pop(), added=False))
    return Trace(name, tuple(changes), len(counts) * gap_s)


def _change(line: str, where: str) -> Change:
    fields = [field.strip() for field in line.split(",")]
    match fields:
        case [at_ms, "add" | "remove" as verb, node] if node and at_ms.isdigit():
            return Change(int(at_ms) / MILLISECONDS, node, added=verb == "add")
        case _:
            raise ValueError(f"{where}: {line!r} is no change; write milliseconds,add|remove,node")

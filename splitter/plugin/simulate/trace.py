"""Spot capacity over time: which node came and went when.

Two formats are read. That of the public bamboo traces has one change a line:
`milliseconds,add|remove,node`. That of the SkyPilot project counts nodes at regular times, in JSON:
`{"metadata": {"gap_seconds": 300}, "data": [16, 16, 3]}`; `from_counts` turns it into changes.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MILLISECONDS = 1000
LENGTH_MAX_S = 10 * 366 * 86_400.0
"""Ten years: a longer trace is a mistake of units, or has instants of the calendar in it."""
NODES_MAX = 10_000
"""At a time: twice what one splitter is meant to hold."""
CHANGES_MAX = 5_000_000
"""Of nodes: 1 GB of memory; the longest public trace has 4,000."""


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

    @property
    def most_nodes(self) -> int:
        """Count the nodes at the best moment."""
        here = most = 0
        for change in self.changes:
            here += 1 if change.added else -1
            most = max(most, here)
        return most


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
        (here.add if change.added else here.remove)(change.node)
    if not changes:
        raise ValueError(f"{name} has no changes; it needs lines such as 60000,add,node1")
    return Trace(name, tuple(changes), changes[-1].at_s)


def parse_counts(text: str, name: str = "trace") -> Trace:
    """Read `{"metadata": {"gap_seconds": S}, "data": [N, ...]}`: how many nodes could be had every S seconds.

    Source of the form: skypilot-org/spot-traces. Raises ValueError with the line or the field that is wrong.

    >>> parse_counts('{"metadata": {"gap_seconds": 60}, "data": [2, 0]}').duration_s
    120.0
    """
    try:
        content: object = json.loads(text)
    except json.JSONDecodeError as fault:
        raise ValueError(f"{name}, line {fault.lineno}: this is no JSON: {fault.msg}") from fault
    except (ValueError, RecursionError) as fault:
        raise ValueError(f"{name} is no JSON that can be read: {fault}") from fault
    if not isinstance(content, dict):
        raise ValueError(f'{name} must be {{"metadata": {{"gap_seconds": 300}}, "data": [16, 3]}}')  # noqa: TRY004
    metadata = content.get("metadata")
    gap_s = metadata.get("gap_seconds") if isinstance(metadata, dict) else None
    if isinstance(gap_s, bool) or not isinstance(gap_s, int | float) or not 0 < gap_s <= LENGTH_MAX_S:
        raise ValueError(
            f"{name}, field metadata.gap_seconds is {_short(gap_s)}; "
            "it must be a number of seconds, more than 0"
        )
    counts = content.get("data")
    if not isinstance(counts, list) or not counts:
        raise ValueError(f"{name}, field data is {_short(counts)}; it must be a list of numbers of nodes")
    for place, count in enumerate(counts):
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= NODES_MAX:
            raise ValueError(
                f"{name}, field data[{place}] is {_short(count)}; it must be a whole number 0..{NODES_MAX}"
            )
    if gap_s * len(counts) > LENGTH_MAX_S:
        raise ValueError(f"{name} is longer than ten years; metadata.gap_seconds is in seconds")
    steps = zip([0, *counts], counts, strict=False)
    if sum(abs(after - before) for before, after in steps) > CHANGES_MAX:
        raise ValueError(f"{name} has more than {CHANGES_MAX} changes; cut it into several")
    return from_counts(counts, float(gap_s), name)


def read_trace(path: Path) -> Trace:
    """Read a trace file of either format; it is named after the file.

    Raises OSError, or ValueError as `parse_trace` and `parse_counts`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as fault:
        raise ValueError(f"{path.name} is no text: {fault}") from fault
    if text.lstrip().startswith(("{", "[")):
        return parse_counts(text, path.stem)
    return parse_trace(text.splitlines(), path.stem)


def from_counts(counts: Sequence[int], gap_s: float, name: str = "trace") -> Trace:
    """Make a trace from how many nodes could be had every `gap_s` seconds; the newest go first.

    >>> [(change.at_s, change.node, change.added) for change in from_counts([1, 0], 300).changes]
    [(0, 'node-1', True), (300, 'node-1', False)]
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
        case [at_ms, "add" | "remove" as verb, node] if node and at_ms.isdecimal() and at_ms.isascii():
            # Compared by its length first: Python refuses to read thousands of digits.
            at_s = int(at_ms) / MILLISECONDS if len(at_ms) <= _DIGITS_MAX else math.inf
            if at_s > LENGTH_MAX_S:
                raise ValueError(f"{where}: {_short(at_ms)} ms is more than ten years; a trace starts at 0")
            return Change(at_s, node, added=verb == "add")
        case _:
            raise ValueError(f"{where}: {_short(line)} is no change; write milliseconds,add|remove,node")


_DIGITS_MAX = 15
_SHORT = 60


def _short(value: object) -> str:
    """Return a value as a sentence can hold it."""
    text = repr(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}..."

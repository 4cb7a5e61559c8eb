"""Reads a public trace of spot capacity: which node came and went at which second.

The format is that of the bamboo traces: `milliseconds,add|remove,node`, a change a line, by time.
"""

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Change:
    """One node came or went, so many seconds after the start of the trace."""

    at_s: float
    node: str
    added: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """Changes by time; it ends with its last one."""

    changes: tuple[Change, ...]

    @property
    def duration_s(self) -> float:
        """Return the length of the whole in seconds."""
        return self.changes[-1].at_s


def read_trace(path: Path) -> Trace:
    """Read a trace file. Raises OSError, and ValueError if a line is no change or the file has none."""
    changes = []
    with path.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.reader(lines), start=1):
            match row:
                case [at_ms, "add" | "remove" as verb, node] if node and at_ms.isdecimal():
                    changes.append(Change(int(at_ms) / 1000, node, added=verb == "add"))
                case _:
                    raise ValueError(f"{path.name}, line {number}: write milliseconds,add|remove,node")
    if not changes:
        raise ValueError(f"{path.name} has no changes")
    return Trace(tuple(sorted(changes, key=lambda change: change.at_s)))

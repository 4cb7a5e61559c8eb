"""What the benchmarks read, compute and print: processes, percentiles, a table, a JSON file."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_CPU_MODEL = "model name"


@dataclass(frozen=True, slots=True)
class Percentiles:
    """How a set of durations is distributed, in milliseconds."""

    samples: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Percentiles":
        """Return the percentiles by nearest rank: each is a duration that was really seen."""
        ordered = sorted(seconds)

        def rank(share: float) -> float:
            return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000, 1)

        return cls(len(ordered), rank(0.5), rank(0.9), rank(0.99), round(ordered[-1] * 1000, 1))


def cpu_seconds(process_id: int) -> float:
    """Return the CPU time that a process has used, in user and kernel."""
    # The name in brackets may hold spaces; utime and stime are fields 14 and 15 of proc(5).
    fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


def memory_mb(process_id: int) -> dict[str, float]:
    """Return resident memory now and at most, and the proportional share of it, in MB (10^6 bytes)."""
    wanted = {"VmRSS": "resident", "VmHWM": "resident_at_most", "Pss": "proportional"}
    values = {}
    for name in ("status", "smaps_rollup"):
        for line in Path(f"/proc/{process_id}/{name}").read_text().splitlines():
            key, _, value = line.partition(":")
            if key in wanted:
                values[wanted[key]] = round(int(value.split()[0]) * 1024 / 1e6, 1)
    return values


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith(_CPU_MODEL)), "unknown")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cpus": os.cpu_count(),
        "cpu": model,
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[1], 1),  # of 5 minutes: whether others were at work too
    }


def show(title: str, rows: Sequence[tuple[str, str, str]]) -> None:
    """Print one table: what was measured, the figure, the goal."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("measured")
    table.add_column("figure", justify="right")
    table.add_column("goal", justify="right")
    for row in rows:
        table.add_row(*row)
    console = Console(width=100)
    console.print()
    console.print(table)


def show_percentiles(rows: Sequence[tuple[str, Percentiles, str]]) -> None:
    """Print one line a set of durations."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("milliseconds")
    for name in ("samples", "p50", "p90", "p99", "max", "goal p99"):
        table.add_column(name, justify="right")
    for name, one, goal in rows:
        values = (one.p50_ms, one.p90_ms, one.p99_ms, one.max_ms)
        table.add_row(name, str(one.samples), *(f"{value:.0f}" for value in values), goal)
    console = Console(width=100)
    console.print()
    console.print(table)


def write(path: Path, figures: dict[str, Any]) -> None:
    """Write the figures as JSON, percentiles as objects."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = {
        key: asdict(value) if isinstance(value, Percentiles) else value for key, value in figures.items()
    }
    path.write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")

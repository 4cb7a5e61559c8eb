"""One core for what is measured, and what the machine did meanwhile: read from /proc, so Linux only.

`rounds` wraps each measure in `Meter.over`. Whether splitter, the control plane or somebody else set the pace
is read from it: splitter's share of its own core beside how busy the whole machine was.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.bench.figures import cpu_seconds

Figures = dict[str, Any]

# Above these shares somebody is taken to be what everything waits for.
_FULL_CORE_PERCENT, _FULL_MACHINE_PERCENT = 80.0, 85.0
_IDLE_FIELDS = (3, 4)  # idle and iowait of the first line of /proc/stat, proc(5)


def own_core(process_id: int) -> None:
    """Let a process, with all its threads to come, use the last core and no other."""
    with suppress(OSError):
        os.sched_setaffinity(process_id, {max(os.sched_getaffinity(0))})


@dataclass(frozen=True, slots=True)
class _Look:
    at_s: float
    process_s: float
    api_s: float
    busy: int
    all_of_it: int


class Meter:
    """Looks at one process, at the API server and at the whole machine."""

    def __init__(self, process_id: int, api_server_id: int) -> None:
        self._process_id = process_id
        self._api_server_id = api_server_id

    @contextmanager
    def over(self, figures: Figures) -> Iterator[Figures]:
        """Add to `measured`, at the end of the block, what was used in it."""
        before = self._look()
        try:
            yield figures
        finally:
            after = self._look()
            wall_s = max(0.001, after.at_s - before.at_s)
            core = (after.process_s - before.process_s) / wall_s * 100
            machine = (after.busy - before.busy) / max(1, after.all_of_it - before.all_of_it) * 100
            figures |= {
                "wall_s": round(wall_s, 2),
                "cpu_s": round(after.process_s - before.process_s, 2),
                "core_percent": round(core),
                "api_server_cpu_s": round(after.api_s - before.api_s, 2),
                "machine_percent": round(machine),
                "load_average": round(os.getloadavg()[0], 1),
                "limit": limit(core, machine),
            }

    def _look(self) -> _Look:
        ticks = [int(count) for count in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle = sum(ticks[field] for field in _IDLE_FIELDS)
        return _Look(
            time.monotonic(), _cpu(self._process_id), _cpu(self._api_server_id), sum(ticks) - idle, sum(ticks)
        )


def _cpu(process_id: int) -> float:
    try:
        return cpu_seconds(process_id)
    except OSError:  # it has ended meanwhile
        return 0.0


def limit(core_percent: float, machine_percent: float) -> str:
    """Say what set the pace, from splitter's share of its core and how busy all cores were."""
    if core_percent >= _FULL_CORE_PERCENT:
        return "splitter's core"
    if machine_percent >= _FULL_MACHINE_PERCENT:
        return "the machine"
    return "waiting"

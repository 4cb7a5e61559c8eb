"""Starts `splitter run` with a clock that can be set, and with a count of its asyncio tasks.

`lab.fixtures.controller` starts this file instead of `-m splitter` for chaos and soak. The wall clock of the
process is the machine's, plus the seconds that stand in the file that CHAOS_CLOCK names; its monotonic clocks
are not touched, as with a real machine whose clock is set. How many tasks live is shown at /metrics. It
changes nothing else of splitter.
"""

import asyncio
import importlib
import os
import runpy
import sys
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

CLOCK_FILE = "CHAOS_CLOCK"
TASKS_METRIC = "chaos_asyncio_tasks"
# All that ask for the time; `test_launcher` looks for others.
ASKING = (
    "splitter.reconciler",
    "splitter.relief.watch",
    "splitter.reconciler.template_validation",
    "splitter.reconciler.watchdog",
    "splitter.kube.held_up",
    "splitter.kube.lease",
    "splitter.estimator.answers",
)


class SetClock(datetime):
    """The time as this process has it."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # a plain one, as all others
        """Return the machine's time, and what the file adds."""
        return datetime.now(tz) + timedelta(seconds=offset_s())


def offset_s() -> float:
    """Return how far the clock is set forward; 0 without a file, or with one that is being written."""
    try:
        return float(Path(os.environ[CLOCK_FILE]).read_text(encoding="utf-8"))
    except (KeyError, OSError, ValueError):
        return 0.0


def main() -> None:
    """Set the clock, count tasks, and be splitter."""
    sys.path.pop(0)  # this folder: its modules have names of their own
    for name in ASKING:
        importlib.import_module(name).datetime = SetClock  # type: ignore[attr-defined]
    _count_tasks()
    sys.argv[1:] = ["run"]
    runpy.run_module("splitter", run_name="__main__")


def _count_tasks() -> None:
    from prometheus_client import Gauge  # noqa: PLC0415 (after the clock was set)

    operator: Any = importlib.import_module("splitter.operator")
    runs = operator.run

    async def run(settings: Any) -> None:  # noqa: ANN401 (whatever it takes)
        loop = asyncio.get_running_loop()
        gauge = Gauge(TASKS_METRIC, "Tasks of the process's event loop that have not ended")
        gauge.set_function(lambda: len(asyncio.all_tasks(loop)))
        await runs(settings)

    operator.run = run


if __name__ == "__main__":
    main()

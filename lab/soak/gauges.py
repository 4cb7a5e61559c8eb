"""What each process of splitter holds, sampled all the time: from /proc, from /metrics, and from its proxy.

`suite` runs it beside the day. A sample that could not be taken is counted and left out; what was sampled is
judged by `flat`.
"""

import threading
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from lab.chaos.launcher import TASKS_METRIC
from lab.chaos.world import Member
from lab.sandbox import Instant
from lab.sandbox.ports import LOOPBACK
from lab.soak.flat import Gauge, Sample

EVERY_S = 2.0
_TIMEOUT_S = 5.0
_KIB = 1024


class Gauges:
    """Samples from `__enter__` to `__exit__`, in a thread of its own."""

    def __init__(self, members: list[Member], every_s: float = EVERY_S) -> None:
        self._members = members
        self._every_s = every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="gauges", daemon=True)
        self.samples: dict[tuple[str, Gauge], list[Sample]] = defaultdict(list)
        """By splitter and gauge."""
        self.missed = 0

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End; what was sampled stays."""
        self._over.set()
        self._thread.join(_TIMEOUT_S * len(self._members) + self._every_s)

    def _sample(self) -> None:
        began_s = Instant.now().monotonic_s
        while not self._over.wait(self._every_s):
            for member in self._members:
                at_s = Instant.now().monotonic_s - began_s
                try:
                    content = read(member)
                except (OSError, ValueError):
                    self.missed += 1
                    continue
                for gauge, value in content.items():
                    self.samples[member.name, gauge].append(Sample(at_s, value))


def read(member: Member) -> dict[Gauge, float]:
    """Return what one process holds now. Raises OSError or ValueError when it cannot be asked.

    /proc comes first: whoever asks for /metrics is a thread and a file of the process.
    """
    process = Path("/proc") / str(member.controller.process_id)
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return {
        Gauge.MEMORY: int(status["VmRSS"].split()[0]) / _KIB,
        Gauge.FILES: len(list((process / "fd").iterdir())),
        Gauge.THREADS: int(status["Threads"]),
        Gauge.WATCHES: member.proxy.watches,
        Gauge.TASKS: _tasks(member.port),
    }


def _tasks(port: int) -> float:
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=_TIMEOUT_S) as answer:
        text = answer.read().decode()
    return tasks_in(text)


def tasks_in(text: str) -> float:
    """Return the number of asyncio tasks of a scrape. Raises ValueError when it is not there."""
    for family in text_string_to_metric_families(text):
        if family.name == TASKS_METRIC:
            return float(family.samples[0].value)
    raise ValueError(f"no {TASKS_METRIC} in what is served")

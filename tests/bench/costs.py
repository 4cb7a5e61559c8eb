"""What each file of tests costs: seconds, and CPU seconds of its process with all that it has started.

    COSTS=costs.jsonl PYTHONPATH=tests make test-e2e PYTEST="-p bench.costs"
    PYTHONPATH=tests python -m bench.costs costs.jsonl

The first notes each test's set-up, call and clean-up, the second prints them as the table of docs/tests.md.
Linux only: CPU seconds are read from /proc, of processes that have ended from their parents.
"""

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Return what this process and all below it have used, those included that have ended."""
    used: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(") ")[2].split()
        except OSError:  # it has just ended
            continue
        used[int(folder.name)] = sum(
            map(int, fields[11:15])
        )  # user, system, and the same of waited-for children
        children[int(fields[1])].append(int(folder.name))
    total, left = 0, [os.getpid()]
    while left:
        process = left.pop()
        total += used.get(process, 0)
        left += children[process]
    return total / _TICKS


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what a test costs."""
    began_s, before_s = time.monotonic(), cpu_seconds()
    result = yield
    line = {
        "file": item.path.name,
        "seconds": time.monotonic() - began_s,
        "cpu": cpu_seconds() - before_s,
    }
    with Path(os.environ["COSTS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return result


def table(lines: Iterator[str]) -> str:
    """Return the rows of the table, the longest first, and a row for all."""
    costs: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for line in lines:
        one = json.loads(line)
        for name in (one["file"], "all"):
            row = costs[name]
            row[0], row[1], row[2] = row[0] + 1, row[1] + one["seconds"], row[2] + one["cpu"]
    rows = sorted(costs.items(), key=lambda row: row[1][1])
    return "\n".join(
        f"| `{name}` | {tests:.0f} | {seconds:.0f} | {cpu:.0f} | {1 - cpu / max(seconds, cpu, 0.001):.0%} |"
        for name, (tests, seconds, cpu) in reversed(rows)
    )


if __name__ == "__main__":
    with Path(sys.argv[1]).open(encoding="utf-8") as file:
        sys.stdout.write(table(iter(file)) + "\n")

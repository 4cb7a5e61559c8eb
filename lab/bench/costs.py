"""What each file of tests costs: seconds, and CPU seconds of its process with all that it has started.

    COSTS=costs.jsonl PYTHONPATH=. make test-e2e PYTEST="-p lab.bench.costs"
    python -m lab.bench.costs costs.jsonl

The first notes each test's set-up, call and clean-up, the second prints them as the tables of docs/tests.md:
by file, and by program. Linux only: CPU seconds are read from /proc, of processes that have ended from their
parents.
"""

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")
TESTS, SPLITTER, ENDED = "pytest", "splitter", "commands that have ended"
# What Python runs is told by its arguments; an interpreter without any of these runs the tests.
_SPLITTER = ("from multiprocessing.forkserver", "-m\0splitter\0run")


class Used(NamedTuple):
    """What a process has used, in seconds of user and system together."""

    program: str
    own_s: float
    ended_s: float  # of children that it has waited for


def cpu_seconds() -> float:
    """Return what this process and all below it have used, those included that have ended."""
    return sum(one.own_s + one.ended_s for one in processes().values())


def processes() -> dict[int, Used]:
    """Return what this process and each below it has used, by its number."""
    seen: dict[int, tuple[str, int, int]] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(") ")
        except OSError:  # it has just ended
            continue
        fields = rest.split()
        seen[int(folder.name)] = name, sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))
        children[int(fields[1])].append(int(folder.name))
    result: dict[int, Used] = {}
    left = [(os.getpid(), TESTS)]
    while left:
        process, parent = left.pop()
        name, own, ended = seen[process]
        program = _program(process, name, parent)
        result[process] = Used(program, own / _TICKS, ended / _TICKS)
        left += [(child, program) for child in children[process]]
    return result


def _program(process: int, name: str, parent: str) -> str:
    if parent == SPLITTER:
        return SPLITTER
    if not name.startswith(("python", "pytest")):
        return name
    try:
        arguments = Path(f"/proc/{process}/cmdline").read_text(errors="replace")
    except OSError:
        return parent
    return SPLITTER if any(part in arguments for part in _SPLITTER) else TESTS


def between(before: Mapping[int, Used], after: Mapping[int, Used]) -> dict[str, float]:
    """Return what was used from one look to the next, by program; what came and went is "ended"."""
    result: dict[str, float] = defaultdict(float)
    for process, now in after.items():
        then = before.get(process, Used(now.program, 0, 0))
        result[now.program] += now.own_s - then.own_s
        result[SPLITTER if now.program == SPLITTER else ENDED] += now.ended_s - then.ended_s
    # What it had used is now its parent's, and was counted when it was seen.
    for process in before.keys() - after.keys():
        gone = before[process]
        result[SPLITTER if gone.program == SPLITTER else ENDED] -= gone.own_s + gone.ended_s
    return dict(result)


def pytest_collection_finish() -> None:
    """Note what a process has used before its first test: imports, and reading the tests."""
    _note("collection", "collection", time.process_time(), between({}, processes()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what a test costs."""
    began_s, before = time.monotonic(), processes()
    result = yield
    _note(item.path.name, item.nodeid, time.monotonic() - began_s, between(before, processes()))
    return result


def _note(file: str, test: str, seconds: float, cpu: Mapping[str, float]) -> None:
    line = {"file": file, "test": test, "seconds": seconds, "cpu": cpu}
    with Path(os.environ["COSTS"]).open("a", encoding="utf-8") as costs:
        costs.write(json.dumps(line) + "\n")


def tables(lines: Iterator[str]) -> str:
    """Return a table by file, the longest first, and one by program, the dearest first."""
    costs: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    programs: dict[str, float] = defaultdict(float)
    for line in lines:
        one = json.loads(line)
        cpu = sum(one["cpu"].values())
        for program, used_s in one["cpu"].items():
            programs[program] += used_s
        for name in (one["file"], "all"):
            row = costs[name]
            row[0], row[1], row[2] = row[0] + 1, row[1] + one["seconds"], row[2] + cpu
    rows = sorted(costs.items(), key=lambda row: row[1][1])
    by_file = [
        f"| `{name}` | {tests:.0f} | {seconds:.0f} | {cpu:.0f} | {1 - cpu / max(seconds, cpu, 0.001):.0%} |"
        for name, (tests, seconds, cpu) in reversed(rows)
    ]
    dearest = sorted(programs.items(), key=lambda row: -row[1])
    by_program = [f"| {program} | {seconds:.0f} |" for program, seconds in dearest]
    return "\n".join([*by_file, "", *by_program, f"| all | {sum(programs.values()):.0f} |"])


if __name__ == "__main__":
    with Path(sys.argv[1]).open(encoding="utf-8") as file:
        sys.stdout.write(tables(iter(file)) + "\n")

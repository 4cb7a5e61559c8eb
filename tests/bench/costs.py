"""What each file of tests costs: seconds, and CPU seconds of its process with all that it has started.

    COSTS=costs.jsonl PYTHONPATH=tests make test-e2e PYTEST="-p bench.costs"
    PYTHONPATH=tests python -m bench.costs costs.jsonl

The first notes each test's set-up, call and clean-up, the second prints them as the tables of docs/tests.md:
by file, and by program. Linux only: CPU seconds are read from /proc, of processes that have ended from their
parents.
"""

import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")
# What Python runs is told by its arguments; an interpreter without any of these runs the tests.
_SPLITTER = ("from multiprocessing.forkserver", "-m\0splitter\0run")
_TESTS, _ENDED = "pytest", "commands that have ended"


def cpu_seconds() -> float:
    """Return what this process and all below it have used, those included that have ended."""
    return sum(cpu_by_program().values())


def cpu_by_program() -> Mapping[str, float]:
    """Return the same, by what runs: pytest, splitter, other programs, commands that have ended."""
    used: dict[int, tuple[str, int, int]] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(") ")
        except OSError:  # it has just ended
            continue
        fields = rest.split()
        own, waited_for = sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))  # user and system
        used[int(folder.name)] = name, own, waited_for
        children[int(fields[1])].append(int(folder.name))
    ticks: Counter[str] = Counter()
    left = [(os.getpid(), _TESTS)]
    while left:
        process, parent = left.pop()
        if process not in used:
            continue
        name, own, waited_for = used[process]
        program = _program(process, name, parent)
        ticks[program] += own
        ticks["splitter" if program == "splitter" else _ENDED] += waited_for
        left += [(child, program) for child in children[process]]
    return {program: count / _TICKS for program, count in ticks.items()}


def _program(process: int, name: str, parent: str) -> str:
    if not name.startswith(("python", "pytest")):
        return name
    try:
        arguments = Path(f"/proc/{process}/cmdline").read_text(errors="replace")
    except OSError:
        return parent
    return "splitter" if parent == "splitter" or any(part in arguments for part in _SPLITTER) else _TESTS


def pytest_collection_finish() -> None:
    """Note what a process has used before its first test: imports, and reading the tests."""
    _note("collection", "collection", time.process_time(), cpu_by_program())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what a test costs."""
    began_s, before = time.monotonic(), cpu_by_program()
    result = yield
    after = cpu_by_program()
    # A program that has been ended counts with what has ended: its own sum falls.
    cpu = {program: after.get(program, 0) - before.get(program, 0) for program in {*before, *after}}
    _note(item.path.name, item.nodeid, time.monotonic() - began_s, cpu)
    return result


def _note(file: str, test: str, seconds: float, cpu: Mapping[str, float]) -> None:
    line = {"file": file, "test": test, "seconds": seconds, "cpu": cpu}
    with Path(os.environ["COSTS"]).open("a", encoding="utf-8") as costs:
        costs.write(json.dumps(line) + "\n")


def tables(lines: Iterator[str]) -> str:
    """Return a table by file, the longest first, and one by program, the dearest first."""
    costs: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    programs: Counter[str] = Counter()
    for line in lines:
        one = json.loads(line)
        cpu = sum(one["cpu"].values())
        programs.update(one["cpu"])
        for name in (one["file"], "all"):
            row = costs[name]
            row[0], row[1], row[2] = row[0] + 1, row[1] + one["seconds"], row[2] + cpu
    rows = sorted(costs.items(), key=lambda row: row[1][1])
    by_file = [
        f"| `{name}` | {tests:.0f} | {seconds:.0f} | {cpu:.0f} | {1 - cpu / max(seconds, cpu, 0.001):.0%} |"
        for name, (tests, seconds, cpu) in reversed(rows)
    ]
    by_program = [f"| {program} | {seconds:.0f} |" for program, seconds in programs.most_common()]
    return "\n".join([*by_file, "", *by_program, f"| all | {programs.total():.0f} |"])


if __name__ == "__main__":
    with Path(sys.argv[1]).open(encoding="utf-8") as file:
        sys.stdout.write(tables(iter(file)) + "\n")

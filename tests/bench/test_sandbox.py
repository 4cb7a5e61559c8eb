"""What a sandbox costs: to start, at rest, and for each request; the figures of docs/adr/0028."""

import threading
import time
from collections.abc import Callable
from statistics import median

import pytest

from lab.bench.costs import cpu_seconds
from lab.sandbox import Sandbox

pytestmark = pytest.mark.bench

REST_S, TIMES = 10.0, 20


def cpu_of(do: Callable[[], object], times: int = TIMES) -> float:
    """Return the milliseconds of CPU, of client and servers together, that something takes."""
    before = cpu_seconds()
    for _ in range(times):
        do()
    return (cpu_seconds() - before) / times * 1000


def rest(seconds: float = REST_S) -> float:
    """Return the share of a core that is used while nobody asks for anything."""
    before, began = cpu_seconds(), time.monotonic()
    threading.Event().wait(seconds)
    return (cpu_seconds() - before) / (time.monotonic() - began)


def test_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """Show them."""
    before = cpu_seconds()
    with Sandbox.start() as sandbox:
        started = cpu_seconds() - before
        sandbox.fleet.add("on-demand", 4)
        sandbox.fleet.add("spot", 4)
        rest(5)
        few = median(rest() for _ in range(3))
        figures = {
            "start, s of CPU": started,
            "at rest with 8 nodes, cores": few,
            "one kubectl, ms of CPU": cpu_of(lambda: sandbox.kubectl("get", "nodes")),
            "one request, ms of CPU": cpu_of(lambda: sandbox.api.get("/api/v1/nodes/spot-0"), 10 * TIMES),
        }
        sandbox.fleet.add("spot", 40)
        rest(5)
        figures["at rest with 48 nodes, cores"] = median(rest() for _ in range(3))
    assert all(figures.values())
    with capsys.disabled():
        print()  # noqa: T201 - shown, as every bench does
        for what, figure in figures.items():
            print(f"{what}: {figure:.3f}")  # noqa: T201 - the same

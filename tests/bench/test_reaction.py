"""How fast, how idle, how small: measured with 50 split workloads, shown beside the goals, not asserted."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from bench.bare import floor, raises_after
from bench.crowd import ACCOUNT, SETTINGS, WORKLOADS, Crowd, crowd
from bench.figures import Percentiles, cpu_seconds, machine, memory_mb, show, show_percentiles, write
from splitter.demo.controller import Controller
from splitter.sandbox import Instant
from splitter.sandbox.waiting import wait_until

pytestmark = pytest.mark.bench

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "reaction.json"
GOAL_P99_MS, GOAL_IDLE_PERCENT, GOAL_MEMORY_MB = 250, 1, 150

_IDLE_S = 60.0
_QUIET_S = 2.0  # for the last statuses and events of the moves before
_SWARMS = 2
_FLOOR_ROUNDS = 8


class TestReaction:
    """The figures of the README and of docs, made anew by `make bench`."""

    def test_fifty_workloads(self) -> None:
        """Measure start-up, idle CPU, memory and the time from a taint to the on-demand write."""
        with crowd() as here:
            kubeconfig = here.sandbox.service_account_kubeconfig(*ACCOUNT)
            started = Instant.now()
            with Controller(kubeconfig, SETTINGS, here.sandbox.logs / "splitter.log") as controller:
                figures = _measure(here, controller, started)
        write(RESULTS, figures)
        _show(figures)
        assert figures["one_node"].samples >= 100


def _measure(here: Crowd, controller: Controller, started: Instant) -> dict[str, Any]:
    wait_until(
        lambda: here.first_split or None, what="the first decision", deadline_s=60, check=controller.check
    )
    here.wait_until_split(controller)
    taken_over = Instant.now()
    print(f"{WORKLOADS} workloads are split; measuring {_IDLE_S:g} s of idleness")  # noqa: T201 - for who waits
    _let_pass(_QUIET_S * 5)
    idle_percent = _idle_percent(controller)
    memory = memory_mb(controller.process_id)
    one_node = [second for node in here.spot_nodes for second in _one_node(here, controller, node)]
    swarm = [second for _ in range(_SWARMS) for second in _swarm(here, controller)]
    writes = max(1, len(one_node) // len(here.spot_nodes))
    return {
        "machine": machine(),
        "workloads": WORKLOADS,
        "settings": SETTINGS,
        "start_to_first_decision_s": round(here.first_split[0].monotonic_s - started.monotonic_s, 2),
        "start_to_all_split_s": round(taken_over.monotonic_s - started.monotonic_s, 1),
        "idle_cpu_percent": round(idle_percent, 2),
        "memory_mb": memory,
        "memory_after_outages_mb": memory_mb(controller.process_id),
        "one_node": Percentiles.of(one_node),
        "all_spot_nodes": Percentiles.of(swarm),
        "floor_of_one_node": Percentiles.of(floor(here, writes=writes, rounds=_FLOOR_ROUNDS)),
        "floor_of_all_spot_nodes": Percentiles.of(floor(here, writes=WORKLOADS, rounds=_SWARMS)),
    }


def _idle_percent(controller: Controller) -> float:
    """Return the CPU use while nothing happens, in percent of one core."""
    before_s, began_s = cpu_seconds(controller.process_id), time.monotonic()
    _let_pass(_IDLE_S)
    controller.check()
    return (cpu_seconds(controller.process_id) - before_s) / (time.monotonic() - began_s) * 100


def _one_node(here: Crowd, controller: Controller, node: str) -> list[float]:
    """Taint one spot node; return the seconds to the on-demand write of each workload with a pod there."""
    return _notice(here, controller, (node,), here.workloads_on(node))


def _swarm(here: Crowd, controller: Controller) -> list[float]:
    """Taint all spot nodes at the same time."""
    return _notice(here, controller, here.spot_nodes, set(here.names))


def _notice(here: Crowd, controller: Controller, nodes: tuple[str, ...], hurt: set[str]) -> list[float]:
    names = [f"{name}-on-demand" for name in hurt]
    noticed = here.sandbox.fleet.notice(nodes)
    found = raises_after(here, noticed, names, expected=len(names))
    here.sandbox.fleet.withdraw(nodes)
    _let_pass(_QUIET_S)  # cover that is still on its way comes first
    here.wait_until_split(controller)
    _let_pass(_QUIET_S)
    return found


def _let_pass(seconds: float) -> None:
    """Let time pass: here it is what is measured."""
    threading.Event().wait(seconds)


def _show(figures: dict[str, Any]) -> None:
    goal = f"< {GOAL_P99_MS}"
    show_percentiles(
        [
            ("taint of one spot node -> on-demand write", figures["one_node"], goal),
            ("  the same writes by a bare client", figures["floor_of_one_node"], ""),
            ("taint of all spot nodes -> on-demand write", figures["all_spot_nodes"], ""),
            ("  the same writes by a bare client", figures["floor_of_all_spot_nodes"], ""),
        ]
    )
    memory, after = figures["memory_mb"], figures["memory_after_outages_mb"]
    show(
        f"{WORKLOADS} workloads split",
        [
            ("CPU while idle", f"{figures['idle_cpu_percent']:.2f} % of a core", f"< {GOAL_IDLE_PERCENT} %"),
            ("resident memory", f"{memory['resident']:.0f} MB", f"< {GOAL_MEMORY_MB} MB"),
            ("  of it proportional (PSS)", f"{memory['proportional']:.0f} MB", ""),
            ("  after the outages", f"{after['resident']:.0f} MB", f"< {GOAL_MEMORY_MB} MB"),
            ("start to first decision", f"{figures['start_to_first_decision_s']:.1f} s", ""),
            ("start to all split", f"{figures['start_to_all_split_s']:.0f} s", ""),
        ],
    )

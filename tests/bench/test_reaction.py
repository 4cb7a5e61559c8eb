"""How fast, how idle, how small: measured with 50 split workloads, shown beside the goals, not asserted."""

import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lab.bench.bare import floor, raises_after
from lab.bench.crowd import ACCOUNT, NAMESPACE, REPLICAS, SETTINGS, WORKLOADS, Crowd, JsonObject, crowd
from lab.bench.figures import Percentiles, cpu_seconds, machine, memory_mb, show, show_percentiles, write
from lab.demo.controller import Controller
from lab.demo.watching import Watch
from lab.sandbox import Instant
from lab.sandbox.waiting import wait_until

pytestmark = pytest.mark.bench

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "reaction.json"
GOAL_P99_MS, GOAL_IDLE_PERCENT, GOAL_MEMORY_MB = 250, 1, 150

_IDLE_S = 60.0
_QUIET_S = 2.0  # for the last statuses and events of the moves before
_SWARMS = 2
_FLOOR_ROUNDS = 8
_BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"


class Guards:
    """When each workload's budget was seen to keep all replicas, and for how long after a notice."""

    def __init__(self) -> None:
        self._raised: dict[str, list[Instant]] = defaultdict(list)

    def see(self, at: Instant, raw: JsonObject, _deleted: bool) -> None:
        """Take one change of one budget; of its status too, which comes later."""
        if raw["spec"]["minAvailable"] == REPLICAS:
            self._raised[raw["metadata"]["name"].removesuffix("-guard")].append(at)

    def after(self, noticed: Instant, names: set[str]) -> list[float]:
        """Return the seconds from a notice to the first of these for each workload, once all have come."""

        def measured() -> list[float] | None:
            times = [next((at for at in self._raised[name] if at >= noticed), None) for name in names]
            seconds = [at.monotonic_s - noticed.monotonic_s for at in times if at is not None]
            return seconds if len(seconds) == len(names) else None

        return wait_until(measured, what="the budgets to be raised", deadline_s=30)


class TestReaction:
    """The figures of the README and of docs, made anew by `make bench`."""

    def test_fifty_workloads(self) -> None:
        """Measure start-up, idle CPU, memory and the time from a taint to the on-demand write."""
        with crowd() as here, ExitStack() as watches:
            guards = Guards()
            watches.enter_context(Watch(here.sandbox.api, _BUDGETS, guards.see))
            kubeconfig = here.sandbox.service_account_kubeconfig(*ACCOUNT)
            started = Instant.now()
            with Controller(kubeconfig, SETTINGS, here.sandbox.logs / "splitter.log") as controller:
                figures = _measure(here, controller, guards, started)
        write(RESULTS, figures)
        _show(figures)
        assert figures["one_node"].samples >= 100


def _measure(here: Crowd, controller: Controller, guards: Guards, started: Instant) -> dict[str, Any]:
    wait_until(
        lambda: here.first_split or None, what="the first decision", deadline_s=60, check=controller.check
    )
    here.wait_until_split(controller)
    taken_over = Instant.now()
    print(f"{WORKLOADS} workloads are split; measuring {_IDLE_S:g} s of idleness")  # noqa: T201 - for who waits
    _let_pass(_QUIET_S * 5)
    idle_percent = _idle_percent(controller)
    memory = memory_mb(controller.process_id)
    single = [_notice(here, controller, guards, (node,), here.workloads_on(node)) for node in here.spot_nodes]
    one_node = [second for raised, _ in single for second in raised]
    swarms = [_notice(here, controller, guards, here.spot_nodes, set(here.names)) for _ in range(_SWARMS)]
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
        "guard_of_one_node": Percentiles.of([second for _, guarded in single for second in guarded]),
        "all_spot_nodes": Percentiles.of([second for raised, _ in swarms for second in raised]),
        "guard_of_all_spot_nodes": Percentiles.of([second for _, guarded in swarms for second in guarded]),
        "floor_of_one_node": Percentiles.of(floor(here, writes=writes, rounds=_FLOOR_ROUNDS)),
        "floor_of_all_spot_nodes": Percentiles.of(floor(here, writes=WORKLOADS, rounds=_SWARMS)),
    }


def _idle_percent(controller: Controller) -> float:
    """Return the CPU use while nothing happens, in percent of one core."""
    before_s, began_s = cpu_seconds(controller.process_id), time.monotonic()
    _let_pass(_IDLE_S)
    controller.check()
    return (cpu_seconds(controller.process_id) - before_s) / (time.monotonic() - began_s) * 100


def _notice(
    here: Crowd, controller: Controller, guards: Guards, nodes: tuple[str, ...], hurt: set[str]
) -> tuple[list[float], list[float]]:
    """Taint nodes at the same time; return the seconds to each on-demand write, and to each raised budget."""
    names = [f"{name}-on-demand" for name in hurt]
    noticed = here.sandbox.fleet.notice(nodes)
    collected = raises_after(here, noticed, names, expected=len(names)), guards.after(noticed, hurt)
    here.sandbox.fleet.withdraw(nodes)
    _let_pass(_QUIET_S)  # cover that is still on its way comes first
    here.wait_until_split(controller)
    _let_pass(_QUIET_S)
    return collected


def _let_pass(seconds: float) -> None:
    """Let time pass: here it is what is measured."""
    threading.Event().wait(seconds)


def _show(figures: dict[str, Any]) -> None:
    goal = f"< {GOAL_P99_MS}"
    show_percentiles(
        [
            ("taint of one spot node -> on-demand write", figures["one_node"], goal),
            ("  the same writes by a bare client", figures["floor_of_one_node"], ""),
            ("taint of one spot node -> budget", figures["guard_of_one_node"], "< 100"),
            ("taint of all spot nodes -> on-demand write", figures["all_spot_nodes"], ""),
            ("  the same writes by a bare client", figures["floor_of_all_spot_nodes"], ""),
            ("taint of all spot nodes -> budget", figures["guard_of_all_spot_nodes"], ""),
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

"""How splitter grows: the same day of work with 100, 300 and 1,000 workloads of 10 replicas.

`python -m bench.scale` starts a sandbox of its own for each size, on loopback and nowhere else, and writes a
table and `benchmarks/scale.json`. Beside each figure stands its floor, measured in the same sandbox before
splitter runs: the same writes by a client that decides nothing, the same pods replaced by plain Deployments.
splitter has one core (the last one); everything else shares what is there, this process too.
"""

import argparse
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.bare import Reflex, raises_after
from bench.crowd import ACCOUNT, SETTINGS, Crowd, Size, crowd
from bench.figures import Percentiles, cpu_seconds, machine, memory_mb, write
from e2e.gateway import Gateway
from splitter.demo.controller import Controller
from splitter.demo.watching import Watch
from splitter.sandbox.instants import Instant

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "scale.json"
REPLICAS, BASE = 10, 2
SIZES = (100, 300, 1000)
# Of 1,000 workloads: 200 on-demand and 300 spot nodes.
ON_DEMAND_PER_WORKLOAD, SPOT_PER_WORKLOAD = 0.2, 0.3
# Generous: 10,000 pods take 90 s on two idle cores, and a take-over makes each of them once more.
SETTLE_S_PER_WORKLOAD, SETTLE_S = 1.2, 240.0
STORM_S = 240.0
QUIET_S = 5.0
_SETTINGS = {**SETTINGS, "SPLITTER_MAX_CONCURRENT_MOVES": "0", "SPLITTER_LOG_LEVEL": "warning"}


@dataclass
class Run:
    """One size: its crowd, and what was measured so far."""

    here: Crowd
    idle_s: float
    figures: dict[str, Any] = field(default_factory=dict)

    def note(self, name: str, value: object) -> None:
        """Keep a figure, and show that something happens."""
        self.figures[name] = value
        print(f"  {name}: {value}", flush=True)  # noqa: T201 - for who waits

    def timed(self, name: str, work: Callable[[], object]) -> None:
        """Keep how many seconds something takes."""
        began = time.monotonic()
        work()
        self.note(name, round(time.monotonic() - began, 1))


def size_of(workloads: int) -> Size:
    """Return a crowd of so many workloads of 10 replicas, with nodes in proportion."""
    return Size(
        workloads=workloads,
        replicas=REPLICAS,
        base=BASE,
        on_demand_nodes=max(4, int(workloads * ON_DEMAND_PER_WORKLOAD)),
        spot_nodes=max(6, int(workloads * SPOT_PER_WORKLOAD)),
        settle_s=SETTLE_S + workloads * SETTLE_S_PER_WORKLOAD,
    )


def measure(workloads: int, idle_s: float) -> dict[str, Any]:
    """Return the figures of one size."""
    with crowd(size_of(workloads)) as here:
        run = Run(here, idle_s)
        _floors(run)
        kubeconfig = here.sandbox.service_account_kubeconfig(*ACCOUNT)
        log_file = here.sandbox.logs / "splitter.log"
        with Controller(kubeconfig, _SETTINGS, log_file) as controller:
            _pin(controller)
            run.timed("on_boarding_s", lambda: here.wait_until_split(controller))
            _let_pass(QUIET_S)
            _day(run, controller)
        _start_up(run, kubeconfig, log_file)
        _idle(run)
        return run.figures


def _floors(run: Run) -> None:
    """What the control plane needs for the same without splitter."""
    here = run.here
    names = here.names
    run.timed(
        "floor_roll_s", lambda: _roll(here, "registry.example/crowd/app:plain", [""], here.sandbox.check)
    )
    (node,) = here.sandbox.fleet.add("spot", 1, taints=[{"key": "bench", "effect": "NoSchedule"}])
    with ExitStack() as stack:
        reflex = Reflex(here.sandbox.api, node, names, REPLICAS + REPLICAS - BASE)
        stack.callback(reflex.close)
        stack.enter_context(Watch(here.sandbox.api, "/api/v1/nodes", reflex.node_seen))
        noticed = here.sandbox.fleet.notice(node)
        writes = raises_after(here, noticed, names, expected=len(names), deadline_s=STORM_S)
        run.note("floor_all_nodes", Percentiles.of(writes))
        here.sandbox.fleet.withdraw(node)
        for name in names:
            reflex.scale(name, REPLICAS)
    here.wait_until_available(here.sandbox.check)


def _day(run: Run, controller: Controller) -> None:
    """Notices, an outage, a return and a new image, with everything split."""
    here = run.here
    run.note("memory_mb", memory_mb(controller.process_id)["resident"])
    one = [second for node in here.spot_nodes[:5] for second in _notice(run, controller, (node,))]
    run.note("one_node", Percentiles.of(one))
    cpu_s = cpu_seconds(controller.process_id)
    run.note("all_nodes", Percentiles.of(_notice(run, controller, here.spot_nodes)))
    run.note("cpu_of_notice_and_return_s", round(cpu_seconds(controller.process_id) - cpu_s, 1))
    gone = here.sandbox.fleet.kill(here.spot_nodes)
    names = [f"{name}-on-demand" for name in here.names]
    lost = raises_after(here, gone, names, expected=len(names), deadline_s=STORM_S)
    run.note("all_gone", Percentiles.of(lost))
    here.sandbox.fleet.restore(here.spot_nodes)
    run.timed("return_s", lambda: here.wait_until_split(controller))
    _let_pass(QUIET_S)
    image, pools = "registry.example/crowd/app:split", ["-on-demand", "-spot"]
    run.timed("roll_s", lambda: _roll(here, image, pools, controller.check))
    here.wait_until_split(controller)
    run.note("memory_at_most_mb", memory_mb(controller.process_id)["resident_at_most"])


def _notice(run: Run, controller: Controller, nodes: Sequence[str]) -> list[float]:
    """Taint nodes; return the seconds to the first on-demand raise of each workload there."""
    here = run.here
    hurt = (
        {name for node in nodes for name in here.workloads_on(node)} if len(nodes) == 1 else set(here.names)
    )
    names = [f"{name}-on-demand" for name in hurt]
    noticed = here.sandbox.fleet.notice(nodes)
    found = raises_after(here, noticed, names, expected=len(names), deadline_s=STORM_S)
    here.sandbox.fleet.withdraw(nodes)
    _let_pass(QUIET_S)
    here.wait_until_split(controller)
    _let_pass(QUIET_S)
    return found


def _start_up(run: Run, kubeconfig: Path, log_file: Path) -> None:
    """From the start of a process to the first raise for a node that was doomed before it."""
    here = run.here
    node = here.spot_nodes[0]
    hurt = [f"{name}-on-demand" for name in here.workloads_on(node)]
    here.sandbox.fleet.notice(node)
    began = Instant.now()
    with Controller(kubeconfig, _SETTINGS, log_file) as controller:
        _pin(controller)
        run.note("start_to_first_raise_s", round(min(raises_after(here, began, hurt, expected=1)), 2))
        raised = raises_after(here, began, hurt, expected=len(hurt), deadline_s=STORM_S)
        run.note("start_to_last_raise_s", round(max(raised), 2))
        here.sandbox.fleet.withdraw(node)
        _let_pass(QUIET_S)
        here.wait_until_split(controller)


def _idle(run: Run) -> None:
    """CPU and writes while nothing happens, counted at a gateway."""
    here = run.here
    with (
        Gateway(here.sandbox.service_account_kubeconfig(*ACCOUNT)) as gateway,
        Controller(
            gateway.kubeconfig(here.sandbox.home / "gateway.kubeconfig"),
            _SETTINGS,
            here.sandbox.logs / "idle.log",
        ) as controller,
    ):
        _pin(controller)
        run.timed("filled_s", lambda: _until_calm(gateway))
        run.note("memory_after_start_mb", memory_mb(controller.process_id)["resident"])
        before, cpu_s, began = len(gateway.writes), cpu_seconds(controller.process_id), time.monotonic()
        _let_pass(run.idle_s)
        controller.check()
        passed_s = time.monotonic() - began
        used_s = cpu_seconds(controller.process_id) - cpu_s
        run.note("idle_cpu_percent", round(used_s / passed_s * 100, 2))
        run.note("idle_writes", len(gateway.writes) - before)


def _until_calm(gateway: Gateway) -> None:
    """Wait until nothing has been written for a while after a start."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < 3 * QUIET_S:
        if len(gateway.writes) != seen:
            seen, since = len(gateway.writes), time.monotonic()
        _let_pass(1.0)


def _roll(here: Crowd, image: str, holders: Sequence[str], check: Callable[[], None]) -> None:
    here.set_images(image)
    here.wait_until_run(image, holders, check)


def _pin(controller: Controller) -> None:
    """Give splitter one core and no more."""
    with suppress(OSError):
        os.sched_setaffinity(controller.process_id, {max(os.sched_getaffinity(0))})


def _let_pass(seconds: float) -> None:
    """Let time pass: here it is what is measured."""
    threading.Event().wait(seconds)


def growth(small: tuple[int, float], large: tuple[int, float]) -> float | None:
    """Return the exponent k of n^k between two sizes, of (workloads, figure); None where there is none."""
    if small[1] <= 0 or large[1] <= 0:
        return None
    return round(log(large[1] / small[1]) / log(large[0] / small[0]), 2)


def _flat(figures: dict[str, Any]) -> dict[str, float]:
    """Return all figures as numbers, percentiles by name."""
    found: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, Percentiles):
            found |= {f"{name}_p50_ms": value.p50_ms, f"{name}_p99_ms": value.p99_ms}
        else:
            found[name] = value
    return found


def _show(found: dict[int, dict[str, float]]) -> None:
    sizes = sorted(found)
    table = Table(title="splitter as workloads grow", title_justify="left")
    table.add_column("figure")
    for size in sizes:
        table.add_column(f"{size}", justify="right")
    table.add_column("grows as n^", justify="right")
    for name in found[sizes[0]]:
        row = [found[size][name] for size in sizes]
        exponent = growth((sizes[0], row[0]), (sizes[-1], row[-1])) if len(sizes) > 1 else None
        table.add_row(name, *(f"{value:g}" for value in row), "" if exponent is None else f"{exponent:g}")
    Console(width=100).print(table)


def main() -> None:
    """Measure each size, show all, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__.partition("\n")[0])
    parser.add_argument("--workloads", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--idle", type=float, default=300.0, help="seconds of idleness to measure")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    found: dict[int, dict[str, float]] = {}
    for workloads in options.workloads:
        print(f"{workloads} workloads of {REPLICAS} replicas", flush=True)  # noqa: T201 - for who waits
        found[workloads] = _flat(measure(workloads, options.idle))
    write(options.results, {"machine": machine(), "replicas": REPLICAS, "base": BASE, "sizes": found})
    _show(found)


if __name__ == "__main__":
    main()

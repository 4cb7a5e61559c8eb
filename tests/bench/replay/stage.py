"""The trace on the sandbox: real nodes that come and go, the real controllers, an application on them.

`play` returns what the recorder saw of each workload. Nodes are put up and taken down by one thread, in the
order of the trace; how late it was is part of the answer.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from bench.replay.prediction import Figures, tuned
from lab.bench.compare.measures import lost
from lab.demo.controller import Controller
from lab.fixtures.controller import install
from lab.fixtures.shop import LABEL, Shop
from lab.sandbox import Between, Instant, Recorder, Sandbox
from lab.sandbox.recording import PodSeen
from lab.sandbox.waiting import wait_until
from splitter.plugin.simulate.trace import Change, Trace
from splitter.settings import TuningSettings

ON_DEMAND_NODES = 6
NAMESPACE = "boutique"
READY_AFTER = "sandbox.splitter.io/ready-after"

_SETTLE_S = 300.0
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Cast:
    """The application: how many replicas each of its Deployments has, and how long a pod takes."""

    manifest: Path
    replicas: int
    start_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was seen: a workload's figures by its name, and how faithful the play was."""

    figures: dict[str, Figures]
    most_pods: int
    """Of all workloads together, terminating ones left out."""
    latest_s: float
    """The longest that a change of the trace was late, in real seconds."""


def settings(factor: float) -> dict[str, str]:
    """Return the environment of a splitter whose every duration is so many times shorter."""
    policy, tuning = tuned(factor)
    times = {
        f"TUNING_{name}": getattr(tuning, name)
        for name in TuningSettings.model_fields
        if hasattr(tuning, name)
    }
    times |= {"SOAK_S": policy.soak_s, "GRACE_S": policy.grace_s, "HTTP_PORT": 0, "METRICS_PORT": 0}
    return {f"SPLITTER_{name.upper()}": f"{number:g}" for name, number in times.items()}


def play(trace: Trace, factor: float, cast: Cast, tell: Callable[[str], None]) -> Outcome:
    """Play a compressed trace; `factor` is what it was compressed by. Raises SandboxError."""
    with Sandbox.start(progress=tell) as sandbox:
        machines = _Machines(sandbox, trace)
        with Controller(install(sandbox), settings(factor), sandbox.logs / "splitter.log") as controller:

            def check() -> None:
                sandbox.check()
                controller.check()

            shop = _open(sandbox, check)
            names = _split(shop, cast, tell)
            with sandbox.record(NAMESPACE) as recorder:
                before = {name: _generation(shop, name) for name in names}
                began = Instant.now()
                _let_pass(machines, trace, began, check, tell)
                whole = Between(began, Instant.now())
                moves = {name: _generation(shop, name) - before[name] for name in names}
            spot = frozenset(machines.names)
            return Outcome(
                {
                    name: replace(_seen(recorder, name, cast.replicas, whole, spot), moves=moves[name])
                    for name in names
                },
                recorder.timeline(NAMESPACE).highest_total(whole, with_terminating=False),
                machines.latest_s,
            )


class _Machines:
    """The spot machines of a trace: all are bought at once, and those that are not there yet are killed."""

    def __init__(self, sandbox: Sandbox, trace: Trace) -> None:
        self._fleet = sandbox.fleet
        self._fleet.add("on-demand", ON_DEMAND_NODES)
        nodes = sorted({change.node for change in trace.changes})
        self.names = dict(zip(self._fleet.add("spot", len(nodes)), nodes, strict=True))
        self._machine = {node: name for name, node in self.names.items()}
        first = {change.node for change in trace.changes if change.added and change.at_s == 0}
        self._fleet.kill([self._machine[node] for node in nodes if node not in first])
        self.latest_s = 0.0

    def change(self, changes: list[Change], due_s: float) -> None:
        """Have the machines of one instant go and come; `due_s` is on the monotonic clock."""
        self.latest_s = max(self.latest_s, time.monotonic() - due_s)
        if gone := [self._machine[change.node] for change in changes if not change.added]:
            self._fleet.kill(gone)
        if back := [self._machine[change.node] for change in changes if change.added]:
            self._fleet.restore(back)


def _open(sandbox: Sandbox, check: Callable[[], None]) -> Shop:
    sandbox.kubectl("create", "namespace", NAMESPACE)
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
    wait_until(lambda: sandbox.api.find(account), what="the service account", deadline_s=30)
    return Shop(sandbox, NAMESPACE, check)


def _split(shop: Shop, cast: Cast, tell: Callable[[str], None]) -> list[str]:
    """Deploy the application, label all of it, and wait until it stands on spot."""
    shop.kubectl("apply", "-f", str(cast.manifest))
    shop.kubectl("scale", "deployment", "--all", f"--replicas={cast.replicas}")
    names = sorted(shop.deployments())
    published = {"metadata": {"annotations": {READY_AFTER: f"{cast.start_s:g}s"}}}
    for name in names:
        patch = json.dumps({"spec": {"template": published}})
        shop.kubectl("patch", "deployment", name, "--type=merge", "-p", patch)
    for name in names:
        shop.wait_rolled_out(name)
    tell(f"{len(names)} Deployments of {cast.replicas} replicas; each is labelled")
    shop.kubectl("label", "deployment", "--all", f"{LABEL}=enabled")
    for name in names:
        shop.until(partial(_is_on_spot, shop, name, cast.replicas), f"{name} to stand on spot", _SETTLE_S)
    return names


def _is_on_spot(shop: Shop, name: str, replicas: int) -> bool:
    return shop.twins(name) == (0, replicas) and shop.shape(name).spot == replicas


def _let_pass(
    machines: _Machines, trace: Trace, began: Instant, check: Callable[[], None], tell: Callable[[str], None]
) -> None:
    later = [change for change in trace.changes if change.at_s > 0]
    for at_s, changes in groupby(later, key=lambda change: change.at_s):
        due_s = began.monotonic_s + at_s
        _wait_until(due_s, check)
        alike = list(changes)
        machines.change(alike, due_s)
        coming = sum(change.added for change in alike)
        tell(f"{at_s:6.1f} s  {coming} nodes come, {len(alike) - coming} go")
    _wait_until(began.monotonic_s + trace.duration_s, check)


def _wait_until(due_s: float, check: Callable[[], None]) -> None:
    while (left_s := due_s - time.monotonic()) > 0:
        check()
        threading.Event().wait(min(left_s, _LOOK_S))


def _generation(shop: Shop, name: str) -> int:
    """Return what each change of the on-demand twin's spec adds one to; only its count changes here."""
    generation: int = shop.deployment(f"{name}-on-demand")["metadata"]["generation"]
    return generation


def _seen(recorder: Recorder, name: str, replicas: int, whole: Between, spot: frozenset[str]) -> Figures:
    """Return what the recorder saw; moves it does not see."""

    def on_spot(pod: PodSeen) -> bool:
        return pod.node in spot

    ready = recorder.timeline(NAMESPACE, {"app": name}).available
    there = recorder.timeline(NAMESPACE, {"app": name}, where=on_spot).available
    ready_s, there_s = (
        sum(value * (until_s - from_s) for from_s, until_s, value in steps.stretches(whole))
        for steps in (ready, there)
    )
    return Figures(
        lost=lost(ready, replicas, whole),
        moves=0,
        most_ready=ready.highest(whole),
        on_spot=there_s / ready_s if ready_s else 0.0,
    )

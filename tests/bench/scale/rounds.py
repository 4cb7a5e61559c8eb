"""One size: a day of work with everything split, and the same writes by a client that decides nothing.

`__main__` calls `measure` for each size. Every measure is a dict of figures with what was used meanwhile
(`core.Meter`); those of the floor are called `..._floor`. A measure that does not end in time is noted as
failed, and the next one begins: hours of others' work are not thrown away. It never judges; `tables` does.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

from bench.scale.bare import Bare, Orders
from bench.scale.core import Figures, Meter, own_core
from bench.scale.returning import Return
from bench.scale.tables import REPLICAS
from lab.bench.crowd import ACCOUNT, DEPLOYMENTS, NAMESPACE, SETTINGS, Crowd, Size, crowd
from lab.bench.figures import Percentiles, cpu_seconds, memory_mb
from lab.fixtures.controller import Controller
from lab.fixtures.gateway import Gateway
from lab.sandbox.errors import ApiError, SandboxError
from lab.sandbox.instants import Instant
from lab.sandbox.waiting import wait_until

# Of 1,000 workloads of 10: 2 replicas of each on on-demand, 200 on-demand and 300 spot nodes.
BASE_PERCENT = 20
ON_DEMAND_NODES_A_POD, SPOT_NODES_A_POD = 0.02, 0.03
# A bound, and no more: a control plane on two cores of its own replaces 10,000 pods in about 5 minutes. At a
# load of 25 a return of 100 workloads took 290 s.
SETTLE_S_PER_WORKLOAD, SETTLE_S = 3.0, 180.0
STORM_S = 240.0
_EVENTS, _WRITERS = 3000, 16
_AT_ONCE, _READ_S = 300, 1.0  # events that fit into the sockets between, and the time to read them
_STARTING_S = 60.0
# Of CPU in a second. A process that finds no statuses writes one for each workload, some 20 a second.
_REST_DEADLINE_S, _RESTING_CPU_S = 600.0, 0.05
_POOLS = ("-on-demand", "-spot")
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
# What makes spot trusted again between two measures, and no turns: all may move at once.
_SETTINGS = {name.removeprefix("SPLITTER_"): value for name, value in SETTINGS.items()} | {
    "MAX_CONCURRENT_MOVES": "0"
}


class Checked(Protocol):
    """A process that is asked whether it still runs."""

    def check(self) -> None:
        """Raise SandboxError when it does not."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things are looked at: `notices` nodes one by one, `quiet_s` seconds before each of them."""

    idle_s: float = 300.0
    notices: int = 8
    quiet_s: float = 5.0  # for the last Events, and the statuses of a few, of what was before
    calm_s: float = 40.0  # without a write, until nothing is left to be told: statuses of very many pause


@dataclass
class Run:
    """One size: its crowd, and what was measured so far; `saved` is told of each measure."""

    here: Crowd
    kubeconfig: Path
    pace: Pace
    saved: Callable[[Figures], None]
    figures: Figures = field(default_factory=dict)

    @contextmanager
    def measured(self, name: str, process_id: int) -> Iterator[Figures]:
        """Yield where the figures of one measure go, with what was used meanwhile; a failure is noted."""
        values: Figures = {}
        meter = Meter(process_id, self.here.sandbox.process_id("kube-apiserver"))
        try:
            with meter.over(values):
                yield values
        except SandboxError as fault:
            values["failed"] = str(fault).splitlines()[0]
        self.note(name, values)

    def note(self, name: str, figures: Figures) -> None:
        """Keep the figures of one measure, and show that something happens."""
        self.figures[name] = figures
        print(f"  {time.strftime('%H:%M:%S')} {name}: {figures}", flush=True)  # noqa: T201 - for who waits
        self.saved(self.figures)

    def play(self, name: str, stage: "Callable[[Run], None]") -> None:
        """Play one stage; a failure is noted, and what took an hour to measure is not thrown away."""
        try:
            stage(self)
        except Exception as fault:  # noqa: BLE001 - whatever it was, it is in the figures
            self.note("failed", {**self.figures.get("failed", {}), name: repr(fault)})

    def controller(self, name: str, kubeconfig: Path | None = None, **settings: str) -> Controller:
        """Return a controller with a log of its own, not started yet."""
        home = self.here.sandbox.logs / name
        home.mkdir(parents=True, exist_ok=True)
        return Controller(kubeconfig or self.kubeconfig, home, {**_SETTINGS, **settings}, cold=True)

    @contextmanager
    def running(self, name: str, **settings: str) -> Iterator[Controller]:
        """Yield a controller that has just been begun, on a core of its own."""
        controller = self.controller(name, None, **settings)
        try:
            controller.begin()
            own_core(controller.process_id)
            yield controller
            controller.stop()
        finally:
            controller.end()


def size_of(workloads: int, replicas: int = REPLICAS) -> Size:
    """Return a crowd of so many workloads of so many replicas, with nodes in proportion."""
    pods = workloads * replicas
    return Size(
        workloads=workloads,
        replicas=replicas,
        base=max(1, replicas * BASE_PERCENT // 100),
        on_demand_nodes=max(4, int(pods * ON_DEMAND_NODES_A_POD)),
        spot_nodes=max(6, int(pods * SPOT_NODES_A_POD)),
        settle_s=SETTLE_S + workloads * SETTLE_S_PER_WORKLOAD,
        max_unavailable="0%",  # splitter promises as much, so its floor keeps it too
    )


def measure(size: Size, pace: Pace, saved: Callable[[Figures], None], stages: Sequence[str]) -> Figures:
    """Return the figures of one size, of some stages in this order."""
    with crowd(size, labelled=False) as here:
        run = Run(here, here.sandbox.service_account_kubeconfig(*ACCOUNT), pace, saved)
        run.note("created", {"seconds": here.created_s})
        for name in stages:
            run.play(name, STAGES[name])
        return run.figures


def by_turns(size: Size, saved: Callable[[Figures], None]) -> None:
    """Measure the on-boarding once more, with the default of 10 workloads at a time."""
    with crowd(size, labelled=False) as here:
        run = Run(here, here.sandbox.service_account_kubeconfig(*ACCOUNT), Pace(), saved)
        with run.running("turns", MAX_CONCURRENT_MOVES="10") as controller:
            _take_over(run, "on_boarding_by_turns", controller)


def _plain_roll(run: Run) -> None:
    """Roll all of them once before they are split."""
    sandbox = run.here.sandbox
    with run.measured("roll_floor", sandbox.process_id("kube-controller-manager")) as figures:
        figures["seconds"] = _roll(run.here, "registry.example/crowd/app:plain", [""], [""], sandbox.check)


def _roll_of_twins(run: Run) -> None:
    """Roll all twins while nobody decides anything: what splitter makes of a new image, and nothing else."""
    sandbox = run.here.sandbox
    with run.measured("twins_roll_floor", sandbox.process_id("kube-controller-manager")) as figures:
        figures["seconds"] = _roll(
            run.here, "registry.example/crowd/app:twins", _POOLS, _POOLS, sandbox.check
        )


def _on_boarding(run: Run) -> None:
    with run.running("on-boarding") as controller:
        _take_over(run, "on_boarding", controller)
        let_pass(run.pace.quiet_s)
        run.note("memory_after_on_boarding", {**memory_mb(controller.process_id)})


def _take_over(run: Run, name: str, controller: Controller) -> None:
    """From the first label to the last replica, by a process that has read everything."""
    _until_it_says(controller, "watching:", "the controller to have read everything")

    def all_of_them() -> None:
        run.here.label()
        _split(run.here, controller)

    with run.measured(name, controller.process_id) as figures:
        figures["seconds"] = _took(all_of_them)


def _there_and_back(run: Run) -> None:
    """Give all back and take them over again: every pod is where it may stay."""
    here = run.here
    with run.running("there-and-back") as controller:
        _settle(run, "there_and_back_awaited", controller)

        def give_back() -> None:
            here.label(enabled=False)
            here.wait_for(here.is_given_back, "every workload to be given back", controller.check)

        def take_over() -> None:
            here.label()
            _split(here, controller)

        for name, change in (("giving_back", give_back), ("on_boarding_in_place", take_over)):
            before = _pods(here)
            with run.measured(name, controller.process_id) as figures:
                figures["seconds"] = _took(change)
            run.note(f"{name}_pods", {"replaced": len(before - _pods(here))})
            let_pass(run.pace.quiet_s)


def _pods(here: Crowd) -> set[str]:
    """Return the UIDs of all pods of workloads that are to stay."""
    pods = here.sandbox.api.list(f"/api/v1/namespaces/{NAMESPACE}/pods")
    return {pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def _floors_of_notices(run: Run) -> None:
    """Announce nodes while nobody decides anything: the writes are known beforehand."""
    here = run.here
    where = homes(here)
    collected = [_bare_notice(run, f"one_node_floor_{node}", (node,), where, 1) for node in _first(run)]
    run.note("one_node_floor", gathered(collected))
    _bare_notice(run, "all_nodes_floor", here.spot_nodes, where, here.size.replicas - here.size.base)


def _floors_of_an_outage(run: Run) -> None:
    """Lose all spot nodes at once while nobody decides anything, and get them back."""
    here, fleet = run.here, run.here.sandbox.fleet
    with Bare(run.kubeconfig, _raised_to_all(here), here.sandbox.home) as bare:
        with run.measured("all_gone_floor", bare.process_id) as gone:
            began = fleet.kill(here.spot_nodes)
            gone.update(distribution(raises(here, began, here.names, bare)))
        with run.measured("covered_floor", bare.process_id) as covered:
            covered["seconds"] = _until_covered(here, began, bare)
        _until_lost(here, bare)
        back = Return(here)
        with run.measured("return_floor", bare.process_id) as found_back:
            found_back["seconds"] = _took(lambda: _restore(here, lambda: back.play(bare.check)))


def _bare_notice(
    run: Run, name: str, nodes: Sequence[str], where: Mapping[str, set[str]], more: int
) -> list[float]:
    result = bare_notice(run, name, nodes, where, more)
    with run.measured(f"{name}_undone", run.here.sandbox.process_id("kube-controller-manager")):
        _shrink(run.here, run.here.sandbox)
    return result


def bare_notice(
    run: Run, name: str, nodes: Sequence[str], where: Mapping[str, set[str]], more: int
) -> list[float]:
    """Taint nodes for a moment; return the seconds to the bare client's raise of each workload there."""
    here = run.here
    hurt = sorted(set().union(*(where.get(node, set()) for node in nodes)))
    with Bare(run.kubeconfig, orders(where, nodes, here.size.base + more), here.sandbox.home) as bare:
        return announced(run, name, bare, nodes, hurt)


def announced(
    run: Run, name: str, who: Bare | Controller, nodes: Sequence[str], hurt: Sequence[str] | set[str]
) -> list[float]:
    """Taint nodes for a moment; return the seconds to the raise of each workload that is hurt."""
    here = run.here
    with run.measured(name, who.process_id) as figures:
        noticed = here.sandbox.fleet.notice(nodes)
        result = raises(here, noticed, hurt, who)
        figures.update(distribution(result))
    here.sandbox.fleet.withdraw(nodes)
    return result


def orders(where: Mapping[str, set[str]], nodes: Sequence[str], replicas: int) -> Orders:
    """Return the raises that the bare client sends when it hears that a node goes."""
    body = {"spec": {"replicas": replicas}}
    return {
        node: {f"{DEPLOYMENTS}/{name}-on-demand": body for name in sorted(where.get(node, ()))}
        for node in nodes
    }


def _raised_to_all(here: Crowd) -> Orders:
    return orders(homes(here), here.spot_nodes, here.size.replicas)


def _shrink(here: Crowd, check: Checked) -> None:
    """Put every on-demand twin back to its base once its spot twin is complete: nobody else does now."""

    def spot_is_there(objects: dict[str, Figures], name: str) -> bool:
        return _available(objects[f"{name}-spot"]) == here.size.replicas - here.size.base

    def shrink(name: str) -> None:
        lowered = {"spec": {"replicas": here.size.base}}
        here.sandbox.api.patch(f"{DEPLOYMENTS}/{name}-on-demand/scale", lowered)

    here.wait_for(spot_is_there, "every spot twin to be complete", check.check)
    with ThreadPoolExecutor(_WRITERS) as writers:
        list(writers.map(shrink, here.names))
    _split(here, check)


def _start_up(run: Run, controller: Controller) -> None:
    start_up(run, controller)
    _settle(run, "start_undone", controller)
    run.note("memory_after_start", {**memory_mb(controller.process_id)})


def start_up(run: Run, controller: Controller) -> None:
    """From the start of a process to the first raise for a node that is doomed already."""
    here, node = run.here, run.here.spot_nodes[0]
    began = Instant.now()  # the process is a moment older: it has been begun just before
    hurt = here.workloads_on(node)
    here.sandbox.fleet.notice(node)
    with run.measured("start", controller.process_id) as figures:
        raised = raises(here, began, hurt, controller)
        figures |= {"first_s": round(min(raised), 2), "last_s": round(max(raised), 2)}
    here.sandbox.fleet.withdraw(node)


def _notices(run: Run) -> None:
    """A start, notices, and news without meaning, with everything split."""
    with run.running("notices") as controller:
        _start_up(run, controller)
        one_by_one = [_notice(run, f"one_node_{node}", controller, (node,)) for node in _first(run)]
        run.note("one_node", gathered(one_by_one))
        _notice(run, "all_nodes", controller, run.here.spot_nodes)
        events(run, controller)
        run.note("memory_after_notices", {**memory_mb(controller.process_id)})


def _roll_all(run: Run) -> None:
    """Give every workload another image."""
    with run.running("roll") as controller:
        _settle(run, "roll_awaited", controller)
        with run.measured("roll", controller.process_id) as roll:
            image = "registry.example/crowd/app:split"
            roll["seconds"] = _roll(run.here, image, [""], _POOLS, controller.check)
        _settle(run, "roll_settled", controller)
        run.note("memory_after_the_roll", {**memory_mb(controller.process_id)})


def _outage(run: Run) -> None:
    with run.running("outage") as controller:
        _settle(run, "outage_awaited", controller)
        _lose_all(run, controller)


def _lose_all(run: Run, controller: Controller) -> None:
    """All spot nodes are gone without a notice, and come back."""
    here, fleet, process_id = run.here, run.here.sandbox.fleet, controller.process_id
    with run.measured("all_gone", process_id) as gone:
        began = fleet.kill(here.spot_nodes)
        gone.update(distribution(raises(here, began, here.names, controller)))
    with run.measured("covered", process_id) as covered:
        covered["seconds"] = _until_covered(here, began, controller)
    _until_lost(here, controller)
    with run.measured("return", process_id) as back:
        back["seconds"] = _took(lambda: _restore(here, lambda: _split(here, controller)))
    run.note("memory_after_the_outage", {**memory_mb(process_id)})


def _notice(run: Run, name: str, controller: Controller, nodes: Sequence[str]) -> list[float]:
    result = notice(run, name, controller, nodes)
    _settle(run, f"{name}_undone", controller)
    return result


def notice(run: Run, name: str, controller: Controller, nodes: Sequence[str]) -> list[float]:
    """Taint nodes for a moment; return the seconds to the first raise of each workload there."""
    here = run.here
    hurt = here.workloads_on(nodes[0]) if len(nodes) == 1 else set(here.names)
    return announced(run, name, controller, nodes, hurt)


def events(run: Run, controller: Controller) -> None:
    """Change pods in what means nothing, and count what hearing of it costs: as they come, 300 at once.

    Not before the process has nothing else to do: everything that it does meanwhile would be counted.
    """
    here = run.here
    at_rest(controller, run.pace.calm_s)
    paths = [f"{PODS}/{pod['metadata']['name']}" for pod in here.sandbox.api.list(PODS)][:_EVENTS]
    with _cost_of_events(run, "event", controller) as sent:
        sent.append(_annotate(here, paths))
    with _cost_of_events(run, "events_at_once", controller) as sent:
        for begin in range(0, len(paths), _AT_ONCE):
            controller.pause()  # so that they wait in its sockets
            sent.append(_annotate(here, paths[begin : begin + _AT_ONCE]))
            controller.resume()
            let_pass(_READ_S)


def at_rest(controller: Controller, calm_s: float) -> None:
    """Wait until a process has had nothing to do for so long; not for ever, if it always has."""
    used_s, rested_s, deadline_s = -1.0, 0.0, time.monotonic() + _REST_DEADLINE_S
    while rested_s < calm_s and time.monotonic() < deadline_s:
        let_pass(1.0)
        before_s, used_s = used_s, cpu_seconds(controller.process_id)
        rested_s = rested_s + 1 if used_s - before_s < _RESTING_CPU_S else 0.0


def _annotate(here: Crowd, paths: Sequence[str]) -> int:
    """Change pods in what means nothing; return how many were still there."""
    patch = {"metadata": {"annotations": {"bench": str(time.monotonic())}}}

    def change(path: str) -> bool:
        try:
            here.sandbox.api.patch(path, patch)
        except ApiError:  # it was on its way out, of the moves before
            return False
        return True

    with ThreadPoolExecutor(_WRITERS) as writers:
        return sum(writers.map(change, paths))


@contextmanager
def _cost_of_events(run: Run, name: str, controller: Controller) -> Iterator[list[int]]:
    """Note what each of the events cost whose numbers are put into the list, a second later."""
    sent: list[int] = []
    with run.measured(name, controller.process_id) as figures:
        before_s = cpu_seconds(controller.process_id)
        yield sent
        let_pass(_READ_S)
        used_s = cpu_seconds(controller.process_id) - before_s
        figures |= {"events": sum(sent), "microseconds": round(used_s / sum(sent) * 1e6)}


def _fail_over(run: Run) -> None:
    fail_over(run, lambda name, heir: _settle(run, name, heir))


def fail_over(run: Run, undone: Callable[[str, Controller], None]) -> None:
    """Two processes, one lease: the one that leads is killed in the moment of a notice, then asked to go."""
    first, second = (run.controller(name, LEADER_ELECTION="on") for name in ("first", "second"))
    try:
        for one in (first, second):
            one.start()
            own_core(one.process_id)
            _until_it_says(first, "leading as", "a leader")
        nodes = run.here.spot_nodes
        _lead_change(run, "fail_over", nodes[0], first.kill, second)
        undone("fail_over_undone", second)
        first.start()
        own_core(first.process_id)
        _lead_change(run, "clean_stop", nodes[len(nodes) // 2], second.stop, first)
        undone("clean_stop_undone", first)
        first.stop()  # killed, it would hold its lease for a while, and the next process would wait
    finally:
        first.end()
        second.end()


def _until_it_says(controller: Controller, words: str, what: str) -> None:
    wait_until(lambda: words in controller.said(), what=what, deadline_s=_STARTING_S, check=controller.check)


def _lead_change(run: Run, name: str, node: str, end: Callable[[], object], heir: Controller) -> None:
    here = run.here
    hurt = here.workloads_on(node)
    with run.measured(name, heir.process_id) as figures:
        ending = threading.Thread(target=end)
        ending.start()
        noticed = here.sandbox.fleet.notice(node)
        raised = raises(here, noticed, hurt, heir)
        ending.join()
        figures |= {"first_s": round(min(raised), 2), "last_s": round(max(raised), 2)}
    here.sandbox.fleet.withdraw(node)


def idle(run: Run) -> None:
    """CPU and writes while nothing happens, counted at a gateway."""
    here = run.here
    with Gateway(run.kubeconfig) as gateway:
        controller = run.controller("idle", gateway.kubeconfig(here.sandbox.home / "gateway.kubeconfig"))
        try:
            controller.start()
            own_core(controller.process_id)
            _until_calm(gateway, run.pace.calm_s)
            run.note("memory_of_a_new_process", {**memory_mb(controller.process_id)})
            before = len(gateway.writes) + len(gateway.others)
            with run.measured("idle", controller.process_id) as figures:
                cpu_s, began = cpu_seconds(controller.process_id), time.monotonic()
                let_pass(run.pace.idle_s)
                controller.check()
                used_s, passed_s = cpu_seconds(controller.process_id) - cpu_s, time.monotonic() - began
                figures |= {
                    "seconds": round(passed_s),
                    "percent": round(used_s / passed_s * 100, 2),
                    "writes": len(gateway.writes) + len(gateway.others) - before,
                }
        finally:
            controller.end()


def _until_calm(gateway: Gateway, calm_s: float) -> None:
    """Wait until nothing has been written for so long after a start."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < calm_s:
        if (sent := len(gateway.writes) + len(gateway.others)) != seen:
            seen, since = sent, time.monotonic()
        let_pass(1.0)


def _first(run: Run) -> tuple[str, ...]:
    return run.here.spot_nodes[: run.pace.notices]


def homes(here: Crowd) -> dict[str, set[str]]:
    """Return the workloads with a spot pod on each node."""
    values: dict[str, set[str]] = {}
    for pod in here.sandbox.api.list(PODS, labels="splitter.io/pool=spot"):
        if "deletionTimestamp" not in pod["metadata"]:
            values.setdefault(pod["spec"].get("nodeName", ""), set()).add(pod["metadata"]["labels"]["app"])
    return values


def raises(here: Crowd, noticed: Instant, workloads: Sequence[str] | set[str], who: Checked) -> list[float]:
    """Wait for the first raise of each workload, on either side; return the seconds it took.

    Where spot has room elsewhere, splitter raises the spot twin.
    """

    def first_raises() -> dict[str, float]:
        values: dict[str, float] = {}
        for write in reversed(here.scales.writes()):
            if write.at < noticed:
                break
            if write.after > write.before:
                name = write.name.removesuffix("-on-demand").removesuffix("-spot")
                values[name] = write.at.monotonic_s - noticed.monotonic_s
        return {name: values[name] for name in workloads if name in values}

    wait_until(
        lambda: len(first_raises()) >= len(workloads),
        what=f"{len(workloads)} workloads to be raised",
        deadline_s=STORM_S,
        check=who.check,
    )
    return list(first_raises().values())


def _until_covered(here: Crowd, began: Instant, check: Checked) -> float:
    """Wait until every workload has its N on on-demand nodes; return the seconds since `began`."""

    def is_covered(objects: dict[str, Figures], name: str) -> bool:
        return _available(objects[f"{name}-on-demand"]) >= here.size.replicas

    here.wait_for(is_covered, "every workload to be covered", check.check)
    return round(time.monotonic() - began.monotonic_s, 1)


def _until_lost(here: Crowd, check: Checked) -> None:
    """Wait until no pod of the lost nodes is left: else they would only be played again."""

    def is_lost(objects: dict[str, Figures], name: str) -> bool:
        return _available(objects[f"{name}-spot"]) == 0

    here.wait_for(is_lost, "the pods of the lost nodes to be gone", check.check)


def _available(raw: Figures) -> int:
    return int(raw.get("status", {}).get("availableReplicas", 0))


def _restore(here: Crowd, then: Callable[[], None]) -> None:
    here.sandbox.fleet.restore(here.spot_nodes)
    then()


def _settle(run: Run, name: str, controller: Controller) -> None:
    """Wait until everything is as it was; whatever was begun lately is let come first."""
    let_pass(run.pace.quiet_s)
    with run.measured(name, controller.process_id):
        _split(run.here, controller)
    let_pass(run.pace.quiet_s)


def _split(here: Crowd, check: Checked) -> None:
    here.wait_for(here.is_divided, "every workload to be divided as wanted", check.check)


def _roll(
    here: Crowd, image: str, changed: Sequence[str], holders: Sequence[str], check: Callable[[], None]
) -> float:
    def roll() -> None:
        here.set_images(image, changed)
        here.wait_until_run(image, holders, check)

    return _took(roll)


def distribution(seconds: Sequence[float]) -> Figures:
    """Return percentiles, in milliseconds."""
    return asdict(Percentiles.of(seconds))


def gathered(rounds: Sequence[Sequence[float]]) -> Figures:
    """Return the percentiles of several rounds together."""
    seconds = [second for one in rounds for second in one]
    return distribution(seconds) if seconds else {"failed": "no round ended"}


def _took(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return round(time.monotonic() - began, 1)


def let_pass(seconds: float) -> None:
    """Let time pass: here it is what is measured."""
    threading.Event().wait(seconds)


# In this order, on what the one before has left: from `floors` on everything is split.
STAGES: Mapping[str, Callable[[Run], None]] = {
    "plain-roll": _plain_roll,
    "on-boarding": _on_boarding,
    "there-and-back": _there_and_back,
    "floors": _floors_of_notices,
    "notices": _notices,
    "idle": idle,
    "roll": _roll_all,
    "fail-over": _fail_over,
    "outage": _outage,
    "outage-floors": _floors_of_an_outage,  # late: pods come back to few nodes, and a notice is another then
    "roll-floor": _roll_of_twins,  # last: splitter would undo it
}

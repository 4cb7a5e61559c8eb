"""What relief of hot nodes does on a real scheduler: `python -m lab.bench.relief` (docs/how-to/hot-nodes.md).

The scene has 12 machines, and 8 workloads of 10 replicas, 40 % of whose use is on two machines. An hour is
six cycles of 15 s here. With `--compare` a real metrics-server measures, and an hour is twelve minutes: the
same scene is played at the same time by splitter, and in sandboxes of their own by the descheduler on
workloads that are not split, without a PodDisruptionBudget and with one. `--metrics-server` plays splitter's
alone. `--hints` measures instead where the scheduler puts a replica that is to stay off two hot machines, by
what hints at it (docs/adr/0064). Nothing is asserted; `tests/e2e/test_relief.py` does that.
"""

import argparse
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.bench.crowd import must_be_loopback
from lab.bench.figures import machine, write
from lab.checkout import BENCHMARKS, MANIFESTS
from lab.fixtures.controller import SHORT, Controller, install
from lab.fixtures.descheduler import descheduling
from lab.fixtures.metrics_api import MetricsApi
from lab.fixtures.namespaces import Watching, open_shop
from lab.fixtures.shop import Shop, manifest
from lab.sandbox import Between, Instant, Sandbox, upstream
from lab.sandbox.timeline import Timeline
from lab.sandbox.waiting import wait_until

MACHINES, CPU_M, WORKLOADS, REPLICAS, PILED = 12, 8000, 8, 10, 4
# Half of the workloads use three times as much as the others: 480 m on average, 7,680 m of 8,000 where piled.
USES_M = (720, 240)
HOUR_CYCLES, CYCLES_OF_REST = 6, 3
POLL_S = 1.0
TRIES, GONE_S = 20, 60.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast time goes, and how long a replica takes to be ready."""

    cycle_s: int
    interval_s: int
    ready_after: str


FAST = Pace(15, 1, "500ms")
# A fifth of the real times: metrics-server scrapes every 10 s, and takes no less.
MEASURED = Pace(120, 12, "4s")


# --- the scene -----------------------------------------------------------------------------------------


def names() -> list[str]:
    """Return what the workloads are called."""
    return [f"web-{number}" for number in range(WORKLOADS)]


def used_by(number: int) -> int:
    """Return what each replica of a workload uses, in thousandths of a core."""
    return USES_M[number % 2]


def hottest(shop: Shop) -> float:
    """Return how much of the fullest machine is used, in percent."""
    used: Counter[str] = Counter()
    for number, name in enumerate(names()):
        for node in shop.nodes(name):
            used[node] += used_by(number)
    return round(100 * max(used.values()) / CPU_M, 1)


def piled(shop: Shop, pace: Pace) -> None:
    """Have all workloads run, with 40 % of their use on two machines."""
    full, rest = shop.sandbox.fleet.names("spot")[:2], shop.sandbox.fleet.names("spot")[2:]
    shop.sandbox.kubectl("cordon", *rest)
    for number, name in enumerate(names()):
        asking = {"splitter.io/relief": "cpu=85"}
        app = manifest(name, PILED, annotations=asking, ready_after=pace.ready_after)
        usage = {"kwok.x-k8s.io/usage-cpu": f"{used_by(number)}m"}
        app["spec"]["template"]["metadata"]["annotations"] |= usage
        shop.apply(app)
    for name in names():
        shop.wait_rolled_out(name)
    shop.sandbox.kubectl("uncordon", *rest)
    shop.sandbox.kubectl("cordon", *full)
    for name in names():
        shop.scale(REPLICAS, name)
    for name in names():
        shop.wait_rolled_out(name)
    shop.sandbox.kubectl("uncordon", *full)


@contextmanager
def measured(sandbox: Sandbox, *, real: bool) -> Iterator[None]:
    """Have the machines of the scene, and metrics.k8s.io of what is used there."""
    server = sandbox.add_metrics_server() if real else None
    names_of_machines = sandbox.fleet.add("spot", MACHINES, cpu=f"{CPU_M}m")
    if server is not None:
        server.measure(names_of_machines)
        yield
        return
    with MetricsApi(sandbox) as metrics:
        for number, name in enumerate(names()):
            metrics.uses(name, used_by(number))
        yield


def missing_s(timeline: Timeline, whole: Between) -> float:
    """Return for how many seconds how many replicas of a workload were missing, multiplied."""
    stretches = timeline.available.stretches(whole)
    return sum((until - since) * max(0, REPLICAS - available) for since, until, available in stretches)


def played(shop: Shop, pace: Pace, relieving: AbstractContextManager[object]) -> dict[str, object]:
    """Have somebody relieve the machines for two hours, from the first new replica on; return the figures."""
    never_set = threading.Event()

    def uids() -> set[str]:
        return {uid for name in names() for uid in shop.pod_uids(name)}

    with ExitStack() as stack:
        watched = [stack.enter_context(shop.watch(name)) for name in names()]
        before, began, at_first = hottest(shop), Instant.now(), uids()
        stack.enter_context(relieving)
        late_s = (CYCLES_OF_REST + 2) * pace.cycle_s + 60
        shop.until(lambda: uids() != at_first, "a first move", late_s)
        first, gone = Instant.now(), list[int]()
        shown: list[tuple[float, float]] = []
        for _ in range(2):
            ends_s, seen = Instant.now().monotonic_s + HOUR_CYCLES * pace.cycle_s, set(at_first)
            while (now_s := Instant.now().monotonic_s) < ends_s:
                shown.append((round(now_s - first.monotonic_s, 1), hottest(shop)))
                seen |= uids()
                never_set.wait(POLL_S)
            at_first = uids()
            gone.append(len(seen - at_first))
        whole = Between(began, Instant.now())
        within = [percent for at_s, percent in shown if at_s <= 3 * pace.cycle_s]
        return {
            "hottest_before": before,
            "hottest_after_three_cycles": within[-1],
            "hottest_at_last": shown[-1][1],
            "fewest_available_of_a_workload": min(one.timeline.lowest_available(whole) for one in watched),
            "replica_seconds_missing": round(sum(missing_s(one.timeline, whole) for one in watched), 1),
            "replicas": WORKLOADS * REPLICAS,
            "gone_in_the_first_hour": gone[0],
            "gone_in_the_second_hour": gone[1],
            "events_of_moves_undone": sum(len(shop.events("ReliefUndone", name)) for name in names()),
        }


# --- who relieves --------------------------------------------------------------------------------------


def by_splitter(sandbox: Sandbox, home: Path, pace: Pace, *, real: bool) -> dict[str, object]:
    """Have splitter relieve the machines of workloads that are split."""
    account = install(sandbox)
    sandbox.kubectl("apply", "-f", str(MANIFESTS / "relief.yaml"))
    looks = {"TUNING_RELIEF_INTERVAL_S": str(pace.interval_s), "TUNING_RELIEF_CYCLE_S": str(pace.cycle_s)}
    controller = Controller(account, home, {**SHORT, **looks}, cold=True)
    with measured(sandbox, real=real), ExitStack() as stack:
        controller.start()
        stack.callback(controller.end)
        with contextmanager(open_shop)(sandbox, controller) as shop:
            piled(shop, pace)
            for name in names():
                shop.label(name)
            for name in names():
                shop.wait_split(on_demand=0, spot=REPLICAS, name=name)
                shop.wait_steady(name)
            return played(shop, pace, nullcontext())


class Nobody(Watching):
    """Looks after nothing: the workloads are not split."""

    def check(self) -> None:
        """Never fail."""

    def logged(self) -> int:
        """Have no log."""
        return 0

    def said(self, after: int = 0) -> str:  # noqa: ARG002 - as Watching
        """Say nothing."""
        return ""


# Down to where splitter relieves a node of which 85 % are used, six at a time as splitter, by real use.
DESCHEDULER = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: 6
metricsProviders: [{source: KubernetesMetrics}]
profiles:
  - name: use
    pluginConfig:
      - name: DefaultEvictor
        args: {nodeFit: true}
      - name: LowNodeUtilization
        args:
          thresholds: {cpu: 50}
          targetThresholds: {cpu: 65}
          metricsUtilization: {source: KubernetesMetrics}
    plugins:
      balance: {enabled: [LowNodeUtilization]}
"""


def by_descheduler(sandbox: Sandbox, home: Path, pace: Pace, *, budgets: bool) -> dict[str, object]:
    """Have the descheduler relieve the machines of workloads as their users write them."""
    program = upstream.built(upstream.DESCHEDULER, print).program
    with measured(sandbox, real=True), contextmanager(open_shop)(sandbox, Nobody()) as shop:
        piled(shop, pace)
        for name in names() if budgets else ():
            shop.kubectl("create", "pdb", name, f"--selector=app={name}", "--max-unavailable=1")
        looking = descheduling(sandbox, program, home, DESCHEDULER, pace.cycle_s)
        return played(shop, pace, looking)


PLAYERS: dict[str, Callable[[Sandbox, Path], dict[str, object]]] = {
    "splitter": lambda sandbox, home: by_splitter(sandbox, home, MEASURED, real=True),
    "descheduler": lambda sandbox, home: by_descheduler(sandbox, home, MEASURED, budgets=False),
    "descheduler_with_budgets": lambda sandbox, home: by_descheduler(sandbox, home, MEASURED, budgets=True),
}


def in_a_sandbox(play: Callable[[Sandbox, Path], dict[str, object]]) -> dict[str, object]:
    """Play in a sandbox of its own."""
    with TemporaryDirectory() as home, Sandbox.start() as sandbox:
        must_be_loopback(sandbox.url)
        return play(sandbox, Path(home))


def compared() -> dict[str, object]:
    """Have all play at the same time, so that nobody has the quieter machine."""
    for project in (upstream.METRICS_SERVER, upstream.DESCHEDULER):
        upstream.built(project, print)
    with ThreadPoolExecutor(len(PLAYERS)) as players:
        return dict(zip(PLAYERS, players.map(in_a_sandbox, PLAYERS.values()), strict=True))


# --- hints ---------------------------------------------------------------------------------------------

Asked = dict[str, object]


def requesting(name: str, node: str, cpu_m: int, priority: str = "") -> Asked:
    """Return a pod that requests so much of one machine."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec: Asked = {
        "affinity": {"nodeAffinity": required},
        **({"priorityClassName": priority} if priority else {}),
    }
    return pod(name, cpu_m, spec)


def pod(name: str, cpu_m: int, spec: Asked) -> Asked:
    """Return a pod."""
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": f"{cpu_m}m"}}}
    metadata = {"name": name, "labels": {"app": name.partition("-")[0]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


def landed(sandbox: Sandbox, spec: Asked) -> str:
    """Create a replica, return its machine, and remove it."""
    path = "/api/v1/namespaces/default/pods"
    sandbox.api.create(path, pod("replica", 100, spec))
    node = wait_until(
        lambda: sandbox.api.get(f"{path}/replica")["spec"].get("nodeName"),
        what="the replica to be bound",
        deadline_s=GONE_S,
    )
    sandbox.api.request("DELETE", f"{path}/replica", body={"gracePeriodSeconds": 0})
    gone = f"{path}/replica"
    wait_until(lambda: sandbox.api.find(gone) is None, what="the replica to go", deadline_s=GONE_S)
    return str(node)


def hints(sandbox: Sandbox) -> Iterator[tuple[str, Callable[[], object], Callable[[], object], Asked]]:
    """Yield each hint: what it is called, how it is given and taken back, and what it asks of the replica."""
    kubectl = sandbox.kubectl
    hot = sandbox.fleet.names("spot")[:2]
    key = "splitter.io/hot"
    preferred = {
        "weight": 100,
        "preference": {
            "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [*hot]}]
        },
    }
    affine: Asked = {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}
    }
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    apart: Asked = {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
            }
        }
    }

    def nothing() -> None:
        """Give none."""

    def hold() -> None:
        for node in hot:
            body = json.dumps(requesting(f"holder-{node}", node, CPU_M * 9 // 10 - 50, "hint-low"))
            kubectl("apply", "-f", "-", stdin=body)
            kubectl("wait", "--for=condition=PodScheduled", f"pod/holder-{node}", "--timeout=60s")

    def let_go() -> None:
        kubectl("delete", "pod", *(f"holder-{node}" for node in hot), "--grace-period=0", "--force")

    def taint() -> None:
        for node in hot:
            kubectl("taint", "node", node, f"{key}=:PreferNoSchedule")

    def untaint() -> None:
        for node in hot:
            kubectl("taint", "node", node, f"{key}-")

    yield "no hint", nothing, nothing, {}
    yield "PreferNoSchedule taint (right to write nodes)", taint, untaint, {}
    yield "placeholder of low priority that holds the room left there", hold, let_go, {}
    yield "preferred node affinity in the template (a rollout)", nothing, nothing, affine
    yield "preferred anti-affinity to its own replicas (a rollout)", nothing, nothing, apart


def hinted(sandbox: Sandbox) -> dict[str, object]:
    """Return of each hint how many of the tries landed on a hot machine.

    The hot ones are requested least: 10 %, and one replica of the workload; the others 40 %, and none.
    """
    sandbox.fleet.add("spot", MACHINES, cpu=f"{CPU_M}m")
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "hint-low"}}
    sandbox.kubectl("apply", "-f", "-", stdin=json.dumps({**low, "value": -10}))
    hot = sandbox.fleet.names("spot")[:2]
    for node in sandbox.fleet.names("spot"):
        cpu_m = CPU_M // 10 - 100 if node in hot else CPU_M * 4 // 10
        body = json.dumps(requesting(f"load-{node}", node, cpu_m))
        sandbox.kubectl("apply", "-f", "-", stdin=body)
        if node in hot:
            sandbox.kubectl("apply", "-f", "-", stdin=json.dumps(requesting(f"web-{node}", node, 100)))
    figures: dict[str, object] = {}
    for name, give, take, spec in hints(sandbox):
        give()
        by_heat = Counter(landed(sandbox, {**spec}) in hot for _ in range(TRIES))
        take()
        figures[name] = f"{by_heat[True]} of {TRIES} on a hot machine"
    return figures


WAYS: dict[str, Callable[[], dict[str, object]]] = {
    "relief": lambda: in_a_sandbox(lambda sandbox, home: by_splitter(sandbox, home, FAST, real=False)),
    "relief-metrics-server": lambda: in_a_sandbox(PLAYERS["splitter"]),
    "relief-compared": compared,
    "relief-hints": lambda: in_a_sandbox(lambda sandbox, _: hinted(sandbox)),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the scene or measure hints, print and write down the figures; return the exit code."""
    parser = argparse.ArgumentParser(prog="lab.bench.relief", description="What relief of hot nodes does.")
    ways = parser.add_mutually_exclusive_group()
    for option, way, meaning in (
        ("--metrics-server", "relief-metrics-server", "with a real metrics-server (half an hour)"),
        ("--compare", "relief-compared", "the same, and the descheduler beside it (half an hour)"),
        ("--hints", "relief-hints", "where the scheduler puts a replica, by hint"),
    ):
        ways.add_argument(option, action="store_const", const=way, dest="way", help=meaning)
    way = parser.parse_args(arguments).way or "relief"
    figures = WAYS[way]()
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    write(BENCHMARKS / f"{way}.json", {"machine": machine(), **figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What relief of hot nodes does on a real scheduler: `python -m bench.relief` (docs/adr/0064).

The scene has 12 machines, and 8 workloads of 10 replicas, 40 % of whose use is on two machines. An hour is
six cycles of 15 s here. `--hints` measures instead where the scheduler puts a replica that is to stay off two
hot machines, by what hints at it. Nothing is asserted; `tests/e2e/test_relief.py` does that.
"""

import argparse
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.crowd import must_be_loopback
from bench.figures import machine, write
from e2e.support.controller import SHORT, Controller, install
from e2e.support.metrics_api import MetricsApi
from e2e.support.namespaces import open_shop
from e2e.support.shop import Shop, manifest
from splitter.bundled import bundled_path
from splitter.sandbox import Between, Instant, Sandbox
from splitter.sandbox.waiting import wait_until

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks"
MACHINES, CPU_M, WORKLOADS, REPLICAS, PILED = 12, 8000, 8, 10, 4
# Half of the workloads use three times as much as the others: 480 m on average, 7,680 m of 8,000 where piled.
USES_M = (720, 240)
CYCLE_S, HOUR_CYCLES = 15, 6
SETTINGS = {**SHORT, "RELIEF_INTERVAL_S": "1", "RELIEF_CYCLE_S": str(CYCLE_S)}
POLL_S = 1.0
TRIES, GONE_S = 20, 60.0


def names() -> list[str]:
    """Return what the workloads are called."""
    return [f"web-{number}" for number in range(WORKLOADS)]


def hottest(shop: Shop) -> float:
    """Return how much of the fullest machine is used, in percent."""
    used: Counter[str] = Counter()
    for number, name in enumerate(names()):
        for node in shop.nodes(name):
            used[node] += USES_M[number % 2]
    return round(100 * max(used.values()) / CPU_M, 1)


def piled(shop: Shop, metrics: MetricsApi) -> None:
    """Have all workloads split, with 40 % of their use on two machines."""
    full, rest = shop.sandbox.fleet.names("spot")[:2], shop.sandbox.fleet.names("spot")[2:]
    shop.sandbox.kubectl("cordon", *rest)
    for number, name in enumerate(names()):
        metrics.uses(name, USES_M[number % 2])
        shop.apply(manifest(name, PILED, annotations={"splitter.io/relief": "cpu=85"}))
    for name in names():
        shop.wait_rolled_out(name)
    shop.sandbox.kubectl("uncordon", *rest)
    shop.sandbox.kubectl("cordon", *full)
    for name in names():
        shop.scale(REPLICAS, name)
    for name in names():
        shop.wait_rolled_out(name)
    shop.sandbox.kubectl("uncordon", *full)
    for name in names():
        shop.label(name)
    for name in names():
        shop.wait_split(on_demand=0, spot=REPLICAS, name=name)
        shop.wait_steady(name)


def scene(sandbox: Sandbox, home: Path) -> dict[str, object]:
    """Play two hours; return the figures."""
    sandbox.fleet.add("spot", MACHINES, cpu=f"{CPU_M}m")
    account = install(sandbox)
    sandbox.kubectl("apply", "-f", str(bundled_path("manifests/relief.yaml")))
    controller = Controller(account, home, SETTINGS)
    with MetricsApi(sandbox) as metrics, ExitStack() as stack:
        controller.start()
        stack.callback(controller.end)
        with contextmanager(open_shop)(sandbox, controller) as shop:
            piled(shop, metrics)
            watched = [stack.enter_context(shop.watch(name)) for name in names()]
            before, began = hottest(shop), Instant.now()
            shop.until(lambda: any(shop.events("Relieving", name) for name in names()), "a first move")
            first, hours = Instant.now(), []
            shown: list[tuple[float, float]] = []
            never_set = threading.Event()
            seen = {uid for name in names() for uid in shop.pod_uids(name)}
            for _ in range(2):
                ends_s, uids = Instant.now().monotonic_s + HOUR_CYCLES * CYCLE_S, set(seen)
                while (now_s := Instant.now().monotonic_s) < ends_s:
                    shown.append((round(now_s - first.monotonic_s, 1), hottest(shop)))
                    never_set.wait(POLL_S)
                seen = {uid for name in names() for uid in shop.pod_uids(name)}
                hours.append(len(uids - seen))
            whole = Between(began, Instant.now())
            short_s = sum(one.timeline.seconds_below(REPLICAS, whole) for one in watched)
            within = [percent for at_s, percent in shown if at_s <= 3 * CYCLE_S]
            undone = sum(len(shop.events("ReliefUndone", name)) for name in names())
            return {
                "hottest_before": before,
                "hottest_after_three_cycles": within[-1],
                "hottest_at_last": shown[-1][1],
                "seconds_with_a_replica_missing": round(short_s, 2),
                "replicas": WORKLOADS * REPLICAS,
                "left_in_the_first_hour": hours[0],
                "left_in_the_second_hour": hours[1],
                "events_of_moves_undone": undone,
            }


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the scene or measure hints, print and write down the figures; return the exit code."""
    parser = argparse.ArgumentParser(prog="bench.relief", description="What relief of hot nodes does.")
    parser.add_argument("--hints", action="store_true", help="where the scheduler puts a replica, by hint")
    chosen = parser.parse_args(arguments)
    with TemporaryDirectory() as home, Sandbox.start() as sandbox:
        must_be_loopback(sandbox.url)
        figures = hinted(sandbox) if chosen.hints else scene(sandbox, Path(home))
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    write(
        RESULTS / ("relief-hints.json" if chosen.hints else "relief.json"), {"machine": machine(), **figures}
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

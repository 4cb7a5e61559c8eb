"""What relief of hot nodes costs splitter at 1,000 nodes and 10,000 pods: a decision, and looks at real use.

Shown, not asserted: a machine may be busy. That the decision is the one it should be is asserted.
"""

import asyncio
import json
import multiprocessing
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from bench.offline import Run, node
from lab.bench.figures import machine, show
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.plan import Plan, PolicyInForce
from splitter.core.reasons import Reason, State
from splitter.core.relief.model import Amounts, Resource, Sample, Thresholds, Tuning
from splitter.core.replica import Pool
from splitter.kube.client import Client, Json
from splitter.kube.connect import connect
from splitter.kube.observe import Observer
from splitter.kube.paths import USED_BY_NODES, ResourcePath
from splitter.kube.real_use import real_use
from splitter.relief.decide import Relief, relieve
from splitter.relief.loads import Cluster, NodeLoad, ReplicaLoad, WorkloadLoad
from splitter.relief.watch import HotNodesWatch
from world.kinds import NODES as WORLD_NODES

pytestmark = pytest.mark.bench

NODES, PODS_A_NODE, REPLICAS = 1000, 10, 10
LOOKS = 3
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
GIB = 1024.0**3
WHOLE, ASKED = Amounts(8000, 32 * GIB), Amounts(100, GIB / 4)
HOT_M, COOL_M = 760.0, 240.0

# Of the idle cost.
INTERVAL_S, MEASURED_LOOKS = 60, 20
LOOK_DEADLINE_S = 300
BY_HOST = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}


# --- one decision --------------------------------------------------------------------------------------


def crowded(hot: int, *, headroom: bool) -> Cluster:
    """Return 1,000 nodes with pods of 10 workloads each. The first are hot, the others have room or not."""
    names = [f"node-{number}" for number in range(NODES)]
    everywhere = frozenset(names)
    since = NOW - timedelta(days=1)
    asked = Thresholds({Resource.CPU: 85.0})
    workloads, of_pods, dice = list[WorkloadLoad](), dict[str, Sample](), random.Random(1)
    for number in range(NODES * PODS_A_NODE // REPLICAS):
        replicas = list[ReplicaLoad]()
        for index in range(REPLICAS):
            place, uid = (number + index * NODES // REPLICAS) % NODES, f"web-{number}-{index}"
            of_pods[uid] = Sample(
                NOW, Amounts((HOT_M if place < hot else COOL_M) + dice.uniform(-40, 40), GIB / 16)
            )
            replicas.append(
                ReplicaLoad(uid, uid, names[place], Pool.SPOT, ASKED, since, may_run_on=everywhere)
            )
        workloads.append(WorkloadLoad(Key(DEPLOYMENT, "shop", f"web-{number}"), asked, tuple(replicas)))
    requested = Amounts(ASKED.cpu * PODS_A_NODE, ASKED.memory * PODS_A_NODE) if headroom else WHOLE
    nodes = tuple(NodeLoad(name, f"uid-{name}", Pool.SPOT, WHOLE, requested, 100) for name in names)
    of_nodes = {
        name: Sample(NOW, Amounts(PODS_A_NODE * (HOT_M if place < hot else COOL_M), GIB))
        for place, name in enumerate(names)
    }
    return Cluster(NOW, nodes, tuple(workloads), of_nodes, of_pods)


@pytest.mark.parametrize("hot", [100, 400])
def test_a_decision(hot: int) -> None:
    """The most that a cycle allows are moved where there is room, and none where there is none."""
    rows = []
    for headroom, moves in ((True, Tuning().moves_per_cycle), (False, 0)):
        cluster = crowded(hot, headroom=headroom)
        samples = {one.uid: (cluster.node_samples[one.name],) * Tuning().samples for one in cluster.nodes}
        taken, answer = [], Relief()
        for _ in range(LOOKS):
            began_s = time.process_time()
            answer = relieve(cluster, Relief(history=samples), ())
            taken.append(time.process_time() - began_s)
        assert len(answer.hot) == hot
        assert len(answer.moves) == moves
        what = "CPU of a decision" if headroom else "CPU of one where nobody has room"
        rows.append((what, f"{min(taken):.2f} to {max(taken):.2f} s", ""))
    show(
        f"{hot} of {NODES} nodes hot, {NODES * PODS_A_NODE} pods, {LOOKS} looks",
        [*rows, ("machine", json.dumps(machine()), "")],
    )


# --- watching -------------------------------------------------------------------------------------------


def _serve(pods: list[tuple[str, str]], nodes: list[str], port: Connection) -> None:
    """Answer for metrics.k8s.io in a process of its own: everything is measured now, and nothing is hot."""

    def item(metadata: dict[str, str], **fields: object) -> dict[str, object]:
        return {"metadata": metadata, "window": "10s", **fields}

    def answer(path: str) -> bytes:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        small = {"cpu": "104857600n", "memory": "131072Ki"}
        if path.startswith("/apis/metrics.k8s.io/v1beta1/nodes"):
            large = {"cpu": "1634857600n", "memory": "2131072Ki"}
            kind, items = "NodeMetricsList", [item({"name": one}, timestamp=at, usage=large) for one in nodes]
        else:
            containers = [{"name": name, "usage": small} for name in ("app", "proxy")]
            metadata = ({"name": name, "namespace": namespace} for namespace, name in pods)
            kind = "PodMetricsList"
            items = [item(one, timestamp=at, containers=containers) for one in metadata]
        return json.dumps({"kind": kind, "apiVersion": "metrics.k8s.io/v1beta1", "items": items}).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            content = answer(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's own name)
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    port.send(server.server_port)
    server.serve_forever()


@contextmanager
def serving(pods: list[tuple[str, str]], nodes: list[str], kubeconfig: Path) -> Iterator[None]:
    """Serve within a `with`, and write a kubeconfig that leads there."""
    forks = multiprocessing.get_context("spawn")
    ours, theirs = forks.Pipe(duplex=False)
    process = forks.Process(target=_serve, args=(pods, nodes, theirs), daemon=True)
    process.start()
    with ours, theirs:
        port = ours.recv()
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    kubeconfig.write_text(json.dumps(content))
    try:
        yield
    finally:
        process.kill()
        process.join()


class Looks:
    """A reader that takes the CPU time at the beginning of each look, and lets none begin after the last."""

    def __init__(self, client: Client, count: int) -> None:
        self._client = client
        self._count = count
        self.begun_s: list[float] = []
        self.over = asyncio.Event()

    async def get(self, path: ResourcePath, **query: str) -> Json:
        """Ask, or wait for ever."""
        if path == USED_BY_NODES:
            self.begun_s.append(time.process_time())
        if len(self.begun_s) > self._count:
            self.over.set()
            await asyncio.Event().wait()
        return await self._client.get(path, **query)

    async def find(self, path: ResourcePath) -> Json | None:
        """Never be asked."""
        raise AssertionError(path)

    def pages(self, path: ResourcePath, limit: int = 500, **query: str) -> AsyncIterator[Json]:
        """Never be asked."""
        raise AssertionError(path, limit, query)


async def watched(run: Run, kubeconfig: Path) -> tuple[float, int]:
    """Return the CPU seconds of one look, without the first ones, and how often a workload was woken."""
    api = run.api
    woken: list[Key] = []
    first = Tuning().samples + 1
    client = await connect(kubeconfig, None, LOOK_DEADLINE_S, 2)
    looks = Looks(client, first + MEASURED_LOOKS)
    measure = partial(real_use, looks, ())
    watch = HotNodesWatch(looks, run.cache, woken.append, measure=measure, tuning=Tuning(), interval_s=0.01)
    observer = Observer(api, run.cache)
    in_force = PolicyInForce(Policy(relief="cpu=85"), (), {}, valid=True)
    steady = Plan(Step.RUN, State.STEADY, Note(Reason.BALANCED, "as wanted"))
    keys = [Key(DEPLOYMENT, one["metadata"]["namespace"], one["metadata"]["name"]) for one in api.sources]
    for key in keys:
        watch.saw(await observer.observe(key, datetime.now(UTC)), in_force, steady)
    looking = asyncio.create_task(watch.run())
    try:
        async with asyncio.timeout(LOOK_DEADLINE_S):
            await looks.over.wait()
        assert all(watch.view(key).known and not watch.view(key).hot for key in keys)
    finally:
        looking.cancel()
        await asyncio.wait([looking])
        await client.close()
    return (looks.begun_s[-1] - looks.begun_s[first]) / MEASURED_LOOKS, len(woken)


@pytest.mark.parametrize("spread", [False, True])
def test_watching(tmp_path: Path, *, spread: bool) -> None:
    """While nothing is hot a look wakes no workload; what it costs is shown, with constraints and without."""
    run = Run(NODES * PODS_A_NODE // REPLICAS)
    for number in range(NODES - len(run.api.nodes)):
        run.api.put_at(WORLD_NODES, node(f"spot-more-{number}", Pool.SPOT))
    for one in run.api.nodes:
        one["metadata"]["labels"][BY_HOST["topologyKey"]] = one["metadata"]["name"]
    for one in run.api.twins if spread else ():
        selector = {"matchLabels": one["spec"]["template"]["metadata"]["labels"]}
        one["spec"]["template"]["spec"]["topologySpreadConstraints"] = [BY_HOST | {"labelSelector": selector}]
    run.fill()
    pods = [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in run.api.pods]
    workloads = len(run.api.sources)
    with serving(pods, [one["metadata"]["name"] for one in run.api.nodes], tmp_path / "kubeconfig"):
        look_s, woken = asyncio.run(watched(run, tmp_path / "kubeconfig"))
    # When looking begins, and when it is known that nothing is hot.
    assert woken <= 2 * workloads
    show(
        f"watching {NODES} nodes, {workloads} workloads, {len(pods)} pods, {MEASURED_LOOKS} times"
        + (", each spread over hosts" if spread else ""),
        [
            ("CPU of a look", f"{look_s:.3f} s", ""),
            (
                f"of a core, a look every {INTERVAL_S} s",
                f"{100 * look_s / INTERVAL_S:.2f} %",
                "under 1 %",
            ),
            ("machine", json.dumps(machine()), ""),
        ],
    )

"""A still life: very many workloads that are split, on a real API server where nobody but splitter moves.

10,000 pods are made anew many times in a day of work, which takes hours on a machine that does other things
too. What splitter answers to a notice, its start, its idleness, its memory and its watch events need no pod
that moves: here all objects are written as they would be with everything split, and the controllers, the
scheduler and KWOK stand still. `__main__` uses it for `--still`; `rounds` has the measures.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import orjson

from bench.offline import deployment_status, park, pod_on, replica_set_of, source_deployment
from bench.scale.core import Figures
from bench.scale.rounds import (
    Pace,
    Run,
    at_rest,
    bare_notice,
    events,
    fail_over,
    gathered,
    homes,
    idle,
    let_pass,
    notice,
    start_up,
)
from lab.bench.crowd import ACCOUNT, DEPLOYMENTS, NAMESPACE, SPLITS, Crowd, Size, installed, must_be_loopback
from lab.bench.figures import memory_mb
from lab.demo.watching import ScaleLog, Watch
from lab.sandbox import Api, Instant, PatchKind, Sandbox
from lab.sandbox.errors import SandboxError
from splitter.assembly import renderer_of
from splitter.core.actions import ApplyTwin
from splitter.core.labels_annotations.label import ownership_mark_value
from splitter.core.labels_annotations.policy import Policy
from splitter.core.replica import Pool
from splitter.kube import parse, payloads
from splitter.kube.parse.fields import instant
from splitter.render import Renderer
from splitter.settings import Settings

Json = dict[str, Any]

_WRITERS = 16
_MARK = "splitter.io/taken-over"
_REPLICA_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_STOPPED = ("kube-controller-manager", "kube-scheduler", "kwok")


@contextmanager
def still_life(size: Size) -> Iterator[Crowd]:
    """Yield a sandbox with so many workloads as they are once they have been split."""
    with Sandbox.start(progress=print) as sandbox:
        must_be_loopback(sandbox.url)
        on_demand = sandbox.fleet.add("on-demand", size.on_demand_nodes, pods=250)
        spot = sandbox.fleet.add("spot", size.spot_nodes)
        installed(sandbox)
        for name in _STOPPED:
            os.kill(sandbox.process_id(name), signal.SIGSTOP)
        scales, began = ScaleLog(), Instant.now()
        _write(sandbox.api, size, on_demand, spot)
        with (
            Watch(sandbox.api, DEPLOYMENTS, scales.see) as deployments,
            Watch(sandbox.api, SPLITS) as splits,
        ):
            crowd = Crowd(size, sandbox, deployments, splits, scales, spot, [])
            crowd.created_s = round(Instant.now().monotonic_s - began.monotonic_s, 1)
            yield crowd


def measure_still(size: Size, pace: Pace, saved: Callable[[Figures], None], stages: Sequence[str]) -> None:
    """Measure what needs no pod that moves: notices, a start, idleness, memory, watch events, the lease.

    Only those `stages` that are named; the others of a day are no stages of a still life.
    """
    with still_life(size) as here:
        run = Run(here, here.sandbox.service_account_kubeconfig(*ACCOUNT), pace, saved)
        run.note("created", {"seconds": here.created_s})
        for name, stage in STILL_STAGES.items():
            if name not in stages:
                continue
            run.play(name, stage)
            with run.measured("mended", here.sandbox.process_id("etcd")):
                mend(here, here.names)


def _starts(run: Run) -> None:
    """Let a process look at everything once and report it; then start one while a node is doomed."""
    with run.running("first") as controller:
        at_rest(controller, run.pace.quiet_s)
    if moved := run.here.scales.writes():
        raise SandboxError(f"this is no still life: splitter had something to move, first {moved[0]}")
    with run.running("start") as controller:
        start_up(run, controller)
        at_rest(controller, run.pace.quiet_s)
        run.note("memory_after_start", {**memory_mb(controller.process_id)})


def _notices(run: Run) -> None:
    collected = []
    for node in run.here.spot_nodes[: run.pace.notices]:
        with run.running("notice") as controller:
            at_rest(controller, run.pace.quiet_s)
            collected.append(notice(run, f"one_node_{node}", controller, (node,)))
        mend(run.here, sorted(run.here.workloads_on(node)))
    run.note("one_node", gathered(collected))
    with run.running("notices") as controller:
        at_rest(controller, run.pace.quiet_s)
        events(run, controller)
        notice(run, "all_nodes", controller, run.here.spot_nodes)
        let_pass(run.pace.quiet_s)
        run.note("memory_after_notices", {**memory_mb(controller.process_id)})


def _floors(run: Run) -> None:
    here, where, collected = run.here, homes(run.here), []
    for node in here.spot_nodes[: run.pace.notices]:
        collected.append(bare_notice(run, f"one_node_floor_{node}", (node,), where, 1))
        mend(here, sorted(where[node]))
    run.note("one_node_floor", gathered(collected))
    bare_notice(run, "all_nodes_floor", here.spot_nodes, where, here.size.replicas - here.size.base)


def mend(here: Crowd, names: Sequence[str]) -> None:
    """Put the counts of twins back, as if nothing had been asked of them; splitter does not run."""
    api, size = here.sandbox.api, here.size
    counts = {"on-demand": size.base, "spot": size.replicas - size.base}

    def put_back(name: str, pool: str) -> None:
        path = f"{DEPLOYMENTS}/{name}-{pool}"
        _is_done(api, path, api.patch(path, {"spec": {"replicas": counts[pool]}}, field_manager="splitter"))

    with ThreadPoolExecutor(_WRITERS) as writers:
        list(writers.map(lambda both: put_back(*both), [(name, pool) for name in names for pool in counts]))
        calm = {"status": None}
        list(writers.map(lambda name: api.patch(f"{SPLITS}/{name}/status", calm), names))


def _is_done(api: Api, path: str, raw: Json) -> None:
    status = {
        **deployment_status(raw["spec"]["replicas"]),
        "observedGeneration": raw["metadata"]["generation"],
    }
    api.patch(f"{path}/status", {"status": status})


def _write(api: Api, size: Size, on_demand: Sequence[str], spot: Sequence[str]) -> None:
    renderer = renderer_of(Settings())
    spot_replicas = size.replicas - size.base

    def write(number: int) -> None:
        nodes = {
            Pool.ON_DEMAND: [on_demand[(number * size.base + i) % len(on_demand)] for i in range(size.base)],
            Pool.SPOT: [spot[(number * spot_replicas + i) % len(spot)] for i in range(spot_replicas)],
        }
        _write_one(api, renderer, f"w{number:02}", size.base, nodes)

    with ThreadPoolExecutor(_WRITERS) as writers:
        list(writers.map(write, range(size.workloads)))


def _write_one(api: Api, renderer: Renderer, name: str, base: int, nodes: dict[Pool, list[str]]) -> None:
    source = api.create(DEPLOYMENTS, _new(source_deployment(NAMESPACE, name, sum(map(len, nodes.values())))))
    mark = ownership_mark_value(source["metadata"]["uid"], instant(source["metadata"]["creationTimestamp"]))
    path = f"{DEPLOYMENTS}/{name}"
    annotated = {"metadata": {"annotations": {_MARK: mark, "splitter.io/on-demand-base": str(base)}}}
    source = api.patch(path, annotated, field_manager="splitter")
    api.patch(f"{path}/status", {"status": {"observedGeneration": source["metadata"]["generation"]}})
    view = parse.source(source).view
    for pool, places in nodes.items():
        rendered = renderer.render(orjson.loads(view.manifest_json), pool, Policy(on_demand_base=base))
        body = payloads.twin(ApplyTwin(pool, rendered.manifest_json, rendered.hash, len(places), 1, 0, None))
        twin_path = f"{DEPLOYMENTS}/{name}-{pool.value}"
        twin = api.patch(twin_path, body, kind=PatchKind.APPLY, field_manager="splitter")
        _is_done(api, twin_path, twin)
        _write_pods(api, twin, places)
    parked = replica_set_of(NAMESPACE, source, source["spec"]["template"], 0)
    park(parked)
    api.create(_REPLICA_SETS, _selecting(_new(parked)))
    split = payloads.reporting_split(view, takes_over=True)
    api.patch(f"{SPLITS}/{name}", split, kind=PatchKind.APPLY, field_manager="splitter")


def _write_pods(api: Api, twin: Json, places: Sequence[str]) -> None:
    template = twin["spec"]["template"]
    made = api.create(_REPLICA_SETS, _selecting(_new(replica_set_of(NAMESPACE, twin, template, len(places)))))
    count = {"replicas": len(places), "availableReplicas": len(places), "readyReplicas": len(places)}
    api.patch(f"{_REPLICA_SETS}/{made['metadata']['name']}/status", {"status": count})
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for number, node in enumerate(places):
        raw = pod_on(NAMESPACE, f"{made['metadata']['name']}-{number}", made, made["spec"]["template"], node)
        status = raw.pop("status")
        for condition in status["conditions"]:
            condition["lastTransitionTime"] = now  # before its node was made, it would be another node's pod
        api.create(_PODS, _new(raw))
        api.patch(f"{_PODS}/{raw['metadata']['name']}/status", {"status": status})


def _new(raw: Json) -> Json:
    """Return an object without what the API server fills in."""
    made = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
    metadata = {key: value for key, value in raw["metadata"].items() if key not in made}
    return {**{key: value for key, value in raw.items() if key != "status"}, "metadata": metadata}


def _selecting(raw: Json) -> Json:
    """Give a ReplicaSet the selector that the API server insists on."""
    labels = raw["spec"]["template"]["metadata"]["labels"]
    return {**raw, "spec": {**raw["spec"], "selector": {"matchLabels": labels}}}


STILL_STAGES: Mapping[str, Callable[[Run], None]] = {
    "start": _starts,
    "notices": _notices,
    "floors": _floors,
    "idle": idle,
    "fail-over": lambda run: fail_over(run, lambda *_: None),
}

"""What splitter itself costs, with no cluster: CPU of a watch event, a reconcile, a storm, as workloads grow.

The real cache, planner and reconciler over the world's API server in the same process, whose own CPU time is
left out: what is counted is splitter's, comparable between two commits on a busy machine.
`python -m bench.offline` prints a table, with `--memory` one of what is kept of each workload; `make bench`
has the figures that users will see.
"""

import argparse
import asyncio
import gc
import itertools
import logging
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from splitter.assembly import cache_of, renderer_of, rules_of
from splitter.core.actions import ApplyTwin
from splitter.core.labels_annotations.label import ownership_mark_value
from splitter.core.labels_annotations.policy import Policy
from splitter.core.replica import Pool
from splitter.kube import parse, payloads
from splitter.kube.apply import Writer
from splitter.kube.observe import Observer
from splitter.kube.parse.fields import instant
from splitter.kube.paths import ResourcePath
from splitter.reconciler import Reconciler
from splitter.reconciler.queue import REST_S, WorkQueue
from splitter.render.bounded import BoundedRenderer
from splitter.settings import Settings
from world.api import Api
from world.kinds import DEPLOYMENTS, NODES, PODS, REPLICA_SETS, SPLITS, Ref

Json = dict[str, Any]

REPLICAS, BASE = 10, 2
WORKLOADS_A_NAMESPACE = 20
SPOT_PODS_A_NODE = 27
ON_DEMAND_PODS_A_NODE = 50
_DEADLINE_S = 600.0
_EVENTS = 10_000
_LOOK_S, _QUIET_LOOKS = 0.1, 5
_POD_CONDITIONS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of CPU, but for counts."""

    workloads: int
    fill_s_per_object: float
    event_s: float
    steady_pass_s: float
    one_node_last_raise_s: float
    all_nodes_median_raise_s: float
    all_nodes_last_raise_s: float
    writes: int


class Served(Api):
    """The world's API server, which counts writes; the CPU that it takes itself is left out (`spent_s`)."""

    def __init__(self, workloads: int) -> None:
        """Hold workloads that were split long ago, and their nodes."""
        super().__init__()
        self.raises: list[tuple[str, float]] = []
        self.writes = 0
        self._own_s = 0.0
        nodes = _nodes(workloads)
        for raw in nodes:
            self.put_at(NODES, raw)
        renderer = renderer_of(Settings())
        places = {pool: itertools.cycle(names_of(nodes, pool)) for pool in Pool}
        for number in range(workloads):
            self._add(f"ns-{number // WORKLOADS_A_NAMESPACE}", f"app-{number}", renderer, places)

    def put_at(self, kind: str, raw: Json) -> Json:
        """Hold an object."""
        metadata = raw["metadata"]
        return self.objects.put_at(Ref(kind, metadata.get("namespace", ""), metadata["name"]), raw)

    def _add(self, namespace: str, name: str, renderer: Any, places: Any) -> None:  # noqa: ANN401
        source = self.put_at(DEPLOYMENTS, source_deployment(namespace, name))
        key_view = parse.source(source).view
        for pool in Pool:
            twin = renderer.render(orjson.loads(key_view.manifest_json), pool, Policy(on_demand_base=BASE))
            count = BASE if pool is Pool.ON_DEMAND else REPLICAS - BASE
            raw = payloads.twin(ApplyTwin(pool, twin.manifest_json, twin.hash, count, 1, 0, None))
            raw["metadata"] |= _identity(f"{name}-{pool.value}", namespace)
            raw["status"] = deployment_status(count)
            template = self.put_at(DEPLOYMENTS, raw)["spec"]["template"]
            owned = self.put_at(REPLICA_SETS, replica_set_of(namespace, raw, template, count))
            for index in range(count):
                pod = f"{owned['metadata']['name']}-{index}"
                self.put_at(PODS, pod_on(namespace, pod, owned, template, next(places[pool])))
        parked = replica_set_of(namespace, source, source["spec"]["template"], 0)
        park(parked)
        self.put_at(REPLICA_SETS, parked)
        split = payloads.reporting_split(key_view, takes_over=True)
        split["metadata"] |= _identity(name, namespace, uid=f"split-{namespace}-{name}")
        split["status"] = {"state": "Steady"}
        self.put_at(SPLITS, split)

    @property
    def nodes(self) -> list[Json]:
        """The nodes as they are now."""
        return self.objects.all(NODES)

    @property
    def pods(self) -> list[Json]:
        """The pods as they are now."""
        return self.objects.all(PODS)

    @property
    def sources(self) -> list[Json]:
        """The sources as they are now."""
        return [one for one in self.objects.all(DEPLOYMENTS) if one["spec"].get("paused")]

    @property
    def twins(self) -> list[Json]:
        """The twins as they are now."""
        return [one for one in self.objects.all(DEPLOYMENTS) if not one["spec"].get("paused")]

    def tainted(self, names: Iterable[str]) -> list[Json]:
        """Announce that nodes go, and return them."""
        spec = {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}
        refs = [Ref(NODES, "", name) for name in names]
        return [self.objects.update(ref, {**self.objects.get(ref), "spec": spec}) for ref in refs]

    def forget(self) -> None:
        """Hold nothing any more."""
        self.objects.by_kind.clear()
        self.objects.compact()
        self.asked.clear()

    @property
    def spent_s(self) -> float:
        """The CPU of this process, without what was spent here."""
        return time.process_time() - self._own_s

    async def send(
        self,
        method: str,
        path: ResourcePath,
        body: Json | None = None,
        **asked: Any,  # noqa: ANN401
    ) -> Json:
        """Answer, and count."""
        began_s, spec = time.process_time(), (body or {}).get("spec", {})
        if method != "GET":
            self.writes += 1
            if "replicas" in spec and path.name.endswith("-on-demand"):
                self.raises.append((str(path), self.spent_s))
        try:
            return await super().send(method, path, body, **asked)
        finally:
            self._own_s += time.process_time() - began_s


def _identity(name: str, namespace: str = "", uid: str = "") -> Json:
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": uid or f"uid-{namespace}-{name}",
        "resourceVersion": "10",
        "creationTimestamp": "2026-01-05T09:00:00Z",
    }


def deployment_status(count: int) -> Json:
    """Return the status of a Deployment all of whose pods are available."""
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas", "readyReplicas"), count)
    return {"observedGeneration": 1, **counts}


def _container(name: str) -> Json:
    return {
        "name": name,
        "image": "registry.example/app:1",
        "env": [{"name": f"SETTING_{number}", "value": "some value"} for number in range(10)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 10},
    }


def source_deployment(namespace: str, name: str, replicas: int = REPLICAS) -> Json:
    """Return a source that splitter has taken over."""
    labels = {"app": name}
    identity = _identity(name, namespace)
    mark = ownership_mark_value(identity["uid"], instant(identity["creationTimestamp"]))
    return {
        "metadata": {
            **identity,
            "generation": 1,
            "labels": {**labels, "splitter.io/split": "enabled"},
            "annotations": {"splitter.io/on-demand-base": str(BASE), "splitter.io/taken-over": mark},
            "managedFields": [
                {"manager": "splitter", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}}
            ],
        },
        "spec": {
            "replicas": replicas,
            "paused": True,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [_container("app"), _container("proxy")]},
            },
        },
        "status": {"observedGeneration": 1},
    }


def park(raw: Json) -> None:
    """Have a ReplicaSet look as if its Deployment did not own it any more."""
    raw["metadata"]["labels"] = {"splitter.io/split": "parked"}
    raw["metadata"]["ownerReferences"][0]["controller"] = False


def replica_set_of(namespace: str, of: Json, template: Json, count: int) -> Json:
    """Return the one ReplicaSet of a Deployment."""
    name = f"{of['metadata']['name']}-5d9c7b6f5"
    labels = {**template["metadata"].get("labels", {}), "pod-template-hash": "5d9c7b6f5"}
    reference = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": of["metadata"]["name"],
        "uid": of["metadata"]["uid"],
        "controller": True,
    }
    return {
        "metadata": {**_identity(name, namespace), "labels": labels, "ownerReferences": [reference]},
        "spec": {
            "replicas": count,
            "selector": {
                "matchLabels": {**of["spec"]["selector"]["matchLabels"], "pod-template-hash": "5d9c7b6f5"}
            },
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
        "status": {"replicas": count, "availableReplicas": count},
    }


def pod_on(namespace: str, name: str, owner: Json, template: Json, node: str) -> Json:
    """Return a pod that runs and is ready on a node."""
    since = {"status": "True", "lastTransitionTime": "2026-01-05T09:30:00Z"}
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    managed: Json = {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:containers": {"k:{}": {}}}}
    return {
        "metadata": {
            **_identity(name, namespace),
            "labels": owner["metadata"]["labels"],
            "ownerReferences": [reference],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": managed}] * 2,
        },
        "spec": {**template["spec"], "nodeName": node},
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, **since}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {"name": one["name"], "ready": True, "restartCount": 0, "image": one["image"]}
                for one in template["spec"]["containers"]
            ],
        },
    }


def _nodes(workloads: int) -> list[Json]:
    wanted = (
        (Pool.SPOT, workloads * (REPLICAS - BASE) // SPOT_PODS_A_NODE + 1),
        (Pool.ON_DEMAND, workloads * REPLICAS // ON_DEMAND_PODS_A_NODE + 1),
    )
    return [node(f"{pool.value}-{number}", pool) for pool, count in wanted for number in range(count)]


def node(name: str, pool: Pool) -> Json:
    """Return a node that is ready."""
    return {
        "metadata": {**_identity(name), "labels": {"karpenter.sh/capacity-type": pool.value}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-05T09:00:00Z"}],
        },
    }


def names_of(nodes: Iterable[Json], pool: Pool) -> list[str]:
    """Return the names of a pool's nodes."""
    names = (node["metadata"]["name"] for node in nodes)
    return [name for name in names if name.startswith(pool.value)]


class Run:
    """One number of workloads."""

    def __init__(self, workloads: int) -> None:
        self.api = Served(workloads)
        settings = Settings()
        self.queue = WorkQueue(
            settings.tuning.node_coalesce_s,
            REST_S,
            workers=settings.workers,
            emergency_workers=settings.emergency_workers,
        )
        self.cache = cache_of(settings, self.queue.add)
        observer, writer = Observer(self.api, self.cache), Writer(self.api, self.cache)
        rules = rules_of(settings)
        resync_s = settings.resync_s
        renderer = BoundedRenderer(renderer_of(settings))
        self.reconciler = Reconciler(self.queue, observer, writer, renderer, rules=rules, resync_s=resync_s)

    async def measure(self) -> Figures:
        """Fill, look, change, lose."""
        api = self.api
        workloads = len(api.sources)
        fill = self.fill()
        task = self._task = asyncio.create_task(self.reconciler.run(8, 4))
        began = api.spent_s
        await self._idle()
        steady = (api.spent_s - began) / workloads
        event = self._events()
        await self._idle()
        one = await self._storm(names_of(api.nodes, Pool.SPOT)[:1])
        all_nodes = await self._storm(names_of(api.nodes, Pool.SPOT)[1:])
        task.cancel()
        return Figures(
            workloads,
            fill,
            event,
            steady,
            one[-1],
            all_nodes[len(all_nodes) // 2],
            all_nodes[-1],
            api.writes,
        )

    async def kept(self) -> dict[str, int]:
        """Return how many bytes are kept of all objects of a kind, and by each workload's first reconcile."""
        collected, before = {}, 0
        tracemalloc.start()
        for name, indexer, raws in self._shelves():
            for raw in raws:
                # As a watch brings it: what is kept of it is then counted here, and shares nothing with it.
                indexer.upsert(orjson.loads(orjson.dumps(raw)))
            collected[name] = _traced() - before
            before += collected[name]
        self._task = asyncio.create_task(self.reconciler.run(8, 4))
        await self._idle()
        self._task.cancel()
        await asyncio.wait([self._task])  # nothing is on its way any more
        self.api.forget()  # what was written is kept by an API server, and not by splitter
        collected["passes"] = _traced() - before
        tracemalloc.stop()
        return collected

    def _shelves(self) -> Iterator[tuple[str, Any, list[Json]]]:
        cache, api = self.cache, self.api
        yield "nodes", cache.nodes, api.nodes
        yield "sources", cache.sources, api.sources
        yield "twins", cache.twins, api.twins
        yield "ReplicaSets", cache.replica_sets, api.objects.all(REPLICA_SETS)
        yield "Splits", cache.splits, api.objects.all(SPLITS)
        yield "pods", cache.pods, api.pods

    def fill(self) -> float:
        """Take all objects in; return the CPU seconds of one."""
        began, count = time.process_time(), 0
        for _, indexer, raws in self._shelves():
            for raw in raws:
                indexer.upsert(raw)
                count += 1
        return (time.process_time() - began) / count

    def _events(self) -> float:
        """Return the CPU of one event of a pod, from the line of the watch."""
        count = min(_EVENTS, len(self.api.pods))
        lines = []
        for pod in self.api.pods[:count]:
            metadata = {**pod["metadata"], "resourceVersion": f"{pod['metadata']['resourceVersion']}0"}
            lines.append(orjson.dumps({"type": "MODIFIED", "object": {**pod, "metadata": metadata}}))
        began = time.process_time()
        for line in lines:
            self.cache.pods.upsert(orjson.loads(line)["object"])
        return (time.process_time() - began) / count

    async def _storm(self, names: list[str]) -> list[float]:
        """Taint nodes; return the CPU until each workload's first raise."""
        changed = self.api.tainted(names)
        self.api.raises.clear()
        gc.collect()
        began = self.api.spent_s
        for raw in changed:
            self.cache.nodes.upsert(raw)
        await self._idle()
        first: dict[str, float] = {}
        for path, at in self.api.raises:
            first.setdefault(path, at - began)
        return sorted(first.values())

    async def _idle(self) -> None:
        """Wait until the queue has been empty for a moment."""
        async with asyncio.timeout(_DEADLINE_S):
            quiet = 0
            while quiet < _QUIET_LOOKS and not self._task.done():
                await asyncio.wait([self._task], timeout=_LOOK_S)
                quiet = quiet + 1 if not len(self.queue) else 0


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _print_memory(sizes: Iterable[int]) -> None:
    table = Table(title=f"Kept for a workload of {REPLICAS} replicas, in KB")
    rows = {workloads: asyncio.run(Run(workloads).kept()) for workloads in sizes}
    for column in ("workloads", *next(iter(rows.values())), "all"):
        table.add_column(column, justify="right")
    for workloads, kept in rows.items():
        each = [count / workloads / 1000 for count in (*kept.values(), sum(kept.values()))]
        table.add_row(str(workloads), *(f"{figure:.1f}" for figure in each))
    Console().print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.offline", description=__doc__.partition("\n")[0])
    parser.add_argument("--workloads", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--memory", action="store_true", help="what is kept, instead of CPU")
    chosen = parser.parse_args()
    logging.disable()
    if chosen.memory:
        _print_memory(chosen.workloads)
        return
    table = Table(title=f"CPU of one process, workloads of {REPLICAS} replicas")
    columns = ("workloads", "fill/object", "pod event", "steady reconcile", "1 node: last raise")
    for column in (*columns, "all: median raise", "all: last raise", "writes"):
        table.add_column(column, justify="right")
    for workloads in chosen.workloads:
        figures = asyncio.run(Run(workloads).measure())
        table.add_row(
            str(figures.workloads),
            f"{figures.fill_s_per_object * 1e6:.0f} us",
            f"{figures.event_s * 1e6:.0f} us",
            f"{figures.steady_pass_s * 1e3:.2f} ms",
            *(
                f"{seconds * 1e3:.0f} ms"
                for seconds in (
                    figures.one_node_last_raise_s,
                    figures.all_nodes_median_raise_s,
                    figures.all_nodes_last_raise_s,
                )
            ),
            str(figures.writes),
        )
    Console().print(table)


if __name__ == "__main__":
    main()

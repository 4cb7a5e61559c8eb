"""What the policies cost those who write: with each and without it, in turns, on one API server.

Requests are server-side dry runs: they pass all of admission and validation, and leave out etcd, whose noise
is larger than what is measured. 1,000 Splits are in the namespace, 50 of them in placement mode. Beside the
durations stands the CPU time of the API server, which a busy machine spoils less.
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab.bench.figures import Percentiles, cpu_seconds, machine, show, write
from lab.fixtures.shop import JsonObject, manifest
from lab.sandbox import PatchKind, Sandbox
from lab.sandbox.waiting import wait_until
from splitter.bundled import bundled_path
from splitter.core.labels_annotations.label import ownership_mark_value
from splitter.core.placeable import runs
from splitter.kube.placement_writer import placement

pytestmark = pytest.mark.bench

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "admission.json"
NAMESPACE = "crowded"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
SPLITS = f"/apis/splitter.io/v1alpha1/namespaces/{NAMESPACE}/splits"
ALL_SPLITS, PLACED = 1000, 50
ORDINALS = [0, 2, 4]
# A cluster whose spot nodes are of one kind.
SPOT_LABELS = ("karpenter.sh/capacity-type",)
# In turns, so that what else the machine does is in both.
ROUNDS, EACH = 10, 100
GOAL_P99_MS = 5.0
POLICIES = ("own-account", "annotations", "keep-crd", "placement", "keep-paused")


@dataclass
class Stage:
    """The API server, and what is timed on it."""

    sandbox: Sandbox
    uid: str = ""
    seconds: dict[tuple[str, bool], list[float]] = field(default_factory=dict)
    cpu_s: dict[tuple[str, bool], float] = field(default_factory=dict)

    def plain_pod(self) -> JsonObject:
        """Create a pod of nobody's."""
        return self._pod({"app": "plain"})

    def placed_on_spot(self) -> JsonObject:
        """Create a pod of a StatefulSet in placement mode that is to prefer spot."""
        return self._placed(1)

    def placed_on_demand(self) -> JsonObject:
        """Create one that is to stay off spot."""
        return self._placed(2)

    def _placed(self, ordinal: int) -> JsonObject:
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db-7", "uid": self.uid}
        labels = {"app": "db-7", "apps.kubernetes.io/pod-index": str(ordinal)}
        return self._pod(labels, [{**owner, "controller": True}])

    def other_pod(self) -> JsonObject:
        """Create a pod of a StatefulSet that is nobody's business, beside those in placement mode."""
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "own", "uid": "uid-of-none"}
        labels = {"app": "own", "apps.kubernetes.io/pod-index": "1"}
        return self._pod(labels, [{**owner, "controller": True}])

    def deployment(self) -> JsonObject:
        """Change a Deployment that is nobody's business."""
        return self._patch("plain", {"minReadySeconds": 3})

    def source(self) -> JsonObject:
        """Change a Deployment with label and annotations."""
        return self._patch("web", {"minReadySeconds": 3})

    def whole_source(self) -> JsonObject:
        """Write the whole of a split Deployment, without the pause and the mark."""
        body = manifest("split", 0, labels={"splitter.io/split": "enabled"})
        query = {"dryRun": "All"}
        return self.sandbox.api.request("PUT", f"{APPS}/deployments/split", body=body, query=query)

    def _pod(self, labels: JsonObject, owners: list[JsonObject] | None = None) -> JsonObject:
        metadata = {"generateName": "timed-", "labels": labels, "ownerReferences": owners or []}
        body = {"metadata": metadata, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
        return self.sandbox.api.request("POST", PODS, body=body, query={"dryRun": "All"})

    def _patch(self, name: str, spec: JsonObject) -> JsonObject:
        query = {"dryRun": "All"}
        path, kind = f"{APPS}/deployments/{name}", PatchKind.MERGE
        return self.sandbox.api.request("PATCH", path, body={"spec": spec}, query=query, content_type=kind)

    def time(self, *, guarded: bool) -> None:
        """Time each kind of request, with or without the policies."""
        requests: tuple[Callable[[], JsonObject], ...] = (
            self.plain_pod,
            self.placed_on_spot,
            self.placed_on_demand,
            self.other_pod,
            self.deployment,
            self.source,
            self.whole_source,
        )
        for request in requests:
            which = (request.__name__, guarded)
            collected, before_s = self.seconds.setdefault(which, []), cpu_seconds(self._server)
            for _ in range(EACH):
                began = time.perf_counter()
                request()
                collected.append(time.perf_counter() - began)
            self.cpu_s[which] = self.cpu_s.get(which, 0.0) + cpu_seconds(self._server) - before_s

    @property
    def _server(self) -> int:
        """Return the process id of the API server."""
        [collected] = [
            number
            for number in self.sandbox.process_ids
            if b"kube-apiserver" in Path(f"/proc/{number}/cmdline").read_bytes()
        ]
        return collected

    def guard(self, *, on: bool) -> None:
        """Put the policies into force, or take them away."""
        for name in POLICIES:
            self.sandbox.kubectl(
                "apply" if on else "delete", "-f", str(bundled_path(f"manifests/admission/{name}.yaml"))
            )
        wait_until(
            lambda: (
                ("splitter.io/pool" in self.placed_on_spot()["metadata"]["labels"])
                == ("paused" in self.whole_source()["spec"])
                == on
            ),
            what="the policies",
            deadline_s=60,
        )


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Yield an API server with 1,000 Splits in one namespace."""
    with Sandbox.start() as sandbox:
        sandbox.kubectl("apply", "-f", str(bundled_path("manifests/crd.yaml")))
        sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/splits.splitter.io")
        sandbox.kubectl("create", "namespace", NAMESPACE)
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        wait_until(lambda: sandbox.api.find(account), what="the service account", deadline_s=30)
        here = Stage(sandbox)
        with ThreadPoolExecutor(8) as writers:
            uids = list(writers.map(lambda number: _split(sandbox, number), range(ALL_SPLITS)))
        here.uid = uids[7]
        placed = {uid: (f"db-{number}", runs(ORDINALS)) for number, uid in enumerate(uids) if uid}
        published = json.dumps(placement(NAMESPACE, placed, SPOT_LABELS))
        sandbox.kubectl("apply", "--server-side", "--field-manager=splitter", "-f", "-", stdin=published)
        asked = {"splitter.io/spot-percent": "80", "splitter.io/grace": "90s", "splitter.io/soak": "10m"}
        labels = {"splitter.io/split": "enabled"}
        for body in (manifest("plain", 0), manifest("web", 0, labels=labels, annotations=asked)):
            sandbox.kubectl("apply", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(body))
        _take_over(sandbox)
        yield here


def _take_over(sandbox: Sandbox) -> None:
    """Create a Deployment that is paused and marked, as splitter leaves one."""
    made = manifest("split", 0, labels={"splitter.io/split": "enabled"})
    raw = sandbox.api.create(f"{APPS}/deployments", {**made, "spec": {**made["spec"], "paused": True}})
    mark = {"splitter.io/taken-over": ownership_mark_value(raw["metadata"]["uid"], datetime.now(UTC))}
    sandbox.api.patch(f"{APPS}/deployments/split", {"metadata": {"annotations": mark}})


def _split(sandbox: Sandbox, number: int) -> str:
    """Write one Split; the first 50 with a StatefulSet in placement mode. Returns its UID."""
    kind, name = ("StatefulSet", f"db-{number}") if number < PLACED else ("Deployment", f"w-{number}")
    source = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    metadata: JsonObject = {"name": name}
    spec: JsonObject = {"source": source}
    uid = ""
    if number < PLACED:
        body = {**manifest(name, 0), "kind": kind}
        del body["spec"]["strategy"]
        body["spec"]["serviceName"] = name
        uid = sandbox.api.create(f"{APPS}/statefulsets", body)["metadata"]["uid"]
        labels = {"splitter.io/mode": "placement"}
        metadata = {"name": name, "labels": labels, "ownerReferences": [{**source, "uid": uid}]}
        spec["onDemandOrdinals"] = ORDINALS
    made = {"apiVersion": "splitter.io/v1alpha1", "kind": "Split", "metadata": metadata, "spec": spec}
    sandbox.api.create(SPLITS, made)
    return uid


def test_cost(stage: Stage) -> None:
    """Measure each kind of request with the policies and without, and show the difference."""
    stage.time(guarded=False)  # the first requests pay for connections and caches
    stage.seconds.clear()
    stage.cpu_s.clear()
    for _ in range(ROUNDS):
        stage.time(guarded=False)
        stage.guard(on=True)
        stage.time(guarded=True)
        stage.guard(on=False)
    durations = {_key(*which): Percentiles.of(seconds) for which, seconds in stage.seconds.items()}
    cpu_ms = {_key(*which): round(used_s * 1000 / ROUNDS / EACH, 2) for which, used_s in stage.cpu_s.items()}
    figures = {**durations, "api_server_cpu_ms_a_request": cpu_ms}
    write(RESULTS, {"machine": machine(), "splits": ALL_SPLITS, "in_placement_mode": PLACED, **figures})
    show(
        f"{ALL_SPLITS} Splits in the namespace, {PLACED} in placement mode: with the policies (without)",
        [
            row
            for name in (
                "plain_pod",
                "placed_on_spot",
                "placed_on_demand",
                "other_pod",
                "deployment",
                "source",
                "whole_source",
            )
            for row in _rows(name, durations, cpu_ms)
        ],
    )
    assert durations["placed_on_spot"].samples == ROUNDS * EACH


def _key(name: str, guarded: bool) -> str:
    return name if guarded else f"{name}_without"


def _rows(name: str, values: dict[str, Percentiles], cpu_ms: dict[str, float]) -> list[tuple[str, str, str]]:
    on, off, words = values[name], values[f"{name}_without"], name.replace("_", " ")
    goal = f"+ {GOAL_P99_MS:g} ms" if name.startswith("placed") else "nothing"
    return [
        (f"{words}, p50", f"{on.p50_ms:.1f} ms ({off.p50_ms:.1f})", ""),
        (f"{words}, p99", f"{on.p99_ms:.1f} ms ({off.p99_ms:.1f})", goal),
        (f"{words}, CPU", f"{cpu_ms[name]:.1f} ms ({cpu_ms[f'{name}_without']:.1f})", ""),
    ]

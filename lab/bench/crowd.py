"""Many workloads in a sandbox, split by a controller of its own, and ways to wait for them."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from lab.checkout import MANIFESTS
from lab.demo.controller import Controller
from lab.demo.watching import ScaleLog, Watch
from lab.sandbox import Instant, Sandbox
from lab.sandbox.waiting import wait_until

JsonObject = dict[str, Any]

WORKLOADS, REPLICAS, BASE = 50, 4, 1
NAMESPACE = "crowd"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
SPLITS = f"/apis/splitter.io/v1alpha1/namespaces/{NAMESPACE}/splits"
ACCOUNT = ("splitter-system", "splitter")

# Only what makes spot trusted again quickly between two samples; nothing that changes a reaction.
SETTINGS = {
    "SPLITTER_SOAK_S": "1",
    "SPLITTER_TUNING_SOAK_MAX_S": "1",
    "SPLITTER_TUNING_FAST_S": "1",
    "SPLITTER_TUNING_STEP_INTERVAL_S": "0",
    "SPLITTER_HTTP_PORT": "0",
    "SPLITTER_METRICS_PORT": "0",
}

_SETTLE_S = 240.0
_WRITERS = 8


@dataclass(frozen=True, slots=True)
class Size:
    """How many there are; `settle_s` bounds the wait for all of them."""

    workloads: int = WORKLOADS
    replicas: int = REPLICAS
    base: int = BASE
    on_demand_nodes: int = 4
    spot_nodes: int = 10
    settle_s: float = _SETTLE_S
    max_unavailable: str = "25%"
    requests_at_once: int | None = None  # that the API server serves; None: more than anybody sends


@dataclass
class Crowd:
    """The running sandbox, what is watched of it, and the machines."""

    size: Size
    sandbox: Sandbox
    deployments: Watch
    splits: Watch
    scales: ScaleLog
    spot_nodes: tuple[str, ...]
    first_split: list[Instant]
    created_s: float = 0.0  # until all pods of all workloads were available for the first time

    @property
    def names(self) -> list[str]:
        """Return the names of the workloads."""
        return [f"w{number:02}" for number in range(self.size.workloads)]

    def workloads_on(self, node: str) -> set[str]:
        """Return the workloads that have a pod on a node."""
        pods = self.sandbox.api.list(
            f"/api/v1/namespaces/{NAMESPACE}/pods",
            fields=f"spec.nodeName={node}",
            labels="splitter.io/pool=spot",
        )
        return {
            pod["metadata"]["labels"]["app"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
        }

    def label(self, *, enabled: bool = True) -> None:
        """Ask for all workloads to be split, or given back, as a user does."""
        asked = {"metadata": {"labels": {"splitter.io/split": "enabled" if enabled else None}}}
        with ThreadPoolExecutor(_WRITERS) as writers:
            paths = [f"{DEPLOYMENTS}/{name}" for name in self.names]
            list(writers.map(lambda path: self.sandbox.api.patch(path, asked, field_manager="bench"), paths))

    def wait_until_split(self, check: Controller) -> None:
        """Wait until each workload is divided as wanted and available, whatever was before."""
        self.wait_for(self.is_divided, "every workload to be divided as wanted", check.check)

    def wait_until_available(self, check: Callable[[], None]) -> None:
        """Wait until each workload that is not split has all its replicas."""
        replicas = self.size.replicas
        self.wait_for(lambda objects, name: _is_complete(objects.get(name), replicas), "the workloads", check)

    def wait_for(
        self, holds: Callable[[dict[str, JsonObject], str], bool], what: str, check: Callable[[], None]
    ) -> None:
        """Wait until something holds for each workload, of the Deployments as they are and its name."""

        def all_do() -> bool:
            objects = self.deployments.objects
            return all(holds(objects, name) for name in self.names)

        wait_until(all_do, what=what, deadline_s=self.size.settle_s, check=check)

    def set_images(self, image: str, holders: Sequence[str] = ("",)) -> None:
        """Give the Deployments with these suffixes, of each workload, another image, as a user does."""
        objects = self.deployments.objects

        def set_image(name: str) -> None:
            containers = objects[name]["spec"]["template"]["spec"]["containers"]
            changed = [{**container, "image": image} for container in containers]
            patch = {"spec": {"template": {"spec": {"containers": changed}}}}
            self.sandbox.api.patch(f"{DEPLOYMENTS}/{name}", patch, field_manager="bench")

        with ThreadPoolExecutor(_WRITERS) as writers:
            list(writers.map(set_image, [f"{name}{suffix}" for suffix in holders for name in self.names]))

    def wait_until_run(self, image: str, holders: Sequence[str], check: Callable[[], None]) -> None:
        """Wait until the Deployments with these suffixes, of each workload, run this image and no other."""

        def run_it(objects: dict[str, JsonObject], name: str) -> bool:
            return all(_runs(objects[f"{name}{suffix}"], image) for suffix in holders)

        self.wait_for(run_it, f"every workload to run {image}", check)

    def is_given_back(self, objects: dict[str, JsonObject], name: str) -> bool:
        """Whether a workload runs its own pods again, and no twin is left."""
        twins = (f"{name}-{pool}" in objects for pool in ("on-demand", "spot"))
        return _is_complete(objects[name], self.size.replicas) and not any(twins)

    def is_divided(self, objects: dict[str, JsonObject], name: str) -> bool:
        """Whether a workload is divided as wanted, available, and nothing of it is on its way."""
        size = self.size
        wanted = (("on-demand", size.base), ("spot", size.replicas - size.base))
        return all(_is_complete(objects.get(f"{name}-{pool}"), count) for pool, count in wanted)


def _is_complete(raw: JsonObject | None, replicas: int) -> bool:
    if raw is None or raw["spec"]["replicas"] != replicas:
        return False
    status = raw.get("status", {})
    counts = {status.get(count, 0) for count in ("replicas", "availableReplicas")}
    return status.get("observedGeneration") == raw["metadata"]["generation"] and counts == {replicas}


def _runs(raw: JsonObject, image: str) -> bool:
    status, replicas = raw.get("status", {}), raw["spec"]["replicas"]
    counts = {status.get(count, 0) for count in ("replicas", "updatedReplicas", "availableReplicas")}
    asked = [container["image"] for container in raw["spec"]["template"]["spec"]["containers"]]
    seen = status.get("observedGeneration") == raw["metadata"]["generation"]  # else these are older counts
    return seen and asked == [image] and counts == {replicas}


def deployment(
    name: str, *, replicas: int, split: bool, base: int = BASE, max_unavailable: str = "25%"
) -> JsonObject:
    """Return a small Deployment whose pods become ready after a second."""
    labels = {"app": name}
    metadata: JsonObject = {
        "name": name,
        "labels": {**labels, "splitter.io/split": "enabled"} if split else labels,
        "annotations": {"splitter.io/on-demand-base": str(base)},
    }
    container = {
        "name": "app",
        "image": "registry.example/crowd/app:1",
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}},
    }
    return {
        "metadata": metadata,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": max_unavailable}},
            "template": {
                "metadata": {"labels": labels, "annotations": {"sandbox.splitter.io/ready-after": "1s"}},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
            },
        },
    }


def must_be_loopback(url: str) -> None:
    """Raise AssertionError for any API server but one on this machine: a cluster would suffer."""
    host = urlsplit(url).hostname or ""
    if host != "localhost" and not (_is_address(host) and ip_address(host).is_loopback):
        raise AssertionError(f"benchmarks run against a sandbox on loopback and nothing else, not {url}.")


def _is_address(host: str) -> bool:
    with suppress(ValueError):
        ip_address(host)
        return True
    return False


def installed(sandbox: Sandbox) -> None:
    """Install what splitter needs, and make the namespace of the workloads."""
    for name in ("crd.yaml", "rbac.yaml"):
        sandbox.kubectl("apply", "-f", str(MANIFESTS / name))
    sandbox.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/splits.splitter.io")
    sandbox.kubectl("create", "namespace", NAMESPACE)
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
    wait_until(lambda: sandbox.api.find(account) is not None, what="the service account", deadline_s=30)


@contextmanager
def crowd(size: Size = Size(), *, labelled: bool = True) -> Iterator[Crowd]:
    """Yield a sandbox with splitter installed, not yet running, and workloads, available."""
    with Sandbox.start(progress=print, requests_at_once=size.requests_at_once) as sandbox:
        must_be_loopback(sandbox.url)
        sandbox.fleet.add("on-demand", size.on_demand_nodes, pods=250)
        spot_nodes = sandbox.fleet.add("spot", size.spot_nodes)
        installed(sandbox)

        scales, first_split = ScaleLog(), list[Instant]()

        def split_seen(at: Instant, _raw: JsonObject, _deleted: bool) -> None:
            if not first_split:
                first_split.append(at)

        with (
            Watch(sandbox.api, DEPLOYMENTS, scales.see) as deployments,
            Watch(sandbox.api, SPLITS, split_seen) as splits,
        ):
            result = Crowd(size, sandbox, deployments, splits, scales, spot_nodes, first_split)
            began = Instant.now()
            with ThreadPoolExecutor(_WRITERS) as writers:
                manifests = [
                    deployment(
                        name,
                        replicas=size.replicas,
                        split=labelled,
                        base=size.base,
                        max_unavailable=size.max_unavailable,
                    )
                    for name in result.names
                ]
                list(writers.map(lambda manifest: sandbox.api.create(DEPLOYMENTS, manifest), manifests))
            result.wait_until_available(sandbox.check)
            result.created_s = round(Instant.now().monotonic_s - began.monotonic_s, 1)
            yield result

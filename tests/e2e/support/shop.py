"""A namespace with a user's workloads: what a user does to them, and what can be seen from outside.

Nothing here reads what splitter says about itself, except `split` and `events`, for tests of its reports.
"""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from e2e.support.controller import SHORT
from e2e.support.planted import ANNOTATIONS, in_container
from splitter.demo.watching import Watch
from splitter.sandbox import PatchKind, Sandbox
from splitter.sandbox.asked import Asked
from splitter.sandbox.errors import ApiError, SandboxError
from splitter.sandbox.instants import Instant
from splitter.sandbox.recorder import Recorder
from splitter.sandbox.timeline import Between, Timeline
from splitter.sandbox.waiting import wait_until

JsonObject = dict[str, Any]

LABEL = "splitter.io/split"
POOL = "splitter.io/pool"
CAPACITY = "karpenter.sh/capacity-type"
REVISION = "deployment.kubernetes.io/revision"
# For everything that takes several rounds of new pods; generous, since the machine may be busy.
DEADLINE_S = 90.0
# For what nobody tells splitter of: it looks again by itself a little later.
BY_ITSELF_S = float(SHORT["LOOK_AGAIN_S"]) + DEADLINE_S
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Where kinds are that are applied again and again.
_COLLECTIONS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "Service": "/api/v1/namespaces/{}/services",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
}
_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Shape:
    """How many pods of each pool serve, and how many pods there are in all (terminating ones left out)."""

    on_demand: int
    spot: int
    total: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A user's Deployment as it was before splitter touched it: what must be there again afterwards."""

    spec: JsonObject
    labels: JsonObject
    annotations: JsonObject
    managers: frozenset[str]


class Watched:
    """The recorded pods of one workload since a moment."""

    def __init__(self, recorder: Recorder, labels: Mapping[str, str], asked: Asked | None = None) -> None:
        self._recorder = recorder
        self._labels = labels
        self._asked = asked or Asked()
        self.since = Instant.now()

    @property
    def timeline(self) -> Timeline:
        """Return what has happened so far."""
        return self._recorder.timeline(labels=self._labels)

    def lowest(self, since: Instant | None = None) -> int:
        """Return the fewest pods that were available at any moment since then."""
        return self.timeline.lowest_available(self._between(since))

    def highest(self, since: Instant | None = None) -> int:
        """Return the most pods that existed at any moment since then, without those terminating."""
        return self.timeline.highest_total(self._between(since), with_terminating=False)

    def available_on(self, pool: str) -> int:
        """Return how many pods on machines of a pool are available, as far as the recorder has heard."""
        on_pool = self._recorder.timeline(labels=self._labels, where=lambda pod: pod.node.startswith(pool))
        return on_pool.available.at(Instant.now())

    def highest_asked(self) -> int:
        """Return the most replicas that were asked for at any moment: what bounds a rollout."""
        return self._asked.highest(self._labels["app"], self.since)

    def _between(self, since: Instant | None) -> Between:
        return Between(since or self.since, Instant.now())


class Shop:
    """One namespace of a test's own."""

    def __init__(self, sandbox: Sandbox, namespace: str, check: Callable[[], None]) -> None:
        self.sandbox = sandbox
        self.namespace = namespace
        self.check = check
        self._apps = f"/apis/apps/v1/namespaces/{namespace}"

    # --- what a user does -------------------------------------------------------------------------

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in this namespace."""
        return self.sandbox.kubectl("--namespace", self.namespace, *arguments, stdin=stdin)

    def apply(self, manifest: JsonObject) -> None:
        """Apply a manifest as kubectl does; what is not there yet, without a process of its own."""
        if manifest["kind"] not in _COLLECTIONS or not self._created(manifest):
            self.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))

    def _created(self, manifest: JsonObject) -> bool:
        """Create what an apply would; whether it was not there."""
        applied = json.dumps(manifest, separators=(",", ":"), sort_keys=True) + "\n"
        metadata = manifest["metadata"]
        annotations = {**metadata.get("annotations", {}), LAST_APPLIED: applied}
        body = {**manifest, "metadata": {**metadata, "annotations": annotations}}
        path = _COLLECTIONS[manifest["kind"]].format(self.namespace)
        query = {"fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict"}
        try:
            self.sandbox.api.request("POST", path, query=query, body=body)
        except ApiError as refusal:
            if refusal.reason == "AlreadyExists":
                return False
            raise
        return True

    def dry_run(self, manifest: JsonObject) -> None:
        """Ask whether it may be created, in a dry run. Raises ApiError when not."""
        path = _COLLECTIONS[manifest["kind"]].format(self.namespace)
        self.sandbox.api.request("POST", path, query={"dryRun": "All"}, body=manifest)

    def refusal(self, manifest: JsonObject) -> str:
        """Return what is said in a dry run to one who would create it; empty where it may be created."""
        try:
            self.dry_run(manifest)
        except ApiError as refusal:
            return str(refusal)
        return ""

    def deploy(
        self,
        name: str = "web",
        replicas: int = 4,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        **spec: Any,  # noqa: ANN401 (what `manifest` takes)
    ) -> None:
        """Apply a Deployment (by default: surge 2, none unavailable) and wait until all is available."""
        self.apply(manifest(name, replicas, annotations=annotations, labels=labels, **spec))
        self.wait_rolled_out(name)

    def wait_rolled_out(self, name: str = "web") -> None:
        """Wait until a Deployment that is not split has all its replicas, as kubectl sees it."""
        self.until(lambda: is_rolled_out(self.deployment(name)), f"{name} to be rolled out")

    # What kubectl sends for these, under kubectl's names, without a process of its own for each: they are in
    # every test, and take kubectl a tenth of a second of CPU. The demo and the tutorial type them.

    def label(self, name: str = "web", value: str | None = "enabled") -> None:
        """Ask for the split, as `kubectl label` does."""
        self._patch(name, {"metadata": {"labels": {LABEL: value}}}, "kubectl-label")

    def unlabel(self, name: str = "web") -> None:
        """Ask to have it back."""
        self.label(name, value=None)

    def annotate(self, name: str = "web", **policy: str) -> None:
        """Write annotations of splitter's: `spot_percent="50"` is splitter.io/spot-percent=50."""
        written = {f"splitter.io/{key.replace('_', '-')}": value for key, value in policy.items()}
        self._patch(name, {"metadata": {"annotations": written}}, "kubectl-annotate")

    def scale(self, replicas: int, name: str = "web") -> None:
        """Scale, as `kubectl scale` does."""
        self._patch(f"{name}/scale", {"spec": {"replicas": replicas}}, "kubectl")

    def delete(self, name: str = "web", propagation: str = "Background") -> None:
        """Delete a Deployment, as `kubectl delete` does, and wait until it has gone."""
        path, uid = f"{self._apps}/deployments/{name}", self.deployment(name)["metadata"]["uid"]
        self.sandbox.api.request("DELETE", path, body={"propagationPolicy": propagation})

        def is_gone() -> bool:  # there may be another one of this name at once
            raw = self.sandbox.api.find(path)
            return raw is None or raw["metadata"]["uid"] != uid

        self.until(is_gone, f"{name} to go")

    def set_image(self, image: str, name: str = "web") -> None:
        """Give the container another image, as `kubectl set image` does."""
        containers = [{"name": "web", "image": image}]
        patch = {"spec": {"template": {"spec": {"containers": containers}}}}
        path = f"{self._apps}/deployments/{name}"
        self.sandbox.api.patch(path, patch, kind=PatchKind.STRATEGIC, field_manager="kubectl-set")

    def _patch(self, name: str, patch: JsonObject, manager: str) -> None:
        self.sandbox.api.patch(f"{self._apps}/deployments/{name}", patch, field_manager=manager)

    # --- what can be seen -------------------------------------------------------------------------

    def deployment(self, name: str = "web") -> JsonObject:
        """Return a Deployment."""
        return self.sandbox.api.get(f"{self._apps}/deployments/{name}")

    def deployments(self) -> set[str]:
        """Return the names of all Deployments."""
        return {raw["metadata"]["name"] for raw in self.sandbox.api.list(f"{self._apps}/deployments")}

    def replica_sets(self, name: str = "web") -> list[JsonObject]:
        """Return the ReplicaSets that belong to a Deployment in any way, twins' own left out."""
        uid = self.deployment(name)["metadata"]["uid"]
        collected = self.sandbox.api.list(f"{self._apps}/replicasets")
        return [
            rs
            for rs in collected
            if any(ref["uid"] == uid for ref in rs["metadata"].get("ownerReferences", []))
        ]

    def pods(self, name: str = "web") -> list[JsonObject]:
        """Return the pods of a workload, of all holders, terminating ones left out."""
        collected = self.sandbox.api.list(f"/api/v1/namespaces/{self.namespace}/pods", labels=f"app={name}")
        return [pod for pod in collected if "deletionTimestamp" not in pod["metadata"]]

    def has_terminating(self) -> bool:
        """Whether a pod, of any workload here, is being deleted."""
        pods = self.sandbox.api.list(f"/api/v1/namespaces/{self.namespace}/pods")
        return any("deletionTimestamp" in pod["metadata"] for pod in pods)

    def pod_uids(self, name: str = "web") -> set[str]:
        """Return the UIDs of a workload's pods: who was replaced has another one."""
        return {pod["metadata"]["uid"] for pod in self.pods(name)}

    def images(self, name: str = "web") -> Counter[str]:
        """Count a workload's pods by the image of their first container."""
        return Counter(pod["spec"]["containers"][0]["image"] for pod in self.pods(name))

    def shape(self, name: str = "web") -> Shape:
        """Count a workload's ready pods by the nodes they stand on."""
        nodes = {raw["metadata"]["name"]: raw for raw in self.sandbox.api.list("/api/v1/nodes")}
        pods = self.pods(name)
        pools = [
            nodes[node]["metadata"]["labels"][CAPACITY]
            for pod in pods
            if _holds(pod, "Ready")
            and (node := pod["spec"].get("nodeName")) in nodes
            and _holds(nodes[node], "Ready")
        ]
        return Shape(pools.count("on-demand"), pools.count("spot"), len(pods))

    def nodes(self, name: str = "web") -> list[str]:
        """Return the nodes that a workload's pods stand on, one for each pod."""
        return [node for pod in self.pods(name) if (node := pod["spec"].get("nodeName"))]

    def available_off(self, node: str, name: str = "web") -> int:
        """Count a workload's ready pods that do not stand on a node."""
        return sum(_holds(pod, "Ready") for pod in self.pods(name) if pod["spec"].get("nodeName") != node)

    def bound_to_vanished(self) -> int:
        """Count the pods, of any workload here, bound to nodes that are no more and not yet being deleted."""
        return len(self._bound_to_vanished())

    def _bound_to_vanished(self) -> list[str]:
        nodes = {raw["metadata"]["name"] for raw in self.sandbox.api.list("/api/v1/nodes")}
        pods = self.sandbox.api.list(f"/api/v1/namespaces/{self.namespace}/pods")
        left = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return [
            pod["metadata"]["name"] for pod in left if pod["spec"].get("nodeName", "") not in nodes | {""}
        ]

    def clear_away_the_dead(self) -> None:
        """Delete the pods bound to nodes that are no more, as Kubernetes does about a minute later."""
        for name in self._bound_to_vanished():
            path = f"/api/v1/namespaces/{self.namespace}/pods/{name}"
            self.sandbox.api.delete(path, grace_period_s=0, missing_ok=True)

    def twins(self, name: str = "web", kind: str = "deployments") -> tuple[int, int] | None:
        """Return the replicas asked for on the on-demand and the spot twin, None without twins."""
        counts = [raw["spec"]["replicas"] for raw in self._twins(name, kind)]
        return (counts[0], counts[1]) if len(counts) == 2 else None

    def _twins(self, name: str, kind: str = "deployments") -> list[JsonObject]:
        """Return the on-demand and the spot twin, as far as they are there, by one request."""
        by_name = {raw["metadata"]["name"]: raw for raw in self.sandbox.api.list(f"{self._apps}/{kind}")}
        return [by_name[twin] for twin in (f"{name}-on-demand", f"{name}-spot") if twin in by_name]

    def split(self, name: str = "web") -> JsonObject | None:
        """Return the Split."""
        return self.sandbox.api.find(f"/apis/splitter.io/v1alpha1/namespaces/{self.namespace}/splits/{name}")

    def status(self, name: str = "web") -> JsonObject:
        """Return the status of the Split, {} while there is none."""
        status: JsonObject = (self.split(name) or {}).get("status") or {}
        return status

    def events(self, reason: str, name: str = "web") -> list[str]:
        """Return the notes of splitter's Events about a Deployment."""
        collected = self.sandbox.api.list(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
        return [
            raw["note"] for raw in collected if raw["reason"] == reason and raw["regarding"]["name"] == name
        ]

    def snapshot(self, name: str = "web") -> Snapshot:
        """Return what must be the same again when splitter has left."""
        raw = self.deployment(name)
        metadata = raw["metadata"]
        annotations = {key: text for key, text in metadata.get("annotations", {}).items() if key != REVISION}
        managers = frozenset(entry["manager"] for entry in metadata["managedFields"])
        return Snapshot(raw["spec"], metadata.get("labels", {}), annotations, managers)

    def not_running(self) -> str:
        """Tell what each Split says, and of each pod that is not ready what it and KWOK have said."""
        kwok = (self.sandbox.logs / "kwok.log").read_text(errors="replace").splitlines()
        splits = self.sandbox.api.list(f"/apis/splitter.io/v1alpha1/namespaces/{self.namespace}/splits")
        reported = [f"{split['metadata']['name']}: {split.get('status')}" for split in splits]
        for raw in self.sandbox.api.list(f"/api/v1/namespaces/{self.namespace}/pods"):
            conditions = raw["status"].get("conditions", [])
            if not any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
                name, node = raw["metadata"]["name"], raw["spec"].get("nodeName", "no node")
                about = [line for line in kwok if name in line or f"node={node}" in line]
                reported += [f"{name} on {node}: {raw['metadata']} {raw['status']}", *about[-20:]]
        return "\n".join(reported) or "all pods are ready"

    # --- waiting ----------------------------------------------------------------------------------

    def until(self, look: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
        """Wait for a condition, as long as the controller lives; what is not there yet does not meet it."""

        def is_met() -> bool:
            try:
                return bool(look())
            except (KeyError, IndexError):  # a field of a status that is not written yet
                return False
            except ApiError as refusal:
                if refusal.status != HTTPStatus.NOT_FOUND:
                    raise
                return False

        wait_until(is_met, what=f"{what} in {self.namespace}", deadline_s=deadline_s, check=self.check)

    def reported(self, reason: str, text: str = "", name: str = "web") -> str:
        """Wait for an Event of splitter's about a Deployment with this text in its note; return the note.

        Events come behind the moves that they tell of, the more so in an emergency.
        """
        return wait_until(
            lambda: next((note for note in self.events(reason, name) if text in note), None),
            what=f"the Event {reason} about {name} with {text!r} in {self.namespace}",
            deadline_s=DEADLINE_S,
            check=self.check,
        )

    def says(self, reason: str, text: str = "", name: str = "web") -> JsonObject:
        """Wait until the Split says this reason with this text in its message; return its status."""

        def status() -> JsonObject | None:
            result = self.status(name)
            return result if result.get("reason") == reason and text in result["message"] else None

        return wait_until(
            status,
            what=f"the Split of {name} to say {reason} with {text!r} in {self.namespace}",
            deadline_s=DEADLINE_S,
            check=self.check,
        )

    def wait_posted(self) -> None:
        """Wait until every Event that was told before now is there: whatever is not has never been told.

        Events are posted in the order in which they are told, so one more is asked for and waited for.
        """
        name = f"posted-{next(_NUMBERS)}"
        self.apply(manifest(name, 0, labels={LABEL: "neither"}))
        self.reported("InvalidLabel", name=name)
        self.delete(name, "Foreground")
        self.until(lambda: self.split(name) is None, f"the report on {name} to go")

    def wait_steady(self, name: str = "web") -> None:
        """Wait until the Split says that all is steady, of the source as it is now."""

        def is_steady() -> bool:
            generation = self.deployment(name)["metadata"]["generation"]
            status = self.status(name)
            return status.get("state") == "Steady" and status.get("sourceGeneration") == generation

        self.until(is_steady, f"the Split of {name} to say that all is steady")

    def wait_split(
        self, on_demand: int, spot: int, name: str = "web", deadline_s: float = DEADLINE_S
    ) -> None:
        """Wait until the twins ask for just that, and their pods stand so, all ready and none beside."""
        wanted = Shape(on_demand, spot, on_demand + spot)

        def is_split() -> bool:  # the pods last: who has them all keeps them
            asked = self.twins(name) == (on_demand, spot)
            return asked and self.is_handed_over(name) and self.shape(name) == wanted

        self.until(is_split, f"{name} to be {on_demand} on on-demand and {spot} on spot", deadline_s)

    def is_handed_over(self, name: str = "web") -> bool:
        """Whether the twins have all pods: before, those of the source may stand where the twins' will."""
        paused = any(raw["spec"].get("paused") for raw in self._twins(name))
        return not paused and all(POOL in pod["metadata"]["labels"] for pod in self.pods(name))

    def wait_given_back(self, name: str = "web", ending: Collection[str] = ()) -> None:
        """Wait until nothing of splitter's is left beside a Deployment.

        Except `ending`, names of what the garbage collector may not finish yet: it retries after twice as
        long each time.
        """

        def is_back() -> bool:
            mark = self.deployment(name)["metadata"].get("annotations", {}).get("splitter.io/taken-over")
            return self.split(name) is None and mark is None and self.leftovers(name) <= set(ending)

        self.until(is_back, f"{name} to be given back")
        self.wait_rolled_out(name)

    def leftovers(self, name: str = "web") -> set[str]:
        """Return the names of twins, and of the Deployment's ReplicaSets that it does not control."""
        result = self.deployments() & {f"{name}-on-demand", f"{name}-spot"}
        for rs in self.replica_sets(name):
            if LABEL in rs["metadata"].get("labels", {}) or not rs["metadata"]["ownerReferences"][0].get(
                "controller"
            ):
                result.add(rs["metadata"]["name"])
        return result

    def strays(self, name: str = "web") -> set[str]:
        """Return, as kind/name, what does not hang on the Deployment that has this name now.

        Of all Deployments, ReplicaSets, Splits and pods of the namespace, so there must be one workload in
        it; found by owners' UIDs alone, whatever the labels say. What is being deleted is left out.
        """
        splits = f"/apis/splitter.io/v1alpha1/namespaces/{self.namespace}/splits"
        paths = (f"{self._apps}/deployments", splits, f"{self._apps}/replicasets")
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        kin, strangers = {self.deployment(name)["metadata"]["uid"]}, set()
        for path in (*paths, pods):  # owners before what they own
            for raw in self.sandbox.api.list(path):
                metadata = raw["metadata"]
                owners = {ref["uid"] for ref in metadata.get("ownerReferences", ())}
                if metadata["uid"] in kin or owners & kin:
                    kin.add(metadata["uid"])
                elif "deletionTimestamp" not in metadata:
                    strangers.add(f"{path.rsplit('/', 1)[-1]}/{metadata['name']}")
        return strangers

    def wait_no_strays(self, name: str = "web") -> None:
        """Wait until nothing is left that does not hang on the Deployment that has this name now.

        A ReplicaSet without pods goes a moment after the twin that owned it: Kubernetes collects it.
        """
        left: set[str] = set()

        def none() -> bool:
            left.clear()
            left.update(self.strays(name))
            return not left

        try:
            self.until(none, f"all to be gone that is not of {name}")
        except SandboxError as late:
            late.add_note(f"still there: {', '.join(sorted(left))}")
            raise

    def record(self) -> Recorder:
        """Return a recorder of this namespace's pods; use it in a `with`."""
        return self.sandbox.record(self.namespace)

    @contextmanager
    def watch(self, name: str = "web") -> Iterator[Watched]:
        """Record the pods of a workload, and what its ReplicaSets are asked for."""
        asked = Asked()
        with Watch(self.sandbox.api, f"{self._apps}/replicasets", asked.see), self.record() as recorder:
            yield Watched(recorder, {"app": name}, asked)


def is_rolled_out(raw: JsonObject) -> bool:
    """Whether a Deployment has all its replicas, of its template of now, available, and no others."""
    status, wanted = raw.get("status", {}), raw["spec"]["replicas"]
    seen = status.get("observedGeneration", 0) >= raw["metadata"]["generation"]
    counts = (status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas"))
    return seen and all(count == wanted for count in counts)


def _holds(raw: JsonObject, kind: str) -> bool:
    conditions = raw["status"].get("conditions", [])
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)


def manifest(
    name: str,
    replicas: int,
    *,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    surge: int | str = 2,
    unavailable: int | str = 0,
    image: str = "web:1",
    ready_after: str = "500ms",
    ends_after: str = "500ms",
    **spec: object,
) -> JsonObject:
    """Return a Deployment as a user writes it; further words are fields of its spec."""
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    requests = {"cpu": "100m", "memory": "64Mi"}
    pod = {
        "terminationGracePeriodSeconds": 5,
        "containers": [
            {"name": "web", "image": image, "resources": {"requests": requests}, **in_container()}
        ],
    }
    reported = {
        "sandbox.splitter.io/ready-after": ready_after,
        "sandbox.splitter.io/ends-after": ends_after,
        **ANNOTATIONS,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "labels": {"app": name, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {"metadata": {"labels": {"app": name}, "annotations": reported}, "spec": pod},
            **spec,
        },
    }

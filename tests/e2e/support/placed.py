"""A database-shaped StatefulSet in placement mode, and what its recorded pods say about its quorum."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from e2e.support.database import NAME, Database, manifest, service
from e2e.support.shop import CAPACITY, DEADLINE_S, POOL, JsonObject, Shop, Watched
from splitter.bundled import bundled_path
from splitter.sandbox import PatchKind
from splitter.sandbox.instants import Instant
from splitter.sandbox.machines import rfc3339
from splitter.sandbox.versions import kubernetes_version
from splitter.sandbox.waiting import wait_until

# Older ones have no MutatingAdmissionPolicy in admissionregistration.k8s.io/v1.
PLACES = tuple(map(int, kubernetes_version().split("."))) >= (1, 36)
needs_placement = pytest.mark.skipif(not PLACES, reason="this Kubernetes places no pods: needs 1.36")
POLICY = str(bundled_path("manifests/admission/placement.yaml"))
CLAIM: JsonObject = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


class Placed(Database):
    """The StatefulSet `db`, which is split where its pods are born."""

    def create(
        self,
        replicas: int = 5,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,  # noqa: ANN401
    ) -> None:
        """Apply it with its headless Service, and wait until all is ready."""
        self.shop.apply(service())
        self.shop.apply(manifest(replicas, annotations=annotations or {}, **spec))
        self.wait_rolled_out()

    def budget(self, name: str = NAME, **spec: object) -> None:
        """Apply a PodDisruptionBudget over its pods."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": NAME}}, **spec},
        }
        self.shop.apply(body)

    def scale(self, replicas: int) -> None:
        """Scale as anybody does."""
        self.shop.kubectl("scale", "statefulset", NAME, f"--replicas={replicas}")

    def ordinals(self) -> list[int] | None:
        """Return the ordinals in force, None without them."""
        raw: list[int] | None = ((self.split() or {}).get("spec") or {}).get("onDemandOrdinals")
        return raw

    @property
    def placement(self) -> str:
        """Return where that is which the policy reads."""
        return f"/apis/splitter.io/v1alpha1/namespaces/{self.shop.namespace}/placements/splitter-placement"

    def placed_by(self) -> list[int] | None:
        """Return the ordinals that the policy goes by, None without any."""
        result = self.shop.sandbox.api.find(self.placement)
        sets = result["spec"]["statefulSets"].values() if result is not None else ()
        runs = next((one["onDemandOrdinals"] for one in sets if one["name"] == NAME), None)
        return None if runs is None else [k for run in runs for k in range(run["first"], run["last"] + 1)]

    def is_mutated(self) -> bool:
        """Whether the API server would place a pod of it, which knows of a policy and its end a bit later."""
        uid = self.source()["metadata"]["uid"]
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME, "uid": uid, "controller": True}
        labels = {"apps.kubernetes.io/pod-index": "0"}
        metadata = {"name": f"{NAME}-tried", "labels": labels, "ownerReferences": [owner]}
        spec = {"containers": [{"name": "db", "image": "db:1"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        path = f"/api/v1/namespaces/{self.shop.namespace}/pods"
        answer = self.shop.sandbox.api.request("POST", path, query={"dryRun": "All"}, body=body)
        return POOL in answer["metadata"]["labels"]

    def uids(self) -> dict[str, str]:
        """Return the UID of each pod: who restarted has another one."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.shop.pods(NAME)}

    def pools(self) -> dict[int, str]:
        """Return where each ready member stands."""
        nodes = {raw["metadata"]["name"]: raw for raw in self.shop.sandbox.api.list("/api/v1/nodes")}
        return {
            int(pod["metadata"]["name"].rpartition("-")[2]): nodes[node]["metadata"]["labels"][CAPACITY]
            for pod in self.shop.pods(NAME)
            if (node := pod["spec"].get("nodeName")) in nodes and is_ready(pod) and is_ready(nodes[node])
        }

    def born(self) -> dict[int, str | None]:
        """Return for which pool each pod was made."""
        return {
            int(pod["metadata"]["name"].rpartition("-")[2]): pod["metadata"]["labels"].get(POOL)
            for pod in self.shop.pods(NAME)
        }

    def node_of(self, ordinal: int) -> str:
        """Return the node of a member."""
        path = f"/api/v1/namespaces/{self.shop.namespace}/pods/{NAME}-{ordinal}"
        node: str = self.shop.sandbox.api.get(path)["spec"]["nodeName"]
        return node

    def falls_ill(self, ordinal: int) -> None:
        """Have a member's readiness probe fail, as far as anyone can see."""
        self._probed(ordinal, "False")

    def recovers(self, ordinal: int) -> None:
        """Have it succeed again."""
        self._probed(ordinal, "True")

    def _probed(self, ordinal: int, status: str) -> None:
        path = f"/api/v1/namespaces/{self.shop.namespace}/pods/{NAME}-{ordinal}/status"
        now = rfc3339(datetime.now(UTC))
        conditions = [
            {"type": kind, "status": status, "lastTransitionTime": now}
            for kind in ("Ready", "ContainersReady")
        ]
        body = {"status": {"conditions": conditions}}
        self.shop.sandbox.api.patch(path, body, kind=PatchKind.STRATEGIC, field_manager="kubelet")

    def tells(self, text: str) -> None:
        """Wait until the Split's message has this text, beside whatever else."""
        self.shop.until(lambda: text in self.status().get("message", ""), f"the Split to say {text!r}")

    def placeholders(self) -> list[JsonObject]:
        """Return the pods that hold room."""
        path = f"/api/v1/namespaces/{self.shop.namespace}/pods"
        return self.shop.sandbox.api.list(path, labels="splitter.io/placeholder")

    def wait_placed(self, on_demand: list[int], spot: list[int]) -> None:
        """Wait until all members stand as said, ready, with just these ordinals in force."""
        self.shop.until(
            lambda: self.is_placed(on_demand, spot),
            f"{NAME} to stand with {on_demand} on on-demand and {spot} on spot",
        )

    def is_placed(self, on_demand: list[int], spot: list[int]) -> bool:
        """Whether they do; while none is on spot, a placeholder may try it."""
        wanted = dict.fromkeys(on_demand, "on-demand") | dict.fromkeys(spot, "spot")
        at_rest = not spot or not self.placeholders()
        return self.placed_by() == self.ordinals() == on_demand and self.pools() == wanted and at_rest

    def wait_unplaced(self) -> None:
        """Wait until nothing of splitter's is left."""
        self.shop.until(self.is_unplaced, f"{NAME} to be let go")

    def is_unplaced(self) -> bool:
        """Whether nothing of splitter's is left in the namespace."""
        left = self.shop.sandbox.api.find(self.placement)
        return self.split() is None and not self.placeholders() and left is None

    def seconds_until_whole(self, watched: Watched, began: Instant, replicas: int = 5) -> float:
        """Return how long after an instant all were recorded as available, and stayed it until now.

        What is recorded comes by a watch, so the API server may know it a little earlier.
        """

        def whole_again() -> float | None:
            steps = watched.timeline.available
            since = [
                at
                for at, before, now in zip(steps.times[1:], steps.values, steps.values[1:], strict=False)
                if before < replicas <= now and at >= began.monotonic_s
            ]
            is_whole = steps.values[-1] >= replicas and len(self.pools()) == replicas
            return since[-1] - began.monotonic_s if since and is_whole else None

        return wait_until(
            whole_again, what="all to be ready again", deadline_s=DEADLINE_S, check=self.shop.check
        )


def volume(shop: Shop, ordinal: int, terms: list[dict[str, Any]] | None) -> str:
    """Make the volume of one member, as a provisioner would, and return its name."""
    name = f"{shop.namespace}-{ordinal}"
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand",
        "hostPath": {"path": f"/data/{ordinal}"},
        "claimRef": {"namespace": shop.namespace, "name": f"data-db-{ordinal}"},
    }
    if terms is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
    shop.apply(body)
    return name


def is_ready(raw: JsonObject) -> bool:
    """Whether a pod or a node is ready."""
    conditions = raw["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def said(status: JsonObject) -> str:
    """Return what the Split says, for a failing test."""
    return json.dumps({key: status.get(key) for key in ("state", "reason", "message")})

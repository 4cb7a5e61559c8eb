"""A cluster of workloads without the label, in the world's API server."""

from datetime import UTC, datetime, timedelta
from typing import Any

from world.api import Api
from world.kinds import NODES, Raw, Ref

BOUND = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
SPOT = {"eks.amazonaws.com/capacityType": "SPOT"}
APPS, CORE = "/apis/apps/v1", "/api/v1"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
_POLICY = "splitter-placement"


def instant(seconds: float) -> str:
    """Return the instant so many seconds after its pods were bound."""
    return (BOUND + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class World:
    """Such a cluster; `api` says what is refused, and what was asked."""

    def __init__(self) -> None:
        """Hold nothing; no policy places pods."""
        self.api = Api()
        self.api.missing |= {"admissionregistration.k8s.io", "keda.sh"}

    def add(self, collection: str, name: str, *, namespace: str = "shop", **fields: Any) -> Raw:  # noqa: ANN401 (of an object)
        """Add an object; `metadata` in the fields is added to its own."""
        metadata = {"creationTimestamp": instant(0), **fields.pop("metadata", {})}
        return self.api.objects.put_at(Ref(collection, namespace, name), {"metadata": metadata, **fields})

    def remove_nodes(self) -> None:
        """Have none."""
        for raw in self.api.objects.all(NODES):
            self.api.objects.forget(Ref(NODES, "", raw["metadata"]["name"]).path)

    def add_namespace(self, name: str, **annotations: str) -> None:
        """Add a Namespace."""
        self.add(f"{CORE}/namespaces", name, namespace="", metadata={"annotations": annotations})

    def add_nodes(
        self, on_demand: int = 1, spot: int = 1, provider: str = "gce", age_s: float | None = None
    ) -> None:
        """Add nodes: `on-demand-0`, `spot-0` and so on, that came so long ago; None: when pods were bound."""
        since = BOUND if age_s is None else datetime.now(UTC) - timedelta(seconds=age_s)
        for pool, count, labels in (("on-demand", on_demand, {}), ("spot", spot, SPOT)):
            for number in range(count):
                self.add(
                    f"{CORE}/nodes",
                    f"{pool}-{number}",
                    namespace="",
                    metadata={"labels": labels, "creationTimestamp": f"{since:%Y-%m-%dT%H:%M:%SZ}"},
                    spec={"providerID": f"{provider}:///{pool}-{number}"},
                    status={"conditions": [{"type": "Ready", "status": "True"}]},
                )

    def add_deployment(
        self,
        name: str,
        replicas: int = 4,
        *,
        namespace: str = "shop",
        start_s: float | None = 10,
        on_spot: int = 0,
        spec: Raw | None = None,
        **metadata: Any,  # noqa: ANN401 (of an object)
    ) -> Raw:
        """Add a Deployment that runs, its ReplicaSet and its pods; without `start_s` no pod is Ready."""
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate"},
            "template": _template(name),
            **(spec or {}),
        }
        result = self.add(
            f"{APPS}/deployments",
            name,
            namespace=namespace,
            metadata=metadata,
            spec=spec,
            status=_status(replicas),
        )
        owner = {"kind": "Deployment", "name": name, "uid": result["metadata"]["uid"], "controller": True}
        hashed = {"app": name, "pod-template-hash": "1"}
        held = self.add(
            f"{APPS}/replicasets",
            f"{name}-1",
            namespace=namespace,
            metadata={"ownerReferences": [owner], "labels": hashed},
            spec={
                "replicas": replicas,
                "selector": {"matchLabels": hashed},
                "template": {**_template(name), "metadata": {"labels": hashed}},
            },
            status={"replicas": replicas, "availableReplicas": replicas},
        )
        holder = {"kind": "ReplicaSet", "name": f"{name}-1", "uid": held["metadata"]["uid"]}
        for number in range(replicas):
            self._add_pod(f"{name}-1-{number}", namespace, holder, start_s, spot=number < on_spot)
        return result

    def add_stateful_set(
        self,
        name: str,
        replicas: int = 3,
        *,
        namespace: str = "shop",
        spec: Raw | None = None,
        **metadata: Any,  # noqa: ANN401 (of an object)
    ) -> Raw:
        """Add a StatefulSet that runs on on-demand, and its pods."""
        result = self.add(
            f"{APPS}/statefulsets",
            name,
            namespace=namespace,
            metadata=metadata,
            spec={
                "replicas": replicas,
                "serviceName": name,
                "selector": {"matchLabels": {"app": name}},
                "template": _template(name),
                **(spec or {}),
            },
            status={**_status(replicas), "currentRevision": "1", "updateRevision": "1"},
        )
        holder = {"kind": "StatefulSet", "name": name, "uid": result["metadata"]["uid"]}
        for number in range(replicas):
            self._add_pod(f"{name}-{number}", namespace, holder, 10, spot=False)
        return result

    def add_policy(self) -> None:
        """Add the policy that places StatefulSets' pods, and its binding."""
        for plural in ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"):
            self.add(f"{POLICIES}/{plural}", _POLICY, namespace="")
        self.api.missing.discard("admissionregistration.k8s.io")

    def _add_pod(self, name: str, namespace: str, holder: Raw, start_s: float | None, *, spot: bool) -> None:
        ready = {"type": "Ready", "status": "False" if start_s is None else "True"}
        self.add(
            f"{CORE}/pods",
            name,
            namespace=namespace,
            metadata={"ownerReferences": [{**holder, "controller": True}]},
            spec={"nodeName": "spot-0" if spot else "on-demand-0", "containers": [_container()]},
            status={
                "phase": "Running",
                "conditions": [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": instant(0)},
                    {**ready, "lastTransitionTime": instant(start_s or 0)},
                ],
            },
        )


def _container() -> Raw:
    return {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}


def _template(name: str) -> Raw:
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [_container()]}}


def _status(replicas: int) -> Raw:
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas", "readyReplicas"), replicas)
    return {**counts, "observedGeneration": 1}

"""Raw API objects as the API server sends them, with only the fields that a test is about."""

from collections.abc import Mapping
from typing import Any

Raw = dict[str, Any]

CREATED = "2026-01-05T09:00:00Z"
READY = "2026-01-05T09:30:00Z"


def metadata(
    name: str,
    *,
    uid: str = "",
    version: int = 1,
    namespace: str = "shop",
    **fields: Any,  # noqa: ANN401 (fields of metadata)
) -> Raw:
    """Return what every object has; without `uid` it follows from the name."""
    return {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": CREATED,
        "generation": 1,
        **fields,
    }


def owner(kind: str, name: str, *, controller: bool = True) -> Raw:
    """Return a reference to an owner."""
    return {"kind": kind, "name": name, "uid": f"uid-{name}", "controller": controller}


def condition(kind: str, status: str = "True", **fields: str) -> Raw:
    """Return a condition of a pod or a node."""
    return {"type": kind, "status": status, "lastTransitionTime": READY, **fields}


def requests(**amounts: str) -> Raw:
    """Return a container that asks for so much."""
    return {"name": "web", "resources": {"requests": amounts}}


def pod(
    name: str = "web-1-a",
    spec: Mapping[str, object] | None = None,
    status: object = None,
    **fields: Any,  # noqa: ANN401 (fields of metadata)
) -> Raw:
    """Return a pod of ReplicaSet `web-1`, not bound unless `spec` says so."""
    return {
        "metadata": metadata(name, ownerReferences=[owner("ReplicaSet", "web-1")], **fields),
        "spec": spec or {},
        "status": status or {},
    }


def replica_set(
    name: str = "web-1",
    spec: Mapping[str, object] | None = None,
    status: object = None,
    **fields: Any,  # noqa: ANN401 (fields of metadata)
) -> Raw:
    """Return a ReplicaSet of Deployment `web`."""
    template = {"metadata": {"labels": {"app": "web", "pod-template-hash": "1"}}, "spec": {}}
    return {
        "metadata": metadata(name, **{"ownerReferences": [owner("Deployment", "web")], **fields}),
        "spec": {"replicas": 3, "template": template, **(spec or {})},
        "status": status or {},
    }


def deployment(
    name: str = "web",
    spec: Mapping[str, object] | None = None,
    status: object = None,
    **fields: Any,  # noqa: ANN401 (fields of metadata)
) -> Raw:
    """Return a Deployment of 4 replicas, as the API server defaults it."""
    return {
        "metadata": metadata(name, **fields),
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "web"}]}},
            **(spec or {}),
        },
        "status": status or {},
    }


def node(name: str, version: int) -> Raw:
    """Return a Ready node."""
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-05T08:00:00Z",
    }
    return {"metadata": metadata, "spec": {}, "status": {"conditions": [condition("Ready")]}}


def spot_node(name: str, version: int, ready: str = "True") -> Raw:
    """Return a node of Karpenter's, Ready or not."""
    raw = node(name, version)
    labels = {"karpenter.sh/capacity-type": "spot"}
    conditions = [{"type": "Ready", "status": ready}]
    raw["metadata"] = {**raw["metadata"], "labels": labels}
    return {**raw, "status": {"conditions": conditions}}


def stateful_set(
    name: str = "db",
    *,
    spec: Raw | None = None,
    status: Raw | None = None,
    **fields: Any,  # noqa: ANN401 (fields of metadata)
) -> Raw:
    """Return a StatefulSet of 3 pods, all of revision `one`."""
    return {
        "kind": "StatefulSet",
        "metadata": metadata(name, **fields),
        "spec": {
            "replicas": 3,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            **(spec or {}),
        },
        "status": {
            "observedGeneration": 1,
            "replicas": 3,
            "availableReplicas": 3,
            "updatedReplicas": 3,
            "currentRevision": "one",
            "updateRevision": "one",
            **(status or {}),
        },
    }


def written(manager: str, operation: str = "Update", time: str = CREATED) -> Raw:
    """Return an entry of managedFields that owns spec.replicas."""
    fields: Raw = {"f:spec": {"f:replicas": {}}}
    return {"manager": manager, "operation": operation, "time": time, "fieldsV1": fields}

"""Raw objects of the scripts, and where kinds are on the wire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from world.conformance.ground import NODE_LABEL, Raw

READY_AFTER = "sandbox.splitter.io/ready-after"  # how long a pod takes to become ready, and to end
ENDS_AFTER = "sandbox.splitter.io/ends-after"


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a kind is: group and version, name of its collection, whether it is in namespaces."""

    version: str
    plural: str
    namespaced: bool = True

    def collection(self, namespace: str) -> str:
        """Return the path of the collection in a namespace."""
        root = "/api/v1" if self.version == "v1" else f"/apis/{self.version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if self.namespaced else f"{root}/{self.plural}"


KINDS = {
    "Pod": Kind("v1", "pods"),
    "ConfigMap": Kind("v1", "configmaps"),
    "ResourceQuota": Kind("v1", "resourcequotas"),
    "Node": Kind("v1", "nodes", namespaced=False),
    "Namespace": Kind("v1", "namespaces", namespaced=False),
    "Deployment": Kind("apps/v1", "deployments"),
    "ReplicaSet": Kind("apps/v1", "replicasets"),
    "StatefulSet": Kind("apps/v1", "statefulsets"),
    "DaemonSet": Kind("apps/v1", "daemonsets"),
    "PodDisruptionBudget": Kind("policy/v1", "poddisruptionbudgets"),
    "PriorityClass": Kind("scheduling.k8s.io/v1", "priorityclasses", namespaced=False),
    "Role": Kind("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": Kind("rbac.authorization.k8s.io/v1", "rolebindings"),
}
FOLLOWED = ("Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet")


# Images that are never pulled, and whose container ends again and again, on both sides.
BROKEN, CRASHING = "web:broken-bad", "web:crashing"


def of_kind(kind: str, name: str, **fields: Any) -> Raw:  # noqa: ANN401 (any JSON)
    """Return an object with its kind and name."""
    return {"apiVersion": KINDS[kind].version, "kind": kind, "metadata": {"name": name}, **fields}


def labelled(raw: Raw, **labels: str) -> Raw:
    """Return the object with labels."""
    return {**raw, "metadata": {**raw["metadata"], "labels": labels}}


def template(
    home: str,
    *,
    app: str = "web",
    image: str = "web:1",
    ready_after: str = "500ms",
    ends_after: str = "500ms",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> Raw:
    """Return the template of a pod that is bound to the nodes called `home`."""
    return {
        "metadata": {
            "labels": {"app": app, **(labels or {})},
            "annotations": {READY_AFTER: ready_after, ENDS_AFTER: ends_after, **(annotations or {})},
        },
        "spec": {
            "containers": [{"name": "web", "image": image}],
            "nodeSelector": {NODE_LABEL: home},
            **(spec or {}),
        },
    }


def pod(name: str, pod_template: Raw) -> Raw:
    """Return a pod of a template, without an owner."""
    raw = of_kind("Pod", name, spec=pod_template["spec"])
    return {**raw, "metadata": {**pod_template["metadata"], "name": name}}


def workload(
    kind: str,
    name: str,
    replicas: int | None,
    pod_template: Raw,
    *,
    app: str = "web",
    **spec: Any,  # noqa: ANN401 (any JSON)
) -> Raw:
    """Return a workload that selects its pods by the label `app`; replicas None: a DaemonSet has none."""
    counts = {} if replicas is None else {"replicas": replicas}
    selector = {"matchLabels": {"app": app}}
    return of_kind(kind, name, spec={**counts, "selector": selector, "template": pod_template, **spec})


def rolling(surge: int | str, unavailable: int | str) -> Raw:
    """Return a Deployment's strategy."""
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }


def budget(name: str, *, app: str = "web", **spec: Any) -> Raw:  # noqa: ANN401 (any JSON)
    """Return a disruption budget of the pods with the label `app`."""
    return of_kind("PodDisruptionBudget", name, spec={"selector": {"matchLabels": {"app": app}}, **spec})


def owned_by(raw: Raw, owner: Raw, *, controller: bool = True) -> Raw:
    """Return the object as a dependent of the owner."""
    reference = reference_to(owner, controller=controller)
    return {**raw, "metadata": {**raw["metadata"], "ownerReferences": [reference]}}


def reference_to(owner: Raw, *, controller: bool = True) -> Raw:
    """Return a reference to an owner that the API server has answered with."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": controller,
    }


def no_execute(key: str, effect: str = "NoExecute") -> Raw:
    """Return a taint."""
    return {"key": key, "value": "yes", "effect": effect}


def tolerates(key: str, seconds: int | None = None, effect: str = "NoExecute") -> Sequence[Raw]:
    """Return the tolerations of a pod that bears a taint, for so long or for ever."""
    for_so_long = {} if seconds is None else {"tolerationSeconds": seconds}
    return [{"key": key, "operator": "Exists", "effect": effect, **for_so_long}]

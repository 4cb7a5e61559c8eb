"""Objects of every kind that splitter follows, grown in each place that grows.

Each growth is of one list, one map or one text. What grows best in memory for its bytes of JSON is short: a
dictionary with one text of one letter.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from fuzz import objects
from fuzz.attacker import budget
from fuzz.stages import placement
from kube.raw import Raw
from splitter.admission.placement import NAME
from splitter.core.labels_annotations import LABEL_TEMPLATE_SET, SOURCES_SELECTOR, TWINS_SELECTOR
from splitter.kube.cache import Cache
from splitter.kube.store import Indexer

Grow = Callable[[Raw, int], None]
_SOURCES, _TWINS = f"?{SOURCES_SELECTOR}", f"?{TWINS_SELECTOR}"
_EVENTS = "/api/v1/namespaces/default/events?involvedObject.kind="


class Kind(NamedTuple):
    """What is followed."""

    make: Callable[[], Raw]
    into: Callable[[Cache], Indexer[Any]]
    collection: str
    """Its path, and the selector of its watch."""


KINDS: Mapping[str, Kind] = {
    "pod": Kind(objects.pod, lambda cache: cache.pods, "/api/v1/pods"),
    "replicaset": Kind(objects.replica_set, lambda cache: cache.replica_sets, "/apis/apps/v1/replicasets"),
    "deployment": Kind(
        objects.deployment, lambda cache: cache.sources, f"/apis/apps/v1/deployments{_SOURCES}"
    ),
    "twin": Kind(objects.twin, lambda cache: cache.twins, f"/apis/apps/v1/deployments{_TWINS}"),
    "statefulset": Kind(
        objects.stateful_set, lambda cache: cache.sources, f"/apis/apps/v1/statefulsets{_SOURCES}"
    ),
    "budget": Kind(budget, lambda cache: cache.budgets.indexer, "/apis/policy/v1/poddisruptionbudgets"),
    "split": Kind(objects.split, lambda cache: cache.splits, "/apis/splitter.io/v1alpha1/splits"),
    "placement": Kind(
        placement,
        lambda cache: cache.placements._indexer,  # noqa: SLF001 (what its watch fills)
        f"/apis/splitter.io/v1alpha1/placements?metadata.name={NAME}",
    ),
    "node": Kind(objects.node, lambda cache: cache.nodes, "/api/v1/nodes"),
    "namespace": Kind(objects.namespace, lambda cache: cache.namespaces, "/api/v1/namespaces"),
    "event": Kind(objects.node_event, lambda cache: cache.external_signals.events, f"{_EVENTS}Node"),
    "refusal": Kind(
        lambda: {**objects.node_event(), "reason": "InsufficientCapacityError"},
        lambda cache: cache.external_signals.refusals,
        f"{_EVENTS}NodeClaim",
    ),
    "claim": Kind(
        objects.claim, lambda cache: cache.external_signals.claims, "/apis/karpenter.sh/v1/nodeclaims"
    ),
    "autoscaler": Kind(
        objects.autoscaler,
        lambda cache: cache.external_signals.autoscaler,
        "/api/v1/namespaces/kube-system/configmaps?metadata.name=cluster-autoscaler-status",
    ),
    "template set": Kind(
        objects.template_set,
        lambda cache: cache.template_sets.store,
        f"/api/v1/namespaces/splitter/configmaps?{LABEL_TEMPLATE_SET}",
    ),
}


def grown(kind: str, grow: Grow, count: int, number: int = 0) -> bytes:
    """Return an object of a kind as JSON, grown to so many pieces, with a name and a namespace of its own."""
    raw = KINDS[kind].make()
    grow(raw, count)
    its_own = {"uid": f"uid-{kind}-{grow.__name__}-{number}", "resourceVersion": "1"}
    if kind == "twin":  # it is called after its source
        its_own["namespace"] = f"shop-{number}"
    else:
        its_own["name"] = f"{raw['metadata']['name']}-{number}"
    raw["metadata"] |= its_own
    return orjson.dumps(raw)


def dense(kind: str, grow: Grow, size: int, number: int = 0) -> bytes:
    """Return such an object of so many bytes."""
    few, many = (len(grown(kind, grow, count)) for count in (1000, 2000))
    return grown(kind, grow, max(1, 1000 + (size - few) * 1000 // max(1, many - few)), number)


def managers(raw: Raw, count: int) -> None:
    """Fill an object with what takes most memory and what nothing is kept of."""
    raw["metadata"]["managedFields"] = [{"manager": "a"}] * count


def _labels(raw: Raw, count: int) -> None:
    raw["metadata"]["labels"] = (raw["metadata"].get("labels") or {}) | _map(count)


def _bare(raw: Raw, count: int) -> None:
    raw["metadata"]["ownerReferences"] = []
    _labels(raw, count)


def _map(count: int) -> dict[str, str]:
    return {f"l{number}": "" for number in range(count)}


def _annotations(raw: Raw, count: int) -> None:
    raw["metadata"].setdefault("annotations", {}).update(
        {f"splitter.io/{number}": "" for number in range(count)}
    )


def _annotation(name: str) -> Grow:
    def grow(raw: Raw, count: int) -> None:
        raw["metadata"].setdefault("annotations", {})[name] = _text(count)

    grow.__name__ = name
    return grow


def _text(count: int) -> str:
    return "\U0001f600" + "x" * count


def _owners(raw: Raw, count: int) -> None:
    raw["metadata"]["ownerReferences"] = [
        {"kind": "Deployment", "name": "a", "uid": str(number)} for number in range(count)
    ]


def _owner_uid(raw: Raw, count: int) -> None:
    raw["metadata"]["ownerReferences"] = [
        {"kind": "Deployment", "name": _text(count), "uid": _text(count), "controller": True}
    ]


def _env(raw: Raw, count: int) -> None:
    _pod_spec(raw)["containers"][0]["env"] = [{"name": "a"}] * count


def _pod_spec(raw: Raw) -> Any:  # noqa: ANN401 (a template's, or a pod's own)
    spec: Any = raw["spec"]
    return spec["template"]["spec"] if "template" in spec else spec


def _requests(raw: Raw, count: int) -> None:
    _pod_spec(raw)["containers"][0]["resources"] = {
        "requests": {f"a.b/{number}": "1" for number in range(count)}
    }


def _message(raw: Raw, count: int) -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": _text(count)}}
    raw["status"]["containerStatuses"] = [{"name": "web", "image": _text(count), "state": waiting}]
    del raw["status"]["initContainerStatuses"]


def _template_labels(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["metadata"]["labels"] |= _map(count)


def _selector(raw: Raw, count: int) -> None:
    raw["spec"]["selector"] = {"matchLabels": _map(count)}


def _values(raw: Raw, count: int) -> None:
    values = [f"{number}" for number in range(count)]
    raw["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "In", "values": values}]}


def _refusal(raw: Raw, count: int) -> None:
    raw["status"]["conditions"] = [
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": _text(count)}
    ]


def _tolerations(raw: Raw, count: int) -> None:
    _pod_spec(raw)["tolerations"] = [{"key": "a"}] * count


def _affinity(raw: Raw, count: int) -> None:
    values = [str(number) for number in range(count)]
    terms = [{"matchExpressions": [{"key": "a", "operator": "In", "values": values}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    _pod_spec(raw)["affinity"] = {"nodeAffinity": required}


def _volumes(raw: Raw, count: int) -> None:
    _pod_spec(raw)["volumes"] = [
        {"name": "a", "persistentVolumeClaim": {"claimName": str(number)}} for number in range(count)
    ]


def _managed(raw: Raw, count: int) -> None:
    owned: Raw = {f"f:{number}": {} for number in range(count)}
    fields = {"f:spec": {"f:template": {"f:metadata": {"f:annotations": owned}}}}
    raw["metadata"]["managedFields"] = [{"manager": "kubectl", "operation": "Apply", "fieldsV1": fields}]
    if "template" in raw.get("spec", {}):
        raw["spec"]["template"]["metadata"]["annotations"] = {str(number): "" for number in range(count)}


def _claim_templates(raw: Raw, count: int) -> None:
    raw["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": str(number)}} for number in range(count)]


def _status(raw: Raw, count: int) -> None:
    raw["status"] = {"items": [{"name": "a"}] * count}


def _ordinals(raw: Raw, count: int) -> None:
    raw["spec"]["onDemandOrdinals"] = list(range(0, 2 * count, 2))


def _sets(raw: Raw, count: int) -> None:
    runs = [{"first": 1000 + number, "last": 1000 + number} for number in range(count)]
    raw["spec"]["statefulSets"] = {"u": {"name": "web", "onDemandOrdinals": runs}}


def _many_sets(raw: Raw, count: int) -> None:
    raw["spec"]["statefulSets"] = {f"u{number}": {"name": f"w{number}"} for number in range(count)}


def _taints(raw: Raw, count: int) -> None:
    raw["spec"]["taints"] = [{"key": f"k{number}", "effect": "NoSchedule"} for number in range(count)]


def _conditions(raw: Raw, count: int) -> None:
    raw["status"]["conditions"] = [{"type": "Ready", "status": "False", "message": _text(count)}] * 2


def _allocatable(raw: Raw, count: int) -> None:
    raw["status"]["allocatable"] = {f"a.b/{number}": "1" for number in range(count)}


def _about(raw: Raw, count: int) -> None:
    raw["involvedObject"] |= {"uid": _text(count)}


def _said(raw: Raw, count: int) -> None:
    raw["message"] = _text(count)


def _requirements(raw: Raw, count: int) -> None:
    raw["spec"]["requirements"] = [{"key": "a", "operator": "Exists"}] * count


def _claim_taints(raw: Raw, count: int) -> None:
    raw["spec"]["taints"] = [{"key": "a", "effect": "NoSchedule"}] * count


def _data(raw: Raw, count: int) -> None:
    raw["data"] = {f"{number}": "" for number in range(count)}


def _groups(raw: Raw, count: int) -> None:
    groups = "".join(f"- {{name: a{number}, scaleUp: {{status: Backoff}}}}\n" for number in range(count))
    raw["data"]["status"] = f"time: 2026-01-05 10:00:00.1 +0000 UTC\nnodeGroups:\n{groups}"


def _nothing(raw: Raw, count: int) -> None:
    """Leave it as it is."""


_WORKLOAD: tuple[Grow, ...] = (
    *(_nothing, _labels, _annotations, _env, _requests, _template_labels, _selector, _values),
    *(_tolerations, _affinity, _volumes, _managed),
)
PLACES: Mapping[str, tuple[Grow, ...]] = {
    "pod": (
        *(_nothing, _labels, _bare, _annotations, _env, _requests, _message, _owner_uid, _tolerations),
        *map(_annotation, ("splitter.io/deletion-cost-before", "splitter.io/held-for")),
    ),
    "replicaset": (
        *(_nothing, _labels, _annotations, _owners, _owner_uid, _env, _template_labels, _selector, _values),
        _refusal,
    ),
    "deployment": (*_WORKLOAD, _annotation("splitter.io/spot-percent")),
    "statefulset": (*_WORKLOAD, _claim_templates),
    "twin": _WORKLOAD,
    "budget": (_nothing, _labels, _selector, _values),
    "split": (_nothing, _labels, _status, _ordinals, _owners),
    "placement": (_nothing, _sets, _many_sets),
    "node": (_nothing, _labels, _annotations, _taints, _conditions, _allocatable),
    "namespace": (_nothing, _labels, _annotations),
    "event": (_nothing, _about),
    "refusal": (_nothing, _about, _said),
    "claim": (_nothing, _requirements, _claim_taints),
    "autoscaler": (_nothing, _groups),
    "template set": (_nothing, _data),
}

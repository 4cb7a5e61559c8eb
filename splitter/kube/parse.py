"""Turns raw API objects into slim records: with `observe`, the only code that knows their shape.

The stores call one function a kind for each watch event. Unknown or missing fields are read as
Kubernetes itself defaults them; nothing here judges.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from math import ceil, floor
from sys import intern
from typing import Any

import orjson

from splitter.core.desired import template_hash
from splitter.core.model import Key, Pool, SourceView, SplitView
from splitter.core.nodes import (
    Condition,
    MatchExpression,
    NodeFacts,
    NodeTerm,
    PodRequest,
    Taint,
    Toleration,
)
from splitter.core.surface import (
    ANNOTATION_RENDERED_HASH,
    ANNOTATION_TAKEN_OVER,
    LABEL_POOL,
    LABEL_SOURCE,
    LABEL_SPLIT,
    SPLIT_TWIN,
)
from splitter.kube.client import FIELD_MANAGER
from splitter.kube.records import (
    NamespaceRecord,
    PodRecord,
    ReplicaSetRecord,
    SourceRecord,
    SplitRecord,
    TwinRecord,
)

Raw = Mapping[str, Any]

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
COST_BEFORE = "splitter.io/deletion-cost-before"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SUFFIXES = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1)}
_SUFFIXES |= {unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)}
_SUFFIXES |= {f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}


def instant(text: str) -> datetime:
    """Parse an RFC 3339 time as the API writes it; always aware, UTC."""
    return datetime.fromisoformat(text)


def _maybe_instant(text: str | None) -> datetime | None:
    return instant(text) if text else None


def quantity(resource: str, text: str | float) -> int:
    """Return a quantity as a whole number: millicores for cpu, bytes or pieces otherwise, rounded up.

    An unreadable one counts 0: the API server has accepted it, and fit is an estimate.

    >>> quantity("cpu", "250m"), quantity("memory", "1Gi"), quantity("cpu", "1.5")
    (250, 1073741824, 1500)
    """
    written = str(text)
    digits = written.rstrip("numkKMGTPEi")
    try:
        value = Decimal(digits) * _SUFFIXES[written[len(digits) :]]
    except (InvalidOperation, KeyError):
        return 0
    return ceil(value * 1000) if resource == "cpu" else ceil(value)


def _controller(metadata: Raw) -> Raw | None:
    return next((ref for ref in metadata.get("ownerReferences", ()) if ref.get("controller")), None)


def _condition(status: Raw, kind: str) -> Raw | None:
    return next((condition for condition in status.get("conditions", ()) if condition["type"] == kind), None)


def _requests(spec: Raw) -> tuple[tuple[str, int], ...]:
    """Return what the scheduler reserves: containers and sidecars, or the largest init container."""
    running: dict[str, int] = {}
    largest_init: dict[str, int] = {}
    for container in spec.get("containers", ()):
        _add(running, container)
    for container in spec.get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            _add(running, container)
            continue
        for resource, text in container.get("resources", {}).get("requests", {}).items():
            largest_init[resource] = max(largest_init.get(resource, 0), quantity(resource, text))
    for resource, amount in largest_init.items():
        running[resource] = max(running.get(resource, 0), amount)
    for resource, text in (spec.get("overhead") or {}).items():
        running[resource] = running.get(resource, 0) + quantity(resource, text)
    return tuple(sorted((intern(resource), amount) for resource, amount in running.items()))


def _add(total: dict[str, int], container: Raw) -> None:
    for resource, text in container.get("resources", {}).get("requests", {}).items():
        total[resource] = total.get(resource, 0) + quantity(resource, text)


def pod(raw: Raw) -> PodRecord:
    """Parse a pod."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    controller = _controller(metadata)
    ready = _condition(status, "Ready")
    scheduled = _condition(status, "PodScheduled")
    unschedulable = (
        scheduled is not None
        and scheduled["status"] == "False"
        and scheduled.get("reason") == "Unschedulable"
    )
    annotations = metadata.get("annotations", {})
    return PodRecord(
        namespace=intern(metadata["namespace"]),
        name=metadata["name"],
        uid=metadata["uid"],
        version=int(metadata["resourceVersion"]),
        owner_uid=intern(controller["uid"]) if controller else None,
        node=intern(spec["nodeName"]) if spec.get("nodeName") else None,
        ready_since=_since(ready, metadata) if ready and ready["status"] == "True" else None,
        created=instant(metadata["creationTimestamp"]),
        terminating="deletionTimestamp" in metadata,
        finished=status.get("phase") in {"Succeeded", "Failed"},
        bound_since=_since(scheduled, metadata) if scheduled and scheduled["status"] == "True" else None,
        unschedulable_since=_since(scheduled, metadata) if scheduled and unschedulable else None,
        waiting=_waiting(status),
        deletion_cost=annotations.get(DELETION_COST),
        cost_before=annotations.get(COST_BEFORE),
        requests=_requests(spec),
    )


def _since(condition: Raw, metadata: Raw) -> datetime:
    """Return when a condition became so; some kubelets leave it out."""
    return instant(condition.get("lastTransitionTime") or metadata["creationTimestamp"])


def _waiting(status: Raw) -> str:
    """Return why a container waits (ImagePullBackOff, CrashLoopBackOff, ...), or nothing."""
    for container in status.get("containerStatuses", ()):
        reason = (container.get("state", {}).get("waiting") or {}).get("reason", "")
        if reason and reason not in {"ContainerCreating", "PodInitializing"}:
            return intern(reason)
    return ""


def replica_set(raw: Raw) -> ReplicaSetRecord:
    """Parse a ReplicaSet; the hash of its template tells whose revision it is."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    owners = [ref for ref in metadata.get("ownerReferences", ()) if ref["kind"] == "Deployment"]
    controller = _controller(metadata)
    return ReplicaSetRecord(
        namespace=intern(metadata["namespace"]),
        name=metadata["name"],
        uid=metadata["uid"],
        version=int(metadata["resourceVersion"]),
        controller_uid=controller["uid"] if controller else None,
        owner_uids=tuple(ref["uid"] for ref in owners),
        owner_name=owners[0]["name"] if owners else None,
        labels=metadata.get("labels", {}),
        marked=ANNOTATION_TAKEN_OVER in metadata.get("annotations", {}),
        template_labels=spec["template"]["metadata"].get("labels", {}),
        template_hash=template_hash(spec["template"]),
        spec_replicas=spec.get("replicas", 1),
        status_replicas=status.get("replicas", 0),
        available_replicas=status.get("availableReplicas", 0),
        created=instant(metadata["creationTimestamp"]),
        deleting="deletionTimestamp" in metadata,
    )


def twin(raw: Raw) -> TwinRecord:
    """Parse a twin (the selector of its watch is our own label)."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    labels = metadata["labels"]
    # An owner that was taken away is put back; until then the label says whose twin it is.
    orphan = {"kind": "Deployment", "name": labels.get(LABEL_SOURCE, ""), "uid": ""}
    owner: Raw = _controller(metadata) or orphan
    intact = labels.get(LABEL_SPLIT) == SPLIT_TWIN and owner["uid"]
    replicas = spec.get("replicas", 1)
    surge, unavailable = _rolling_numbers(spec, replicas)
    return TwinRecord(
        namespace=intern(metadata["namespace"]),
        name=metadata["name"],
        uid=metadata["uid"],
        version=int(metadata["resourceVersion"]),
        source=Key(owner["kind"], metadata["namespace"], owner["name"]),
        source_uid=owner["uid"],
        pool=Pool.SPOT if labels.get(LABEL_POOL) == Pool.SPOT else Pool.ON_DEMAND,
        # Without its label or its owner it is out of date, and is written whole again.
        rendered_hash=metadata.get("annotations", {}).get(ANNOTATION_RENDERED_HASH, "") if intact else "",
        template_hash=template_hash(spec["template"]),
        spec_replicas=replicas,
        status_replicas=status.get("replicas", 0),
        available_replicas=status.get("availableReplicas", 0),
        updated_replicas=status.get("updatedReplicas", 0),
        observed=status.get("observedGeneration", 0) >= metadata["generation"],
        max_surge=surge,
        max_unavailable=unavailable,
        deleting="deletionTimestamp" in metadata,
        request=_pod_request(spec["template"].get("spec", {})),
    )


def _pod_request(spec: Raw) -> PodRequest:
    """Parse what the scheduler looks at, for the count of free room."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return PodRequest(
        requests=dict(_requests(spec)),
        node_selector=spec.get("nodeSelector") or {},
        affinity=tuple(
            NodeTerm(_expressions(term.get("matchExpressions")), _expressions(term.get("matchFields")))
            for term in required.get("nodeSelectorTerms", ())
        ),
        tolerations=tuple(
            Toleration(
                key=toleration.get("key", ""),
                operator=toleration.get("operator", "Equal"),
                value=toleration.get("value", ""),
                effect=toleration.get("effect", ""),
            )
            for toleration in spec.get("tolerations") or ()
        ),
    )


def _expressions(raw: Sequence[Raw] | None) -> tuple[MatchExpression, ...]:
    return tuple(
        MatchExpression(expression["key"], expression["operator"], tuple(expression.get("values") or ()))
        for expression in raw or ()
    )


def _rolling_numbers(spec: Raw, replicas: int) -> tuple[int, int]:
    """Resolve maxSurge (rounded up) and maxUnavailable (down) as the Deployment controller does."""
    rolling = spec.get("strategy", {}).get("rollingUpdate") or {}
    surge = _of(rolling.get("maxSurge", "25%"), replicas, ceil)
    unavailable = _of(rolling.get("maxUnavailable", "25%"), replicas, floor)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _of(written: int | str, replicas: int, rounding: Callable[[float], int]) -> int:
    if isinstance(written, int):
        return written
    return rounding(int(written.rstrip("%")) * replicas / 100)


def source(raw: Raw) -> SourceRecord:
    """Parse the user's Deployment."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    replicas = spec.get("replicas", 1)
    surge, unavailable = _rolling_numbers(spec, replicas)
    controller = _controller(metadata)
    observed = status.get("observedGeneration", 0) >= metadata["generation"]
    counts = [status.get(name, 0) for name in ("updatedReplicas", "availableReplicas", "replicas")]
    keys = _selector_keys(spec["selector"])
    view = SourceView(
        key=Key("Deployment", metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=metadata["generation"],
        replicas=replicas,
        max_surge=surge,
        max_unavailable=unavailable,
        paused=bool(spec.get("paused")),
        observed=observed,
        template_hash=template_hash(spec["template"]),
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
        selector_keys=keys,
        manifest_json=_manifest(raw),
        deleting="deletionTimestamp" in metadata,
        paused_by_us=_paused_by(metadata, ours=True) is not None,
        unpaused_by_manifest=_unpaused_by_manifest(metadata, spec),
        recreate=spec.get("strategy", {}).get("type") == "Recreate",
        releasable=bool(keys),
        controller=f"{controller['kind']}/{controller['name']}" if controller else None,
        rollout_complete=observed and all(count == replicas for count in counts),
        rollout=f"{counts[0]} updated, {counts[1]} available, {counts[2]} in all, {replicas} wanted",
    )
    return SourceRecord(metadata["namespace"], metadata["uid"], int(metadata["resourceVersion"]), view)


def _selector_keys(selector: Raw) -> tuple[str, ...]:
    """Return the labels whose absence takes a ReplicaSet out of the selector."""
    positive = [
        term["key"] for term in selector.get("matchExpressions", ()) if term["operator"] in {"In", "Exists"}
    ]
    return tuple(sorted({*selector.get("matchLabels", {}), *positive}))


def _manifest(raw: Raw) -> str:
    """Return what templates and the hand-back may read of the source, as canonical JSON."""
    metadata = raw["metadata"]
    kept = {
        name: metadata[name]
        for name in ("name", "namespace", "uid", "labels", "annotations")
        if name in metadata
    }
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": kept, "spec": raw["spec"]}
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()


def _paused_by(metadata: Raw, *, ours: bool) -> str | None:
    """Name the manager, ours or another's apply, that owns spec.paused."""
    for entry in metadata.get("managedFields", ()):
        is_ours = entry.get("manager") == FIELD_MANAGER
        if is_ours is not ours or (not ours and entry.get("operation") != "Apply"):
            continue
        if "f:paused" in (entry.get("fieldsV1") or {}).get("f:spec", {}):
            return str(entry.get("manager"))
    return None


def _unpaused_by_manifest(metadata: Raw, spec: Raw) -> str | None:
    """Name the writer whose manifest says `paused: false` (handover.md, "Eligibility")."""
    if not spec.get("paused") and (manager := _paused_by(metadata, ours=False)) is not None:
        return f"the manifest applied by {manager}"
    applied = metadata.get("annotations", {}).get(_LAST_APPLIED)
    if applied:
        try:
            if orjson.loads(applied).get("spec", {}).get("paused") is False:
                return "the manifest applied with kubectl"
        except (orjson.JSONDecodeError, AttributeError):
            return None
    return None


def split(raw: Raw) -> SplitRecord:
    """Parse a Split. A hand-edited status is read as far as it makes sense."""
    metadata, spec = raw["metadata"], raw.get("spec", {})
    status = raw.get("status") or {}
    named = spec.get("source", {})
    good = status.get("policyAnnotations")
    view = SplitView(
        uid=metadata["uid"],
        takes_over=bool(spec.get("takeOver")),
        state=str(status.get("state", "")),
        conflict=bool(status.get("conflict")),
        fights=tuple(filter(None, map(_maybe_instant, status.get("fights") or ()))),
        rebalance=status.get("rebalance") or {},
        good_annotations=good if isinstance(good, dict) else None,
        status_json=orjson.dumps(status, option=orjson.OPT_SORT_KEYS).decode(),
    )
    # By its own name: a copy of a Split under another name says nothing about the source.
    key = Key(named.get("kind", "Deployment"), metadata["namespace"], metadata["name"])
    return SplitRecord(metadata["namespace"], metadata["uid"], int(metadata["resourceVersion"]), key, view)


def namespace(raw: Raw) -> NamespaceRecord:
    """Parse a namespace: only our own annotations."""
    metadata = raw["metadata"]
    ours = {
        key: text for key, text in metadata.get("annotations", {}).items() if key.startswith("splitter.io/")
    }
    return NamespaceRecord("", metadata["uid"], int(metadata["resourceVersion"]), metadata["name"], ours)


def node_facts(raw: Raw) -> NodeFacts:
    """Parse a node: what the classifier of the core reads."""
    metadata, spec, status = raw["metadata"], raw.get("spec", {}), raw.get("status", {})
    return NodeFacts(
        name=metadata["name"],
        uid=metadata["uid"],
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
        taints=_taints(spec.get("taints", ())),
        conditions=tuple(
            Condition(
                condition["type"],
                condition["status"],
                condition.get("reason", ""),
                condition.get("message", ""),
                _maybe_instant(condition.get("lastTransitionTime")),
            )
            for condition in status.get("conditions", ())
        ),
        unschedulable=bool(spec.get("unschedulable")),
        deletion_timestamp=_maybe_instant(metadata.get("deletionTimestamp")),
        allocatable={name: quantity(name, text) for name, text in status.get("allocatable", {}).items()},
    )


def _taints(raw: Sequence[Raw]) -> tuple[Taint, ...]:
    return tuple(Taint(taint["key"], taint.get("value", ""), taint["effect"]) for taint in raw)

"""Builds the bodies of splitter's writes from actions.

`apply` sends them, and `dry_run` sends them as a server-side dry run, so that what is tried in a dry run is
what will be written. Pure: data in, JSON out.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime

import orjson

from splitter.core import actions as do
from splitter.core import labels_annotations as keys
from splitter.core.desired.compare import withdrawn
from splitter.core.desired.twin import pod_labels
from splitter.core.labels_annotations.saved import saved_value
from splitter.core.model import Mode, SourceView, TwinView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.split_status import Condition
from splitter.core.split_status.values import whole_seconds
from splitter.kube.client import FIELD_MANAGER, Json
from splitter.kube.parse.workloads import rolling_numbers

# A pod's name may be longer, its hostname not.
_PLACEHOLDER_MAX = 63 - len("-placeholder")
_NODE_LENGTH = 8
# What the Deployment controller remembers on a ReplicaSet, and refreshes only when it scales one.
DESIRED, MOST = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"

_HISTORY = (
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "kubernetes.io/change-cause",
)
TEMPLATE_HASH = "pod-template-hash"
# No mesh puts a sidecar into a placeholder: splitter's own policy refuses a pod that runs anything else.
_UNMESHED_LABEL, _UNMESHED = {"sidecar.istio.io/inject": "false"}, {"linkerd.io/inject": "disabled"}
_UNLABELLED: Mapping[str, str | None] = {keys.LABEL_POOL: None, keys.LABEL_SOURCE: None}


def split_identity(key: Key) -> Json:
    """Return kind, name and namespace of a Split."""
    return {
        "apiVersion": "splitter.io/v1alpha1",
        "kind": "Split",
        "metadata": {"name": keys.split_name(key), "namespace": key.namespace},
    }


def reporting_split(source: SourceView, *, takes_over: bool) -> Json:
    """Return a Split without its status; it goes with its source."""
    body = split_identity(source.key)
    body["metadata"]["ownerReferences"] = [{**_owner(source), "blockOwnerDeletion": False}]
    named = {"apiVersion": "apps/v1", "kind": source.key.kind, "name": source.key.name}
    body["spec"] = {"source": named, "takeOver": takes_over, "format": keys.STATE_FORMAT}
    return body


def placement_split(source: SourceView, ordinals: Sequence[int]) -> Json:
    """Return the Split of a StatefulSet in placement mode; by the label people list them."""
    body = reporting_split(source, takes_over=True)
    body["metadata"]["labels"] = {keys.ANNOTATION_MODE: Mode.PLACEMENT.value}
    body["spec"]["onDemandOrdinals"] = list(ordinals)
    return body


def availability(source: SourceView, shown: Condition | None, now: datetime) -> Json:
    """Return a patch of the source's status: our one condition, or its removal."""
    if shown is None:
        gone = {"type": keys.CONDITION_AVAILABLE, "$patch": "delete"}
        return {"metadata": {"uid": source.uid}, "status": {"conditions": [gone]}}
    written = shown.to_json()
    if source.key.kind != STATEFUL_SET:  # its conditions have no such field
        written["lastUpdateTime"] = whole_seconds(now)
    # Computed from that very status: one that was taken off since does not come back.
    seen = {"uid": source.uid, "resourceVersion": source.resource_version}
    return {"metadata": seen, "status": {"conditions": [written]}}


def eviction(namespace: str, action: do.EvictPod) -> Json:
    """Return an eviction of just this pod, not of its successor under the same name."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": action.pod, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": action.uid}},
    }


def placeholder(source: SourceView, split_uid: str, action: do.CreatePlaceholder) -> Json:
    """Return the pod that holds the room for a move, or keeps one off a node; it goes with the Split."""
    # One on each of several nodes: a hash tells them apart.
    of = f"-{hashlib.sha256(action.node.encode()).hexdigest()[:_NODE_LENGTH]}" if action.node else ""
    called = keys.short_name(source.key.name, _PLACEHOLDER_MAX - len(of))
    # None of the user's labels, and of relief not the one by which the guard selects: no Service, budget or
    # spread constraint may count it.
    whose = {} if action.node else {keys.LABEL_SOURCE: keys.short_name(source.key.name)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{called}-placeholder{of}",
            "namespace": source.key.namespace,
            "labels": {keys.LABEL_PLACEHOLDER: action.pool.value, **whose, **_UNMESHED_LABEL},
            "annotations": {keys.ANNOTATION_HELD_FOR: action.held_for, **_UNMESHED},
            "ownerReferences": [owned_by_split(source, split_uid)],
        },
        "spec": orjson.loads(action.spec_json),
    }


def owned_by_split(source: SourceView, split_uid: str) -> Json:
    """Return the owner reference of what goes with the Split of a workload."""
    return {
        "apiVersion": "splitter.io/v1alpha1",
        "kind": "Split",
        "name": keys.split_name(source.key),
        "uid": split_uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _owner(source: SourceView) -> Json:
    """Return a reference to the source that does not control.

    Explicitly: left out, the merge by uid keeps `controller: true`, and the release then deletes it.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": source.key.kind,
        "name": source.key.name,
        "uid": source.uid,
        "controller": False,
    }


def parking(action: do.Park, source: SourceView, twin: TwinView | None = None) -> Json:
    """Return the one patch that releases a ReplicaSet: labels gone, an owner that does not control.

    That is the source, or the `twin` that controls it.
    """
    owner = _owner(source) if twin is None else {**_owner(source), "name": twin.name, "uid": twin.uid}
    labels: dict[str, str | None] = dict.fromkeys(action.strip)
    labels[keys.LABEL_SPLIT] = keys.SPLIT_PARKED
    return {
        "metadata": {
            "labels": labels,
            "annotations": {keys.ANNOTATION_SOURCE: source.key.name},
            "ownerReferences": [owner],
            "resourceVersion": action.resource_version,
        }
    }


def annotating(action: do.StripOwnershipMark | do.RetryPods) -> Json:
    """Return the patch that takes our mark off a ReplicaSet, or that has it try again."""
    match action:
        case do.StripOwnershipMark():
            return {"metadata": {"annotations": {keys.ANNOTATION_TAKEN_OVER: None}}}
        case do.RetryPods():
            return {
                "metadata": {
                    "uid": action.uid,
                    "annotations": {keys.ANNOTATION_RETRIED: action.at.isoformat()},
                }
            }


def saved_replicas(action: do.SaveReplicas) -> Json:
    """Return the patch that saves N, valid only while nobody has written since it was read."""
    annotations = {keys.ANNOTATION_REPLICAS: saved_value(action.replicas, action.left)}
    return {"metadata": {"annotations": annotations, "resourceVersion": action.resource_version}}


def scaled_source(action: do.Scale, replicas: int) -> Json:
    """Return the patch that scales a StatefulSet that is the source: what we leave there, and N, in one."""
    body = saved_replicas(do.SaveReplicas(replicas, action.replicas, action.resource_version or ""))
    return {**body, "spec": {"replicas": action.replicas}}


def released(live: Json) -> Json:
    """Return the patch that takes our marks off a StatefulSet, and our name from those who wrote its fields.

    Left there, its user's next server-side apply of `replicas` would be a conflict with us.
    """
    metadata = live["metadata"]
    kept = [entry for entry in metadata.get("managedFields", ()) if entry.get("manager") != FIELD_MANAGER]
    return {
        "metadata": {
            "annotations": {keys.ANNOTATION_TAKEN_OVER: None, keys.ANNOTATION_REPLICAS: None},
            # An empty list would leave what is there; one empty entry means none.
            "managedFields": kept or [{}],
            "resourceVersion": metadata["resourceVersion"],
        }
    }


def template_of_revision(revision: Json) -> Json:
    """Return the pod template that a StatefulSet's ControllerRevision keeps."""
    template: Json = dict(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return template


def replicas_of(owner: Json) -> int:
    """Return the replicas that a Deployment is to have; as the API server, 1 where none are written."""
    replicas: int = owner["spec"].get("replicas", 1)
    return replicas


def _counts(owner: Json) -> dict[str, str]:
    """Return what a ReplicaSet with replicas bears of its Deployment's counts: nothing else writes them.

    With another `desired-replicas` the Deployment controller takes a sync for a scaling: it shares out all
    that is above or below N + S among the ReplicaSets, ready or not, and rolls nothing out any more
    (`isScalingEvent` in pkg/controller/deployment/sync.go of Kubernetes 1.36).
    """
    replicas = replicas_of(owner)
    surge, _ = rolling_numbers(owner["spec"], replicas)
    return {DESIRED: str(replicas), MOST: str(replicas + surge)}


def reattaching(action: do.Reattach, owner: Json) -> Json:
    """Return the patch that lets the Deployment controller adopt a ReplicaSet again."""
    annotations: dict[str, str | None] = {keys.ANNOTATION_TAKEN_OVER: None, keys.ANNOTATION_SOURCE: None}
    if action.active:
        annotations |= _counts(owner)
    return {
        "metadata": {
            "labels": {**dict(action.labels), keys.LABEL_SPLIT: None},
            "annotations": annotations,
            "resourceVersion": action.resource_version,
        }
    }


def labelling(source: SourceView, action: do.LabelPod) -> Json:
    """Return the patch that labels a running pod for a pool, or takes the labels off."""
    labels: dict[str, str | None] = {keys.LABEL_POOL: None, keys.LABEL_SOURCE: None}
    if action.pool is not None:
        labels = dict(pod_labels(source.key.name, action.pool))
    return {"metadata": {"uid": action.uid, "labels": labels}}


def keeping(source: SourceView, name: str, live: Json) -> Json:
    """Return a parked ReplicaSet at 0 with the template of another one, without our labels.

    It has a hash of its own, so that it selects no pod of the other.
    """
    template = _relabelled(live["spec"]["template"], {TEMPLATE_HASH: name.rpartition("-")[2], **_UNLABELLED})
    labels = template["metadata"]["labels"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": source.key.namespace,
            "labels": {
                **{key: text for key, text in labels.items() if key not in source.selector_keys},
                keys.LABEL_SPLIT: keys.SPLIT_PARKED,
            },
            "annotations": {**_history(live), keys.ANNOTATION_SOURCE: source.key.name},
            "ownerReferences": [{**_owner(source), "blockOwnerDeletion": False}],
        },
        "spec": {
            "replicas": 0,
            "minReadySeconds": live["spec"].get("minReadySeconds", 0),
            "selector": _selecting(
                orjson.loads(source.manifest_json)["spec"]["selector"], (labels[TEMPLATE_HASH],)
            ),
            "template": template,
        },
    }


def adopting(source: SourceView, action: do.AdoptPods, owner: Json, kept: Json) -> Json:
    """Return the ReplicaSet that adopts pods for their new owner, a twin or the source.

    The Deployment controller compares templates without the hash, so it takes one with the owner's template
    for its newest revision. `kept` has the template: the owner, or a ReplicaSet that also knows its revision.
    """
    ours = pod_labels(source.key.name, action.pool) if action.pool is not None else _UNLABELLED
    made = _relabelled(kept["spec"]["template"], {TEMPLATE_HASH: action.hashes[0], **ours})
    history = _history(kept) if kept is not owner else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": action.name,
            "namespace": source.key.namespace,
            "labels": _labels_of_a_replica_set(made["metadata"]["labels"], owner),
            "annotations": {**history, **_counts(owner)},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": owner.get("kind", source.key.kind),
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            # As many as its Deployment would set it to at once: it is the only one that has replicas.
            "replicas": replicas_of(owner),
            "minReadySeconds": owner["spec"].get("minReadySeconds", 0),
            "selector": _selecting(owner["spec"]["selector"], action.hashes),
            "template": made,
        },
    }


def _labels_of_a_replica_set(labels: Mapping[str, str], owner: Json) -> dict[str, str]:
    """Return a template's labels, without the one by which ReplicaSets of ours are found if the owner can.

    A template may have it from `commonLabels`. With `parked` a ReplicaSet would be taken for one that is.
    """
    selector = owner["spec"]["selector"]
    terms = {term["key"] for term in selector.get("matchExpressions") or ()}
    selected = keys.LABEL_SPLIT in {*(selector.get("matchLabels") or {}), *terms}
    return {key: text for key, text in labels.items() if selected or key != keys.LABEL_SPLIT}


def _history(live: Json) -> dict[str, str]:
    annotations = live["metadata"].get("annotations", {})
    return {key: annotations[key] for key in _HISTORY if key in annotations}


def _relabelled(template: Json, changes: Mapping[str, str | None]) -> Json:
    """Return a pod template with these labels; None takes one off."""
    labels = {**template["metadata"].get("labels", {}), **changes}
    kept = {key: text for key, text in labels.items() if text is not None}
    return {**template, "metadata": {**template["metadata"], "labels": kept}}


def _selecting(selector: Json, hashes: Sequence[str]) -> Json:
    """Return an owner's selector for pods with one of these hashes."""
    if len(hashes) == 1:
        return {**selector, "matchLabels": {**selector.get("matchLabels", {}), TEMPLATE_HASH: hashes[0]}}
    term = {"key": TEMPLATE_HASH, "operator": "In", "values": list(hashes)}
    return {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), term]}


def twin(action: do.ApplyTwin) -> Json:
    """Return a whole twin: what was rendered, the number of replicas, and the numbers of the roll.

    Of a StatefulSet the partition, and where its ordinals begin as they do.
    """
    body: Json = orjson.loads(action.manifest_json)
    if action.resource_version is not None:
        body["metadata"]["resourceVersion"] = action.resource_version
    body["metadata"].setdefault("annotations", {})[keys.ANNOTATION_RENDERED_HASH] = action.hash
    body["spec"]["replicas"] = action.replicas
    if action.paused:
        body["spec"]["paused"] = True
    if body.get("kind") == STATEFUL_SET:
        body["spec"]["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": action.partition},
        }
        if action.first_ordinal is not None:  # another beginning would replace every pod
            body["spec"]["ordinals"] = {"start": action.first_ordinal}
        return body
    body["spec"]["strategy"] = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": action.max_surge, "maxUnavailable": action.max_unavailable},
    }
    return body


def with_template(deployment: Json, template: Json, resource_version: str, *, tried: bool = True) -> Json:
    """Return a twin with another pod template, marked as out of date: the rendered one comes again later."""
    metadata, selected = template["metadata"], deployment["spec"]["selector"].get("matchLabels", {})
    labels = {key: text for key, text in metadata["labels"].items() if key != TEMPLATE_HASH} | selected
    annotations = dict(deployment["metadata"].get("annotations", {}))
    rendered = annotations.get(keys.ANNOTATION_RENDERED_HASH, "") if tried else ""
    annotations[keys.ANNOTATION_RENDERED_HASH] = withdrawn(rendered)
    return {
        **deployment,
        "metadata": {
            **deployment["metadata"],
            "annotations": annotations,
            "resourceVersion": resource_version,
        },
        "spec": {**deployment["spec"], "template": {**template, "metadata": {**metadata, "labels": labels}}},
    }

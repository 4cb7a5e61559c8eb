"""Pods, and the pods that a template would make."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from sys import intern

import orjson

from splitter.core.causes import ContainerFacts, of_containers, of_scheduling
from splitter.core.desired.scheduling import MAX_REQUIREMENTS
from splitter.core.labels_annotations import ANNOTATION_HELD_FOR, LABEL_PLACEHOLDER, LABEL_POOL, LABEL_SOURCE
from splitter.core.names import is_name
from splitter.core.nodes.fit import MatchExpression, NodeTerm, PodRequest, SpreadConstraint, Toleration
from splitter.core.replica import Pool, Trouble
from splitter.kube.client import FIELD_MANAGER
from splitter.kube.packed import Labels
from splitter.kube.parse.fields import (
    Raw,
    condition,
    controller,
    count,
    identity,
    instant,
    quantity,
    short,
    texts,
)
from splitter.kube.records import TEMPLATE_HASH, PodRecord

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
REVISION = "controller-revision-hash"
REPLICA_SET = "ReplicaSet"
COST_BEFORE = "splitter.io/deletion-cost-before"
# Longer than anybody waits for a pod; what is written there may be any number.
_LONGEST_GRACE_S = 10**6
_KINDS = ("matchExpressions", "matchFields")
_LONGEST_COST = len("-2147483648")
_NO_LABELS = Labels({})
# Of one pod's requests; a node offers a few.
_MOST_RESOURCES = 32
# What kubelet or scheduler say; a person reads less of it.
_LONGEST_MESSAGE = 1000
_TERMINATION_MAX_S = 3600  # more than any notice
_POOLS = {pool.value: pool for pool in Pool}


def pod(raw: Raw) -> PodRecord:
    """Parse a pod."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    controlling = controller(metadata)
    ready = condition(status, "Ready")
    is_ready = ready is not None and ready["status"] == "True"
    scheduled = condition(status, "PodScheduled")
    unschedulable = (
        scheduled is not None
        and scheduled["status"] == "False"
        and scheduled.get("reason") == "Unschedulable"
    )
    annotations, labels = metadata.get("annotations", {}), texts(metadata.get("labels"))
    of_replica_set = controlling is not None and controlling.get("kind") == REPLICA_SET
    return PodRecord(
        *identity(metadata),
        name=metadata["name"],
        owner_uid=intern(short(controlling["uid"])) if controlling else None,
        node=intern(spec["nodeName"]) if spec.get("nodeName") else None,
        ready_since=_since(ready, metadata) if is_ready and ready else None,
        unready_since=None if is_ready else _unready_since(ready, scheduled, metadata),
        created=instant(metadata["creationTimestamp"]),
        terminating="deletionTimestamp" in metadata,
        terminating_since=_asked_to_end(metadata),
        finished=status.get("phase") in {"Succeeded", "Failed"},
        bound_since=_since(scheduled, metadata) if scheduled and scheduled["status"] == "True" else None,
        unschedulable_since=_since(scheduled, metadata) if scheduled and unschedulable else None,
        trouble=None if is_ready else _trouble(status, scheduled),
        revision=intern(labels.get(REVISION, "") or _template_hash(labels)),
        born=_POOLS.get(labels.get(LABEL_POOL, "")),
        labelled_for=intern(labels.get(LABEL_SOURCE, "")) if LABEL_POOL in labels else "",
        labels=_alike_labels(Labels(labels)) if of_replica_set or not controlling else _NO_LABELS,
        of_replica_set=of_replica_set,
        held_for=short(annotations.get(ANNOTATION_HELD_FOR, "")) if LABEL_PLACEHOLDER in labels else "",
        deletion_cost=_cost(annotations.get(DELETION_COST)),
        cost_before=_cost(annotations.get(COST_BEFORE)),
        cost_at=_last_written(metadata) if COST_BEFORE in annotations else None,
        termination_s=_termination_s(spec),
        priority=spec.get("priority") or 0,
        requests=_requests(spec),
    )


def _last_written(metadata: Raw) -> datetime | None:
    """Return when splitter last wrote to an object; None if no managed field says so."""
    ours = [one for one in metadata.get("managedFields", ()) if one.get("manager") == FIELD_MANAGER]
    return max((instant(one["time"]) for one in ours if one.get("time")), default=None)


def _cost(text: str | None) -> str | None:
    """Return a deletion cost; the API server takes a number of 32 bits, and what is none was none before."""
    return text if text is None or len(text) <= _LONGEST_COST else ""


def _template_hash(labels: Mapping[str, str]) -> str:
    """Return the label by which a ReplicaSet selects, if a name may have it: anybody may write any text."""
    template_hash = labels.get(TEMPLATE_HASH, "")
    return template_hash if is_name(template_hash) else ""


def _asked_to_end(metadata: Raw) -> datetime | None:
    """Return when a pod was asked to end: its deletionTimestamp is when its grace is over."""
    if "deletionTimestamp" not in metadata:
        return None
    grace = timedelta(seconds=min(count(metadata, "deletionGracePeriodSeconds"), _LONGEST_GRACE_S))
    return instant(metadata["deletionTimestamp"]) - grace


def _since(condition: Raw, metadata: Raw) -> datetime:
    """Return when a condition became so; some kubelets leave it out."""
    return instant(condition.get("lastTransitionTime") or metadata["creationTimestamp"])


def _unready_since(ready: Raw | None, scheduled: Raw | None, metadata: Raw) -> datetime | None:
    """Return since when a bound pod is not ready: it ceased to be so, or was bound; None while unbound."""
    if scheduled is None or scheduled["status"] != "True":
        return None
    return _since(ready or scheduled, metadata)


def _termination_s(spec: Raw) -> int:
    """Return the seconds that it is given to end; the API server fills in 30, and takes any number."""
    given_s: int = spec.get("terminationGracePeriodSeconds", 30)
    return min(max(0, given_s), _TERMINATION_MAX_S)


def _trouble(status: Raw, scheduled: Raw | None) -> Trouble | None:
    """Return what keeps an unready pod from running, where scheduler or kubelet say so."""
    if scheduled is not None and scheduled["status"] == "False":
        return of_scheduling(
            scheduled.get("reason", ""), short(scheduled.get("message", ""), _LONGEST_MESSAGE)
        )
    containers = (
        container
        for kind in ("initContainerStatuses", "containerStatuses")
        for container in status.get(kind) or ()
        if not container.get("ready")
    )
    return of_containers(map(_container, containers))


def _container(raw: Raw) -> ContainerFacts:
    state = raw.get("state") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or (raw.get("lastState") or {}).get("terminated") or {}
    return ContainerFacts(
        name=short(raw["name"]),
        image=short(raw.get("image", "")),
        waiting=short(waiting.get("reason", "")),
        message=short(waiting.get("message", ""), _LONGEST_MESSAGE),
        restarts=count(raw, "restartCount"),
        exit_code=count(ended, "exitCode"),
        ended=short(ended.get("reason", "")),
        last_words=short(ended.get("message", ""), _LONGEST_MESSAGE),
    )


def pod_request(spec: Raw) -> PodRequest:
    """Parse what the scheduler looks at, for the count of free room.

    What asks more of a node than splitter renders (`MAX_REQUIREMENTS`) is taken to fit nowhere.
    """
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    where = [spec.get("nodeSelector"), required.get("nodeSelectorTerms"), spec.get("tolerations")]
    text = orjson.dumps(where)
    parsed = _anywhere(text) if len(text) <= _ALIKE_BYTES else _anywhere.__wrapped__(text)
    return replace(parsed, requests=dict(_requests(spec)))


# Templates ask for every kind of spot node by its labels: some 130 objects, the same for nearly all twins.
# They are kept when nobody has them any more, too: so not what is large, and may be another each second.
_ALIKE_BYTES = 8 * 1024


@lru_cache(maxsize=256)
def _anywhere(where: bytes) -> PodRequest:
    """Parse on which nodes a pod may stand, once for all pods that say the same."""
    selector, terms, tolerations = orjson.loads(where)
    asked = [one for term in terms or () for name in _KINDS for one in term.get(name) or ()]
    requirements = sum(1 + len(one.get("values") or ()) for one in asked) + len(terms or ())
    requirements += len(selector or ()) + len(tolerations or ())
    if requirements > MAX_REQUIREMENTS:
        return PodRequest(affinity=(NodeTerm(),))
    return PodRequest(
        requirements=requirements,
        node_selector=selector or {},
        affinity=tuple(NodeTerm(*(expressions(term.get(name)) for name in _KINDS)) for term in terms or ()),
        tolerations=tuple(
            Toleration(
                key=toleration.get("key", ""),
                operator=toleration.get("operator", "Equal"),
                value=toleration.get("value", ""),
                effect=toleration.get("effect", ""),
            )
            for toleration in tolerations or ()
        ),
    )


# More than anybody writes; each is held against every node while relief is asked for.
_SPREADS_MAX = 4


def spread_constraints(spec: Raw) -> tuple[SpreadConstraint, ...]:
    """Parse how pods are to be spread; nothing where it is more than relief heeds."""
    raw = spec.get("topologySpreadConstraints") or ()
    text = orjson.dumps(raw)
    return _spread(text) if raw and len(raw) <= _SPREADS_MAX and len(text) <= _ALIKE_BYTES else ()


@lru_cache(maxsize=256)
def _spread(constraints: bytes) -> tuple[SpreadConstraint, ...]:
    """Parse constraints, once for all pods that say the same."""
    return tuple(
        SpreadConstraint(
            key=one["topologyKey"],
            max_skew=one["maxSkew"],
            strict=one["whenUnsatisfiable"] == "DoNotSchedule",
            selector=None if one.get("labelSelector") is None else label_selector(one["labelSelector"]),
            label_keys=tuple(one.get("matchLabelKeys") or ()),
            min_domains=one.get("minDomains") or 1,
            honors_affinity=one.get("nodeAffinityPolicy") != "Ignore",
            honors_taints=one.get("nodeTaintsPolicy") == "Honor",
        )
        for one in orjson.loads(constraints)
    )


def expressions(raw: Sequence[Raw] | None) -> tuple[MatchExpression, ...]:
    """Parse requirements on a node's labels, as terms of an affinity and NodeClaims have them."""
    return tuple(
        MatchExpression(expression["key"], expression["operator"], tuple(expression.get("values") or ()))
        for expression in raw or ()
    )


def label_selector(raw: Raw) -> tuple[MatchExpression, ...]:
    """Parse a LabelSelector: all of it must match; an empty one matches everything."""
    labels = (raw.get("matchLabels") or {}).items()
    named = tuple(MatchExpression(key, "In", (value,)) for key, value in labels)
    return (*named, *expressions(raw.get("matchExpressions")))


def count_terms(selector: Sequence[MatchExpression]) -> int:
    """Return how many terms and further values a selector has: what comparing it with one pod costs."""
    return sum(max(1, len(term.values)) for term in selector)


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
    # What is asked for the pod as a whole counts in place of its containers'.
    for resource, text in ((spec.get("resources") or {}).get("requests") or {}).items():
        running[resource] = quantity(resource, text)
    for resource, text in (spec.get("overhead") or {}).items():
        running[resource] = running.get(resource, 0) + quantity(resource, text)
    # Those of Kubernetes' own first.
    first = sorted(running.items(), key=lambda one: ("/" in one[0], one))[:_MOST_RESOURCES]
    return _alike(tuple((intern(resource), amount) for resource, amount in first))


@lru_cache(maxsize=1024)
def _alike_labels(labels: Labels) -> Labels:
    """Return what pods of one ReplicaSet keep together: they have the same labels."""
    return labels


@lru_cache(maxsize=1024)
def _alike(requests: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """Return what pods that ask for the same keep together."""
    return requests


def _add(total: dict[str, int], container: Raw) -> None:
    for resource, text in container.get("resources", {}).get("requests", {}).items():
        total[resource] = total.get(resource, 0) + quantity(resource, text)

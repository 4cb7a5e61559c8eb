"""Deployments and StatefulSets, the users' and ours, and ReplicaSets."""

from collections.abc import Callable
from datetime import datetime
from math import ceil, floor

import orjson

from splitter.core import labels_annotations as keys
from splitter.core.causes import of_refusal
from splitter.core.desired.compare import pod_hash, template_hash
from splitter.core.model import ReplicaSetView, SourceView, TwinView
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key, is_name
from splitter.core.replica import Pool
from splitter.core.split_status import Condition
from splitter.kube.client import FIELD_MANAGER
from splitter.kube.packed import Labels
from splitter.kube.parse import statefulsets
from splitter.kube.parse.edits import edits, owned, theirs
from splitter.kube.parse.fields import (
    Raw,
    UnreadableError,
    condition,
    controller,
    count,
    identity,
    instant,
    maybe_instant,
    ours,
    owners,
    short,
    texts,
)
from splitter.kube.parse.pods import count_terms, label_selector, pod_request, spread_constraints
from splitter.kube.records import TEMPLATE_HASH, ReplicaSetRecord, SourceRecord, TwinRecord, pack_selector


def replica_set(raw: Raw) -> ReplicaSetRecord:
    """Parse a ReplicaSet; the hash of its template tells whose revision it is."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    deployments = [ref for ref in owners(metadata) if ref["kind"] == DEPLOYMENT]
    controlling = controller(metadata)
    labels, annotations = texts(metadata.get("labels")), texts(metadata.get("annotations"))
    # Orphaned together with its source: we wrote whose it is when we parked it.
    orphaned = not deployments and controlling is None and labels.get(keys.LABEL_SPLIT) == keys.SPLIT_PARKED
    named = (
        deployments[0]["name"]
        if deployments
        else annotations.get(keys.ANNOTATION_SOURCE)
        if orphaned
        else None
    )
    kept, template_labels = Labels(labels), Labels(texts(spec["template"]["metadata"].get("labels")))
    failure = _failure(status)
    return ReplicaSetRecord(
        *identity(metadata),
        controller_uid=short(controlling["uid"]) if controlling else None,
        owner_uids=tuple(short(ref["uid"]) for ref in deployments[:_MOST_OWNERS]),
        owner_name=named if is_name(named) else None,  # anybody may write there what nothing is called
        labels=kept,
        labels_unknown=kept.unknown or template_labels.unknown,
        template_labels_bytes=template_labels.bytes,
        deleting="deletionTimestamp" in metadata,
        packed_selector=pack_selector(label_selector(spec.get("selector") or {})),
        view=ReplicaSetView(
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version="",
            marked=keys.ANNOTATION_TAKEN_OVER in annotations,
            pod_hash=pod_hash(spec["template"]) if keys.LABEL_POOL in labels else "",
            template_labels=template_labels,
            hashes=_selected_hashes(spec.get("selector") or {}),
            template_hash=template_hash(spec["template"]),
            spec_replicas=count(spec, "replicas", 1),
            status_replicas=count(status, "replicas"),
            available_replicas=count(status, "availableReplicas"),
            refusal=of_refusal(short(failure.get("message", ""), _LONGEST_MESSAGE))
            if failure is not None
            else None,
            refused_since=maybe_instant(failure.get("lastTransitionTime")) if failure is not None else None,
            retried=_retried(annotations),
            deleted=maybe_instant(metadata.get("deletionTimestamp")),
            created=instant(metadata["creationTimestamp"]),
        ),
    )


_MOST_HASHES = 20
# A ReplicaSet has one owner, or two while it changes them.
_MOST_OWNERS = 16
_LONGEST_MESSAGE = 1000
_INSTANT_LENGTH = len("2026-11-25T03:00:00.000000+00:00")


def _selected_hashes(selector: Raw) -> tuple[str, ...]:
    """Return which values of pod-template-hash a ReplicaSet selects."""
    if (only := selector.get("matchLabels", {}).get(TEMPLATE_HASH)) is not None:
        return (only,)
    terms = (term for term in selector.get("matchExpressions", ()) if term["key"] == TEMPLATE_HASH)
    return next(
        (tuple(term.get("values") or ())[:_MOST_HASHES] for term in terms if term["operator"] == "In"), ()
    )


def _failure(status: Raw) -> Raw | None:
    """Return the condition of a ReplicaSet whose pods are refused."""
    failure = condition(status, "ReplicaFailure")
    is_refused = (
        failure is not None and failure["status"] == "True" and failure.get("reason") == "FailedCreate"
    )
    return failure if is_refused else None


def _retried(annotations: Raw) -> datetime | None:
    """Return when we had it try again; None for what nobody wrote like that."""
    text = annotations.get(keys.ANNOTATION_RETRIED, "")
    try:
        return instant(text) if len(text) <= _INSTANT_LENGTH else None
    except ValueError:
        return None


def twin(raw: Raw) -> TwinRecord:
    """Parse a twin (the selector of its watch is our own label).

    Raises UnreadableError when it is nobody's, or is not called as the twin of its owner: whoever may write a
    workload with our labels would choose whose it is.
    """
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    labels, kind = metadata["labels"], raw.get("kind", DEPLOYMENT)
    # An owner that was taken away is put back; until then the label says whose twin it is.
    orphan = {"kind": kind, "name": labels.get(keys.LABEL_SOURCE, ""), "uid": ""}
    owner: Raw = controller(metadata) or orphan
    if not owner["name"]:
        raise UnreadableError(f"neither an owner nor {keys.LABEL_SOURCE} says whose twin it is")
    pool = Pool.SPOT if labels.get(keys.LABEL_POOL) == Pool.SPOT else Pool.ON_DEMAND
    if (
        owner["kind"] != kind
        or metadata["name"] != keys.twin_name(owner["name"], pool)
        or not is_name(owner["name"])
    ):
        raise UnreadableError("it is not called as the twin of its owner would be")
    replicas = count(spec, "replicas", 1)
    surge, unavailable = rolling_numbers(spec, replicas) if kind == DEPLOYMENT else _ONE_BY_ONE
    return TwinRecord(
        *identity(metadata),
        source=Key(kind, metadata["namespace"], owner["name"]),
        source_uid=owner["uid"],
        request=pod_request(spec["template"].get("spec", {})),
        spreads=spread_constraints(spec["template"].get("spec", {})),
        owned=owned(raw),
        theirs=theirs(raw),
        created=instant(metadata["creationTimestamp"]),
        revision=status.get("updateRevision", ""),
        view=TwinView(
            pool=pool,
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version="",
            rendered_hash=metadata.get("annotations", {}).get(keys.ANNOTATION_RENDERED_HASH, ""),
            robbed=labels.get(keys.LABEL_SPLIT) != keys.SPLIT_TWIN or not owner["uid"],
            made_of=metadata.get("annotations", {}).get(keys.ANNOTATION_MADE_OF, ""),
            stalled=_is_stalled(status),
            template_hash=template_hash(spec["template"]),
            spec_replicas=replicas,
            status_replicas=count(status, "replicas"),
            available_replicas=count(status, "availableReplicas"),
            updated_replicas=count(status, "updatedReplicas"),
            observed=count(status, "observedGeneration") >= metadata["generation"],
            max_surge=surge,
            max_unavailable=unavailable,
            deleting="deletionTimestamp" in metadata,
            paused=bool(spec.get("paused")) and kind == DEPLOYMENT,
            edits=edits(raw),
            first_ordinal=statefulsets.first_ordinal(spec) if kind == STATEFUL_SET else None,
            partition=statefulsets.partition(spec),
        ),
    )


# The API server takes a percentage of any number of digits.
_MOST_PERCENT = 10**9
# A StatefulSet has no surge, and its roll takes one pod at a time.
_ONE_BY_ONE = (0, 1)


def _is_stalled(status: Raw) -> bool:
    progressing = condition(status, "Progressing")
    return progressing is not None and progressing.get("reason") == "ProgressDeadlineExceeded"


def rolling_numbers(spec: Raw, replicas: int) -> tuple[int, int]:
    """Resolve maxSurge (rounded up) and maxUnavailable (down) as the Deployment controller does."""
    rolling = spec.get("strategy", {}).get("rollingUpdate") or {}
    surge = _of(rolling.get("maxSurge", "25%"), replicas, ceil)
    unavailable = _of(rolling.get("maxUnavailable", "25%"), replicas, floor)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _of(written: int | str, replicas: int, rounding: Callable[[float], int]) -> int:
    if isinstance(written, int):
        return written
    digits = written.rstrip("%")
    percent = int(digits) if len(digits) < len(str(_MOST_PERCENT)) else _MOST_PERCENT
    return rounding(percent * replicas / 100)


def source(raw: Raw) -> SourceRecord:
    """Parse the user's Deployment or StatefulSet.

    A StatefulSet knows no surge; its twins have pods of other names, so there may be one beside the others.
    """
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    kind = raw.get("kind", DEPLOYMENT)
    replicas = count(spec, "replicas", 1)
    only = statefulsets.stateful(raw) if kind == STATEFUL_SET else None
    surge, unavailable = rolling_numbers(spec, replicas) if only is None else (1, 1)
    controlling = controller(metadata)
    observed = count(status, "observedGeneration") >= metadata["generation"]
    counts = [count(status, name) for name in ("updatedReplicas", "availableReplicas", "replicas")]
    one_revision = status.get("currentRevision") == status.get("updateRevision")
    selector_keys = _selector_keys(spec["selector"])
    view = SourceView(
        key=Key(kind, metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=metadata["generation"],
        replicas=only.saved if only is not None and only.saved is not None else replicas,
        max_surge=surge,
        max_unavailable=unavailable,
        paused=bool(spec.get("paused")),
        observed=observed,
        template_hash=template_hash(spec["template"]),
        labels=ours(metadata.get("labels")),
        annotations=ours(metadata.get("annotations")),
        selector_keys=selector_keys,
        manifest_json=_manifest(raw),
        pod_hash=pod_hash(spec["template"]),
        deleting="deletionTimestamp" in metadata,
        paused_by_us=_paused_by(metadata, ours=True) is not None,
        unpaused_by_manifest=_unpaused_by_manifest(metadata, spec),
        recreate=spec.get("strategy", {}).get("type") == "Recreate",
        releasable=bool(selector_keys),
        controller=f"{controlling['kind']}/{controlling['name']}" if controlling else None,
        # What is fully updated does not roll, whatever keeps a replica from being ready.
        rollout_complete=observed and one_revision and counts[0] == counts[2] <= replicas,
        all_available=counts[1] == replicas,
        claims=_claims(spec["template"].get("spec", {})),
        one_a_node=_one_a_node(spec["template"]),
        revisions_kept=count(spec, "revisionHistoryLimit", 10),
        stateful=only,
        pod_labels=_pod_labels(spec),
        selector=statefulsets.selector_text(spec["selector"]),
        selector_terms=count_terms(label_selector(spec["selector"])),
        by_karmada=texts(metadata.get("labels")).get(keys.LABEL_KARMADA) == "true",
        available=Condition.from_json(ours_there)
        if (ours_there := condition(status, keys.CONDITION_AVAILABLE)) is not None
        else None,
        karmada_generation=_karmada_generation(metadata),
        rollout=f"{counts[0]} updated, {counts[1]} available, {counts[2]} in all, {replicas} wanted",
    )
    return SourceRecord(*identity(metadata), view)


_MOST_DIGITS = 19  # of an int64
# A workload that has more of anything is over a limit of `core.limits`.
_MOST_NAMES = 256


def _karmada_generation(metadata: Raw) -> str:
    """Return the generation of the workload in Karmada's control plane; empty: Karmada does not manage it."""
    annotations = metadata.get("annotations") or {}
    if texts(metadata.get("labels")).get(keys.LABEL_KARMADA) != "true":
        return ""
    generation = annotations.get("resourcetemplate.karmada.io/generation", "")
    return generation if len(generation) <= _MOST_DIGITS else ""


def _pod_labels(spec: Raw) -> tuple[str, ...]:
    """Return the labels that no source's pods may have, as far as its template or selector names some."""
    selector, template = spec["selector"], spec["template"]["metadata"].get("labels") or {}
    terms = [term["key"] for term in selector.get("matchExpressions") or ()]
    names = {*(selector.get("matchLabels") or {}), *terms, *template}
    return tuple(
        sorted(name for name in names if name.startswith((keys.PREFIX, TEMPLATE_HASH)))[:_MOST_NAMES]
    )


def _claims(pod_spec: Raw) -> tuple[str, ...]:
    """Return the claims by name; a template of a claim makes one a pod, and is nobody's trouble."""
    sources = (volume.get("persistentVolumeClaim") for volume in pod_spec.get("volumes") or ())
    return tuple(claim["claimName"] for claim in sources if claim is not None)[:_MOST_NAMES]


def _one_a_node(template: Raw) -> str:
    """Say what keeps a second pod of the template off a node; empty when nothing does."""
    pod_spec, labels = template.get("spec", {}), template["metadata"].get("labels", {})
    for container in pod_spec.get("containers", ()):
        for port in container.get("ports") or ():
            if "hostPort" in port:
                return f"hostPort {port['hostPort']}"
    rules = ((pod_spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    for rule in rules or ():
        wanted = (rule.get("labelSelector") or {}).get("matchLabels") or {}
        if wanted and wanted.items() <= labels.items() and rule["topologyKey"] == "kubernetes.io/hostname":
            return "required pod anti-affinity to itself"
    return ""


def _selector_keys(selector: Raw) -> tuple[str, ...]:
    """Return the labels whose absence takes a ReplicaSet out of the selector."""
    positive = [
        term["key"] for term in selector.get("matchExpressions", ()) if term["operator"] in {"In", "Exists"}
    ]
    return tuple(sorted({*selector.get("matchLabels", {}), *positive}))[:_MOST_NAMES]


def _manifest(raw: Raw) -> str:
    """Return what templates and the hand-back may read of the source, as canonical JSON."""
    metadata = raw["metadata"]
    kept = {
        name: metadata[name]
        for name in ("name", "namespace", "uid", "labels", "annotations")
        if name in metadata
    }
    kind = raw.get("kind", DEPLOYMENT)
    document = {"apiVersion": "apps/v1", "kind": kind, "metadata": kept, "spec": raw["spec"]}
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
    """Name the writer whose manifest says `paused: false` (H11)."""
    if not spec.get("paused") and (manager := _paused_by(metadata, ours=False)) is not None:
        return f"the manifest applied by {manager}"
    applied = metadata.get("annotations", {}).get(statefulsets.LAST_APPLIED)
    if applied:
        try:
            if orjson.loads(applied).get("spec", {}).get("paused") is False:
                return "the manifest applied with kubectl"
        except (orjson.JSONDecodeError, AttributeError):
            return None
    return None

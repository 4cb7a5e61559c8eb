"""What only StatefulSets have: N while the source stands at 0, who writes it, ordinals, claims."""

from collections.abc import Iterator
from math import ceil

import orjson

from splitter.core.labels_annotations import ANNOTATION_REPLICAS
from splitter.core.labels_annotations.saved import parse_saved
from splitter.core.limits import MAX_MEMBER_CLAIMS
from splitter.core.stateful import StatefulView
from splitter.kube.client import FIELD_MANAGER
from splitter.kube.parse.fields import Raw, count, instant

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Managers that apply what is in Git again and again, by how they sign: Argo CD, Flux, Fleet, Config Sync,
# kapp-controller, Rancher, Sveltos. Who applies by hand is understood as a person who says another N.
_GITOPS = (
    *("argocd", "kustomize-controller", "helm-controller", "flux", "fleet", "configsync", "kapp-controller"),
    *("reconciler-manager", "addon-controller", "sveltos"),
)


def stateful(raw: Raw) -> StatefulView:
    """Parse what only a StatefulSet has."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    saved = parse_saved(metadata.get("annotations", {}).get(ANNOTATION_REPLICAS))
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    strategy = spec.get("updateStrategy") or {}
    templates = spec.get("volumeClaimTemplates") or ()
    return StatefulView(
        spec_replicas=count(spec, "replicas", 1),
        status_replicas=count(status, "replicas"),
        available_replicas=count(status, "availableReplicas"),
        created=instant(metadata["creationTimestamp"]),
        saved=saved.replicas if saved else None,
        left=saved.left if saved else 0,
        writer=_writer(metadata),
        declared_by=_declared_by(metadata),
        service=spec.get("serviceName") or "",
        first_ordinal=first_ordinal(spec),
        partition=partition(spec),
        revision=status.get("updateRevision", ""),
        on_delete=strategy.get("type") == "OnDelete",
        update_at_once=_update_at_once(strategy, count(spec, "replicas", 1)),
        min_ready_s=float(count(spec, "minReadySeconds")),
        deletes_claims=retention.get("whenScaled") == "Delete",
        # Whatever else it says is taken for the one that makes fewer pods.
        parallel=spec.get("podManagementPolicy") == "Parallel",
        updating=_updating(spec, status),
        claim_templates=tuple(one["metadata"]["name"] for one in templates[: MAX_MEMBER_CLAIMS + 1]),
    )


def _updating(spec: Raw, status: Raw) -> str:
    """Describe the progress of a rolling update; empty when there is none."""
    if (spec.get("updateStrategy") or {}).get("type") == "OnDelete":
        return ""
    if status.get("currentRevision") == status.get("updateRevision"):
        return ""
    updated, wanted = count(status, "updatedReplicas"), count(spec, "replicas", 1) - partition(spec)
    return f"{updated} of {wanted} pods have the new template" if updated < wanted else ""


def _update_at_once(strategy: Raw, replicas: int) -> int:
    """Return how many pods its update takes at a time: 1, or `maxUnavailable`, of a share rounded up."""
    written = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    if isinstance(written, str):
        share = written.removesuffix("%")
        # Without this a share of many digits would be multiplied out.
        written = ceil(int(share) * replicas / 100) if share.isdecimal() and len(share) <= len("100") else 1
    return max(1, written) if isinstance(written, int) else 1


def first_ordinal(spec: Raw) -> int:
    """Return the ordinal of its first pod."""
    return int((spec.get("ordinals") or {}).get("start", 0))


def partition(spec: Raw) -> int:
    """Return how many of its pods keep the old template in a roll."""
    return int(((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition") or 0)


def selector_text(selector: Raw) -> str:
    """Return a label selector as it is written in a query.

    >>> selector_text({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "kv"]}]})
    'app in (db,kv)'
    """
    terms = [f"{key}={value}" for key, value in sorted(selector.get("matchLabels", {}).items())]
    for term in selector.get("matchExpressions") or ():
        key, values = term["key"], ",".join(term.get("values") or ())
        match term["operator"]:
            case "In":
                terms.append(f"{key} in ({values})")
            case "NotIn":
                terms.append(f"{key} notin ({values})")
            case "Exists":
                terms.append(key)
            case _:
                terms.append(f"!{key}")
    return ",".join(terms)


def _writers(metadata: Raw) -> Iterator[Raw]:
    """Yield the entries of others that own spec.replicas."""
    for entry in metadata.get("managedFields") or ():
        owns = "f:replicas" in (entry.get("fieldsV1") or {}).get("f:spec", {})
        if owns and entry.get("manager") != FIELD_MANAGER:
            yield entry


def _writer(metadata: Raw) -> str:
    """Return the last writer of spec.replicas, if it was not us."""
    newest = max(_writers(metadata), key=lambda entry: str(entry.get("time", "")), default=None)
    return str(newest.get("manager", "")) if newest is not None else ""


def _declared_by(metadata: Raw) -> str:
    """Name the GitOps manager that applies spec.replicas; one whose manifest leaves it out by now is none."""
    for entry in _writers(metadata):
        manager = str(entry.get("manager", ""))
        if not manager.lower().startswith(_GITOPS):
            continue
        if entry.get("operation") == "Apply" or _applied_replicas(metadata):
            return manager
    return ""


def _applied_replicas(metadata: Raw) -> bool:
    """Whether the manifest that was applied last, as far as that is remembered, has spec.replicas."""
    applied = metadata.get("annotations", {}).get(LAST_APPLIED)
    if not applied:
        return True
    try:
        return "replicas" in orjson.loads(applied).get("spec", {})
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        return True

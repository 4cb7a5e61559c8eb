"""What a twin must look like: what is ours on it whatever a template says, and how it is compared.

`render` calls `enforce` on what a template rendered and `rendered_hash` on the result; the planner
compares that hash with the one stored on the twin, never the manifest with a server-defaulted
object. `template_hash` finds the ReplicaSet that runs a template. The functions that add affinity
and tolerations or merge are the templates' filters (templates/README.md). Manifests are plain JSON
(mappings, lists, scalars); no function here changes what it was given.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from splitter.core.model import Pool
from splitter.core.surface import (
    ANNOTATION_RENDERED_HASH,
    LABEL_POOL,
    LABEL_SOURCE,
    LABEL_SPLIT,
    PREFIX,
    SPLIT_TWIN,
    short_name,
    twin_name,
)

Manifest = Mapping[str, object]

# 64 bits: two manifests of one twin meet by chance once in 10^19; and people compare them by eye.
_HASH_LENGTH: Final = 16

# An emergency in mid-roll puts the last available template back, read from its ReplicaSet
# (handover.md, "Rolling"): the current one and one before it have to exist.
REVISION_HISTORY_LIMIT: Final = 2

# The numbers of a roll are written by splitter together with a template, from the room there is at
# that moment. These stand there until then, and lower nothing.
INITIAL_STRATEGY: Final[Manifest] = {
    "type": "RollingUpdate",
    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
}

# Labels of a Deployment that describe it to people. Everything else with a prefix may belong to a
# tool that takes what carries its label for its own, and prunes it: so this is what is copied.
_DESCRIPTIVE_LABELS: Final = frozenset(
    {
        "app.kubernetes.io/name",
        "app.kubernetes.io/component",
        "app.kubernetes.io/part-of",
        "app.kubernetes.io/version",
    }
)
# Labels without a prefix are the user's, but for those of Helm's old charts.
_UNPREFIXED_TRACKING: Final = frozenset({"chart", "heritage", "release"})

# What no twin carries in its own metadata, even where a template copies everything: the marks by
# which Argo CD, Flux, Helm, kapp, kubectl and Reloader find what they rule. `app.kubernetes.io/instance`
# is Argo CD's tracking label by default.
_TRACKING_KEYS: Final = frozenset(
    {
        "app.kubernetes.io/instance",
        "app.kubernetes.io/managed-by",
        "helm.sh/chart",
        "kubectl.kubernetes.io/last-applied-configuration",
        "deployment.kubernetes.io/revision",
    }
)
_TRACKING_DOMAINS: Final = (
    "argocd.argoproj.io",
    "meta.helm.sh",
    "toolkit.fluxcd.io",
    "kapp.k14s.io",
    "applyset.kubernetes.io",
    "config.kubernetes.io",
    "config.k8s.io",
    "cli-utils.sigs.k8s.io",
    "reloader.stakater.com",
    "skaffold.dev",
)


@dataclass(frozen=True, slots=True)
class NodePresets:
    """What tells spot nodes from others, for affinity and tolerations (rebalancing.md, section 1).

    `spot_terms` are nodeSelectorTerms, ORed; `on_demand_expressions` are matchExpressions of one
    term, ANDed; `spot_tolerations` are what spot nodes' taints ask for.
    """

    spot_terms: tuple[Manifest, ...]
    on_demand_expressions: tuple[Manifest, ...]
    spot_tolerations: tuple[Manifest, ...] = ()


# --- comparing ------------------------------------------------------------------------------------


def rendered_hash(manifest: Manifest) -> str:
    """Return the hash by which a twin is compared with what its template renders.

    Left out is what is written apart from the template: `replicas`, the numbers of the roll, and
    the annotation that stores this very hash. So an HPA's step is no roll.

    >>> rendered_hash({"spec": {"replicas": 3}}) == rendered_hash({"spec": {}})
    True
    """
    metadata, spec = mapping_at(manifest, "metadata"), mapping_at(manifest, "spec")
    annotations = without(mapping_at(metadata, "annotations"), ANNOTATION_RENDERED_HASH)
    strategy = without(mapping_at(spec, "strategy"), "rollingUpdate")
    return _hash(
        {
            **manifest,
            "metadata": {**metadata, "annotations": annotations},
            "spec": {**without(spec, "replicas"), "strategy": strategy},
        }
    )


def template_hash(pod_template: Manifest) -> str:
    """Return a hash that is equal for equal pod templates, as the Deployment controller sees it.

    The label `pod-template-hash`, which only a ReplicaSet's copy carries, is ignored; so is the
    `creationTimestamp: null` that older API servers put into templates.

    >>> copied = {"metadata": {"labels": {"app": "web", "pod-template-hash": "5d8"}}}
    >>> template_hash({"metadata": {"labels": {"app": "web"}}}) == template_hash(copied)
    True
    """
    metadata = mapping_at(pod_template, "metadata")
    labels = without(mapping_at(metadata, "labels"), "pod-template-hash")
    return _hash({**pod_template, "metadata": {**without(metadata, "creationTimestamp"), "labels": labels}})


def canonical_json(value: object) -> str:
    """Return JSON that is equal for equal values: keys sorted, no spaces; NaN is a ValueError."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _hash(value: object) -> str:
    # JSON may hold half of a surrogate pair, which UTF-8 may not.
    digest = hashlib.sha256(canonical_json(value).encode(errors="surrogatepass"))
    return digest.hexdigest()[:_HASH_LENGTH]


# --- what is ours ---------------------------------------------------------------------------------


def pod_labels(source_name: str, pool: Pool) -> dict[str, str]:
    """Return the labels that tell a twin's pods from all others; its selector has them too."""
    return {LABEL_POOL: pool.value, LABEL_SOURCE: short_name(source_name)}


def twin_labels(source_name: str, pool: Pool) -> dict[str, str]:
    """Return the labels of the twin itself."""
    return {LABEL_SPLIT: SPLIT_TWIN, **pod_labels(source_name, pool)}


def enforce(manifest: Manifest, source: Manifest, pool: Pool) -> dict[str, object]:
    """Return the twin with everything that is ours put right, whatever its template said.

    Ours are: apiVersion and kind (the source's), name, namespace, owner, our labels, the selector
    and the labels of the pods it selects, the strategy, and at least two revisions. Gone are:
    `replicas` (the writer adds the number), `paused`, `status`, and of the metadata everything but
    labels and annotations that no other tool tracks.

    A Deployment manifest without a uid (rendered offline) gives a twin without an owner.
    """
    metadata, spec = mapping_at(manifest, "metadata"), mapping_at(manifest, "spec")
    name = str(mapping_at(source, "metadata").get("name", ""))
    ours = {
        **without(spec, "replicas", "paused"),
        "selector": _selector(source, name, pool),
        "template": _pod_template(mapping_at(spec, "template"), source, name, pool),
    }
    if source.get("kind", "Deployment") == "Deployment":
        ours |= {"strategy": INITIAL_STRATEGY, "revisionHistoryLimit": _revisions(spec)}
    return {
        "apiVersion": source.get("apiVersion", "apps/v1"),
        "kind": source.get("kind", "Deployment"),
        "metadata": _metadata(metadata, source, name, pool),
        "spec": ours,
    }


def _metadata(metadata: Manifest, source: Manifest, name: str, pool: Pool) -> dict[str, object]:
    namespace = mapping_at(source, "metadata").get("namespace")
    uid = mapping_at(source, "metadata").get("uid")
    labels = {**_untracked(mapping_at(metadata, "labels")), **twin_labels(name, pool)}
    annotations = _untracked(mapping_at(metadata, "annotations"))
    return {
        "name": twin_name(name, pool),
        **({"namespace": namespace} if namespace else {}),
        "labels": labels,
        **({"annotations": annotations} if annotations else {}),
        **({"ownerReferences": [_owner(source, name, uid)]} if uid else {}),
    }


def _owner(source: Manifest, name: str, uid: object) -> dict[str, object]:
    """Return the reference that lets deleting the source take the twin, and tools find the top.

    `blockOwnerDeletion` would need the right to the source's finalizers where that is guarded, and
    would make a foreground deletion wait for us.
    """
    return {
        "apiVersion": source.get("apiVersion", "apps/v1"),
        "kind": source.get("kind", "Deployment"),
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _selector(source: Manifest, name: str, pool: Pool) -> dict[str, object]:
    """Return the source's selector and our two labels: immutable, so right from the first day."""
    selector = mapping_at(mapping_at(source, "spec"), "selector")
    return {
        **selector,
        "matchLabels": {**mapping_at(selector, "matchLabels"), **pod_labels(name, pool)},
    }


def _pod_template(template: Manifest, source: Manifest, name: str, pool: Pool) -> dict[str, object]:
    """Return the pod template with the labels that its selector asks for."""
    metadata = mapping_at(template, "metadata")
    selected = mapping_at(_selector(source, name, pool), "matchLabels")
    labels = {**mapping_at(metadata, "labels"), **selected}
    annotations = mapping_at(metadata, "annotations")
    kept = without(metadata, "labels", "annotations", "creationTimestamp")
    return {
        **template,
        "metadata": {**kept, "labels": labels, **({"annotations": annotations} if annotations else {})},
    }


def _revisions(spec: Manifest) -> int:
    wished = spec.get("revisionHistoryLimit")
    return max(wished, REVISION_HISTORY_LIMIT) if isinstance(wished, int) else REVISION_HISTORY_LIMIT


def portable_labels(labels: Manifest) -> dict[str, object]:
    """Return the labels of a source that its twins may carry too: the descriptive ones.

    A list of what is copied, not of what is left out: a label with an unknown prefix may be how a
    GitOps tool finds what it rules, and it deletes what it finds and did not write.

    >>> portable_labels({"app": "web", "argocd.argoproj.io/instance": "shop"})
    {'app': 'web'}
    """
    return {key: value for key, value in labels.items() if _is_portable(key)}


def _is_portable(key: str) -> bool:
    if "/" in key:
        return key in _DESCRIPTIVE_LABELS
    return key not in _UNPREFIXED_TRACKING


def _untracked(pairs: Manifest) -> dict[str, object]:
    return {key: value for key, value in pairs.items() if not is_tracking(key)}


def is_tracking(key: str) -> bool:
    """Return whether a label or annotation tells some tool, or us, that the object is its own."""
    domain = key.partition("/")[0]
    return (
        key in _TRACKING_KEYS
        or key.startswith(PREFIX)
        or any(domain == known or domain.endswith(f".{known}") for known in _TRACKING_DOMAINS)
    )


# --- the templates' filters -----------------------------------------------------------------------


def require_node_affinity(pod_spec: Manifest, terms: Sequence[Manifest]) -> dict[str, object]:
    """Return the pod spec bound to nodes that match any of `terms`, and the user's own terms too.

    nodeSelectorTerms are ORed, so each of ours is ANDed into each of the user's. A user's term
    without expressions matches no node in Kubernetes: it is left out, for ANDing ours into it
    would widen it to all of ours.

    Raises ValueError without terms: the result would run anywhere.
    """
    _need_terms(terms)
    affinity, node_affinity = _node_affinity(pod_spec)
    required = mapping_at(node_affinity, _REQUIRED)
    own = _mappings(required.get("nodeSelectorTerms"))
    if not own:
        combined = [dict(term) for term in terms]
    else:
        combined = [_both(user, term) for user in own if _matches_any(user) for term in terms]
    required = {**required, "nodeSelectorTerms": combined or [dict(term) for term in own]}
    return _with_node_affinity(pod_spec, affinity, {**node_affinity, _REQUIRED: required})


def prefer_node_affinity(
    pod_spec: Manifest, terms: Sequence[Manifest], weight: int = 100
) -> dict[str, object]:
    """Return the pod spec preferring nodes that match any of `terms`; the user's wishes stay.

    Raises ValueError without terms: nothing would be preferred.
    """
    _need_terms(terms)
    affinity, node_affinity = _node_affinity(pod_spec)
    preferred = [
        *_mappings(node_affinity.get(_PREFERRED)),
        *({"weight": weight, "preference": dict(term)} for term in terms),
    ]
    return _with_node_affinity(pod_spec, affinity, {**node_affinity, _PREFERRED: preferred})


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _need_terms(terms: Sequence[Manifest]) -> None:
    if not any(_matches_any(term) for term in terms):
        raise ValueError(
            "no node selector term is given, so nothing tells spot nodes from others; "
            "enable a provider preset or write selectors of your own in the settings"
        )


def _matches_any(term: Manifest) -> bool:
    return bool(term.get("matchExpressions") or term.get("matchFields"))


def _both(user: Manifest, ours: Manifest) -> dict[str, object]:
    """Return one term that matches what both match: the lists inside a term are ANDed."""
    joined = {
        key: [*_mappings(user.get(key)), *_mappings(ours.get(key))]
        for key in ("matchExpressions", "matchFields")
        if user.get(key) or ours.get(key)
    }
    return {**user, **joined}


def _node_affinity(pod_spec: Manifest) -> tuple[Manifest, Manifest]:
    affinity = mapping_at(pod_spec, "affinity")
    return affinity, mapping_at(affinity, "nodeAffinity")


def _with_node_affinity(pod_spec: Manifest, affinity: Manifest, node_affinity: Manifest) -> dict[str, object]:
    return {**pod_spec, "affinity": {**affinity, "nodeAffinity": dict(node_affinity)}}


def add_tolerations(pod_spec: Manifest, tolerations: Sequence[Manifest]) -> dict[str, object]:
    """Return the pod spec with these tolerations after the user's own, each once."""
    own = _mappings(pod_spec.get("tolerations"))
    new = [dict(toleration) for toleration in tolerations if toleration not in own]
    return {**pod_spec, "tolerations": [*own, *new]} if new else dict(pod_spec)


def leave_dead_nodes_after(pod_spec: Manifest, seconds: int) -> dict[str, object]:
    """Return the pod spec evicted `seconds` after its node is not ready or unreachable.

    Kubernetes' default is 300 s. Where the user tolerates such a taint in any way, that stays.
    """
    own = _mappings(pod_spec.get("tolerations"))
    return add_tolerations(
        pod_spec,
        [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            if not any(_tolerates(toleration, key) for toleration in own)
        ],
    )


def _tolerates(toleration: Manifest, key: str) -> bool:
    """Return whether the user has said something about a NoExecute taint of this key."""
    about_key = toleration.get("key") in {key, None, ""}
    return about_key and toleration.get("effect") in {"NoExecute", None, ""}


def with_labels(labels: Manifest, added: Manifest) -> dict[str, object]:
    """Return the labels (or annotations) with others added; an added one wins."""
    return {**labels, **added}


def without(mapping: Manifest, *keys: str) -> dict[str, object]:
    """Return the mapping without some of its keys.

    >>> without({"replicas": 3, "paused": True}, "replicas")
    {'paused': True}
    """
    return {key: value for key, value in mapping.items() if key not in keys}


def merge(base: object, change: object) -> object:
    """Return `base` with `change` laid over it; what `change` does not speak of stays as it is.

    Mappings are merged key by key, and null removes a key. Lists whose items all have a name
    (containers, volumes, environment variables) are merged by that name, new ones at the end;
    any other list is replaced.

    >>> merge({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}})
    {'a': 1, 'b': {'c': 2, 'd': 3}}
    """
    if isinstance(change, Mapping):
        return _merge_mappings(base if isinstance(base, Mapping) else {}, change)
    if _all_named(base) and _all_named(change):
        return _merge_named(_mappings(base), _mappings(change))
    return change


def _merge_mappings(base: Manifest, change: Manifest) -> dict[str, object]:
    kept = {key: merge(value, change[key]) if key in change else value for key, value in base.items()}
    new = {key: merge(None, value) for key, value in change.items() if key not in base}
    return {key: value for key, value in (kept | new).items() if value is not None or key not in change}


def _merge_named(base: Sequence[Manifest], change: Sequence[Manifest]) -> list[object]:
    changes = {item["name"]: item for item in change}
    names = {item["name"] for item in base}
    kept = [merge(item, changes[item["name"]]) if item["name"] in changes else item for item in base]
    return [*kept, *(merge(None, item) for item in change if item["name"] not in names)]


def _all_named(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in value)


# --- reading JSON ---------------------------------------------------------------------------------


def mapping_at(mapping: Manifest, key: str) -> dict[str, object]:
    """Return the mapping under a key; what is missing, null or of another kind counts as empty."""
    value = mapping.get(key)
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []

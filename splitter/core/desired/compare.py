"""Hashes by which manifests are compared, instead of a diff against server-defaulted objects."""

import hashlib
import json
from typing import Final

from splitter.core.desired.manifest import Manifest, mapping_at, without
from splitter.core.desired.tracking import without_orders
from splitter.core.labels_annotations import ANNOTATION_MADE_OF, ANNOTATION_RENDERED_HASH, PREFIX

# 64 bits: two manifests of one twin meet by chance once in 10^19; and people compare them by eye.
_HASH_LENGTH: Final = 16
# Where a pod may stand: a pod that stands there already does not need it.
_PLACEMENT: Final = ("affinity", "tolerations", "nodeSelector", "topologySpreadConstraints")
# What tells pods apart that are made alike.
_MARKS: Final = (PREFIX, "pod-template-hash", "kubectl.kubernetes.io/restartedAt")
_WITHDRAWN: Final = "withdrawn-"


def rendered_hash(manifest: Manifest) -> str:
    """Return the hash by which a twin is compared with what its template renders.

    Left out is what is written apart from the template: `replicas`, the numbers of the roll, where the
    ordinals begin, and the annotations that store hashes. So an HPA's step is no roll.

    >>> rendered_hash({"spec": {"replicas": 3}}) == rendered_hash({"spec": {}})
    True
    """
    metadata, spec = mapping_at(manifest, "metadata"), mapping_at(manifest, "spec")
    annotations = without(mapping_at(metadata, "annotations"), ANNOTATION_RENDERED_HASH, ANNOTATION_MADE_OF)
    strategies = {
        name: without(mapping_at(spec, name), "rollingUpdate")
        for name in ("strategy", *({"updateStrategy"} & spec.keys()))
    }
    kept = without(spec, "replicas", "ordinals", "strategy", "updateStrategy")
    return _hash(
        {**manifest, "metadata": {**metadata, "annotations": annotations}, "spec": {**kept, **strategies}}
    )


def withdrawn(rendered: str) -> str:
    """Return what a twin bears in place of a hash when what it names was taken back from it.

    It equals no hash, so the twin is out of date; and it tells a template that was tried from a newer one.

    >>> withdrawn("f99eda390b97c873")
    'withdrawn-f99eda390b97c873'
    """
    return rendered if rendered.startswith(_WITHDRAWN) else f"{_WITHDRAWN}{rendered}"


def is_withdrawn(rendered: str) -> bool:
    """Whether a twin bears the template of its pods in place of what was rendered.

    >>> is_withdrawn(withdrawn("f99eda390b97c873"))
    True
    """
    return rendered.startswith(_WITHDRAWN)


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


def pod_hash(pod_template: Manifest) -> str:
    """Return a hash that is equal for pod templates that differ in placement and in our own marks only.

    Then a running pod of the source is one of the twin's, wherever it stands. `pod-template-hash` is
    ignored here, too, and so are what `kubectl rollout restart` writes and the orders that no twin carries:
    they change nothing of a pod.

    >>> pod_hash({"spec": {"a": 1}}) == pod_hash({"spec": {"a": 1, "affinity": {}, "tolerations": []}})
    True
    """
    metadata, spec = mapping_at(pod_template, "metadata"), mapping_at(pod_template, "spec")
    written = {
        "labels": mapping_at(metadata, "labels"),
        "annotations": without_orders(mapping_at(metadata, "annotations")),
    }
    texts = {
        name: {key: text for key, text in pairs.items() if not key.startswith(_MARKS)}
        for name, pairs in written.items()
    }
    finalizers = {name: value for name, value in metadata.items() if name == "finalizers" and value}
    return _hash({**texts, **finalizers, "spec": without(spec, *_PLACEMENT)})


def canonical_json(value: object) -> str:
    """Return JSON that is equal for equal values: keys sorted, no spaces; NaN is a ValueError."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _hash(value: object) -> str:
    # JSON may hold half of a surrogate pair, which UTF-8 may not.
    digest = hashlib.sha256(canonical_json(value).encode(errors="surrogatepass"))
    return digest.hexdigest()[:_HASH_LENGTH]

"""What is ours on a twin, whatever its template says."""

from typing import Final

from splitter.core import labels_annotations as keys
from splitter.core.desired.manifest import Manifest, mapping_at, mappings, without
from splitter.core.desired.tracking import untracked, without_orders
from splitter.core.labels_annotations.words import quoted
from splitter.core.replica import Pool

_NAME_MAX: Final = 253  # of Services too, whose names the API server does not check in a StatefulSet

# An emergency in mid-roll puts the last available template back, read from its ReplicaSet
# (H67): the current one and one before it have to exist.
REVISION_HISTORY_LIMIT: Final = 2

# The numbers of a roll are written by splitter together with a template, from the room there is at
# that moment. These stand there until then, and lower nothing.
INITIAL_STRATEGY: Final[Manifest] = {
    "type": "RollingUpdate",
    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
}
# A StatefulSet rolls one pod at a time; splitter writes the partition.
INITIAL_UPDATE_STRATEGY: Final[Manifest] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}


def pod_labels(source_name: str, pool: Pool) -> dict[str, str]:
    """Return the labels that tell a twin's pods from all others; its selector has them too."""
    return {keys.LABEL_POOL: pool.value, keys.LABEL_SOURCE: keys.short_name(source_name)}


def twin_labels(source_name: str, pool: Pool) -> dict[str, str]:
    """Return the labels of the twin itself."""
    return {keys.LABEL_SPLIT: keys.SPLIT_TWIN, **pod_labels(source_name, pool)}


def rendered_from(source: Manifest) -> dict[str, object]:
    """Return what a twin may be made of: the source without its count, its pause and the marks of tools.

    Two sources of which this is equal have equal twins, so scaling, taking over and giving back roll nothing.

    >>> rendered_from({"spec": {"replicas": 3, "paused": True, "minReadySeconds": 5}})
    {'spec': {'minReadySeconds': 5}, 'metadata': {'annotations': {}}}
    """
    metadata, spec = mapping_at(source, "metadata"), mapping_at(source, "spec")
    annotations = untracked(mapping_at(metadata, "annotations"))
    return {
        **source,
        "metadata": {**metadata, "annotations": annotations},
        "spec": without(spec, "replicas", "paused"),
    }


def enforce(manifest: Manifest, source: Manifest, pool: Pool) -> dict[str, object]:
    """Return the twin with everything that is ours put right, whatever its template said.

    Ours are: apiVersion and kind (the source's), name, namespace, owner, our labels, the selector
    and the labels of the pods it selects, the strategy, and at least two revisions; of a StatefulSet that its
    pods come and go together, and where their ordinals begin. Gone are:
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
        ours |= {"strategy": INITIAL_STRATEGY}
    else:
        ours |= {
            # One Pending pod would block all behind it.
            "podManagementPolicy": "Parallel",
            "updateStrategy": INITIAL_UPDATE_STRATEGY,
            "ordinals": {"start": first_ordinal(source, pool)},
            **_claims(spec),
        }
    ours |= {"revisionHistoryLimit": _revisions(spec)}
    return {
        "apiVersion": source.get("apiVersion", "apps/v1"),
        "kind": source.get("kind", "Deployment"),
        "metadata": _metadata(metadata, source, name, pool),
        "spec": ours,
    }


def first_ordinal(source: Manifest, pool: Pool) -> int:
    """Return where the ordinals of a StatefulSet's twin begin: the source's own, or far above them.

    >>> first_ordinal({"spec": {}}, Pool.SPOT)
    1000
    """
    start = mapping_at(mapping_at(source, "spec"), "ordinals").get("start", 0)
    own = start if isinstance(start, int) else 0
    return own if pool is Pool.ON_DEMAND else own + keys.SPOT_ORDINALS


def peers(source: Manifest) -> list[dict[str, object]]:
    """Return where the pods of both twins of a StatefulSet are found by name, for lists of peers."""
    name = str(mapping_at(source, "metadata").get("name", ""))
    service = mapping_at(source, "spec").get("serviceName", "")
    return [
        {
            "pool": pool.value,
            "name": keys.twin_name(name, pool),
            "service": service,
            "first_ordinal": first_ordinal(source, pool),
        }
        for pool in Pool
    ]


def hosts(peer: Manifest, count: int) -> list[str]:
    """Return the names under which the first `count` pods of one of `peers` are found, at most 1,000.

    Raises ValueError for a name or a Service that is longer than Kubernetes' names are.

    >>> hosts({"name": "db-spot", "service": "db", "first_ordinal": 1000}, 2)
    ['db-spot-1000.db', 'db-spot-1001.db']
    """
    service, first = peer.get("service"), peer.get("first_ordinal")
    for text in (name := str(peer.get("name")), str(service)):
        if len(text) > _NAME_MAX:
            raise ValueError(f"{quoted(text)} is no name; Kubernetes' have at most {_NAME_MAX} characters")
    start, dot = first if isinstance(first, int) else 0, f".{service}" if service else ""
    return [f"{name}-{ordinal}{dot}" for ordinal in range(start, start + min(count, keys.SPOT_ORDINALS))]


def _claims(spec: Manifest) -> dict[str, object]:
    """Return the templates of claims without what the API server has added to them."""
    templates = mappings(spec.get("volumeClaimTemplates"))
    cleaned = [
        {
            **without(one, "status"),
            "metadata": without(mapping_at(one, "metadata"), "creationTimestamp"),
        }
        for one in templates
    ]
    return {"volumeClaimTemplates": cleaned} if cleaned else {}


def _metadata(metadata: Manifest, source: Manifest, name: str, pool: Pool) -> dict[str, object]:
    namespace = mapping_at(source, "metadata").get("namespace")
    uid = mapping_at(source, "metadata").get("uid")
    labels = {**untracked(mapping_at(metadata, "labels")), **twin_labels(name, pool)}
    annotations = untracked(mapping_at(metadata, "annotations"))
    return {
        "name": keys.twin_name(name, pool),
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
    """Return the pod template with the labels that its selector asks for, and without orders to tools."""
    metadata = mapping_at(template, "metadata")
    selected = mapping_at(_selector(source, name, pool), "matchLabels")
    labels = {**mapping_at(metadata, "labels"), **selected}
    annotations = without_orders(mapping_at(metadata, "annotations"))
    kept = without(metadata, "labels", "annotations", "creationTimestamp")
    return {
        **template,
        "metadata": {**kept, "labels": labels, **({"annotations": annotations} if annotations else {})},
    }


def _revisions(spec: Manifest) -> int:
    wished = spec.get("revisionHistoryLimit")
    return max(wished, REVISION_HISTORY_LIMIT) if isinstance(wished, int) else REVISION_HISTORY_LIMIT

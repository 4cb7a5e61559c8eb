"""Splits, what the admission policy is told of them, and namespaces, whose annotations are defaults."""

from splitter.core.labels_annotations import ANNOTATION_TEMPLATE, source_of_split
from splitter.core.labels_annotations.label import checked_format
from splitter.core.limits import MAX_MEMBERS
from splitter.core.names import DEPLOYMENT, is_name
from splitter.core.split_status.values import text
from splitter.core.split_status.view import SplitView
from splitter.kube.packed import packed
from splitter.kube.parse.fields import Raw, count, identity, ours, owners, short
from splitter.kube.records import NamespaceRecord, PlacementRecord, SplitRecord

_OWNERS = 4


def split(raw: Raw) -> SplitRecord:
    """Parse a Split. A hand-edited status is read as far as it makes sense."""
    metadata, spec = raw["metadata"], raw.get("spec", {})
    status = raw.get("status") or {}
    named = spec.get("source", {})
    replicas, memory = spec.get("replicas"), status.get("memory")
    good = memory.get("policyAnnotations") if isinstance(memory, dict) else None
    # By its own name: a copy of a Split under another name says nothing about the source.
    name = metadata["name"]
    key = source_of_split(named.get("kind", DEPLOYMENT), metadata["namespace"], name)
    references = sorted(owners(metadata), key=lambda ref: (ref["kind"], ref["name"]) != (key.kind, key.name))
    view = SplitView(
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=count(metadata, "generation"),
        # It has one by our own hand; what others add multiplies what is told to the admission policy.
        owner_uids=tuple(short(ref["uid"]) for ref in references[:_OWNERS]),
        takes_over=bool(spec.get("takeOver")),
        ordinals=_ordinals(spec.get("onDemandOrdinals")),
        replicas=replicas if isinstance(replicas, int) else None,
        format=checked_format(spec.get("format")),
    )
    return SplitRecord(
        *identity(metadata),
        name,
        key,
        view,
        packed(status),
        short(text(status.get("state"))),
        short(text(good.get(ANNOTATION_TEMPLATE))) if isinstance(good, dict) else "",
    )


def _ordinals(raw: object) -> tuple[int, ...] | None:
    """Return the ordinals of a Split in placement mode; None for any other. At most MAX_MEMBERS."""
    if not isinstance(raw, list):
        return None
    return tuple(sorted({one for one in raw if isinstance(one, int)}))[:MAX_MEMBERS]


def placement(raw: Raw) -> PlacementRecord:
    """Parse a Placement; only the one with the policy's own name is used."""
    metadata = raw["metadata"]
    sets = {
        uid: (
            one["name"],
            tuple((int(run["first"]), int(run["last"])) for run in one.get("onDemandOrdinals") or ()),
        )
        for uid, one in (raw.get("spec", {}).get("statefulSets") or {}).items()
        if is_name(one.get("name"))
    }
    labels = frozenset(raw.get("spec", {}).get("spotLabels") or ())
    return PlacementRecord(*identity(metadata), metadata["name"], sets, labels)


def namespace(raw: Raw) -> NamespaceRecord:
    """Parse a namespace: only our own annotations."""
    metadata = raw["metadata"]
    return NamespaceRecord(*identity(metadata), metadata["name"], ours(metadata.get("annotations")))

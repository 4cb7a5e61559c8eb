"""Reads and writes what a user would with kubectl: lists by labels, removes a label, sets an annotation.

Not splitter's own writing (that is `apply`): a verb that changes something changes what a user would,
with that user's rights, and the controller does the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from splitter.core.labels_annotations import ANNOTATION_KEEP, CRD_NAME, LABEL_SPLIT
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key, is_name
from splitter.kube import paths
from splitter.kube.client import Allowing, Client, Json


async def labelled(client: Client, namespaces: tuple[str, ...], selector: str) -> dict[Key, str]:
    """Return the UID of each workload with these labels, by namespace and name. Raises ApiError."""
    sources = {
        Key(kind, one["metadata"]["namespace"], one["metadata"]["name"]): str(one["metadata"]["uid"])
        for kind in (DEPLOYMENT, STATEFUL_SET)
        for namespace in namespaces or ("",)
        for one in (await client.get(paths.workloads(kind, namespace), labelSelector=selector))["items"]
    }
    return dict(sorted(sources.items(), key=lambda one: (one[0].namespace, one[0].name, one[0].kind)))


async def remove_label(client: Client, key: Key, uid: str) -> None:
    """Take `splitter.io/split` away from a source.

    Raises ApiError; 409 when it is another object under the same name by now.
    """
    body: Json = {"metadata": {"uid": uid, "labels": {LABEL_SPLIT: None}}}
    await client.send("PATCH", paths.workload(key), body, patch="merge")


async def annotate(client: Client, key: Key, annotations: Mapping[str, str | None]) -> bool:
    """Write annotations on a labelled workload (None removes one); False when there is no such one.

    Raises ApiError.
    """
    path = paths.workload(key)
    existing: Json = {"metadata": {}}
    with Allowing(HTTPStatus.NOT_FOUND):
        existing = await client.get(path)
    if LABEL_SPLIT not in existing["metadata"].get("labels", {}):
        return False
    body: Json = {"metadata": {"uid": existing["metadata"]["uid"], "annotations": dict(annotations)}}
    await client.send("PATCH", path, body, patch="merge")
    return True


def key_of(split: Json) -> Key:
    """Return the workload of a Split; named as the Split where `spec.source` has no valid name."""
    metadata = split.get("metadata") or {}
    source = (split.get("spec") or {}).get("source") or {}
    name = source.get("name")
    return Key(
        str(source.get("kind", "Deployment")),
        str(metadata.get("namespace", "default")),
        name if is_name(name) else str(metadata.get("name", "")),
    )


@dataclass(frozen=True, slots=True)
class PlacementAnswer:
    """The placement of a workload as its Split reports it; empty without a Split."""

    placed: bool = False
    """Split by placement: it says which ordinals on-demand has."""
    refused: str = ""
    """Labelled and not split: why, in the controller's words."""


async def placement_answer(client: Client, key: Key) -> PlacementAnswer:
    """Return what the Split of a workload says. Raises ApiError."""
    split = await client.find(paths.split(key)) or {}
    spec, status = split.get("spec", {}), split.get("status", {})
    if not split or spec.get("takeOver"):
        return PlacementAnswer(placed="onDemandOrdinals" in spec)
    why = filter(None, (status.get("reason", "not looked at yet"), status.get("message")))
    return PlacementAnswer(refused=": ".join(why))


async def let_crd_go(client: Client) -> bool:
    """Allow the CRD of the Splits to be deleted; False without the right to do that. Raises ApiError."""
    path = paths.DEFINITIONS.of(CRD_NAME)
    body: Json = {"metadata": {"annotations": {ANNOTATION_KEEP: None}}}
    with Allowing(HTTPStatus.FORBIDDEN):
        await client.send("PATCH", path, body, patch="merge")
        return True
    return False

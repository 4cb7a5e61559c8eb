"""What a version has left in a cluster, kept as a file: objects that are made again in another cluster.

They get other UIDs there, so every mention of an old one is replaced: in owners, in marks, in what the
admission policy is told. Who owns which field (`managedFields`) and the statuses of Splits come back too.
Pods are not kept: the controllers make them.
"""

import json
from pathlib import Path

from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox.errors import ApiError

# Owners before what they own.
KINDS = (
    "/apis/apps/v1/{}/deployments",
    "/apis/apps/v1/{}/statefulsets",
    "/apis/apps/v1/{}/replicasets",
    "/apis/splitter.io/v1alpha1/{}/splits",
    "/apis/splitter.io/v1alpha1/{}/placements",
    "/api/v1/{}/services",
)
_OF_THE_SERVER = ("resourceVersion", "creationTimestamp", "generation", "namespace")


def captured(shop: Shop) -> list[JsonObject]:
    """Return the objects of a namespace as they are now, each with the path of its kind."""
    collected = []
    for kind in KINDS:
        listed = shop.sandbox.api.get(kind.format(f"namespaces/{shop.namespace}"))
        named = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List")}
        for raw in sorted(listed["items"], key=lambda one: bool(one["metadata"].get("ownerReferences"))):
            kept = {key: value for key, value in raw["metadata"].items() if key not in _OF_THE_SERVER}
            body = {**named, "metadata": kept, "spec": raw.get("spec", {})}
            if named["kind"] == "Split":
                body["status"] = raw.get("status", {})
            if named["kind"] == "Service":
                body["spec"] = {k: v for k, v in body["spec"].items() if not k.startswith("clusterIP")}
                body["spec"]["clusterIP"] = "None"
            collected.append({"path": kind, "object": body})
    return collected


def written(path: Path, objects: dict[str, list[JsonObject]]) -> None:
    """Write captured objects as a file, one on a line."""
    lines = [
        f" {json.dumps(name)}: [\n  " + ",\n  ".join(json.dumps(one, sort_keys=True) for one in kept) + "\n ]"
        for name, kept in objects.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def replay(shop: Shop, objects: list[JsonObject]) -> None:
    """Make the objects in a namespace, as if the version that had made them had just been stopped there."""
    api = shop.sandbox.api
    old_uids: dict[str, str] = {}
    waiting: list[tuple[str, int, list[JsonObject]]] = []
    for one in objects:
        text = json.dumps(one["object"])
        for old, new in old_uids.items():
            text = text.replace(old, new)
        body: JsonObject = json.loads(text)
        metadata, spec = body["metadata"], body["spec"]
        old_uid, managers = metadata.pop("uid"), metadata.pop("managedFields", [])
        where = one["path"].format(f"namespaces/{shop.namespace}")
        path = f"{where}/{metadata['name']}"
        # The members of a StatefulSet are made when the policy knows its new UID; and so is what they mark.
        members = spec["replicas"] if body["kind"] == "StatefulSet" else 0
        if members:
            waiting.append((path, members, managers))
            spec["replicas"] = 0
        try:
            made = api.create(where, body)
        except ApiError as refusal:
            # A controller was faster: the ReplicaSet of a twin has its name by what is in it.
            if refusal.reason != "AlreadyExists":
                raise
            made = api.get(path)
        old_uids[old_uid] = made["metadata"]["uid"]
        marks = {
            key: text.replace(old_uid, made["metadata"]["uid"])
            for key, text in metadata.get("annotations", {}).items()
            if old_uid in text
        }
        patch: JsonObject = {"annotations": marks} if marks else {}
        if managers:
            patch["managedFields"] = managers
        if patch:
            api.patch(path, {"metadata": patch})
        if "status" in body:
            api.patch(f"{path}/status", {"status": body["status"]})
    for path, members, managers in waiting:
        api.patch(path, {"spec": {"replicas": members}})
        api.patch(path, {"metadata": {"managedFields": managers}})

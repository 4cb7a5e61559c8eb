"""A backup of a namespace, and its restore: objects come back with new UIDs, without a status."""

import json
from typing import Any

from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox.errors import ApiError

# As Velero restores them: pods first, so that a controller adopts them; the others by their names.
KINDS = (
    "/api/v1/{}/pods",
    "/apis/apps/v1/{}/replicasets",
    "/apis/apps/v1/{}/deployments",
    "/apis/splitter.io/v1alpha1/{}/placements",
    "/apis/splitter.io/v1alpha1/{}/splits",
    "/apis/apps/v1/{}/statefulsets",
    "/apis/policy/v1/{}/poddisruptionbudgets",
)
# What the API server writes.
ITS_OWN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


class Backup:
    """The objects of a namespace as they are now."""

    def __init__(self, shop: Shop, *, owners: bool) -> None:
        self._shop = shop
        dropped = ITS_OWN if owners else (*ITS_OWN, "ownerReferences")
        # As Velero does, it leaves out what is being deleted, as the last pods of a move may be.
        self.objects = [
            (kind, saved(raw, dropped))
            for kind in KINDS
            for raw in self._saved(kind)
            if "deletionTimestamp" not in raw["metadata"]
        ]

    def _where(self, kind: str) -> str:
        return kind.format(f"namespaces/{self._shop.namespace}")

    def _saved(self, kind: str) -> list[JsonObject]:
        listed = self._shop.sandbox.api.get(self._where(kind))
        meta = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List")}
        return [meta | raw for raw in listed["items"]]

    def erase(self) -> None:
        """Delete the workloads, and wait until nothing is left."""
        self._shop.kubectl("delete", "deployments,statefulsets", "--all")
        self._shop.until(lambda: not any(map(self._saved, KINDS)), "the namespace to be empty")

    def restore(self, *, backwards: bool) -> None:
        """Create all of it, but for what is there: a controller that is faster has made it already."""
        for kind, one in self.objects[::-1] if backwards else self.objects:
            try:
                self._shop.sandbox.api.create(self._where(kind), one)
            except ApiError as refusal:
                if refusal.reason != "AlreadyExists":
                    raise


def saved(raw: JsonObject, dropped: tuple[str, ...]) -> JsonObject:
    """Return an object as a backup has it; a pod is to be scheduled anew, and gets another token."""
    metadata = {name: value for name, value in raw["metadata"].items() if name not in dropped}
    values: dict[str, Any] = {**raw, "metadata": metadata}
    values.pop("status", None)
    if raw["kind"] == "Pod":
        left_out = {"nodeName", "volumes"}
        values["spec"] = {name: value for name, value in raw["spec"].items() if name not in left_out}
        for container in values["spec"]["containers"]:
            container.pop("volumeMounts", None)
    return json.loads(json.dumps(values))  # type: ignore[no-any-return]

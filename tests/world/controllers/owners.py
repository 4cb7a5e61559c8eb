"""How a controller claims what it selects: it adopts what is nobody's, and releases what it selects no more.

Source: pkg/controller/controller_ref_manager.go of Kubernetes 1.36.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from splitter.kube.client import ApiError
from world.apply import strategically_patched
from world.controllers.loop import Controller
from world.kinds import Raw, Ref
from world.pods import controller_of, controller_ref
from world.selectors import selects


async def claimed(
    controller: Controller, kind: str, dependents: Iterable[Raw], owner: Raw, owner_kind: str
) -> list[Raw]:
    """Return those that are the owner's, as they were seen. Raises ApiError where one cannot be adopted."""
    selector, uid = owner["spec"].get("selector"), owner["metadata"]["uid"]
    deleting = "deletionTimestamp" in owner["metadata"]
    ours: list[Raw] = []
    may_adopt = False
    for raw in dependents:
        controlling, fits = controller_of(raw), selects(selector, raw)
        if controlling is not None:
            if controlling["uid"] != uid:
                continue
            if fits:
                ours.append(raw)
            elif not deleting:
                await _patch_owners(controller, kind, raw, {"$patch": "delete", "uid": uid})
        elif fits and not deleting and "deletionTimestamp" not in raw["metadata"]:
            may_adopt = may_adopt or _must_be_there(controller, owner, owner_kind)
            await _patch_owners(controller, kind, raw, controller_ref(owner))
            ours.append(raw)
    return ours


def _must_be_there(controller: Controller, owner: Raw, kind: str) -> bool:
    """Ask the API server, not the cache, whether the owner is there and stays. Raises ApiError."""
    metadata = owner["metadata"]
    fresh = controller.objects.get(Ref(kind, metadata["namespace"], metadata["name"]))
    if fresh["metadata"]["uid"] != metadata["uid"]:
        raise ApiError(404, "NotFound", f"original {metadata['name']} is gone")
    if "deletionTimestamp" in fresh["metadata"]:
        raise ApiError(409, "Conflict", f"{metadata['name']} has just been deleted")
    return True


async def _patch_owners(controller: Controller, kind: str, raw: Raw, reference: Mapping[str, Any]) -> None:
    """Send the patch that adopts or releases. One that is gone, or another by now, is left."""
    await controller.sent()
    metadata = raw["metadata"]
    ref = Ref(kind, metadata["namespace"], metadata["name"])
    live = controller.objects.find(ref)
    if live is None or live["metadata"]["uid"] != metadata["uid"]:
        return
    patch = {"metadata": {"ownerReferences": [dict(reference)], "uid": metadata["uid"]}}
    patched = strategically_patched(live, patch)
    others = [one for one in patched["metadata"].get("ownerReferences") or () if one.get("controller")]
    if len(others) > 1:
        raise ApiError(
            422, "Invalid", "metadata.ownerReferences: Only one reference can have Controller set to true"
        )
    controller.objects.update(ref, patched, user=controller.user)

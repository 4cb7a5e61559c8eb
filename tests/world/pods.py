"""What is read of a pod: whether it is ready, counts, and of whom it is."""

from datetime import datetime
from typing import Any

from world import clock

Raw = dict[str, Any]


def condition(raw: Raw, kind: str) -> Raw | None:
    """Return a condition of an object."""
    return next((one for one in raw.get("status", {}).get("conditions") or () if one["type"] == kind), None)


def with_condition(raw: Raw, said: Raw) -> Raw:
    """Return an object with a condition; its transition is now if its status changes."""
    there = condition(raw, said["type"])
    since = clock.stamp()
    if there is not None and there["status"] == said["status"]:
        since = there.get("lastTransitionTime", since)
    others = [one for one in raw.get("status", {}).get("conditions") or () if one["type"] != said["type"]]
    made = {**said, "lastTransitionTime": since}
    return {**raw, "status": {**raw.get("status", {}), "conditions": [*others, made]}}


def is_ready(raw: Raw) -> bool:
    """Whether its condition Ready is true."""
    ready = condition(raw, "Ready")
    return ready is not None and ready["status"] == "True"


def is_active(raw: Raw) -> bool:
    """Whether a controller counts it (controller_utils.go, IsPodActive)."""
    return (
        raw.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
        and "deletionTimestamp" not in raw["metadata"]
    )


def ready_since(raw: Raw) -> datetime | None:
    """Return since when it is ready."""
    ready = condition(raw, "Ready")
    if ready is None or ready["status"] != "True":
        return None
    return clock.instant(ready["lastTransitionTime"])


def controller_of(raw: Raw) -> Raw | None:
    """Return the owner reference that controls an object."""
    owners = raw["metadata"].get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller")), None)


def controller_ref(owner: Raw) -> Raw:
    """Return a reference to an owner that controls (metav1.NewControllerRef)."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner.get("apiVersion", "apps/v1"),
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned_by(raw: Raw, uid: str) -> bool:
    """Whether an object is controlled by that very owner."""
    owner = controller_of(raw)
    return owner is not None and owner["uid"] == uid

"""Asks whether a namespace's ResourceQuotas have room: for placeholders, or for the objects of a split.

`relief.watch` asks before a hint. A quota that is nearly full is the users' to fill: a placeholder that
took the last of it would have the very replica refused. `rehearsal` asks for objects: a dry run of one counts
none of the others. Nothing here decides more.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from splitter.core.relief.model import HINT, Amounts
from splitter.kube.client import ApiError
from splitter.kube.listed import Reader
from splitter.kube.parse.fields import quantity
from splitter.kube.paths import resource_quotas

# So much of a quota has to be left in any case.
_LEFT: Final = 0.1
_QUOTAS_MAX: Final = 100


async def lacks_room(reader: Reader, namespace: str, placeholders: int, replica: Amounts) -> str:
    """Return why no placeholders are created in a namespace; empty where its quotas leave room for them.

    `replica` is what the replica requests that comes beside them. Never raises for an answer.
    """
    try:
        answer = await reader.get(resource_quotas(namespace), limit=str(_QUOTAS_MAX + 1))
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            return "splitter may not list the ResourceQuotas of the namespace; apply manifests/relief.yaml"
        return f"the ResourceQuotas of the namespace cannot be read: {error.message[:100] or error}"
    items = answer.get("items")
    if not isinstance(items, list) or len(items) > _QUOTAS_MAX:
        return "the ResourceQuotas of the namespace cannot be read"
    needed = {
        "pods": placeholders + 1,
        "cpu": placeholders * HINT.cpu + replica.cpu,
        "memory": placeholders * HINT.memory + replica.memory,
    }
    near = next((name for raw in items if (name := _near(raw, needed))), "")
    return f"the ResourceQuota {near} of the namespace is nearly used up" if near else ""


async def lacks_objects(reader: Reader, namespace: str, needed: Mapping[str, int]) -> str:
    """Return which quota has no room for so many more objects, by `count/...`; empty where there is room.

    Empty also where nobody may know: the right to list quotas is optional, and each object is asked for by
    itself. Never raises for an answer.
    """
    try:
        answer = await reader.get(resource_quotas(namespace), limit=str(_QUOTAS_MAX + 1))
    except ApiError:
        return ""
    items = answer.get("items")
    for raw in items[:_QUOTAS_MAX] if isinstance(items, list) else ():
        status = raw.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        for key, count in needed.items():
            if key not in hard or key not in used:
                continue
            left = max(0, quantity(key, hard[key]) - quantity(key, used[key]))
            if left < count:
                name = raw["metadata"]["name"]
                return f"ResourceQuota {name} has room for {left} more of {key}, and {count} are needed"
    return ""


def _near(raw: Mapping[str, Any], needed: Mapping[str, float]) -> str:
    """Return the name of a quota that is nearly used up, of whatever scope; one that is unread is near."""
    name = str(raw["metadata"]["name"])
    status = raw.get("status") or {}
    hard = status.get("hard") or (raw.get("spec") or {}).get("hard") or {}
    used = status.get("used") or {}
    for key, limit in hard.items():
        of = key.removeprefix("requests.").removeprefix("limits.").removeprefix("count/")
        if of not in needed:
            continue
        most = quantity(of, limit)
        left = most - quantity(of, used[key]) if key in used else 0
        if left < max(needed[of], most * _LEFT):
            return name
    return ""

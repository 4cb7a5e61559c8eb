"""Reads from a workload's `managedFields` who else writes its pause and its replicas."""

from splitter.kube.client import FIELD_MANAGER, Json
from splitter.plugin.core.other_tools import Writer

_MOST_ENTRIES, _LONGEST_NAME = 100, 128  # the API server keeps fewer, and shorter ones


def writers(workload: Json) -> tuple[Writer, ...]:
    """Return the writers but splitter, the last first.

    Anybody who may write a workload chooses the name that is kept there: it is compared, and never shown.
    """
    seen: list[Writer] = []
    for entry in (workload["metadata"].get("managedFields") or ())[:_MOST_ENTRIES]:
        spec = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        fields = frozenset({"paused", "replicas"} & {name.removeprefix("f:") for name in spec})
        name = str(entry.get("manager", ""))[:_LONGEST_NAME]
        if fields and name != FIELD_MANAGER:
            scales = entry.get("subresource") == "scale"
            seen.append(Writer(name, fields, str(entry.get("time", "")), scales=scales))
    return tuple(sorted(seen, key=lambda one: one.at, reverse=True))

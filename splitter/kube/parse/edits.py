"""Finds what others have written into a twin's pod template, from `managedFields`.

`workloads` asks for each twin. It reads who owns which field (metadata.managedFields), and the values of
those fields; whether that differs from what the templates render is for `core.drift` to say. A diff of the
template as a whole would take the server's defaults, and what webhooks add to our own writes, for edits.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from splitter.core.keyed import Edit, KeyedLists
from splitter.kube.client import FIELD_MANAGER
from splitter.kube.parse.fields import Raw

# One is enough to have a twin put right as a whole; which they are is told of five.
MAX_EDITS = 1000
_DIGEST = 16


def edits(raw: Raw) -> tuple[Edit, ...]:
    """Return the values in a pod template that another writer owns; () for nearly every twin.

    Lists and maps that are owned as a whole are left out: the server's defaults are in them. At most
    MAX_EDITS are told.
    """
    edited: dict[tuple[str, ...], Edit] = {}
    lists = KeyedLists()
    for entry in raw["metadata"].get("managedFields", ()):
        owned = (entry.get("fieldsV1") or {}).get("f:spec", {}).get("f:template")
        if owned and entry.get("manager") != FIELD_MANAGER:
            for edit in _values(owned, raw["spec"]["template"], ("spec", "template"), lists):
                if len(edited) == MAX_EDITS:
                    break
                edited[edit.path] = edit
    return tuple(edited[path] for path in sorted(edited))


def owned(raw: Raw) -> str:
    """Return which fields of a pod template are ours by our last apply: another text, and one was removed.

    Whoever removes a field leaves no name: the API server only takes it out of what we own.
    """
    for entry in raw["metadata"].get("managedFields", ()):
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply":
            fields = (entry.get("fieldsV1") or {}).get("f:spec", {}).get("f:template", {})
            return sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:_DIGEST]
    return ""


def _values(
    owned: Mapping[str, Any], value: object, path: tuple[str, ...], lists: KeyedLists
) -> Iterator[Edit]:
    """Walk the owned fields and the object side by side."""
    if not owned and isinstance(value, str | int | float):
        yield Edit(path, value)
    for name, below in owned.items():
        kind, _, key = name.partition(":")
        if kind == "f" and isinstance(value, Mapping) and key in value:
            yield from _values(below, value[key], (*path, key), lists)
        elif kind == "k" and isinstance(value, list):
            item = lists.find(value, key)
            if item is not None:
                yield from _values(below, item, (*path, key), lists)

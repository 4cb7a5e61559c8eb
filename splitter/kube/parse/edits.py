"""Finds what others have written into a twin's pod template, from `managedFields`.

`workloads` asks for each twin. It reads who owns which field (metadata.managedFields), and the values of
those fields; whether that differs from what the templates render is for `core.drift` to say. A diff of the
template as a whole would take what webhooks add to our own writes for edits.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from splitter.core.keyed import Edit, KeyedLists
from splitter.kube.client import FIELD_MANAGER
from splitter.kube.packed import packed, unpacked
from splitter.kube.parse.fields import Raw, instant

# One is enough to have a twin put right as a whole; which they are is told of five.
MAX_EDITS = 100
_TEMPLATE = ("spec", "template")

Path = tuple[str, ...]
"""Names of fields; an item of a list by its keys, as `{"name":"web"}`."""


def edits(raw: Raw) -> tuple[Edit, ...]:
    """Return the values in a pod template that another writer owns; () for nearly every twin.

    Lists and maps that are owned as a whole have the server's defaults in them. At most MAX_EDITS are told.
    """
    edited: dict[Path, Edit] = {}
    lists = KeyedLists()
    for entry, fields in _theirs(raw):
        at = instant(entry["time"]) if "time" in entry else None
        for edit in _values(fields, raw["spec"]["template"], _TEMPLATE, lists, at):
            if len(edited) == MAX_EDITS:
                break
            edited[edit.path] = edit
    return tuple(edited[path] for path in sorted(edited))


def owned(raw: Raw) -> bytes:
    """Return which fields of a pod template are ours by our last apply; b"" when there was none."""
    for entry in raw["metadata"].get("managedFields", ()):
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply":
            return packed(_fields(entry))
    return b""


def theirs(raw: Raw) -> bytes:
    """Return which fields of it are other writers'; b"" for nearly every twin."""
    trees = [fields for _, fields in _theirs(raw)]
    return packed({str(number): fields for number, fields in enumerate(trees)}) if trees else b""


def removed(applied: bytes, ours: bytes, others: bytes) -> tuple[Path, ...]:
    """Return what was ours after our last apply and is nobody's now: a removed field leaves no other trace.

    A field that has another value is another writer's. At most MAX_EDITS are told.
    """
    kept = set(_leaves(unpacked(ours), _TEMPLATE)) if ours else set()
    for fields in unpacked(others).values() if others else ():
        kept.update(_leaves(fields, _TEMPLATE))
    lost = set(_leaves(unpacked(applied), _TEMPLATE)) - kept if applied else set()
    return tuple(sorted(lost)[:MAX_EDITS])


def _fields(entry: Raw) -> dict[str, Any]:
    fields: dict[str, Any] = (entry.get("fieldsV1") or {}).get("f:spec", {}).get("f:template", {})
    return fields


def _theirs(raw: Raw) -> Iterator[tuple[Raw, dict[str, Any]]]:
    for entry in raw["metadata"].get("managedFields", ()):
        if entry.get("manager") != FIELD_MANAGER and (fields := _fields(entry)):
            yield entry, fields


def _leaves(owned: Mapping[str, Any], path: Path) -> Iterator[Path]:
    for name, below in owned.items():
        kind, _, key = name.partition(":")
        if below:
            yield from _leaves(below, (*path, key))
        elif kind != ".":
            yield (*path, key)


def _values(
    owned: Mapping[str, Any], value: object, path: Path, lists: KeyedLists, at: datetime | None
) -> Iterator[Edit]:
    """Walk the owned fields and the object side by side."""
    if not owned and value is not None:
        yield Edit(path, value, at)
    for name, below in owned.items():
        kind, _, key = name.partition(":")
        if kind == "f" and isinstance(value, Mapping) and key in value:
            yield from _values(below, value[key], (*path, key), lists, at)
        elif kind == "k" and isinstance(value, list):
            item = lists.find(value, key)
            if item is not None:
                yield from _values(below, item, (*path, key), lists, at)

"""Patches, and who owns which field: server-side apply, JSON merge patch, strategic merge patch.

Source: sigs.k8s.io/structured-merge-diff (merge/update.go, fieldpath) and the types of Kubernetes' OpenAPI,
for the kinds that splitter writes. An owner is an entry of `metadata.managedFields`; what an
update has changed is its manager's from then on, and no other's.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from splitter.kube.client import ApiError

Raw = dict[str, Any]
Path = tuple[str, ...]  # of fieldsV1: "f:spec", 'k:{"name":"web"}', 'v:"a"'

_KEYED: Final[Mapping[str, tuple[str, ...]]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "protocol"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
# As a strategic merge patch has them (patchMergeKey): other than an apply's for ports and spread constraints.
_STRATEGIC: Final = {**{name: keys[0] for name, keys in _KEYED.items()}, "taints": "key"}
_SETS: Final = frozenset({"finalizers", "onDemandOrdinals", "spotLabels"})
_ATOMIC: Final = frozenset(
    {
        "configMapKeyRef",
        "fieldRef",
        "labelSelector",
        "nodeSelector",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "resourceFieldRef",
        "secretKeyRef",
        "selector",
        "statefulSets",
    }
)
_MAPS: Final = frozenset({"annotations", "binaryData", "data", "hard", "labels", "limits", "requests"})
_DEFAULT_KEYS: Final = {"protocol": "TCP"}
# The API server's own.
_SYSTEM: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


def _name(path: Path) -> str:
    return path[-1][2:] if path and path[-1].startswith("f:") else ""


def _key_of(item: Raw, names: tuple[str, ...]) -> str:
    values = {name: item.get(name, _DEFAULT_KEYS.get(name)) for name in names}
    return "k:" + orjson.dumps(values, option=orjson.OPT_SORT_KEYS).decode()


def _is_keyed(value: object, path: Path) -> tuple[str, ...]:
    """Return by what the items of a list are said apart; () for a list that is one value."""
    names = _KEYED.get(_name(path), ())
    if not names or not isinstance(value, list):
        return ()
    return names if all(isinstance(one, dict) and names[0] in one for one in value) else ()


def _flat(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:  # noqa: ANN401 (any JSON)
    """Yield each field that may have an owner, with its value; an item of a list has one, too."""
    if isinstance(value, dict) and value and _name(path) not in _ATOMIC:
        for name, below in value.items():
            yield from _flat(below, (*path, f"f:{name}"))
    elif isinstance(value, list) and value and (names := _is_keyed(value, path)):
        for item in value:
            at = (*path, _key_of(item, names))
            if _name(path) == "ownerReferences":  # each is one value
                yield at, item
                continue
            yield at, None
            yield from _flat(item, at)
    elif isinstance(value, list) and value and _name(path) in _SETS:
        for item in value:
            yield (*path, "v:" + orjson.dumps(item).decode()), None
    else:
        yield path, value


def owned_fields(raw: Raw) -> dict[Path, Any]:
    """Return all that a client can own of an object."""
    metadata = {name: value for name, value in (raw.get("metadata") or {}).items() if name not in _SYSTEM}
    rest = {name: value for name, value in raw.items() if name not in {"kind", "apiVersion", "metadata"}}
    return dict(_flat({**rest, **({"metadata": metadata} if metadata else {})})) if rest or metadata else {}


def _with_maps(fields: dict[Path, Any]) -> dict[Path, Any]:
    """Return fields with the maps that they are in: who creates one by an update owns it, too."""
    maps = {path[:-1] for path in fields if len(path) > 1 and _name(path[:-1]) in _MAPS}
    return {**fields, **dict.fromkeys(maps - fields.keys())}


def packed(paths: Iterator[Path] | set[Path]) -> Raw:
    """Return paths as `fieldsV1`."""
    tree: Raw = {}
    items = set(paths)
    for path in sorted(items):
        node = tree
        for position, part in enumerate(path, 1):
            node = node.setdefault(part, {})
            if path[:position] in items and position < len(path):
                node.setdefault(".", {})
    return tree


def unpacked(tree: Raw, path: Path = ()) -> Iterator[Path]:
    """Return the paths of `fieldsV1`."""
    for part, below in tree.items():
        if part == ".":
            yield path
        elif below:
            yield from unpacked(below, (*path, part))
        else:
            yield (*path, part)


def _entries(raw: Raw) -> list[Raw]:
    return [one for one in raw["metadata"].get("managedFields") or () if one]


def _written(entries: list[tuple[Raw, set[Path]]]) -> list[Raw]:
    return [
        {**entry, "fieldsType": "FieldsV1", "fieldsV1": packed(paths)} for entry, paths in entries if paths
    ]


def with_owner(old: Raw | None, new: Raw, manager: str, time: str, part: str = "") -> Raw:
    """Return an object whose fields that differ from before are this manager's, and of no other."""
    before, after = _with_maps(owned_fields(old or {})), _with_maps(owned_fields(new))
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    gone = before.keys() - after.keys()
    # Who writes `managedFields` means what is written; one empty entry means none.
    there = _entries(new)
    if old is not None and not there and new["metadata"].get("managedFields") != [{}]:
        there = _entries(old)
    if not changed and not gone:
        return _managed(new, there)
    entries = [(entry, set(unpacked(entry.get("fieldsV1") or {}))) for entry in there]
    mine = {"manager": manager, "operation": "Update", "subresource": part}
    kept: list[tuple[Raw, set[Path]]] = []
    own: set[Path] = set()
    for entry, paths in entries:
        if all(entry.get(name, "") == value for name, value in mine.items()):
            own = paths
        else:
            kept.append((entry, paths - changed - gone))
    if manager:
        kept.append((_entry(mine, new, time), (own | changed) - gone))
    elif own:
        kept.append((_entry(mine, new, time), own - gone))
    return _managed(new, _written(kept))


def _entry(mine: Raw, raw: Raw, time: str) -> Raw:
    said = {name: value for name, value in mine.items() if value}
    return {**said, "apiVersion": raw.get("apiVersion", ""), "time": time}


def _managed(raw: Raw, entries: list[Raw]) -> Raw:
    metadata = {name: value for name, value in raw["metadata"].items() if name != "managedFields"}
    return {**raw, "metadata": {**metadata, **({"managedFields": entries} if entries else {})}}


def applied(live: Raw, body: Raw, manager: str, time: str, *, force: bool, part: str = "") -> Raw:
    """Return an object after a server-side apply. Raises ApiError (409) for what is others' and not forced.

    What this manager has applied before and does not any more is removed, unless another one owns it, too.
    """
    wanted, there = owned_fields(body), owned_fields(live)
    mine = {"manager": manager, "operation": "Apply", "subresource": part}
    others: list[tuple[Raw, set[Path]]] = []
    before: set[Path] = set()
    for entry in _entries(live):
        paths = set(unpacked(entry.get("fieldsV1") or {}))
        if all(entry.get(name, "") == value for name, value in mine.items()):
            before = paths
        else:
            others.append((entry, paths))
    differing = {path for path, value in wanted.items() if path in there and there[path] != value}
    disputed = [(str(entry.get("manager")), path) for entry, paths in others for path in paths & differing]
    if disputed and not force:
        raise ApiError(409, "Conflict", _conflict(disputed))
    for _, paths in others:
        paths.difference_update(differing)
    merged = _merged(live, {name: value for name, value in body.items() if name != "metadata"}, ())
    said = {name: value for name, value in body["metadata"].items() if name not in _SYSTEM}
    merged["metadata"] = _merged(live["metadata"], said, ("f:metadata",))
    kept = set().union(*(paths for _, paths in others)) if others else set()
    # A field below one that is applied, or above, is not removed with it.
    for path in sorted(before - wanted.keys() - kept, key=len):
        if not any(one[: len(path)] == path for one in kept | wanted.keys()):
            merged = _without(merged, path)
    return _managed(merged, _written([*others, (_entry(mine, merged, time), set(wanted))]))


def _conflict(disputed: list[tuple[str, Path]]) -> str:
    """Say what is whose (k8s.io/apimachinery, managedfields/internal/conflict.go)."""
    named = defaultdict[str, list[str]](list)
    for manager, path in sorted(disputed):
        named[manager].append("".join(map(_written_part, path)))
    one = len(disputed) == 1
    said = [
        f'conflict with "{manager}": {paths[0]}'
        if one
        else f'conflicts with "{manager}":\n- ' + "\n- ".join(paths)
        for manager, paths in named.items()
    ]
    return f"Apply failed with {len(disputed)} conflict{'' if one else 's'}: " + "\n".join(said)


def _written_part(part: str) -> str:
    if part.startswith("f:"):
        return f".{part[2:]}"
    key = orjson.loads(part[2:])
    if not isinstance(key, dict):
        return f"[={part[2:]}]"
    return "[" + ",".join(f"{name}={orjson.dumps(value).decode()}" for name, value in key.items()) + "]"


def _merged(live: Any, said: Any, path: Path) -> Any:  # noqa: ANN401 (any JSON)
    if isinstance(live, dict) and isinstance(said, dict) and _name(path) not in _ATOMIC:
        added = {name: _merged(live.get(name), value, (*path, f"f:{name}")) for name, value in said.items()}
        return {**live, **{name: value for name, value in added.items() if value is not None}}
    if (
        isinstance(live, list)
        and isinstance(said, list)
        and (names := _is_keyed(said, path))
        and _is_keyed(live, path)
    ):
        by_key = {_key_of(item, names): item for item in said}
        whole = _name(path) == "ownerReferences"
        items = []
        for item in live:
            another = by_key.pop(_key_of(item, names), None)
            items.append(item if another is None else another if whole else _merged(item, another, ()))
        return [*items, *by_key.values()]
    if isinstance(live, list) and isinstance(said, list) and _name(path) in _SETS:
        return [*live, *(item for item in said if item not in live)]
    return said


def _without(value: Any, path: Path) -> Any:  # noqa: ANN401 (any JSON)
    """Return a value without what a path leads to; what is left empty by that goes, too."""
    part, rest = path[0], path[1:]
    kind, text = part[:1], part[2:]
    if kind == "f" and isinstance(value, dict) and text in value:
        left = _without(value[text], rest) if rest else None
        if left in (None, {}, []) and (not rest or value[text] not in ({}, [])):
            return {name: one for name, one in value.items() if name != text}
        return {**value, text: left}
    if kind in {"k", "v"} and isinstance(value, list):
        key = orjson.loads(text)
        items = []
        for item in value:
            is_it = item == key if kind == "v" else _bears(item, key)
            if not is_it:
                items.append(item)
            elif rest:
                items.append(_without(item, rest))
        return items
    return value


def _bears(item: Raw, key: Raw) -> bool:
    return all(item.get(name, _DEFAULT_KEYS.get(name)) == value for name, value in key.items())


def merge_patched(raw: Any, patch: Any) -> Any:  # noqa: ANN401 (any JSON)
    """Return what a JSON merge patch makes of a value (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(raw) if isinstance(raw, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patched(merged.get(name), value)
    return merged


def strategically_patched(raw: Any, patch: Any, name: str = "") -> Any:  # noqa: ANN401 (any JSON)
    """Return what a strategic merge patch makes of a value: lists with a merge key are merged by it."""
    if isinstance(patch, dict):
        merged = dict(raw) if isinstance(raw, dict) else {}
        for field, value in patch.items():
            if value is None:
                merged.pop(field, None)
            elif field != "$patch":
                merged[field] = strategically_patched(merged.get(field), value, field)
        return merged
    key = _STRATEGIC.get(name)
    if isinstance(patch, list) and key is not None and all(isinstance(one, dict) for one in patch):
        items = list(raw or ())
        for change in patch:
            at = next((index for index, one in enumerate(items) if one.get(key) == change.get(key)), None)
            if change.get("$patch") == "delete":
                items = [one for one in items if one.get(key) != change.get(key)]
            elif at is None:
                items.append(change)
            else:
                items[at] = strategically_patched(items[at], change)
        return items
    if isinstance(patch, list) and name in _SETS:
        return [*(raw or ()), *(one for one in patch if one not in (raw or ()))]
    return patch

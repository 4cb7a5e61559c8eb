"""Manifests as plain JSON: reading them without surprises, merging them without loss."""

from collections.abc import Mapping, Sequence

Manifest = Mapping[str, object]


def mapping_at(mapping: Manifest, key: str) -> dict[str, object]:
    """Return the mapping under a key; what is missing, null or of another kind counts as empty."""
    value = mapping.get(key)
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[dict[str, object]]:
    """Return the mappings in a list; what is missing or of another kind counts as empty."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def without(mapping: Manifest, *keys: str) -> dict[str, object]:
    """Return the mapping without some of its keys.

    >>> without({"replicas": 3, "paused": True}, "replicas")
    {'paused': True}
    """
    return {key: value for key, value in mapping.items() if key not in keys}


def merge(base: object, change: object) -> object:
    """Return `base` with `change` laid over it; what `change` does not speak of stays as it is.

    Mappings are merged key by key, and null removes a key. Lists whose items all have a name
    (containers, volumes, environment variables) are merged by that name, new ones at the end;
    any other list is replaced.

    >>> merge({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}})
    {'a': 1, 'b': {'c': 2, 'd': 3}}
    """
    if isinstance(change, Mapping):
        return _merge_mappings(base if isinstance(base, Mapping) else {}, change)
    if _all_named(base) and _all_named(change):
        return _merge_named(mappings(base), mappings(change))
    return change


def _merge_mappings(base: Manifest, change: Manifest) -> dict[str, object]:
    kept = {key: merge(value, change[key]) if key in change else value for key, value in base.items()}
    new = {key: merge(None, value) for key, value in change.items() if key not in base}
    return {key: value for key, value in (kept | new).items() if value is not None or key not in change}


def _merge_named(base: Sequence[Manifest], change: Sequence[Manifest]) -> list[object]:
    changes = {item["name"]: item for item in change}
    names = {item["name"] for item in base}
    kept = [merge(item, changes[item["name"]]) if item["name"] in changes else item for item in base]
    return [*kept, *(merge(None, item) for item in change if item["name"] not in names)]


def _all_named(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in value)

"""Finds what a path of fields leads to in keyed lists: containers by name, ports by number and protocol.

Whoever may write an object chooses how many items and how many keys there are, so no list is walked once for
each key.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

_Scalars = tuple[str | float | None, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """One value that another writer owns in a twin's pod template."""

    path: tuple[str, ...]  # names of fields; an item of a list by its keys, as `{"name":"web"}`
    value: object  # a text or a number; of a list or map that is owned as a whole, all of it
    at: datetime | None = None


class Removed(NamedTuple):
    """What another client has removed from a twin's pod template."""

    paths: tuple[tuple[str, ...], ...]
    at: datetime  # when it was seen first


class KeyedLists:
    """The items of lists by their keys, each list read once; it must not change meanwhile."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[tuple[str, ...], dict[_Scalars, Mapping[str, Any]]]] = {}

    def find(self, items: Sequence[object], key: str) -> Mapping[str, Any] | None:
        """Return the first item that has these fields, None when there is none.

        A list has one kind of key: that which it is asked for first. Raises ValueError for what is no JSON.

        >>> KeyedLists().find([{"name": "web", "image": "a"}], '{"name":"web"}')
        {'name': 'web', 'image': 'a'}
        """
        wanted = json.loads(key)
        if not isinstance(wanted, dict):
            return None
        names = tuple(sorted(wanted))
        known = self._known.get(id(items))
        if known is None:
            known = self._known[id(items)] = names, _by_key(items, names)
        values = _values(wanted, names)
        return known[1].get(values) if known[0] == names and values is not None else None


def _by_key(items: Sequence[object], names: tuple[str, ...]) -> dict[_Scalars, Mapping[str, Any]]:
    by_key: dict[_Scalars, Mapping[str, Any]] = {}
    for item in items:
        if isinstance(item, dict) and (values := _values(item, names)) is not None:
            by_key.setdefault(values, item)
    return by_key


def _values(item: Mapping[str, Any], names: tuple[str, ...]) -> _Scalars | None:
    """Return the values of a key; None when one is missing, or is no key."""
    values = tuple(item.get(name, ()) for name in names)
    return values if all(isinstance(value, str | int | float | None) for value in values) else None

"""What differs between two renderings of a twin, or between one and its twin, in words.

The reconciler asks for the first when a source or a template has changed, and says it in the log: a roll
replaces pods, and its owner should see at once which field did it. The planner asks for the second: what
somebody has written over ours is put back. Both are about a few fields; whether a twin is up to date is
decided by the hash (`desired.rendered_hash`).
"""

import json
from collections.abc import Iterator, Sequence
from itertools import islice

from splitter.core.model import Edit, Rendered
from splitter.core.surface import ANNOTATION_MADE_OF, ANNOTATION_RENDERED_HASH

# They differ because something else does.
_MARKS = (ANNOTATION_RENDERED_HASH, ANNOTATION_MADE_OF)
Path = tuple[str, ...]

_SHOWN = 5
_VALUE = 60


class _Absent:
    """No value."""

    def __repr__(self) -> str:
        return "not present"


_ABSENT = _Absent()


def changed_fields(before: Rendered, after: Rendered) -> tuple[str, ...]:
    """Return up to five changed fields as `path: old -> new`, and how many more there are.

    >>> old, new = Rendered('{"spec": {"image": "a"}}', "1"), Rendered('{"spec": {"image": "b"}}', "2")
    >>> changed_fields(old, new)
    ("spec.image: 'a' -> 'b'",)
    """
    if before.manifest_json == after.manifest_json:
        return ()
    changes = _changes((), json.loads(before.manifest_json), json.loads(after.manifest_json))
    found = (
        f"{_path(path)}: {_short(old)} -> {_short(new)}"
        for path, old, new in changes
        if path[-1] not in _MARKS
    )
    shown = tuple(islice(found, _SHOWN))
    more = sum(1 for _ in found)
    return (*shown, *((f"{more} more",) if more else ()))


def _changes(path: Path, before: object, after: object) -> Iterator[tuple[Path, object, object]]:
    """Yield path, old and new value of each leaf that differs, in the order of the paths.

    Our own: a library for this took 25 ms for a twin of two containers, most of what a roll of all
    workloads cost (docs/performance.md).
    """
    if before == after:
        return
    olds, news = _parts_of(before, after)
    if not olds and not news:
        yield path, before, after
    for part in sorted(olds.keys() | news.keys()):
        yield from _changes((*path, part), olds.get(part, _ABSENT), news.get(part, _ABSENT))


def _parts_of(before: object, after: object) -> tuple[dict[str, object], dict[str, object]]:
    """Return what two objects, or two lists, are made of; nothing for values that are told as they are."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before, after
    if isinstance(before, list) and isinstance(after, list):
        olds, news = _by_name(before), _by_name(after)
        if [name for name in olds if name in news] != [name for name in news if name in olds]:
            olds = news = {}  # another order is what changed
        return (olds, news) if olds and news else (_by_number(before), _by_number(after))
    return {}, {}


def _by_name(items: list[object]) -> dict[str, object]:
    found: dict[str, object] = {
        str(item["name"]): item for item in items if isinstance(item, dict) and "name" in item
    }
    return found if len(found) == len(items) else {}


def _by_number(items: list[object]) -> dict[str, object]:
    return {str(number): item for number, item in enumerate(items)}


def overwritten(edits: Sequence[Edit], rendered: Rendered) -> tuple[str, ...]:
    """Return the values that somebody has written over what the template renders, as `path: ours -> theirs`.

    What was only added (an annotation, a variable) says nothing against ours and stays.

    >>> overwritten([Edit(("spec", "image"), "b")], Rendered('{"spec": {"image": "a"}}', "1"))
    ("spec.image: 'a' -> 'b'",)
    """
    if not edits:
        return ()
    ours = json.loads(rendered.manifest_json)
    found = [(edit, _value_at(ours, edit.path)) for edit in edits]
    return tuple(
        f"{_path([_name(part) for part in edit.path])}: {_short(value)} -> {_short(edit.value)}"
        for edit, value in found
        if value is not None and value != edit.value
    )


def _value_at(value: object, path: Sequence[str]) -> object:
    """Follow a path; None where it leads nowhere."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list):
            keys = json.loads(part).items()
            value = next((item for item in value if isinstance(item, dict) and keys <= item.items()), None)
        else:
            return None
    return value


def _name(part: str) -> str:
    """Return how people call a part of a path: an item of a list by the value of its key."""
    return "/".join(map(str, json.loads(part).values())) if part.startswith("{") else part


def _path(parts: Sequence[str]) -> str:
    return ".".join(parts)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}..."

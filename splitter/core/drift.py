"""What differs between two renderings of a twin, or between one and its twin, in words.

The reconciler asks for the first when a source or a template has changed, and says it in the log: a roll
replaces pods, and its owner should see at once which field did it. The planner asks for the second: what
somebody has written over ours is put back. Both are about a few fields; whether a twin is up to date is
decided by the hash (`desired.rendered_hash`).
"""

import json
from collections.abc import Sequence

from deepdiff import DeepDiff

from splitter.core.model import Edit, Rendered
from splitter.core.surface import ANNOTATION_MADE_OF, ANNOTATION_RENDERED_HASH

# They differ because something else does.
_MARKS = (ANNOTATION_RENDERED_HASH, ANNOTATION_MADE_OF)
_SHOWN = 5
_VALUE = 60


def changed_fields(before: Rendered, after: Rendered) -> tuple[str, ...]:
    """Return up to five changed fields as `path: old -> new`, and how many more there are.

    >>> old, new = Rendered('{"spec": {"image": "a"}}', "1"), Rendered('{"spec": {"image": "b"}}', "2")
    >>> changed_fields(old, new)
    ("spec.image: 'a' -> 'b'",)
    """
    if before.manifest_json == after.manifest_json:
        return ()
    unlike = _unlike(json.loads(before.manifest_json), json.loads(after.manifest_json))
    # Its threshold would tell two objects without a common key, such as what is left of them, as one change.
    delta = DeepDiff(*unlike, view="tree", threshold_to_diff_deeper=0)
    found = sorted(
        f"{_path(path)}: {_short(level.t1)} -> {_short(level.t2)}"
        for levels in delta.values()
        for level in levels
        if (path := level.path(output_format="list"))[-1] not in _MARKS
    )
    more = len(found) - _SHOWN
    return (*found[:_SHOWN], *((f"{more} more",) if more > 0 else ()))


def _unlike(before: object, after: object) -> tuple[object, object]:
    """Return two objects without what is equal in both; the items of a list go by their names.

    DeepDiff copies a level for each value it looks at: 14 ms for a twin of two containers, most of what a
    roll of all workloads cost (docs/performance.md).
    """
    if isinstance(before, list) and isinstance(after, list):
        named = _by_name(before), _by_name(after)
        if not all(named) or not _in_one_order(*named):
            return before, after
        before, after = named
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return before, after
    same = {key for key in before.keys() & after.keys() if before[key] == after[key]}
    olds = {key: value for key, value in before.items() if key not in same}
    news = {key: value for key, value in after.items() if key not in same}
    for key in olds.keys() & news.keys():
        olds[key], news[key] = _unlike(olds[key], news[key])
    return olds, news


def _by_name(items: list[object]) -> dict[str, object]:
    """Return the items of a list by their names; nothing when one has none, or two have the same."""
    found: dict[str, object] = {
        str(item["name"]): item for item in items if isinstance(item, dict) and "name" in item
    }
    return found if len(found) == len(items) else {}


def _in_one_order(olds: dict[str, object], news: dict[str, object]) -> bool:
    return [name for name in olds if name in news] == [name for name in news if name in olds]


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


def _path(parts: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in parts)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}..."

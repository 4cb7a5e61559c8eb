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
    delta = DeepDiff(json.loads(before.manifest_json), json.loads(after.manifest_json), view="tree")
    found = sorted(
        f"{_path(path)}: {_short(level.t1)} -> {_short(level.t2)}"
        for levels in delta.values()
        for level in levels
        if (path := level.path(output_format="list"))[-1] not in _MARKS
    )
    more = len(found) - _SHOWN
    return (*found[:_SHOWN], *((f"{more} more",) if more > 0 else ()))


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

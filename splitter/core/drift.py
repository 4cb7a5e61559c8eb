"""Finds the fields in which two renderings differ, or a rendering and its twin: paths, never values.

The reconciler asks for the first when a source or a template has changed, and says it in the log: a roll
replaces pods, and its owner should see at once which field did it. The planner asks for the second: what
somebody has written over ours is put back. A value may be a password, whatever the field is called, so none
is told (docs/security.md). Whether a twin is up to date is decided by the hash (`desired.rendered_hash`).
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from deepdiff import DeepDiff

from splitter.core.keyed import Edit, KeyedLists
from splitter.core.labels_annotations import ANNOTATION_MADE_OF, ANNOTATION_RENDERED_HASH
from splitter.core.model import Rendered

# They differ because something else does.
_MARKS: Final = frozenset({ANNOTATION_RENDERED_HASH, ANNOTATION_MADE_OF})
_RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
_SHOWN: Final = 5
# What fields, labels, variables, ports and mount paths are called; anything else may be a text of the user's.
_NAME: Final = re.compile(r"[A-Za-z0-9._/-]{1,128}")


def changed_fields(before: Rendered, after: Rendered) -> tuple[str, ...]:
    """Return the paths of up to five changed fields, and how many more there are.

    >>> old, new = Rendered('{"spec": {"image": "a"}}', "1"), Rendered('{"spec": {"image": "b"}}', "2")
    >>> changed_fields(old, new)
    ('spec.image',)
    """
    if before.manifest_json == after.manifest_json:
        return ()
    unlike = _unlike(json.loads(before.manifest_json), json.loads(after.manifest_json))
    # Its threshold would tell two objects without a common key, such as what is left of them, as one change.
    delta = DeepDiff(*unlike, view="tree", threshold_to_diff_deeper=0, zip_ordered_iterables=True)
    paths = (level.path(output_format="list") for levels in delta.values() for level in levels)
    return shown([str(part) for part in path] for path in paths if path[-1] not in _MARKS)


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
    before_by_key = {key: value for key, value in before.items() if key not in same}
    after_by_key = {key: value for key, value in after.items() if key not in same}
    for key in before_by_key.keys() & after_by_key.keys():
        before_by_key[key], after_by_key[key] = _unlike(before_by_key[key], after_by_key[key])
    return before_by_key, after_by_key


def _by_name(items: list[object]) -> dict[str, object]:
    """Return the items of a list by their names; nothing when one has none, or two have the same."""
    named: dict[str, object] = {
        str(item["name"]): item for item in items if isinstance(item, dict) and "name" in item
    }
    return named if len(named) == len(items) else {}


def _in_one_order(before_by_key: dict[str, object], after_by_key: dict[str, object]) -> bool:
    return [name for name in before_by_key if name in after_by_key] == [
        name for name in after_by_key if name in before_by_key
    ]


def overwritten(edits: Sequence[Edit], rendered: Rendered) -> tuple[str, ...]:
    """Return the paths of what somebody has written over what the template renders: five, and how many more.

    What was only added (an annotation, a variable) says nothing against ours and stays.

    >>> overwritten([Edit(("spec", "image"), "b")], Rendered('{"spec": {"image": "a"}}', "1"))
    ('spec.image',)
    """
    return shown(map(_called, (edit.path for edit in differing(edits, rendered))))


def differing(edits: Sequence[Edit], rendered: Rendered) -> list[Edit]:
    """Return the edits that say something else than what the template renders.

    A restart is none: nothing of the pods is other by it than their age.
    """
    if not edits:
        return []
    ours, lists = json.loads(rendered.manifest_json), KeyedLists()
    written = ((edit, _value_at(ours, edit.path, lists)) for edit in edits if edit.path[-1] != _RESTARTED)
    return [edit for edit, value in written if value is not None and not _is_said(value, edit.value)]


def missing(paths: Iterable[Sequence[str]], rendered: Rendered) -> tuple[str, ...]:
    """Return which of the removed fields the template renders: five, and how many more."""
    ours, lists = json.loads(rendered.manifest_json), KeyedLists()
    rendered_paths = (path for path in paths if _value_at(ours, path, lists) is not None)
    return shown(_called(path) for path in rendered_paths if path[-1] != _RESTARTED)


def _is_said(ours: object, theirs: object) -> bool:
    """Whether a value says all that ours says; beyond that a list or map has the server's defaults."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return all(key in theirs and _is_said(value, theirs[key]) for key, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_is_said, ours, theirs))
    return ours == theirs


def _value_at(value: object, path: Sequence[str], lists: KeyedLists) -> object:
    """Follow a path; None where it leads nowhere."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list):
            # A member of a set (a finalizer) is its own key.
            value = lists.find(value, part) if part.startswith("{") else _member(value, part)
        else:
            return None
    return value


def _member(values: list[object], part: str) -> object:
    return next((value for value in values if json.dumps(value) == part), None)


def _called(path: Sequence[str]) -> list[str]:
    """Return a path as people call it: an item of a list by the values of its key."""
    return ["/".join(map(str, json.loads(part).values())) if part.startswith('{"') else part for part in path]


def shown(paths: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return paths as people read them: five, and how many more; a part that may be a value is a `*`."""
    texts = sorted(".".join(part if _NAME.fullmatch(part) else "*" for part in path) for path in paths)
    more = len(texts) - _SHOWN
    return (*texts[:_SHOWN], *((f"{more} more",) if more > 0 else ()))

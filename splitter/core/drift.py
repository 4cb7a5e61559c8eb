"""What differs between two renderings of a twin, in words.

The reconciler asks when a source or a template has changed, and says it in the log: a roll replaces
pods, and its owner should see at once which field did it. Whether to write is decided by the hash
(`desired.rendered_hash`), never by this.
"""

import json

from deepdiff import DeepDiff

from splitter.core.model import Rendered

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
        f"{_path(level.path(output_format='list'))}: {_short(level.t1)} -> {_short(level.t2)}"
        for levels in delta.values()
        for level in levels
    )
    more = len(found) - _SHOWN
    return (*found[:_SHOWN], *((f"{more} more",) if more > 0 else ()))


def _path(parts: list[str | int]) -> str:
    return ".".join(str(part) for part in parts)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}..."

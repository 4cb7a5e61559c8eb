"""Reads and writes the annotation `splitter.io/replicas`: N of a StatefulSet that is split.

Such a source stands at 0, so what its user wants has to be remembered. Beside N stands what we have last
left in `spec.replicas`: another number there was written by somebody else, and is the new N.
"""

import json
from dataclasses import dataclass
from typing import Final

# `spec.replicas` is an int32.
_MOST: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SavedReplicas:
    """N, and what we have last left in `spec.replicas` of the source."""

    replicas: int
    left: int


def saved_value(replicas: int, left: int) -> str:
    """Return the text of the annotation.

    >>> saved_value(5, 0)
    '{"replicas":5,"left":0}'
    """
    return json.dumps({"replicas": replicas, "left": left}, separators=(",", ":"))


def parse_saved(text: str | None) -> SavedReplicas | None:
    """Return what was saved, or None when nothing was that can be read.

    A number alone, as a person may write it by hand, is N of a source that stands at 0.

    >>> parse_saved("5")
    SavedReplicas(replicas=5, left=0)
    """
    try:
        read: object = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    fields = read if isinstance(read, dict) else {"replicas": read}
    replicas, left = _count(fields.get("replicas")), _count(fields.get("left", 0))
    return SavedReplicas(replicas, left) if replicas is not None and left is not None else None


def _count(value: object) -> int | None:
    """Return what `spec.replicas` may be; more digits than that would make every sum of it a bug."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MOST else None

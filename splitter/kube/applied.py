"""Remembers which fields of twins' pod templates are ours, to find those that another client removes (H68).

`apply` reports each answer, and `observe` asks. Only this process knows: what was removed before is unknown.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from splitter.core.keyed import Removed
from splitter.kube import parse
from splitter.kube.mutations import NONE, Mutations
from splitter.kube.records import TwinRecord


class AppliedFields:
    """Which fields were ours, by a twin's UID, since when one is missed, and what a policy made of them."""

    def __init__(self) -> None:
        self._applied: dict[str, bytes] = {}
        self._missed_since: dict[str, datetime] = {}
        self._mutated: dict[str, Mutations] = {}

    def answered(self, raw: Mapping[str, Any], made: Mutations = NONE) -> None:
        """Take the answer to our own write of a twin's template, and what became of its fields."""
        uid = raw["metadata"]["uid"]
        self._applied[uid], self._mutated[uid] = parse.owned(raw), made
        self._missed_since.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Forget a twin that is gone."""
        self._applied.pop(uid, None)
        self._missed_since.pop(uid, None)
        self._mutated.pop(uid, None)

    def forget_all(self) -> None:
        """Forget which fields were ours: others may have written since."""
        self._applied.clear()
        self._missed_since.clear()

    def mutated(self, twin: TwinRecord) -> Mutations | None:
        """Return what a policy made of our last write of a twin; None for what was written before us."""
        return self._mutated.get(twin.uid)

    def removed(self, twin: TwinRecord, now: datetime) -> Removed | None:
        """Return which fields were removed since our last apply, and when that was seen first."""
        applied = self._applied.get(twin.uid, twin.owned)
        paths = parse.removed(applied, twin.owned, twin.theirs) if applied != twin.owned else ()
        if not paths:
            self._missed_since.pop(twin.uid, None)
            return None
        return Removed(paths, self._missed_since.setdefault(twin.uid, now))

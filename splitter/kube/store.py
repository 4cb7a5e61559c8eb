"""A shelf of slim records of one kind, indexed, told to only by watches and by our own writes.

`cache` builds one shelf per kind. A record keeps the few fields that passes read (a pod in under
2 KB), never the raw object. Answers to our own writes are put here too, so that a pass never acts on
a cache that has not seen what the last one wrote; resourceVersions are compared as numbers (they are
comparable since Kubernetes 1.35, and were so in etcd's reality before), so an older watch event never
overwrites a newer answer.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

# Deleted UIDs remembered against late watch events: more than can be in flight at once.
_TOMBSTONES = 4096


class Record(Protocol):
    """What every record has."""

    @property
    def uid(self) -> str:
        """The object's UID."""
        ...

    @property
    def namespace(self) -> str:
        """The object's namespace; empty for cluster-wide kinds."""
        ...

    @property
    def version(self) -> int:
        """The resourceVersion as a number."""
        ...


R = TypeVar("R", bound=Record)


class Shelf(Generic[R]):
    """Records by UID, with indexes; `on_change(old, new)` is called after each change."""

    def __init__(
        self,
        parse: Callable[[Mapping[str, Any]], R],
        indexes: Mapping[str, Callable[[R], Hashable]],
        on_change: Callable[[R | None, R | None], None],
    ) -> None:
        self._parse = parse
        self._indexes = indexes
        self._on_change = on_change
        self._records: dict[str, R] = {}
        self._index: dict[str, dict[Hashable, dict[str, R]]] = {name: defaultdict(dict) for name in indexes}
        self._tombstones: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self._records)

    def values(self) -> Iterable[R]:
        """All records; do not change the shelf while iterating."""
        return self._records.values()

    def get(self, uid: str) -> R | None:
        """Return the record with this UID."""
        return self._records.get(uid)

    def find(self, index: str, key: Hashable) -> tuple[R, ...]:
        """Return the records that an index files under this key."""
        found = self._index[index].get(key)
        return tuple(found.values()) if found else ()

    def one(self, index: str, key: Hashable) -> R | None:
        """Return the newest record that an index files under this key."""
        return max(self.find(index, key), key=lambda record: record.version, default=None)

    def replace(self, pages: Iterable[dict[str, Any]], namespace: str | None) -> None:
        """Take a complete list (of one namespace, or of all); what is not in it is gone."""
        listed = set()
        for raw in pages:
            listed.add(raw["metadata"]["uid"])
            self.upsert(raw)
        stale = [
            record
            for uid, record in self._records.items()
            if uid not in listed and (namespace is None or record.namespace == namespace)
        ]
        for record in stale:
            self._drop(record.uid)

    def upsert(self, raw: Mapping[str, Any]) -> R | None:
        """Take an object unless we know a newer one; returns the record kept, None if it is gone."""
        uid = raw["metadata"]["uid"]
        if uid in self._tombstones:
            return None
        known = self._records.get(uid)
        if known is not None and known.version >= int(raw["metadata"]["resourceVersion"]):
            return known
        record = self._parse(raw)
        self._records[uid] = record
        for name, index_key in self._indexes.items():
            new_key = index_key(record)
            if known is not None and (old_key := index_key(known)) != new_key:
                self._unfile(name, old_key, uid)
            self._index[name][new_key][uid] = record
        self._on_change(known, record)
        return record

    def remove(self, raw: Mapping[str, Any]) -> None:
        """Forget an object that was deleted or no longer matches."""
        self._drop(raw["metadata"]["uid"], bury="deletionTimestamp" in raw["metadata"])

    def forget(self, uid: str) -> None:
        """Forget an object whose deletion we were just confirmed."""
        self._drop(uid, bury=True)

    def _drop(self, uid: str, *, bury: bool = False) -> None:
        if bury:
            self._tombstones[uid] = None
            if len(self._tombstones) > _TOMBSTONES:
                self._tombstones.popitem(last=False)
        record = self._records.pop(uid, None)
        if record is None:
            return
        for name, index_key in self._indexes.items():
            self._unfile(name, index_key(record), uid)
        self._on_change(record, None)

    def _unfile(self, name: str, key: Hashable, uid: str) -> None:
        filed = self._index[name][key]
        filed.pop(uid, None)
        if not filed:
            del self._index[name][key]

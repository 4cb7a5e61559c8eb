"""Keeps and indexes the records of one kind; only watches and splitter's own writes change it.

`cache` builds one indexer per kind. A record keeps the few fields that reconciles read (a pod in under
2 KB), never the raw object. Answers to our own writes are put here too, so that a reconcile never acts on
a cache that has not seen what the last one wrote; resourceVersions are compared as numbers (they are
comparable since Kubernetes 1.35, and were so in etcd's reality before), so an older watch event never
overwrites a newer answer.
"""

import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from splitter.kube.parse.fields import UNREADABLE, UnreadableError
from splitter.kube.records import Record
from splitter.kube.shares import Shares

logger = logging.getLogger("splitter.cache")

# Deleted UIDs, and up to which resourceVersion they are gone, remembered against late watch events and
# late answers: more than can be in flight at once.
_TOMBSTONES = 4096
_FOREVER = 2**63
# Objects that cannot be read, and are said to be so once: anybody may write any number of them.
_COMPLAINTS = 1000


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Reading(Generic[R]):
    """An object as it was read, before anybody hears of it; no record: it is no news, or too odd to read."""

    uid: str
    record: R | None = None
    keys: Mapping[str, Hashable] = field(default_factory=dict)
    reserved: int = 0  # of the share of its namespace, until it is put there


class Indexer(Generic[R]):
    """Records by UID, with indexes (no key of None); `on_change(old, new)` is called after each change.

    With `most`, it keeps that many records; beyond them, each new one replaces the oldest.
    """

    def __init__(
        self,
        parse: Callable[[Mapping[str, Any]], R],
        indexes: Mapping[str, Callable[[R], Hashable]],
        on_change: Callable[[R | None, R | None], None],
        most: int | None = None,
        shares: Shares | None = None,
    ) -> None:
        """`shares`: of the namespaces, where they are counted together with other kinds."""
        self._parse = parse
        self._shares = shares or Shares()
        self._indexes = indexes
        self._on_change = on_change
        self._most = most
        self._records: dict[str, R] = {}
        self._index: dict[str, dict[Hashable, dict[str, R]]] = {name: defaultdict(dict) for name in indexes}
        self._tombstones: OrderedDict[str, int] = OrderedDict()
        self._odd: set[str] = set()
        self._listed: dict[
            str | None, int
        ] = {}  # versions of the last complete lists, by namespace; None: of all

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self._records)

    def values(self) -> Iterable[R]:
        """All records; do not change the indexer while iterating."""
        return self._records.values()

    def get(self, namespace: str, uid: str) -> R | None:
        """Return the record with this UID, if it is of this namespace: anybody's may be named as an owner."""
        record = self._records.get(uid)
        return record if record is not None and record.namespace == namespace else None

    def listed_version(self, namespace: str | None = None) -> int:
        """Return as of which version the objects (of a namespace) were last listed; 0: not yet."""
        return max(self._listed.get(None, 0), self._listed.get(namespace, 0))

    def is_gone(self, namespace: str, uid: str, version: int) -> bool:
        """Whether an object that was there before `version` is known to be no more.

        It was seen to go, or a later list is without it. Otherwise its watch may be behind: no order is
        promised between two watches, and what an object has made may be seen first.
        """
        if uid in self._records or uid in self._odd:
            return False
        return uid in self._tombstones or version <= self.listed_version(namespace)

    def find(self, index: str, key: Hashable) -> tuple[R, ...]:
        """Return the records that an index files under this key."""
        filed = self._index[index].get(key)
        return tuple(filed.values()) if filed else ()

    def one(self, index: str, key: Hashable) -> R | None:
        """Return the newest record that an index files under this key."""
        return max(self.find(index, key), key=lambda record: record.version, default=None)

    def samples(self, index: str) -> Iterable[R]:
        """Return one record for each key of an index; do not change the indexer while iterating."""
        return (next(iter(filed.values())) for filed in self._index[index].values())

    def replace(
        self,
        listed: Iterable[Reading[R]],
        namespace: str | None,
        version: int,
        concerns: Callable[[R], bool] = lambda _: True,
    ) -> None:
        """Take a complete list as of `version` (of one namespace, or of all); what is not in it is gone.

        But for what is newer than the list: we have written it since; and for what the list does not concern.
        """
        self._listed[namespace] = version
        there = set()
        for reading in listed:
            there.add(reading.uid)
            self._put(reading)
        stale = [
            record
            for uid, record in self._records.items()
            if uid not in there
            and record.version <= version
            and (namespace is None or record.namespace == namespace)
            and concerns(record)
        ]
        for record in stale:
            self._drop(record.uid, 0)  # it may come back in a later list

    def of_kind(self, kind: str, has_kind: Callable[[R], bool]) -> "OfKind[R]":
        """Return the part of this indexer that the reflector of one kind fills."""
        return OfKind(self, kind, has_kind)

    def upsert(self, raw: Mapping[str, Any]) -> R | None:
        """Take an object unless we know a newer one; returns the record kept, None if it is gone."""
        return self._put(self.read(raw))

    def read(self, raw: Mapping[str, Any]) -> Reading[R]:
        """Read an object without a notification: a list is reported at once, when its last page is there."""
        uid, version = raw["metadata"]["uid"], int(raw["metadata"]["resourceVersion"])
        if not self._is_newer(uid, version):
            return Reading(uid)
        try:
            if not isinstance(raw["metadata"]["name"], str):
                raise UnreadableError("the name is no text")
            record = self._parse(raw)
            keys = {name: index_key(record) for name, index_key in self._indexes.items()}
            hash(tuple(keys.values()))
        except UNREADABLE as error:
            # One odd object of anybody's must not blind us to all others.
            self._complain(raw, error)
            return Reading(uid)
        known = self._records.get(uid)
        reserved = max(0, record.weight - (known.weight if known is not None else 0))
        if not self._shares.reserve(record.namespace, reserved):
            return Reading(uid)
        return Reading(uid, record, keys, reserved)

    def discard(self, listed: Iterable[Reading[R]]) -> None:
        """Take note that a list was not read to its end."""
        for reading in listed:
            if reading.record is not None:
                self._shares.add(reading.record.namespace, -reading.reserved)

    def _is_newer(self, uid: str, version: int) -> bool:
        known = self._records.get(uid)
        return self._tombstones.get(uid, -1) < version and (known is None or known.version < version)

    def _put(self, reading: Reading[R]) -> R | None:
        uid, record = reading.uid, reading.record
        known = self._records.get(uid)
        if record is None:
            return known
        self._shares.add(record.namespace, -reading.reserved)
        if not self._is_newer(uid, record.version):
            return known
        self._shares.add(record.namespace, record.weight - (known.weight if known is not None else 0))
        self._records[uid] = record
        for name, new_key in reading.keys.items():
            if known is not None and (old_key := self._indexes[name](known)) != new_key:
                self._unfile(name, old_key, uid)
            if new_key is not None:
                self._index[name][new_key][uid] = record
        self._on_change(known, record)
        if self._most is not None and len(self._records) > self._most:
            self._drop(next(iter(self._records)))
        return record

    def remove(self, raw: Mapping[str, Any]) -> None:
        """Forget an object that was deleted or no longer matches."""
        metadata = raw["metadata"]
        final = "deletionTimestamp" in metadata  # a label may come back, a deleted object does not
        self._drop(metadata["uid"], _FOREVER if final else int(metadata["resourceVersion"]))

    def forget(self, uid: str) -> None:
        """Forget an object whose deletion we were just confirmed."""
        self._drop(uid, _FOREVER)

    def _complain(self, raw: Mapping[str, Any], error: Exception) -> None:
        metadata = raw["metadata"]
        if metadata["uid"] in self._odd or len(self._odd) >= _COMPLAINTS:
            return
        self._odd.add(metadata["uid"])
        name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        # The words of any other error may be a value of the object's, and some of those are secret.
        why = error if isinstance(error, UnreadableError) else type(error).__name__
        logger.warning("%s %s cannot be read and is left out: %s", raw.get("kind", "object"), name, why)

    def _drop(self, uid: str, version: int = -1) -> None:
        if version >= 0:
            self._tombstones[uid] = max(version, self._tombstones.get(uid, -1))
            if len(self._tombstones) > _TOMBSTONES:
                self._tombstones.popitem(last=False)
        self._odd.discard(uid)
        record = self._records.pop(uid, None)
        if record is None:
            return
        self._shares.add(record.namespace, -record.weight)
        for name, index_key in self._indexes.items():
            self._unfile(name, index_key(record), uid)
        self._on_change(record, None)

    def _unfile(self, name: str, key: Hashable, uid: str) -> None:
        if key is None:
            return
        filed = self._index[name][key]
        filed.pop(uid, None)
        if not filed:
            del self._index[name][key]


class OfKind(Generic[R]):
    """One kind of an indexer that holds several: a complete list of it says nothing about the others.

    What comes out of a list does not say of what kind it is, and is told so.
    """

    def __init__(self, indexer: Indexer[R], kind: str, has_kind: Callable[[R], bool]) -> None:
        self._indexer = indexer
        self._kind = kind
        self._has_kind = has_kind

    def read(self, raw: dict[str, Any]) -> Reading[R]:
        """Read an object out of a list."""
        return self._indexer.read({**raw, "kind": self._kind})

    def replace(self, listed: Iterable[Reading[R]], namespace: str | None, version: int) -> None:
        """Take a complete list of this kind."""
        self._indexer.replace(listed, namespace, version, self._has_kind)

    def discard(self, listed: Iterable[Reading[R]]) -> None:
        """Take note that a list was not read to its end."""
        self._indexer.discard(listed)

    def upsert(self, raw: dict[str, Any]) -> object:
        """Take a new or changed object."""
        return self._indexer.upsert(raw)

    def remove(self, raw: dict[str, Any]) -> None:
        """Forget an object."""
        self._indexer.remove(raw)

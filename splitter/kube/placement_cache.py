"""The stored Placements, which the admission policy reads: one for each namespace.

A part of the cache. `placement_writer` writes them; a change by anybody else enqueues those of whom it says
something else than before, if they are known, and their next reconcile mends it. Placements of other names
are copies, which nobody follows.
"""

from collections.abc import Callable, Iterable, Mapping

from splitter.admission.placement import NAME
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.placeable import Runs
from splitter.kube import parse
from splitter.kube.client import Client, Json
from splitter.kube.paths import placements
from splitter.kube.records import PlacementRecord
from splitter.kube.shares import Shares
from splitter.kube.store import Indexer
from splitter.kube.watch import Reflector

# By the UID of a StatefulSet: its name, and the ordinals that are born on on-demand.
Sets = Mapping[str, tuple[str, Runs]]


class PlacementCache:
    """The Placements of all namespaces that are followed."""

    def __init__(
        self, enqueue: Callable[[Key], None], knows: Callable[[Key], bool], shares: Shares | None = None
    ) -> None:
        self._enqueue = enqueue
        self._knows = knows
        self._spot_labels: set[str] = set()
        self._answered: dict[str, tuple[int, frozenset[str]]] = {}  # by namespace: what we asked for last
        self._indexer = Indexer(
            parse.placement,
            {"name": lambda record: (record.namespace, record.name)},
            self._changed,
            shares=shares,
        )

    def reflector(self, client: Client, namespace: str) -> Reflector:
        """Return what follows them; without their kind there is no placement mode, and all else works."""
        return Reflector(
            client,
            placements(namespace),
            self._indexer,
            fields=f"metadata.name={NAME}",
            without="placement mode does not work before manifests/crd.yaml is applied",
            awaited=True,
        )

    def of(self, namespace: str) -> PlacementRecord | None:
        """Return what the policy reads for pods of this namespace."""
        return self._indexer.one("name", (namespace, NAME))

    def published(self, namespace: str, uid: str) -> Runs | None:
        """Return the ordinals by which it places the pods of a StatefulSet; None: it does not."""
        record = self.of(namespace)
        return record.sets[uid][1] if record is not None and uid in record.sets else None

    def saw(self, spot_labels: Iterable[str]) -> None:
        """Take note of the labels of a spot node; once seen they stay, for such nodes may come back."""
        if new := set(spot_labels) - self._spot_labels:
            self._spot_labels |= new
            self._enqueue_known(self.keys())

    def spot_labels(self, namespace: str) -> frozenset[str]:
        """Return the labels of all spot nodes that were seen, now or when it was last told."""
        return self._published_labels(namespace) | self._spot_labels

    def knows_nodes(self, namespace: str) -> bool:
        """Whether the policy knows the labels of every kind of spot nodes."""
        return self._spot_labels <= self._published_labels(namespace)

    def _published_labels(self, namespace: str) -> frozenset[str]:
        record = self.of(namespace)
        if record is None:
            return frozenset()
        # An older definition of the kind drops the field; to tell it again and again would not help.
        version, asked = self._answered.get(namespace, (0, frozenset()))
        return asked if version == record.version else record.spot_labels

    def keys(self) -> set[Key]:
        """Return every StatefulSet that is named in one."""
        return {
            Key(STATEFUL_SET, record.namespace, name)
            for record in self._indexer.values()
            for name, _ in record.sets.values()
        }

    def written(self, raw: Json, spot_labels: frozenset[str]) -> None:
        """Take the answer to our own write, in which these labels were told."""
        if (record := self._indexer.upsert(raw)) is not None:
            self._answered[record.namespace] = (int(raw["metadata"]["resourceVersion"]), spot_labels)

    def forget(self, uid: str) -> None:
        """Record a deletion of ours."""
        self._indexer.forget(uid)

    def _changed(self, old: PlacementRecord | None, new: PlacementRecord | None) -> None:
        before, after = (set(record.sets.items()) if record is not None else set() for record in (old, new))
        if (record := new or old) is not None:
            concerned = before ^ after if self.knows_nodes(record.namespace) else before | after
            self._enqueue_known({Key(STATEFUL_SET, record.namespace, name) for _, (name, _) in concerned})

    def _enqueue_known(self, keys: Iterable[Key]) -> None:
        """Enqueue those that exist or have a Split: whoever may write it can name any number of others."""
        for key in filter(self._knows, keys):
            self._enqueue(key)

"""What the admission policy has been told, as the API server has it: one Placement a namespace.

A part of the cache. `placing` writes them; a change by anybody else wakes those of whom it says something
else than before, and their next pass mends it. Placements of other names are copies, which nobody reads.
"""

from collections.abc import Callable, Mapping

from splitter.core.admission.placement import NAME
from splitter.core.model import STATEFUL_SET, Key
from splitter.core.placeable import Runs
from splitter.kube import parse
from splitter.kube.client import Client, Json
from splitter.kube.records import PlacementRecord
from splitter.kube.store import Shelf
from splitter.kube.watch import Reflector

# By the UID of a StatefulSet: its name, and the ordinals that are born on on-demand.
Sets = Mapping[str, tuple[str, Runs]]


class Placements:
    """The Placements of all namespaces that are followed."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self._wake = wake
        self._shelf = Shelf(
            parse.placement, {"name": lambda record: (record.namespace, record.name)}, self._changed
        )

    def reflector(self, client: Client, scope: str, namespace: str | None) -> Reflector:
        """Return what follows them; without their kind there is no placement mode, and all else works."""
        return Reflector(
            client,
            f"/apis/splitter.io/v1alpha1{scope}/placements",
            self._shelf,
            namespace=namespace,
            without="placement mode does not work before manifests/crd.yaml is applied",
            awaited=True,
        )

    def of(self, namespace: str) -> PlacementRecord | None:
        """Return what the policy reads for pods of this namespace."""
        return self._shelf.one("name", (namespace, NAME))

    def told(self, namespace: str, uid: str) -> Runs | None:
        """Return the ordinals by which it places the pods of a StatefulSet; None: it does not."""
        record = self.of(namespace)
        return record.sets[uid][1] if record is not None and uid in record.sets else None

    def keys(self) -> set[Key]:
        """Return every StatefulSet that is named in one."""
        return {
            Key(STATEFUL_SET, record.namespace, name)
            for record in self._shelf.values()
            for name, _ in record.sets.values()
        }

    def written(self, raw: Json) -> None:
        """Take the answer to our own write."""
        self._shelf.upsert(raw)

    def forget(self, uid: str) -> None:
        """Take note of a deletion of ours."""
        self._shelf.forget(uid)

    def _changed(self, old: PlacementRecord | None, new: PlacementRecord | None) -> None:
        before, after = (set(record.sets.items()) if record is not None else set() for record in (old, new))
        if (record := new or old) is not None:
            for _, (name, _) in before ^ after:
                self._wake(Key(STATEFUL_SET, record.namespace, name))

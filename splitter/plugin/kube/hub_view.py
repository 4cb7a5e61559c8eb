"""Follows how many replicas Karmada's API server asks for, with the rights of the person who looks.

What may not be read there is said by `missing`, as of a member by `ClusterView`. Nothing is written.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key
from splitter.kube.client import Client
from splitter.kube.parse.fields import count, identity
from splitter.kube.paths import workloads
from splitter.kube.records import Record
from splitter.kube.store import Indexer
from splitter.kube.watch import Reflector
from splitter.plugin.kube.cluster_view import followed, missing_of

_LOST: Final = dict.fromkeys(("deployments", "statefulsets"), "what the hub asks for is not shown")


@dataclass(frozen=True, slots=True)
class Wish(Record):
    """How many replicas of a workload the hub asks for."""

    key: Key
    replicas: int


class HubView:
    """What the hub asks for now; `followed` keeps it so."""

    def __init__(self, client: Client, namespaces: tuple[str, ...]) -> None:
        """`namespaces`: where to look; none means all."""
        self.changes = 0
        """Counts the changes that were seen."""
        self._wishes = {
            kind: Indexer(partial(_wish, kind), {"key": lambda one: one.key}, self._changed)
            for kind in (DEPLOYMENT, STATEFUL_SET)
        }
        self._reflectors = [
            Reflector(client, path, wishes, without=_LOST[path.plural])
            for kind, wishes in self._wishes.items()
            for path in (workloads(kind, namespace) for namespace in namespaces or ("",))
        ]

    def followed(self) -> AbstractAsyncContextManager[None]:
        """Follow it until the end of the block; it was listed or refused when it begins."""
        return followed(self._reflectors)

    @property
    def missing(self) -> tuple[str, ...]:
        """What cannot be shown now, and why: a sentence each."""
        return missing_of(self._reflectors, _LOST)

    def replicas(self, key: Key) -> int | None:
        """Return how many it asks for; None if it has no such workload."""
        wish = self._wishes[key.kind].one("key", key)
        return wish.replicas if wish is not None else None

    def _changed(self, _old: Wish | None, _new: Wish | None) -> None:
        self.changes += 1


def _wish(kind: str, raw: Mapping[str, Any]) -> Wish:
    metadata = raw["metadata"]
    key = Key(kind, metadata["namespace"], metadata["name"])
    return Wish(*identity(metadata), key=key, replicas=count(raw.get("spec", {}), "replicas", 1))

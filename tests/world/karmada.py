"""Karmada in push mode, for one workload of one member: it writes its whole template, again and again.

Source: pkg/util/objectwatcher and pkg/controllers/{binding,ctrlutil,execution,status} of Karmada 1.18.2.
"""

import asyncio
import copy
from collections.abc import Callable
from typing import Final

from leaping import passing
from splitter.kube.client import ApiError
from world.cluster import Cluster
from world.kinds import Raw, Ref, defaulted, typed
from world.objects import Event

MANAGER: Final = "karmada-controller-manager"
_PREFIX: Final = "resourcetemplate.karmada.io/"
_LATE_S: Final = 1.0  # from a change in the member to the write that undoes it; 1 to 2 s were seen

Retain = Callable[[Raw, Raw], Raw]


def everything(desired: Raw, observed: Raw) -> Raw:
    """Write all that the hub wants, as Karmada does without a script."""
    del observed
    return desired


class Karmada:
    """What the hub wants of one workload, and the controllers that write it into the member."""

    def __init__(self, cluster: Cluster, ref: Ref, template: Raw, retain: Retain) -> None:
        self.writes = 0
        self.away = False  # its controllers do not reach the member
        self._cluster = cluster
        self._ref = ref
        self._template = typed(ref.kind, defaulted(ref.kind, template))
        self._retain = retain
        self._generation = 1  # of the hub's object
        self._recorded = 0  # the member's generation after the last write
        self._due = asyncio.Event()

    def come_back(self) -> None:
        """Reach the member again, and look at once."""
        self.away = False
        self._due.set()

    def change(self, change: Callable[[Raw], None]) -> None:
        """Write to the hub's object as a user does."""
        change(self._template)
        self._generation += 1
        self._recorded = 0
        self._due.set()

    async def run(self) -> None:
        """Write until cancelled."""
        self._cluster.objects.create(self._ref.kind, self._ref.namespace, self._desired(), MANAGER)
        self._recorded = 1
        stop = self._cluster.objects.follow(self._ref.kind, self._hear)
        try:
            while True:
                await self._due.wait()
                await passing(_LATE_S)
                self._due.clear()
                self._write()
        finally:
            stop()

    def _hear(self, event: Event) -> None:
        if event.ref == self._ref:
            self._due.set()

    def _desired(self) -> Raw:
        """Return the manifest in the Work."""
        desired = copy.deepcopy(self._template)
        metadata = desired["metadata"]
        labels = metadata.setdefault("labels", {})
        labels["karmada.io/managed"] = "true"
        annotations = metadata.setdefault("annotations", {})
        annotations[f"{_PREFIX}generation"] = str(self._generation)
        annotations[f"{_PREFIX}managed-labels"] = ",".join(sorted(labels))
        annotations[f"{_PREFIX}managed-annotations"] = ",".join(sorted(annotations))
        return desired

    def _write(self) -> None:
        """Write what is wanted, unless the member has it and no generation has passed."""
        there = self._cluster.objects.find(self._ref)
        if self.away or there is None or there["metadata"]["generation"] == self._recorded:
            return
        desired = self._kept(self._desired(), there)
        desired = self._retain(copy.deepcopy(desired), copy.deepcopy(there))
        if desired == self._kept(_pruned(there), there):
            self._recorded = there["metadata"]["generation"]
            return
        try:
            written = self._cluster.objects.update(self._ref, desired, MANAGER)
        except ApiError:
            self._due.set()  # something else has written meanwhile
            return
        self.writes += 1
        self._recorded = written["metadata"]["generation"]

    @staticmethod
    def _kept(desired: Raw, there: Raw) -> Raw:
        """Return what is wanted with what Karmada always keeps of a member's object."""
        metadata, old = {**desired["metadata"]}, there["metadata"]
        for field in ("resourceVersion", "finalizers", "ownerReferences"):
            if field in old:
                metadata[field] = old[field]
        for field in ("labels", "annotations"):
            recorded = (old.get("annotations") or {}).get(f"{_PREFIX}managed-{field}", "").split(",")
            wanted = metadata.get(field) or {}
            kept = {key: value for key, value in (old.get(field) or {}).items() if key not in recorded}
            metadata[field] = {**kept, **wanted}
        return {**desired, "metadata": metadata}


_SERVERS: Final = frozenset({"creationTimestamp", "generation", "managedFields", "uid", "namespace"})
_CONTROLLERS: Final = "deployment.kubernetes.io/revision"


def _pruned(there: Raw) -> Raw:
    """Return an object without what no template has."""
    metadata = {name: value for name, value in there["metadata"].items() if name not in _SERVERS}
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key != _CONTROLLERS
    }
    kept = {name: value for name, value in there.items() if name != "status"}
    return {**kept, "metadata": {**metadata, "annotations": annotations}}

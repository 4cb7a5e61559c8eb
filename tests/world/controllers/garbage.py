"""The garbage collector: what has no owner any more goes, and what is orphaned loses the reference first.

Source: pkg/controller/garbagecollector/{garbagecollector,operations,patch}.go of Kubernetes 1.36. Its graph
is built from informers of its own, which is why it may be some time late.
"""

from collections.abc import Iterator
from functools import partial

from splitter.kube.client import ApiError
from world.apply import strategically_patched
from world.controllers.loop import Controller, Informers, Key
from world.kinds import (
    BUDGETS,
    CLAIMS,
    DAEMON_SETS,
    DEPLOYMENTS,
    PLACEMENTS,
    PODS,
    REPLICA_SETS,
    SPLITS,
    STATEFUL_SETS,
    Raw,
    Ref,
    kind_of,
    path_of,
    ref_of,
)

_MAPS = "/api/v1/configmaps"
_REVISIONS = "/apis/apps/v1/controllerrevisions"
_COLLECTED = (
    *(DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, PODS, CLAIMS),
    *(SPLITS, PLACEMENTS, BUDGETS, _MAPS, _REVISIONS),
)
_LATE_S = (0.05, 1.0)
_KEPT = frozenset({"orphan", "foregroundDeletion"})


class Garbage(Controller):
    """Looks at each object whose owner is gone, and at each that goes without its dependents."""

    user = "system:serviceaccount:kube-system:generic-garbage-collector"

    def __init__(self, informers: Informers, late_s: tuple[float, float] = _LATE_S) -> None:
        super().__init__(informers)
        self.late_s = late_s
        self._kinds = {kind: informers.of(kind) for kind in _COLLECTED}
        for kind, informer in self._kinds.items():
            informer.on_change(partial(self._changed, kind))

    def _changed(self, kind: str, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            assert old is not None
            for dependent, raw in self._dependents(old["metadata"]["uid"]):
                self._look_at(dependent, raw)
        elif _KEPT.intersection(new["metadata"].get("finalizers") or ()) or new["metadata"].get(
            "ownerReferences"
        ):
            deleting = "deletionTimestamp" in new["metadata"]
            if (
                deleting
                or old is None
                or old["metadata"].get("ownerReferences") != new["metadata"].get("ownerReferences")
            ):
                self._look_at(kind, new)

    def _look_at(self, kind: str, raw: Raw) -> None:
        path = path_of(kind, raw["metadata"].get("namespace", ""), raw["metadata"]["name"])
        self.enqueue(("", path), self.dice.uniform(*self.late_s))

    def _dependents(self, uid: str) -> Iterator[tuple[str, Raw]]:
        for kind, informer in self._kinds.items():
            for raw in list(informer.seen.values()):
                if any(one["uid"] == uid for one in raw["metadata"].get("ownerReferences") or ()):
                    yield kind, raw

    async def sync(self, key: Key) -> None:
        """Look at one object (attemptToDeleteItem, attemptToOrphanWorker)."""
        ref = ref_of(key[1])
        live = self.objects.find(ref)
        if live is None:
            return
        finalizers = live["metadata"].get("finalizers") or []
        if "deletionTimestamp" in live["metadata"]:
            if "orphan" in finalizers:
                await self._orphan(ref, live)
            elif "foregroundDeletion" in finalizers:
                await self._delete_dependents_first(ref, live)
            return
        owners = live["metadata"].get("ownerReferences") or []
        gone = [one for one in owners if not self._is_there(one, ref.namespace)]
        if not gone:
            return
        if len(gone) < len(owners):
            for one in gone:
                await self._take_off(ref, live, one["uid"])
            return
        await self.sent()
        preconditions = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
        options = {"propagationPolicy": "Background", "preconditions": preconditions}
        self.objects.delete(ref, options, user=self.user)

    def _is_there(self, owner: Raw, namespace: str) -> bool:
        kind = kind_of(owner["apiVersion"], owner["kind"])
        if not kind:
            return True  # it is not known, and nothing is decided
        there = self.objects.find(Ref(kind, namespace, owner["name"]))
        return there is not None and there["metadata"]["uid"] == owner["uid"]

    async def _orphan(self, ref: Ref, live: Raw) -> None:
        """Take the references off the dependents, then let the owner go; a refusal is tried again."""
        uid = live["metadata"]["uid"]
        for kind, raw in list(self._dependents(uid)):
            dependent = Ref(kind, raw["metadata"].get("namespace", ""), raw["metadata"]["name"])
            there = self.objects.find(dependent)
            if there is not None and there["metadata"]["uid"] == raw["metadata"]["uid"]:
                await self._take_off(dependent, there, uid)
        await self._remove_finalizer(ref, "orphan")

    async def _delete_dependents_first(self, ref: Ref, live: Raw) -> None:
        dependents = list(self._dependents(live["metadata"]["uid"]))
        for kind, raw in dependents:
            if "deletionTimestamp" not in raw["metadata"]:
                await self.delete(kind, raw, {"propagationPolicy": "Background"})
        if dependents:
            self._look_at(ref.kind, live)
            return
        await self._remove_finalizer(ref, "foregroundDeletion")

    async def _take_off(self, ref: Ref, raw: Raw, uid: str) -> None:
        await self.sent()
        live = self.objects.find(ref)
        if live is None or live["metadata"]["uid"] != raw["metadata"]["uid"]:
            return
        patch = {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": uid}]}}
        self.objects.update(ref, strategically_patched(live, patch), user=self.user)

    async def _remove_finalizer(self, ref: Ref, finalizer: str) -> None:
        await self.sent()
        live = self.objects.find(ref)
        if live is None:
            return
        left = [one for one in live["metadata"].get("finalizers") or () if one != finalizer]
        try:
            self.objects.update(
                ref, {**live, "metadata": {**live["metadata"], "finalizers": left}}, user=self.user
            )
        except ApiError as error:
            if error.status != 404:
                raise

"""The namespace controller: what is in a namespace that is deleted goes, then the namespace.

Source: pkg/controller/namespace/deletion of Kubernetes 1.36.
"""

from world.controllers.loop import Controller, Informers, Key
from world.kinds import NAMESPACES, Raw, Ref

_AGAIN_S = 1.0


class Namespaces(Controller):
    """Empties what is being deleted."""

    user = "system:serviceaccount:kube-system:namespace-controller"

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        informers.of(NAMESPACES).on_change(self._changed)

    def _changed(self, old: Raw | None, new: Raw | None) -> None:
        del old
        if new is not None and "deletionTimestamp" in new["metadata"]:
            self.enqueue(("", new["metadata"]["name"]))

    async def sync(self, key: Key) -> None:
        """Delete what is there; come back until there is nothing."""
        ref = Ref(NAMESPACES, "", key[1])
        live = self.objects.find(ref)
        if live is None or "deletionTimestamp" not in live["metadata"]:
            return
        there = [
            (kind, raw)
            for kind in list(self.objects.by_kind)
            for raw in self.objects.all(kind, key[1])
            if kind != NAMESPACES
        ]
        for kind, raw in there:
            if "deletionTimestamp" not in raw["metadata"]:
                await self.delete(kind, raw, {"propagationPolicy": "Background"})
        if there:
            self.enqueue(key, _AGAIN_S)
            return
        await self.sent()
        self.objects.finalize(ref)

"""The controllers of namespaces: each has an account; what is in one that is deleted goes, then itself.

Source: pkg/controller/{namespace/deletion,serviceaccount} of Kubernetes 1.36.
"""

from world.controllers.loop import Controller, Informers, Key
from world.kinds import NAMESPACES, Raw, Ref, path_of, ref_of

_ACCOUNTS = "/api/v1/serviceaccounts"
_AGAIN_S = 1.0


class Namespaces(Controller):
    """Gives each the account `default`, and empties what is being deleted."""

    user = "system:serviceaccount:kube-system:namespace-controller"

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        informers.of(NAMESPACES).on_change(self._changed)

    def _changed(self, old: Raw | None, new: Raw | None) -> None:
        del old
        if new is not None:
            self.enqueue(("", new["metadata"]["name"]))

    async def sync(self, key: Key) -> None:
        """Delete what is there; come back until there is nothing."""
        ref = Ref(NAMESPACES, "", key[1])
        live = self.objects.find(ref)
        if live is None:
            return
        if "deletionTimestamp" not in live["metadata"]:
            account = path_of(_ACCOUNTS, key[1], "default")
            if self.objects.find(ref_of(account)) is None:
                self.objects.put(account, {"metadata": {}})
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

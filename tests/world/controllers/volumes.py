"""Volumes: a claim gets one where the first pod that mounts it is bound (WaitForFirstConsumer).

Source: pkg/scheduler/framework/plugins/volumebinding, pkg/controller/volume/persistentvolume of Kubernetes
1.36, and a provisioner of the cloud's: a volume is in the zone of the node, or on the node itself if its
class is `local` (its nodes have no zone).
"""

from collections.abc import Iterator
from typing import Final

from world.controllers.fitting import reaches
from world.controllers.loop import Controller, Informers, Key
from world.kinds import CLAIMS, VOLUMES, Raw, Ref, path_of

LOCAL: Final = "local"
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


class Volumes:
    """Claims and volumes, as the scheduler knows them."""

    def __init__(self, informers: Informers) -> None:
        self._objects = informers.objects
        self._claims = informers.of(CLAIMS)

    def missing(self, pod: Raw) -> str:
        """Return which claim of a pod is not there or goes; empty: none."""
        for name, claim in self._of(pod):
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if "deletionTimestamp" in claim["metadata"]:
                return f'persistentvolumeclaim "{name}" is being deleted'
            named = any(
                _claimed_by(raw) == (pod["metadata"]["namespace"], name) for raw in self._objects.all(VOLUMES)
            )
            if named and not claim["spec"].get("volumeName"):  # `Claims` is about to bind it
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def objection(self, pod: Raw, node: Raw) -> str:
        """Return why a pod's volumes keep it off a node; empty: they do not."""
        for _, claim in self._of(pod):
            volume = self._objects.find(
                Ref(VOLUMES, "", ((claim or {}).get("spec") or {}).get("volumeName", ""))
            )
            if volume is not None and not reaches(volume, node):
                return "node(s) didn't match PersistentVolume's node affinity"
        return ""

    def bind(self, pod: Raw, node: Raw, user: str) -> None:
        """Make a volume for each claim that has none, where this node reaches it."""
        labels = node["metadata"].get("labels") or {}
        for _, claim in self._of(pod):
            if claim is None or claim["spec"].get("volumeName"):
                continue
            key = _HOST if claim["spec"].get("storageClassName") == LOCAL else _ZONE
            at = [{"key": key, "operator": "In", "values": [labels[key]]}] if key in labels else []
            terms = {"required": {"nodeSelectorTerms": [{"matchExpressions": at}]}}
            ref = Ref(CLAIMS, claim["metadata"]["namespace"], claim["metadata"]["name"])
            name = f"pvc-{claim['metadata']['uid']}"
            spec = {"claimRef": {"uid": claim["metadata"]["uid"]}, **({"nodeAffinity": terms} if at else {})}
            self._objects.put(path_of(VOLUMES, "", name), {"metadata": {}, "spec": spec})
            live = self._objects.get(ref)
            bound = {**live, "spec": {**live["spec"], "volumeName": name}}
            bound = self._objects.update(ref, bound, user=user)
            self._objects.update(ref, {**bound, "status": {"phase": "Bound"}}, part="status")

    def _of(self, pod: Raw) -> Iterator[tuple[str, Raw | None]]:
        for volume in pod["spec"].get("volumes") or ():
            if "persistentVolumeClaim" in volume:
                name = volume["persistentVolumeClaim"]["claimName"]
                yield name, self._objects.find(Ref(CLAIMS, pod["metadata"]["namespace"], name))


class Claims(Controller):
    """Binds a claim and a volume that name each other, or of which one names the other, at once."""

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self._claims = informers.of(CLAIMS)
        self._volumes = informers.of(VOLUMES)
        self._claims.on_change(lambda old, new: self._look_at((new or old or {})["metadata"]))
        self._volumes.on_change(self._volume_changed)

    def _look_at(self, claim: Raw) -> None:
        self.enqueue((claim["namespace"], claim["name"]))

    def _volume_changed(self, old: Raw | None, new: Raw | None) -> None:
        if named := _claimed_by(new or old or {}):
            self.enqueue(named)

    async def sync(self, key: Key) -> None:
        """Bind one (syncUnboundClaim)."""
        claim = self._claims.seen.get(key)
        if claim is None or (claim.get("status") or {}).get("phase") == "Bound":
            return
        named = claim["spec"].get("volumeName", "")
        volumes = {name: raw for (_, name), raw in self._volumes.seen.items()}
        free = [named] if named in volumes and _claimed_by(volumes[named]) in {None, key} else []
        name = next((name for name, raw in volumes.items() if _claimed_by(raw) == key), "") or "".join(free)
        if not name:
            return
        if not named:
            claim = await self.update(CLAIMS, {**claim, "spec": {**claim["spec"], "volumeName": name}})
        await self.update(CLAIMS, {**claim, "status": {"phase": "Bound"}}, "status")


def _claimed_by(volume: Raw) -> Key | None:
    ref = volume["spec"].get("claimRef") or {}
    return (ref["namespace"], ref["name"]) if "name" in ref else None

"""Gives each claim of a sandbox a volume: what a cloud's storage driver does, with no storage behind it.

The command line runs it beside the control plane, so does the test of the tutorial. Its StorageClass is
the default one: manifests work as they are. A volume can be attached to every node, and goes when its claim
goes. KWOK mounts nothing, so nothing is ever stored. It must never touch a claim of another class.
"""

import contextlib
from typing import Self

from lab.sandbox.api import Api, JsonObject, PatchKind
from lab.sandbox.errors import SandboxError
from lab.sandbox.following import Follower
from lab.sandbox.instants import Instant

STORAGE_CLASS = "sandbox"
_CLASS = f"/apis/storage.k8s.io/v1/storageclasses/{STORAGE_CLASS}"
_PROVISIONER = "sandbox.splitter.io/volumes"
_VOLUMES = "/api/v1/persistentvolumes"


class Provisioner:
    """Serves claims from `__enter__`, which returns when those that exist have been served, to `__exit__`."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._claims = Follower(api, "/api/v1/persistentvolumeclaims", self._claim_changed)

    def _claim_changed(self, at: Instant, raw: JsonObject, *, deleted: bool) -> None:
        del at
        metadata, spec = raw["metadata"], raw["spec"]
        if spec.get("storageClassName") != STORAGE_CLASS:
            return
        name = f"pvc-{metadata['uid']}"
        # A refusal leaves the claim Pending, which anybody sees; it must not end the watch.
        with contextlib.suppress(SandboxError):
            if deleted:
                self._api.delete(f"{_VOLUMES}/{name}", missing_ok=True)
            elif not spec.get("volumeName"):
                self._api.create(_VOLUMES, _volume(name, raw))

    def __enter__(self) -> Self:
        """Make the StorageClass, and begin."""
        self._api.patch(_CLASS, _storage_class(), kind=PatchKind.APPLY)
        self._claims.start()
        self._claims.wait_for_first_list()
        return self

    def __exit__(self, *_: object) -> None:
        """End; volumes stay, the StorageClass goes."""
        self._claims.stop()
        with contextlib.suppress(SandboxError):  # the control plane may have ended before
            self._api.delete(_CLASS, missing_ok=True)


def _storage_class() -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": _PROVISIONER,
        "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Retain",  # `Delete` is the provisioner's own work, done when the claim has gone
    }


def _volume(name: str, claim: JsonObject) -> JsonObject:
    """Return a volume reserved for this claim; Kubernetes binds the two."""
    metadata, spec = claim["metadata"], claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": _PROVISIONER}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "storageClassName": STORAGE_CLASS,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": f"/nowhere/{name}"},  # the plainest kind: nothing has to be attached
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
        },
    }

"""A backup is restored where splitter has never been: in Velero's order, with kubectl, as the guide says.

docs/how-to/backup-and-restore.md. Where splitter runs already: tests/lives/test_restored.py.
"""

import json
from contextlib import contextmanager

import pytest

from e2e.support.backup import Backup
from lab.fixtures.namespaces import open_shop
from lab.fixtures.shop import JsonObject
from lab.sandbox import Sandbox
from lab.sandbox.errors import SandboxError
from lab.upgrade.versions import NOW, Installation
from lab.upgrade.world import REPLICAS, World, assert_promised

pytestmark = pytest.mark.campaign


def test_into_a_cluster_without_splitter(installed: tuple[Sandbox, Installation]) -> None:
    """The pods of Deployments serve before splitter is there; then all stands as it did, and goes back."""
    sandbox, installation = installed
    installation.run(NOW)
    opened = contextmanager(open_shop)
    with opened(sandbox, installation) as first, opened(sandbox, installation) as second:
        world = World(first, second)
        world.create()
        world.split()
        backups = [Backup(shop, owners=False) for shop in (first, second)]
        installation.stop()
        for backup in backups:
            backup.erase()
        crds = [json.loads(sandbox.kubectl("get", "crd", name, "-o", "json")) for name in CRDS]
        sandbox.kubectl("delete", "-f", str(NOW.manifests / "admission" / "own-account.yaml"))
        sandbox.kubectl("delete", "crd", *CRDS)
        for raw in crds:  # Velero restores the CRDs of what it restores, before it
            sandbox.kubectl("create", "-f", "-", stdin=json.dumps(_new(raw)))
        sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", *(f"crd/{c}" for c in CRDS))
        for backup, shop in zip(backups, (first, second), strict=True):
            for _, one in backup.objects:
                try:
                    shop.kubectl("create", "-f", "-", stdin=json.dumps(one))
                except SandboxError as refusal:
                    if "AlreadyExists" not in str(refusal):
                        raise
        # The Deployment controller makes ReplicaSets of the twins beside those that were restored: more pods.
        first.until(lambda: first.shape().on_demand + first.shape().spot >= REPLICAS, "web to serve again")
        with world.watch() as watched:
            installation.run(NOW)
            world.wait_split()
            world.give_back()
            assert_promised({"web": watched["web"]})


CRDS = ("splits.splitter.io", "placements.splitter.io")


def _new(raw: JsonObject) -> JsonObject:
    """Return a CRD as a backup has it."""
    kept = {key: raw["metadata"][key] for key in ("name", "labels", "annotations") if key in raw["metadata"]}
    return {**raw, "metadata": kept, "status": {}}

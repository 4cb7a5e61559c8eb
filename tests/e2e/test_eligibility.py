"""What else than the source itself may forbid a split: policies, quotas, rights, volumes, ports.

The answer comes from the dry run or from a look around, before anything is written, and the workload is
split by itself when the cause has gone.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.support.refusals import ASKED, REPLICAS, Untouched, refused
from lab.fixtures.shop import DEADLINE_S, Shop, manifest
from lab.sandbox.errors import SandboxError
from lab.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e


class TestDryRun:
    def test_a_right_taken_away(self, shop: Shop) -> None:
        """Found before the pause, named with the verb; given back, it is split."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        with right_taken_away(shop, "replicasets", "patch"):
            shop.label()
            before = Untouched(shop)
            message = refused(shop, "WriteDenied")
            assert 'cannot patch resource "replicasets"' in message
            before.verify()
        shop.annotate(grace="20s")
        shop.wait_split(on_demand=1, spot=2)


@contextmanager
def right_taken_away(shop: Shop, resource: str, verb: str) -> Iterator[None]:
    """Take one verb out of splitter's ClusterRole, and put the role back."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/splitter"
    whole = shop.sandbox.api.get(path)["rules"]
    less = [
        {**rule, "verbs": [one for one in rule["verbs"] if resource not in rule["resources"] or one != verb]}
        for rule in whole
    ]

    def write(rules: object) -> None:
        patch = json.dumps({"rules": rules})
        shop.sandbox.kubectl("patch", "clusterrole", "splitter", "--type=merge", "-p", patch)

    def may() -> bool:
        who = "--as=system:serviceaccount:splitter-system:splitter"
        try:
            return "yes" in shop.kubectl("auth", "can-i", verb, resource, who)
        except SandboxError as refusal:
            return "no" not in str(refusal)

    write(less)
    try:
        wait_until(lambda: not may(), what="the right to be gone", deadline_s=DEADLINE_S)
        yield
    finally:
        write(whole)
        wait_until(may, what="the right to be there again", deadline_s=DEADLINE_S)


class TestVolumes:
    def test_read_write_once(self, shop: Shop) -> None:
        """One node mounts it, twins stand on two: refused with the claim's name; unmounted, it is split."""
        make_volume(shop, "uploads")
        mounted = manifest("web", REPLICAS, annotations=ASKED)
        pod = mounted["spec"]["template"]["spec"]
        pod["volumes"] = [{"name": "uploads", "persistentVolumeClaim": {"claimName": "uploads"}}]
        shop.apply(mounted)
        shop.wait_rolled_out()
        shop.label()
        before = Untouched(shop)
        message = refused(shop, "VolumeReadWriteOnce")
        assert "uploads" in message
        before.verify()
        del pod["volumes"]
        mounted["metadata"]["labels"]["splitter.io/split"] = "enabled"
        shop.apply(mounted)
        shop.wait_split(on_demand=1, spot=2)


def make_volume(shop: Shop, name: str) -> None:
    """Make a ReadWriteOnce volume and a claim bound to it."""
    size = {"storage": "1Gi"}
    volume = {
        "capacity": size,
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": shop.namespace, "name": name},
    }
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "resources": {"requests": size},
        "volumeName": f"{shop.namespace}-{name}",
    }
    meta = {"name": f"{shop.namespace}-{name}"}
    shop.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": volume})
    meta = {"name": name}
    shop.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim})
    shop.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", f"pvc/{name}", "--timeout=60s")

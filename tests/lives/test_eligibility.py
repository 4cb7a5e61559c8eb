"""What else than the source itself may forbid a split: policies, quotas, rights, volumes, ports.

The answer comes from the dry run or from a look around, before anything is written, and the workload is
split by itself when the cause has gone.
"""

import json

from e2e.support.causes import BARE_REPLICA_SET, quota_used
from e2e.support.refusals import ASKED, REPLICAS, Untouched, condition, refused
from lab.fixtures.shop import BY_ITSELF_S, JsonObject, Shop, manifest
from lives.policies import forbidden
from world.sandbox import Process

NO_BARE_REPLICA_SETS = "no bare ReplicaSets here"


def is_controlled(raw: JsonObject) -> bool:
    """Whether a ReplicaSet has a controller."""
    return any(one.get("controller") for one in raw["metadata"].get("ownerReferences", ()))


class TestDryRun:
    def test_a_policy_against_bare_replica_sets(self, shop: Shop, controller: Process) -> None:
        """It would refuse the parking after the pause; it is asked before, and nothing is touched."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        with forbidden(shop, "replicasets", is_controlled, NO_BARE_REPLICA_SETS):
            shop.label()
            before = Untouched(shop)
            message = refused(shop, "WriteDenied")
            assert NO_BARE_REPLICA_SETS in message
            assert "Nothing was changed" in message
            before.verify()
        shop.wait_split(on_demand=1, spot=2, deadline_s=BY_ITSELF_S)
        said = [
            line
            for line in controller.said().splitlines()
            if f"workload={shop.namespace}/web" in line and "reason=WriteDenied" in line
        ]
        assert len(said) == 1
        assert "WARNING" in said[0]

    def test_a_quota_on_replica_sets(self, shop: Shop) -> None:
        """No ReplicaSet for the twins or the way back could be made; with the quota raised it is split."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.kubectl("create", "quota", "few", "--hard=count/replicasets.apps=1")
        shop.until(lambda: quota_used(shop), "the quota to be in force")
        shop.label()
        before = Untouched(shop)
        message = refused(shop, "WriteDenied")
        assert "exceeded quota: few" in message
        before.verify()
        shop.kubectl("delete", "quota", "few")
        shop.until(lambda: not shop.refusal(BARE_REPLICA_SET), "the quota to be forgotten")
        shop.annotate(grace="20s")  # whoever touches the source need not wait for the next look
        shop.wait_split(on_demand=1, spot=2)


class TestAdvice:
    def test_ports_of_the_host_and_a_metric_from_outside(self, shop: Shop) -> None:
        """Both are split, and both are told once what will be different."""
        web = manifest("web", REPLICAS, annotations=ASKED)
        container = web["spec"]["template"]["spec"]["containers"][0]
        container["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
        shop.apply(web)
        shop.wait_rolled_out()
        shop.apply(queue_autoscaler(REPLICAS))
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        assert shop.reported("SurgeMayPend").startswith("hostPort 8080")
        assert shop.reported("AutoscalerWithoutTolerance").startswith("HorizontalPodAutoscaler/web")
        shop.wait_posted()
        assert len(shop.events("SurgeMayPend")) == len(shop.events("AutoscalerWithoutTolerance")) == 1


def queue_autoscaler(replicas: int) -> JsonObject:
    """Return an HPA that scales by the length of a queue; nobody serves that metric here."""
    target = {"type": "AverageValue", "averageValue": "30"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": replicas,
            "maxReplicas": replicas,
            "metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}],
        },
    }


class TestWhileSplit:
    def test_strategy_recreate(self, shop: Shop) -> None:
        """A workload that becomes ineligible stays split, safe and followed, and says why it should not."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        with shop.watch() as watched:
            shop.label()
            shop.wait_split(on_demand=1, spot=2)
            strategy(shop, {"type": "Recreate", "rollingUpdate": None})
            shop.until(
                lambda: condition(shop, "Eligible")[:2] == ("False", "StrategyRecreate"), "the objection"
            )
            shop.scale(REPLICAS + 1)
            shop.wait_split(on_demand=1, spot=3)
            shop.reported("StrategyRecreate")
            shop.wait_posted()
            assert len(shop.events("StrategyRecreate")) == 1
            strategy(shop, {"type": "RollingUpdate"})
            shop.until(lambda: condition(shop, "Eligible")[0] == "True", "the objection to be gone")
            shop.unlabel()
            shop.wait_given_back()
        assert watched.lowest() >= REPLICAS


def strategy(shop: Shop, wanted: JsonObject) -> None:
    """Change the strategy as a user does."""
    patch = json.dumps({"spec": {"strategy": wanted}})
    shop.kubectl("patch", "deployment", "web", "--type=merge", "-p", patch)


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
    path = f"/api/v1/namespaces/{shop.namespace}/persistentvolumeclaims/{name}"
    shop.until(lambda: shop.sandbox.api.get(path)["status"]["phase"] == "Bound", "the claim to be bound")

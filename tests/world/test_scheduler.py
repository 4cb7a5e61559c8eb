"""The world's scheduler, volumes and members do what Kubernetes 1.36 does; each claim names its source."""

from collections import Counter
from typing import Any

import pytest

from leaping import passing
from world.cluster import Cluster
from world.kinds import CLAIMS, DAEMON_SETS, PODS, PRIORITIES, STATEFUL_SETS, VOLUMES, Raw, Ref
from world.pods import condition
from world.workloads import changed, until

DB = Ref(STATEFUL_SETS, "shop", "db")
ZONE = "topology.kubernetes.io/zone"
CLAIM = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}


def container(cpu: str = "1") -> list[Raw]:
    """Return one that requests so much."""
    return [{"name": "db", "image": "db:1", "resources": {"requests": {"cpu": cpu}}}]


def create(cluster: Cluster, name: str, cpu: str = "1", **spec: Any) -> None:  # noqa: ANN401 (fields of a spec)
    """Create a pod without an owner."""
    raw = {"metadata": {"name": name}, "spec": {"containers": container(cpu), **spec}}
    cluster.objects.create(PODS, "shop", raw, user="user")


def stateful_set(replicas: int, **spec: Any) -> Raw:  # noqa: ANN401 (fields of a spec)
    """Return one with a claim a member."""
    labels = {"app": "db"}
    made = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": container()}},
        "volumeClaimTemplates": [CLAIM],
        **spec,
    }
    return {"metadata": {"name": "db"}, "spec": made}


def said(cluster: Cluster, name: str) -> str:
    """Return why a pod has no node."""
    there = condition(cluster.objects.get(Ref(PODS, "shop", name)), "PodScheduled") or {}
    return str(there.get("message", ""))


def nodes(cluster: Cluster) -> dict[str, str]:
    """Return where each pod is."""
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in cluster.pods()}


class TestPriorities:
    """Source: pkg/scheduler/framework/preemption and plugin/pkg/admission/priority."""

    async def test_a_pod_takes_the_place_of_the_least_important(self) -> None:
        """It is nominated, and a lesser one does not take its room meanwhile."""
        cluster = Cluster(1)
        cluster.add_node("one", cpu="2")
        for name, value in (("low", -10), ("high", 10)):
            cluster.objects.create(PRIORITIES, "", {"metadata": {"name": name}, "value": value}, user="user")
        async with cluster.running():
            create(cluster, "least", priorityClassName="low")
            create(cluster, "plain")
            await until(lambda: len(cluster.ready()) == 2)
            create(cluster, "important", priorityClassName="high")
            create(cluster, "late", priorityClassName="low")
            await until(lambda: nodes(cluster).get("important") == "one")
            assert nodes(cluster) == {"plain": "one", "important": "one", "late": ""}
            await until(lambda: "Insufficient cpu" in said(cluster, "late"))


class TestWishes:
    """Source: pkg/scheduler/framework/plugins/nodeaffinity (Score), podtopologyspread."""

    async def test_a_preferred_node_is_taken_while_it_has_room(self) -> None:
        """Then any other."""
        cluster = Cluster(1)
        cluster.add_node("one", {"pool": "spot"}, pods=1)
        cluster.add_node("two")
        term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["spot"]}]}
        wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
        async with cluster.running():
            create(cluster, "first", affinity={"nodeAffinity": wish})
            await until(lambda: len(cluster.ready()) == 1)
            create(cluster, "second", affinity={"nodeAffinity": wish})
            await until(lambda: len(cluster.ready()) == 2)
        assert nodes(cluster) == {"first": "one", "second": "two"}

    async def test_a_spread_keeps_a_pod_off(self) -> None:
        """A zone without room counts; the message is the plugin's."""
        cluster = Cluster(1)
        cluster.add_node("one", {ZONE: "a"})
        cluster.add_node("two", {ZONE: "b"}, pods=1)
        spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        spread |= {"labelSelector": {"matchLabels": {"app": "db"}}}
        template = stateful_set(0)["spec"]["template"]
        template["spec"]["topologySpreadConstraints"] = [spread]
        raw = stateful_set(4, template=template, podManagementPolicy="Parallel", volumeClaimTemplates=[])
        async with cluster.running():
            cluster.objects.create(STATEFUL_SETS, "shop", raw, "user")
            await until(lambda: len(cluster.ready()) == 3)
            waiting = next(name for name, node in nodes(cluster).items() if not node)
            await until(lambda: "1 node(s) didn't match pod topology spread" in said(cluster, waiting))


class TestClaims:
    """Source: statefulset/stateful_pod_control.go, scheduler/framework/plugins/volumebinding."""

    async def test_a_member_stays_with_its_volume(self) -> None:
        """In the zone where it was first; another node of the zone will do."""
        cluster = Cluster(1)
        cluster.add_node("one", {ZONE: "a"})
        async with cluster.running():
            cluster.objects.create(STATEFUL_SETS, "shop", stateful_set(1), "user")
            await until(lambda: len(cluster.ready()) == 1)
            (claim,) = cluster.objects.all(CLAIMS)
            assert (claim["metadata"]["name"], claim["status"]) == ("data-db-0", {"phase": "Bound"})
            assert cluster.objects.find(Ref(VOLUMES, "", claim["spec"]["volumeName"])) is not None
            cluster.add_node("two", {ZONE: "b"})
            cluster.vanish("one")
            await until(lambda: "didn't match PersistentVolume's node affinity" in said(cluster, "db-0"), 300)
            cluster.add_node("three", {ZONE: "a"})
            await until(lambda: nodes(cluster) == {"db-0": "three"})

    async def test_a_claim_that_is_gone_is_said(self) -> None:
        """A pod that names one waits for it."""
        cluster = Cluster(1)
        cluster.add_node("one")
        mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}]
        async with cluster.running():
            create(cluster, "one", volumes=mounted)
            await until(lambda: said(cluster, "one") == 'persistentvolumeclaim "mine" not found')
            made = {"metadata": {"name": "mine"}, "spec": CLAIM["spec"]}
            cluster.objects.create(CLAIMS, "shop", made, user="user")
            await until(lambda: len(cluster.ready()) == 1)

    @pytest.mark.parametrize(("policy", "left"), [("Delete", 1), ("Retain", 2)])
    async def test_claims_go_as_their_policy_says(self, policy: str, left: int) -> None:
        """WhenScaled: Delete takes that of a member that is scaled away; Retain keeps it."""
        cluster = Cluster(1)
        cluster.add_node("one")
        raw = stateful_set(2, persistentVolumeClaimRetentionPolicy={"whenScaled": policy})
        async with cluster.running():
            cluster.objects.create(STATEFUL_SETS, "shop", raw, "user")
            await until(lambda: len(cluster.ready()) == 2)
            changed(cluster, DB, lambda raw: raw["spec"].update(replicas=1))
            await until(lambda: len(cluster.objects.all(PODS)) == 1)
            await passing(5.0)
            assert len(cluster.objects.all(CLAIMS)) == left


class TestDaemonSet:
    """Source: pkg/controller/daemon/daemon_controller.go."""

    async def test_there_is_one_on_each_node_that_takes_it(self) -> None:
        """It comes and goes with nodes and their taints; the taints of the node lifecycle keep no pod off."""
        cluster = Cluster(1)
        for name in ("one", "two"):
            cluster.add_node(name)
        cluster.add_node("three", taints=[{"key": "gpu", "effect": "NoSchedule"}])
        template = stateful_set(0)["spec"]["template"]
        spec = {"selector": {"matchLabels": {"app": "db"}}, "template": template}
        raw = {"metadata": {"name": "agent"}, "spec": spec}
        async with cluster.running():
            cluster.objects.create(DAEMON_SETS, "shop", raw, "user")
            await until(lambda: len(cluster.ready()) == 2)
            changed(
                cluster, Ref("/api/v1/nodes", "", "two"), lambda raw: raw["spec"].update(unschedulable=True)
            )
            cluster.add_node("four")
            await until(lambda: len(cluster.ready()) == 3)
            assert Counter(nodes(cluster).values()) == Counter(("one", "two", "four"))
            agent = Ref(DAEMON_SETS, "shop", "agent")
            await until(lambda: cluster.objects.get(agent)["status"]["numberReady"] == 3)

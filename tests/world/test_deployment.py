"""Deployments and ReplicaSets of the world do what Kubernetes 1.36 does; each claim names its source."""

from collections import Counter
from functools import partial
from typing import Any

from world.cluster import Cluster
from world.kinds import PODS, REPLICA_SETS, Raw, Ref
from world.objects import Event
from world.pods import controller_of, is_active, is_ready
from world.workloads import WEB, changed, deployment, moments, set_image, until

DESIRED = "deployment.kubernetes.io/desired-replicas"


def sizes(cluster: Cluster) -> dict[str, int]:
    """Return the replicas that each template's ReplicaSet is asked for."""
    return {
        image_of(raw["spec"]["template"]): raw["spec"]["replicas"]
        for raw in cluster.objects.all(REPLICA_SETS)
    }


def is_sized(cluster: Cluster, image: str, replicas: int) -> bool:
    """Whether a template's ReplicaSet is asked for so many."""
    return sizes(cluster).get(image) == replicas


def image_of(template: Raw) -> str:
    """Return the image of a template."""
    return str(template["spec"]["containers"][0]["image"])


def reason(raw: Raw, kind: str = "Progressing") -> str:
    """Return the reason of a condition."""
    return next((one["reason"] for one in raw["status"]["conditions"] if one["type"] == kind), "")


async def came_up(cluster: Cluster, replicas: int, **spec: Any) -> None:  # noqa: ANN401 (fields of a spec)
    """Create a Deployment and wait until its controller has seen all of its pods."""
    cluster.objects.create(WEB.kind, "shop", deployment(replicas, **spec), "user")
    await until(lambda: cluster.objects.get(WEB)["status"].get("availableReplicas", 0) == replicas)
    await until(lambda: replicas == 0 or reason(cluster.objects.get(WEB)) == "NewReplicaSetAvailable")


class TestDeployment:
    """Source: pkg/controller/deployment."""

    async def test_comes_up(self) -> None:
        """Pods are created, bound and counted; the revision and the counts are noted (sync.go)."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            await came_up(cluster, 10)
            one = cluster.objects.get(WEB)
            (rs,) = cluster.objects.all(REPLICA_SETS)
        assert one["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
        assert rs["metadata"]["annotations"][DESIRED] == "10"
        assert rs["metadata"]["annotations"]["deployment.kubernetes.io/max-replicas"] == "13"
        assert one["metadata"]["generation"] == 1  # annotations written with a status are no new generation

    async def test_an_annotation_is_a_generation(self) -> None:
        """registry/apps/deployment/strategy.go, PrepareForUpdate; the newest ReplicaSet gets it, too."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            await came_up(cluster, 1)
            raw = changed(cluster, WEB, lambda raw: raw["metadata"]["annotations"].update(why="because"))
            assert raw["metadata"]["generation"] == 2
            await until(
                lambda: all(
                    one["metadata"]["annotations"].get("why") == "because"
                    for one in cluster.objects.all(REPLICA_SETS)
                )
            )

    async def test_rolls_within_its_numbers(self) -> None:
        """Never fewer than N - maxUnavailable ready, nor more than N + maxSurge (rolling.go)."""
        cluster = Cluster(1)
        cluster.add_node("one")
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}
        async with cluster.running():
            await came_up(cluster, 10, strategy=rolling)
            pods = {raw["metadata"]["name"]: raw for raw in cluster.pods()}
            counts = []

            def count(event: Event) -> None:
                pods[event.ref.name] = event.new
                active = [] if event.deleted else [raw for raw in pods.values() if is_active(raw)]
                if active:
                    counts.append((sum(map(is_ready, active)), len(active)))

            cluster.objects.follow(PODS, count)
            set_image(cluster, "web:2")
            await until(lambda: sizes(cluster).get("web:1") == 0 and len(cluster.ready()) == 10)
        assert min(ready for ready, _ in counts) == 9
        assert max(there for _, there in counts) == 12

    async def test_a_roll_that_is_stuck_says_so(self) -> None:
        """With progressDeadlineSeconds 30 it does so 30 s after the last progress (progress.go)."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            await came_up(cluster, 4, progressDeadlineSeconds=30)
            set_image(cluster, "broken:2")
            began_s = moments()
            await until(lambda: reason(cluster.objects.get(WEB)) == "ProgressDeadlineExceeded")
            assert 30.0 < moments() - began_s < 36.0
            assert len(cluster.ready()) == 3  # 25 % of 4 may be missing
            set_image(cluster, "web:1")
            await until(lambda: len(cluster.ready()) == 4)
            await until(lambda: reason(cluster.objects.get(WEB)) == "NewReplicaSetAvailable")

    async def test_paused_it_scales_and_does_not_roll(self) -> None:
        """A paused Deployment scales its only active ReplicaSet (sync.go, scale)."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            await came_up(cluster, 4)

            def pause(raw: Raw) -> None:
                raw["spec"] |= {"paused": True, "replicas": 6}
                raw["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2"

            changed(cluster, WEB, pause)
            await until(lambda: sizes(cluster) == {"web:1": 6})
            await until(lambda: reason(cluster.objects.get(WEB)) == "DeploymentPaused")

    async def test_scaled_in_mid_roll_it_shares_out(self) -> None:
        """In proportion to the sizes, what is left over to the largest (sync.go, GetReplicaSetProportion)."""
        cluster = Cluster(1)
        cluster.add_node("one")
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
        async with cluster.running():
            await came_up(cluster, 10, strategy=rolling)
            set_image(cluster, "broken:2")
            await until(lambda: sizes(cluster) == {"web:1": 8, "broken:2": 5})
            changed(cluster, WEB, lambda raw: raw["spec"].update(replicas=15))
            await until(lambda: sizes(cluster) == {"web:1": 11, "broken:2": 7})

    async def test_another_desired_count_stops_a_roll(self) -> None:
        """An active ReplicaSet of the right size with another count is a scaling each time (sync.go)."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            await came_up(cluster, 4)
            (rs,) = cluster.objects.all(REPLICA_SETS)
            ref = Ref(REPLICA_SETS, "shop", rs["metadata"]["name"])
            changed(cluster, ref, lambda raw: raw["metadata"]["annotations"].update({DESIRED: "3"}))
            set_image(cluster, "web:2")
            await until(lambda: cluster.objects.get(WEB)["status"]["observedGeneration"] == 2)
            await until(lambda: moments() > 60.0)
            assert sizes(cluster) == {"web:1": 4}

    async def test_adopts_a_replica_set_of_its_template(self) -> None:
        """One without an owner that it selects is adopted, and is the newest (controller_ref_manager.go)."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            await came_up(cluster, 3)
            (rs,) = cluster.objects.all(REPLICA_SETS)
            cluster.objects.delete(WEB, {"propagationPolicy": "Orphan"})
            await until(lambda: not cluster.objects.all(WEB.kind))
            names = {raw["metadata"]["name"] for raw in cluster.pods()}
            await came_up(cluster, 3)
            assert [raw["metadata"]["name"] for raw in cluster.objects.all(REPLICA_SETS)] == [
                rs["metadata"]["name"]
            ]
            assert {raw["metadata"]["name"] for raw in cluster.pods()} == names

    async def test_old_replica_sets_go_beyond_the_history(self) -> None:
        """Of those with nothing left the oldest revisions are deleted (cleanupDeployment)."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            await came_up(cluster, 1, revisionHistoryLimit=1)
            for number in (2, 3, 4):
                set_image(cluster, f"web:{number}")
                await until(partial(is_sized, cluster, f"web:{number}", 1))
                await until(lambda: reason(cluster.objects.get(WEB)) == "NewReplicaSetAvailable")
            await until(lambda: sizes(cluster) == {"web:3": 0, "web:4": 1})


class TestReplicaSet:
    """Source: pkg/controller/replicaset."""

    async def test_adopts_any_pod_that_it_selects(self) -> None:
        """Of whatever template; one that it selects no more is released, and made up for."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            await came_up(cluster, 2)
            pod = cluster.pods()[0]
            ref = Ref(PODS, "shop", pod["metadata"]["name"])
            changed(cluster, ref, lambda raw: raw["metadata"]["labels"].update(app="debug"))
            await until(lambda: len(cluster.ready()) == 3)
            assert controller_of(cluster.objects.get(ref)) is None
            changed(cluster, ref, lambda raw: raw["metadata"]["labels"].update(app="web"))
            await until(lambda: len(cluster.pods()) == 2)

    async def test_creates_in_batches_until_it_is_refused(self) -> None:
        """1, 2, 4 at a time; a refusal ends it, is said, and is tried again (slowStartBatch)."""
        cluster = Cluster(1)
        cluster.add_node("one")
        cluster.quota("pods", 5)
        async with cluster.running():
            cluster.objects.create(WEB.kind, "shop", deployment(12), "user")
            await until(lambda: len(cluster.pods()) == 5)
            await until(lambda: reason(cluster.objects.get(WEB), "ReplicaFailure") == "FailedCreate")
            (rs,) = cluster.objects.all(REPLICA_SETS)
            assert "exceeded quota" in rs["status"]["conditions"][0]["message"]
            cluster.quota("pods", 100)
            await until(lambda: len(cluster.ready()) == 12, 1200.0)

    async def test_the_cheapest_goes_first(self) -> None:
        """Not ready before ready, then by cost, then from the fuller node (ActivePodsWithRanks)."""
        cluster = Cluster(1)
        for name in ("one", "two"):
            cluster.add_node(name, pods=4)
        async with cluster.running():
            await came_up(cluster, 6)
            dear, ill = (raw["metadata"]["name"] for raw in cluster.pods()[:2])
            cost = {"controller.kubernetes.io/pod-deletion-cost": "100"}
            for raw in cluster.pods():
                if raw["metadata"]["name"] != ill:
                    continue
                cluster.machines.ill.add(raw["metadata"]["uid"])
            cluster.kubelets.look_at()
            changed(cluster, Ref(PODS, "shop", dear), lambda raw: raw["metadata"].update(annotations=cost))
            await until(lambda: len(cluster.ready()) == 5)
            changed(cluster, WEB, lambda raw: raw["spec"].update(replicas=5))
            await until(lambda: len(cluster.pods()) == 5)
            assert ill not in {raw["metadata"]["name"] for raw in cluster.pods()}
            before = Counter(raw["spec"]["nodeName"] for raw in cluster.pods())
            fuller = max(before, key=lambda name: before[name])
            changed(cluster, WEB, lambda raw: raw["spec"].update(replicas=4))
            await until(lambda: len(cluster.pods()) == 4)
            after = Counter(raw["spec"]["nodeName"] for raw in cluster.pods())
            assert before[fuller] - after[fuller] == 1
            changed(cluster, WEB, lambda raw: raw["spec"].update(replicas=1))
            await until(lambda: len(cluster.pods()) == 1)
            assert cluster.pods()[0]["metadata"]["name"] == dear

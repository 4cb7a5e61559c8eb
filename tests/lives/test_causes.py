"""Replicas that do not run, for another reason than missing nodes: nothing moves, and the reason is said."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from e2e.support.admission import steadily
from e2e.support.causes import (
    ONE_BASE,
    REPLICAS,
    SURGE,
    healthy,
    outlast_grace,
    pods_refused,
    quota,
    reported,
    split,
    wait_well,
)
from lab.fixtures.shop import CAPACITY, Shop
from lab.sandbox.fleet import Fleet


def patch_template(shop: Shop, template: Mapping[str, Any]) -> None:
    """Change the source's pod template as a user does."""
    shop.kubectl("patch", "deployment", "web", "--patch", json.dumps({"spec": {"template": template}}))


class TestKubelet:
    """What the kubelet cannot start stays where it is, and so does everything else."""

    @pytest.mark.parametrize(
        ("image", "reason", "words"),
        [
            ("web:bad", "ImagePullFailed", 'cannot pull an image: "web:bad": rpc error: code = NotFound'),
            (
                "web:crash",
                "CrashLooping",
                "crash again and again: container web ends with exit code 1 (Error)",
            ),
        ],
        ids=["image", "crash"],
    )
    def test_image(self, shop: Shop, image: str, reason: str, words: str) -> None:
        """A broken image is named with one of its pods, once; nothing moves, and the next image mends it."""
        split(shop)
        with shop.watch() as watched:
            shop.set_image(image)
            reported(shop, reason, f"of 2 replicas of web-on-demand {words}")
            assert "(pod web-on-demand-" in healthy(shop)[2]
            outlast_grace(shop)
            assert shop.twins() == (1, 3)
            assert shop.status()["reason"] == reason
            shop.wait_posted()
            assert len(shop.events(reason)) == 1  # whatever the kubelet says in turns
            shop.set_image("web:2")
            wait_well(shop, on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS

    def test_never_ready(self, shop: Shop) -> None:
        """Replicas that run and do not become ready are named after the grace."""
        split(shop)
        with shop.watch() as watched:
            patch_template(shop, {"metadata": {"annotations": {"sandbox.splitter.io/ready-after": "1h"}}})
            reported(shop, "NotReady", "replicas of web-on-demand have a node, but are not ready: since ")
            assert shop.twins() == (1, 3)
            patch_template(shop, {"metadata": {"annotations": {"sandbox.splitter.io/ready-after": "1s"}}})
            wait_well(shop, on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS


def says_what_is_missing(shop: Shop, wanted: int) -> bool:
    """Whether the sentence about the quota counts just the replicas that are not there."""
    missing = wanted - shop.shape().total
    words = f"{missing} of {wanted - 1} replicas of web-spot are refused by a quota: exceeded quota: small,"
    return missing > 0 and healthy(shop)[2].startswith(words)


class TestQuota:
    """A quota that is too small holds; nothing is removed for it, and nothing covers it."""

    def test_scale_out(self, shop: Shop) -> None:
        """More replicas than the quota allows are no shortage of spot."""
        split(shop)
        quota(shop, REPLICAS + 1)
        with shop.watch() as watched:
            shop.scale(8)
            reported(
                shop, "QuotaExceeded", "replicas of web-spot are refused by a quota: exceeded quota: small,"
            )
            # Pods of the take-over that are still going count for the quota at first, and one may slip
            # through before the API server has heard of it.
            shop.until(lambda: says_what_is_missing(shop, wanted=8), "the quota to be used up")
            outlast_grace(shop)
            assert says_what_is_missing(shop, wanted=8)
            assert shop.twins() == (1, 7)
            assert shop.shape().on_demand == 1
            status = shop.status()
            assert (status["state"], status["reason"]) == ("Held", "QuotaExceeded")
            quota(shop, 20)
            wait_well(shop, on_demand=1, spot=7)
            assert watched.lowest() >= REPLICAS

    def test_no_room_for_surge(self, shop: Shop) -> None:
        """Without room for one replica more no pod is moved to the other pool, and none is ended."""
        shop.deploy(replicas=REPLICAS, annotations={"splitter.io/on-demand-base": str(REPLICAS)})
        shop.label()
        shop.wait_split(on_demand=REPLICAS, spot=0)
        quota(shop, REPLICAS)
        shop.until(lambda: steadily(lambda: pods_refused(shop, "exceeded quota")), "the quota to be in force")
        with shop.watch() as watched:
            shop.annotate(on_demand_base="1")
            reported(shop, "QuotaExceeded", "replicas of web-spot are refused by a quota")
            outlast_grace(shop)
            assert shop.shape().total == REPLICAS
            assert shop.status()["reason"] == "QuotaExceeded"
            quota(shop, 20)
            wait_well(shop, on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE


class TestScheduler:
    """Pods that no node takes."""

    def test_taint(self, shop: Shop, fleet: Fleet) -> None:
        """A taint on all spot nodes is named; after the grace on-demand covers, and gives it back later."""
        split(shop)
        with shop.watch() as watched:
            for node in fleet.names("spot"):
                shop.kubectl("taint", "node", node, "team=data:NoSchedule")
            shop.scale(8)
            words = "4 of 4 healthy spot nodes have a taint that it does not tolerate: team=data:NoSchedule"
            reported(shop, "NodesUnsuitable", words)
            shop.until(lambda: shop.shape().on_demand == 5, "the cover")
            said = shop.reported("NodesUnsuitable", "scale on-demand 1 -> 5 (+4): spot has placed 3 of 7")
            assert words in said
            shop.wait_posted()
            assert not any(said.startswith("scale") for said in shop.events("SpotShort"))
            for node in fleet.names("spot"):
                shop.kubectl("taint", "node", node, "team-")
            wait_well(shop, on_demand=1, spot=7)
            assert watched.lowest() >= REPLICAS

    def test_volume_missing(self, shop: Shop) -> None:
        """A claim that nobody has made is named, and nothing moves: no node would help."""
        split(shop)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        with shop.watch() as watched:
            patch_template(shop, {"spec": {"volumes": [volume]}})
            words = 'of web-on-demand wait for a volume: persistentvolumeclaim "data" not found'
            reported(shop, "VolumeUnavailable", words)
            outlast_grace(shop)
            assert shop.twins() == (1, 3)
            patch_template(shop, {"spec": {"volumes": [{"$patch": "delete", "name": "data"}]}})
            wait_well(shop, on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS

    def test_affinity(self, shop: Shop) -> None:
        """A workload that wants on-demand nodes itself is taken over all the same: on-demand covers."""
        self.taken_over_on_demand(
            shop,
            {
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ON_DEMAND_ONLY}
                }
            },
            "NodesUnsuitable",
            f"0 of 4 healthy spot nodes have {CAPACITY} In (on-demand)",
        )

    def test_volume_elsewhere(self, shop: Shop) -> None:
        """So is one whose volume only on-demand nodes reach."""
        name = f"data-{shop.namespace}"
        claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        placed = {"storageClassName": "by-hand"}
        volume = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": "/data"},
            "nodeAffinity": {"required": ON_DEMAND_ONLY},
        }
        for kind, named, spec in (
            ("PersistentVolume", name, {**volume, **placed}),
            ("PersistentVolumeClaim", "data", {**claim, **placed, "volumeName": name}),
        ):
            shop.apply({"apiVersion": "v1", "kind": kind, "metadata": {"name": named}, "spec": spec})
        try:
            self.taken_over_on_demand(
                shop,
                {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
                "VolumeZoneConflict",
                "the nodes that would do cannot reach its volume",
            )
        finally:
            shop.kubectl("delete", "persistentvolume", name, "--wait=false")

    @staticmethod
    def taken_over_on_demand(shop: Shop, pod: Mapping[str, Any], reason: str, words: str) -> None:
        """Take over a workload that runs on on-demand nodes only, and check that it ends there."""
        shop.deploy(replicas=REPLICAS, annotations=ONE_BASE)
        patch_template(shop, {"spec": pod})
        shop.wait_rolled_out()
        with shop.watch() as watched:
            shop.label()
            reported(shop, reason, words)
            shop.until(lambda: shop.shape().on_demand == REPLICAS, "on-demand to cover")
            shop.until(lambda: (shop.twins() or (0, 0))[0] == REPLICAS, "the hand-over to end")
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE + 3  # those that find no node take no room


ON_DEMAND_ONLY = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": CAPACITY, "operator": "In", "values": ["on-demand"]}]}
    ]
}

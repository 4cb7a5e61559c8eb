"""Giving back: from whatever state, to just what was found, with its history, at full strength."""

from collections.abc import Iterator
from typing import Any

import pytest

from lab.fixtures.shop import LABEL, Shop
from lab.sandbox.fleet import Fleet
from lab.sandbox.recorder import Recorder

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2
# What the API server and the Deployment controller count up or keep up to date by themselves.
COUNTED = ("resourceVersion", "generation")


def everything(shop: Shop) -> dict[str, Any]:
    """Return the Deployment and its ReplicaSets, whole but for status, counters and the times of writes."""
    return {raw["metadata"]["name"]: whole(raw) for raw in (shop.deployment(), *shop.replica_sets())}


def whole(raw: dict[str, Any]) -> dict[str, Any]:
    """Return an object with all that anybody may have written, and for the user's who owns which field."""
    metadata = {key: value for key, value in raw["metadata"].items() if key not in COUNTED}
    if "ownerReferences" in metadata:
        metadata.pop(
            "managedFields", None
        )  # to whom Kubernetes ascribes the fields of a ReplicaSet is no matter
        return {"metadata": metadata, "spec": raw["spec"]}
    owned = [entry for entry in metadata["managedFields"] if entry.get("subresource") != "status"]
    metadata["managedFields"] = {entry["manager"]: entry["fieldsV1"] for entry in owned}
    return {"metadata": metadata, "spec": raw["spec"]}


def changes(before: object, after: object, path: str = "") -> Iterator[str]:
    """Yield one line for each leaf that differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from changes(before.get(key), after.get(key), f"{path}/{key}")
    elif before != after:
        yield f"{path}: {before!r} -> {after!r}"


def history(shop: Shop) -> str:
    """Return what kubectl knows of earlier revisions."""
    return shop.kubectl("rollout", "history", "deployment/web")


def own_pods(recorder: Recorder) -> set[str]:
    """Return the UIDs of all pods ever seen that were no twin's."""
    changes = recorder.recording().changes
    pods = [change.pod for change in changes if hasattr(change, "pod")]
    return {pod.uid for pod in pods if "splitter.io/pool" not in pod.labels}


class TestAsFound:
    def test_field_by_field(self, shop: Shop) -> None:
        """Every field of the Deployment and of its ReplicaSets is as it was, owned by whoever owned it.

        But for the ReplicaSet of the current template: another of its name adopts the pods of both twins. Its
        selector is wider where they bear more than one hash of a template, which depends on where pods stood.
        """
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.set_image("web:2")
        shop.wait_rolled_out()
        before = everything(shop)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        shop.unlabel()
        shop.wait_given_back()
        [current] = [rs["metadata"]["name"] for rs in shop.replica_sets() if rs["spec"]["replicas"]]
        made_anew = ("uid", "creationTimestamp", "ownerReferences")
        expected = {f"/{current}/metadata/{name}" for name in made_anew}
        different = {reported.partition(": ")[0] for reported in changes(before, everything(shop))}
        selector = f"/{current}/spec/selector"
        wider = {f"{selector}/matchExpressions", f"{selector}/matchLabels/pod-template-hash"}
        assert different in (expected, expected | wider)

    def test_history(self, shop: Shop) -> None:
        """`kubectl rollout history` and `undo` know the revisions from before the split, and no other."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        for image in ("web:2", "web:3"):
            shop.set_image(image)
            shop.wait_rolled_out()
        before = history(shop)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        shop.unlabel()
        shop.wait_given_back()
        assert history(shop) == before
        with shop.watch() as watched:
            shop.kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
            shop.wait_rolled_out()
            shop.until(lambda: set(shop.images()) == {"web:1"}, "the first image")
            assert watched.lowest() >= REPLICAS
        shop.kubectl("rollout", "undo", "deployment/web")
        shop.wait_rolled_out()
        shop.until(lambda: set(shop.images()) == {"web:3"}, "the last image")


class TestOnTheWay:
    """Things happen while it is given back."""

    @pytest.fixture
    def shop(self, shop: Shop) -> Shop:
        """Return a namespace with `web` split into 1 + 3."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        return shop

    @pytest.mark.parametrize("replicas", [2, 6])
    def test_scaled(self, shop: Shop, replicas: int) -> None:
        """Scaled on the way, it comes back with the new number."""
        with shop.watch() as watched:
            shop.unlabel()
            shop.until(lambda: own_replicas(shop) >= 2, "the first replicas of its own")
            shop.scale(replicas)
            shop.wait_given_back()
            shop.until(lambda: len(shop.pods()) == replicas, f"{replicas} pods")
            assert watched.lowest() >= min(REPLICAS, replicas)
            assert watched.highest() <= max(REPLICAS, replicas) + SURGE
        assert shop.deployment()["spec"]["replicas"] == replicas
        assert shop.deployments() == {"web"}

    def test_all_spot_gone(self, shop: Shop, fleet: Fleet) -> None:
        """With all spot nodes gone it comes back on what is left, and what survived is never fewer."""
        survivors = sum(node.startswith("on-demand") for node in shop.nodes())
        with shop.watch() as watched:
            shop.unlabel()
            fleet.kill(fleet.names("spot"))
            shop.wait_given_back()
            # Given back before anybody has seen the nodes go, its dead are Kubernetes' to delete.
            shop.clear_away_the_dead()
            shop.until(lambda: shop.shape().on_demand == REPLICAS, "all replicas on on-demand")
            assert watched.lowest() >= survivors
        shop.wait_no_strays()

    def test_twin_deleted(self, shop: Shop) -> None:
        """A twin that somebody deletes meanwhile is not made again, and what it had comes back."""
        with shop.watch() as watched:
            shop.kubectl("delete", "deployment", "web-spot", "--wait=false")
            shop.unlabel()
            shop.wait_given_back()
            shop.until(lambda: len(shop.pods()) == REPLICAS, f"{REPLICAS} pods")
            assert watched.lowest() >= 1  # what the user's own hand left
            assert watched.highest() <= REPLICAS + SURGE + 3  # those of the twin, until they are collected
        shop.wait_no_strays()


def own_replicas(shop: Shop) -> int:
    """Return how many replicas the Deployment's own ReplicaSets are to have."""
    return sum(rs["spec"]["replicas"] for rs in shop.replica_sets())


class TestInNumbers:
    """N 8, maxSurge 2, maxUnavailable 2, pods that take 2 s to start."""

    N, LEAST, MOST = 8, 8, 10

    def test_of_a_whole_life(self, shop: Shop) -> None:
        """8 ready and at most 10 pods at every moment, though the user's own strategy would allow 6.

        Given back within a minute, and each pod that it is given back with has started only once.
        """
        shop.deploy(replicas=self.N, surge=2, unavailable=2, ready_after="2s", annotations=ASKED)
        with shop.watch() as watched:
            shop.label()
            shop.wait_split(on_demand=1, spot=7)
            assert watched.lowest() >= self.LEAST
            assert watched.highest() <= self.MOST
        with shop.watch() as watched:
            shop.set_image("web:2")
            shop.until(lambda: set(shop.images()) == {"web:2"}, "both twins to run web:2")
            shop.wait_split(on_demand=1, spot=7)
            assert watched.lowest() >= self.LEAST
            assert watched.highest_asked() <= self.MOST
        with shop.watch() as watched, shop.record() as recorder:
            shop.unlabel()
            shop.until(lambda: is_back(shop), "web to be given back", deadline_s=60)
            assert watched.lowest() >= self.LEAST
            assert watched.highest() <= self.MOST
            # What is recorded comes by a watch, and so a little later.
            shop.until(lambda: shop.pod_uids() <= own_pods(recorder), "all pods to be seen as its own")
        assert own_pods(recorder) == shop.pod_uids()
        assert len(shop.pods()) == self.N

    def test_a_change_of_owners_touches_no_pod(self, shop: Shop) -> None:
        """Frozen before it is labelled, its pods change their owner and no more; so they come back."""
        shop.deploy(
            replicas=self.N, surge=2, unavailable=2, annotations={**ASKED, "splitter.io/freeze": "true"}
        )
        pods = shop.pod_uids()
        with shop.watch() as watched:
            shop.label()
            shop.says("Frozen")
            assert sum(shop.twins() or ()) == self.N
            assert shop.pod_uids() == pods
            shop.unlabel()
            shop.until(lambda: is_back(shop), "web to be given back")
            assert watched.lowest() == watched.highest() == self.N
        assert shop.pod_uids() == pods


def is_back(shop: Shop) -> bool:
    """Whether the Deployment runs by itself again, and nothing of splitter's is left."""
    metadata = shop.deployment()["metadata"]
    marked = any(key == "splitter.io/taken-over" for key in metadata.get("annotations", {}))
    return shop.split() is None and not marked and LABEL not in metadata["labels"] and not shop.leftovers()

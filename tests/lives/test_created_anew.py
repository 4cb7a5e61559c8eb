"""The source is deleted while it is split, and created again: by its user, or out of a backup.

What the old one leaves behind is the new one's, or goes: nothing lives on beside it, and nothing that
serves is stopped before something else serves.
"""

from typing import Any

import pytest

from lab.fixtures.nodes import spot_closed
from lab.fixtures.shop import LABEL, Shop, manifest
from lab.sandbox.fleet import Fleet

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2
TWINS = ("web-on-demand", "web-spot")
# What the API server writes, and what a restore therefore leaves out.
ITS_OWN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


def users_own(*, labelled: bool) -> dict[str, Any]:
    """Return the user's manifest, with or without the label."""
    labels = {LABEL: "enabled"} if labelled else {}
    return manifest("web", REPLICAS, surge=SURGE, annotations=ASKED, labels=labels)


def half_way(shop: Shop) -> bool:
    """Whether its pods are the twins' already, and some have to move yet."""
    return sum(shop.twins() or ()) >= REPLICAS and shop.is_handed_over() and not split_all(shop)


def split_all(shop: Shop) -> bool:
    """Whether it stands as it was asked for."""
    shape = shop.shape()
    return shop.twins() == (1, 3) and (shape.on_demand, shape.spot, shape.total) == (1, 3, REPLICAS)


def saved(raw: dict[str, Any], *, owners: bool = True) -> dict[str, Any]:
    """Return an object as a backup has it."""
    dropped = ITS_OWN if owners else (*ITS_OWN, "ownerReferences")
    metadata = {name: value for name, value in raw["metadata"].items() if name not in dropped}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": raw["spec"]}


def create(shop: Shop, body: dict[str, Any]) -> None:
    """Create an object as a restore does."""
    shop.sandbox.api.create(f"/apis/apps/v1/namespaces/{shop.namespace}/deployments", body)


class TestOrphaned:
    """Deleted with --cascade=orphan: its twins, its parked ReplicaSets and all pods stay."""

    def test_with_its_label(self, shop: Shop) -> None:
        """Created again with the label, it takes the orphans for its own; deleted, it takes them along."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)  # with all pods the twins': they may stand so before
        with shop.watch() as watched:
            shop.delete("web", "Orphan")
            shop.apply(users_own(labelled=True))
            shop.wait_no_strays()
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            # A new Deployment makes its own N at once, beside the old one's.
            assert watched.highest() <= REPLICAS + SURGE + REPLICAS
        shop.delete()
        shop.until(lambda: nothing_left(shop), "all of it to go with the new web")

    def test_without(self, shop: Shop, fleet: Fleet) -> None:
        """Created again without the label half-way, it runs its own N, and of splitter's nothing is left."""
        with spot_closed(fleet):  # by chance there might be no way at all
            shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        shop.until(lambda: half_way(shop), "half of the way")
        with shop.watch() as watched:
            shop.delete("web", "Orphan")
            shop.apply(users_own(labelled=False))
            shop.wait_given_back()
            shop.wait_no_strays()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE + REPLICAS
        assert shop.deployments() == {"web"}
        assert len(shop.pods()) == REPLICAS


def nothing_left(shop: Shop) -> bool:
    """Whether the namespace has no workload of any kind."""
    groups = ("apis/apps/v1", "apis/apps/v1", "api/v1", "apis/splitter.io/v1alpha1")
    kinds = ("replicasets", "deployments", "pods", "splits")
    paths = [
        f"/{group}/namespaces/{shop.namespace}/{kind}" for group, kind in zip(groups, kinds, strict=True)
    ]
    return not any(shop.sandbox.api.list(path) for path in paths)


class TestDeleted:
    @pytest.mark.parametrize("cascade", ["background", "foreground"])
    def test_and_created_at_once(self, shop: Shop, cascade: str) -> None:
        """Deleted with all it has and created again in the same breath, it is split like any new one."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        old = shop.pod_uids()
        shop.delete("web", cascade.capitalize())
        shop.apply(users_own(labelled=True))
        shop.wait_no_strays()
        shop.wait_split(on_demand=1, spot=3)
        assert not shop.pod_uids() & old


class TestRestored:
    """Created out of a backup that was made while it was split: paused, marked for a UID that is no more."""

    def test_beside_its_living_twins(self, shop: Shop) -> None:
        """Its orphaned twins are its own again, and not one pod of theirs is touched."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        backup, pods = saved(shop.deployment()), shop.pod_uids()
        with shop.watch() as watched:
            shop.delete("web", "Orphan")
            create(shop, backup)
            shop.wait_no_strays()
            shop.until(lambda: shop.status().get("state") == "Steady", "the Split to say that all is steady")
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS
            assert shop.pod_uids() == pods
            shop.unlabel()
            shop.wait_given_back()
            shop.wait_no_strays()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE

    @pytest.mark.parametrize("owners", [True, False], ids=["with dead owners", "without owners"])
    def test_into_an_empty_namespace(self, shop: Shop, owners: bool) -> None:
        """Source and twins, restored where nothing runs, come up; dead owners' twins are made again."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        source = saved(shop.deployment())
        twins = [saved(shop.deployment(name), owners=owners) for name in TWINS]
        shop.delete()
        shop.until(lambda: nothing_left(shop), "the namespace to be empty")
        for body in (*twins, source):
            create(shop, body)
        shop.wait_no_strays()
        shop.wait_split(on_demand=1, spot=3)
        with shop.watch() as watched:
            shop.unlabel()
            shop.wait_given_back()
            shop.wait_no_strays()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE

    def test_alone(self, shop: Shop) -> None:
        """The source alone, restored paused where nothing runs, is not left at 0 pods."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        source = saved(shop.deployment())
        shop.delete()
        shop.until(lambda: nothing_left(shop), "the namespace to be empty")
        create(shop, source)
        shop.wait_no_strays()
        shop.wait_split(on_demand=1, spot=3)

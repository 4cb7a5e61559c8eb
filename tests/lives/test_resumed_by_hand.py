"""`kubectl rollout resume` on the source at a bad moment: what serves stays, in any order of controllers."""

import pytest

from lab.demo.watching import Watch
from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox.fleet import Fleet


def resume(shop: Shop) -> None:
    """Resume the source without the start of a kubectl in between: tenths of a second decide."""
    path = f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/web"
    shop.sandbox.api.patch(path, {"spec": {"paused": None}}, field_manager="kubectl-rollout")


def has_no_image(shop: Shop) -> bool:
    """Whether a pod waits for an image that cannot be pulled: giving back does not wait for such a roll."""
    states = [one["state"] for pod in shop.pods() for one in pod["status"].get("containerStatuses", ())]
    return any("Image" in state.get("waiting", {}).get("reason", "") for state in states)


def runs_beside(shop: Shop) -> bool:
    """Whether the source has a ReplicaSet of its own: it was resumed before a twin had let its pods go."""
    active = any(rs["spec"]["replicas"] for rs in shop.replica_sets())
    owned = all(pod["metadata"].get("ownerReferences") for pod in shop.pods())
    return active and owned and not shop.deployment()["spec"].get("paused")


class Hand:
    """A user, and the moment on the way back that is waited for."""

    def __init__(self, moment: str) -> None:
        self._moment = moment
        self.come = False

    def see(self, _: object, raw: JsonObject, deleted: bool) -> None:
        """Look at a twin or a pod."""
        pauses = self._moment == PAUSED and raw["spec"].get("paused") and raw["metadata"]["name"] != "web"
        orphaned = self._moment == ORPHANED and not raw["metadata"].get("ownerReferences")
        if not deleted and (pauses or orphaned):
            self.come = True


PAUSED, ORPHANED = "a twin is paused", "pods have no owner"
WATCHED = {PAUSED: "/apis/apps/v1/namespaces/{}/deployments", ORPHANED: "/api/v1/namespaces/{}/pods"}


@pytest.mark.parametrize("moment", [PAUSED, ORPHANED])
def test_while_its_pods_change_their_owner(shop: Shop, moment: str) -> None:
    """A bad image is stuck in its roll; the label goes, and a moment later the source is resumed.

    Two ReplicaSets of the source that bore another count than N were a scaling to its controller: it took the
    four serving replicas down to one, for good.
    """
    shop.deploy(replicas=4, surge=1, annotations={"splitter.io/on-demand-base": "2"})
    shop.label()
    shop.wait_split(on_demand=2, spot=2)
    hand = Hand(moment)
    seen = Watch(shop.sandbox.api, WATCHED[moment].format(shop.namespace), hand.see)
    with shop.watch() as watched, seen:
        shop.set_image("web:bad")
        shop.until(lambda: has_no_image(shop), "the roll to be stuck")
        shop.unlabel()
        shop.until(lambda: hand.come, moment)
        resume(shop)
        shop.until(lambda: shop.split() is None or runs_beside(shop), "one of both to have the pods")
        shop.set_image("web:2")
        shop.until(lambda: shop.split() is None, "the Split to be gone")
    assert watched.lowest() == 4


def test_in_mid_roll_on_cordoned_nodes(shop: Shop, fleet: Fleet) -> None:
    """All replicas that serve are on cordoned nodes, in a twin that rolls, and the source has none yet.

    Nothing of the twin's counted as available, so nothing it gave was thought to cost anything.
    """
    annotations = {"splitter.io/on-demand-base": "4", "splitter.io/spot-percent": "0"}
    shop.deploy(replicas=4, surge=1, annotations=annotations, ready_after="10s")
    shop.label()
    shop.wait_split(on_demand=4, spot=0)
    nodes = {pod["spec"]["nodeName"] for pod in shop.pods()}
    with shop.watch() as watched:
        shop.set_image("web:2")
        shop.until(lambda: shop.images()["web:2"], "the roll")
        fleet.add("on-demand", 3)
        for node in sorted(nodes):
            shop.sandbox.kubectl("cordon", node)
        shop.unlabel()
        resume(shop)
        shop.until(lambda: shop.split() is None, "the Split to be gone")
    assert watched.lowest() == 4

"""Pods that are let go and that nothing adopts: losses are covered, it is told, and it ends either way."""

from collections.abc import Iterator

import pytest

from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet
from lives.policies import in_force
from world.admission import Request, refusing
from world.controllers.garbage import Garbage
from world.kinds import PODS

N = 6


def test_a_pod_that_was_taken_out_and_a_twin_that_was_paused(shop: Shop, fleet: Fleet) -> None:
    """Neither keeps N from being followed, nor a loss of all spot from being covered."""
    shop.deploy(
        replicas=N, annotations={"splitter.io/on-demand-base": "1", "splitter.io/spot-percent": "100"}
    )
    shop.label()
    shop.wait_split(on_demand=1, spot=N - 1)
    taken = next(one["metadata"]["name"] for one in shop.pods() if "on-demand" in one["spec"]["nodeName"])
    shop.kubectl("label", "pod", taken, "pod-template-hash=debug", "--overwrite")
    shop.kubectl("rollout", "pause", "deployment/web-spot")
    shop.until(lambda: not shop.deployment("web-spot")["spec"].get("paused"), "the twin to be resumed")
    shop.scale(N + 2)
    fleet.kill(fleet.names("spot"))
    shop.until(lambda: shop.shape().on_demand == N + 3, "all to be on on-demand, beside the one taken out")
    assert taken in {pod["metadata"]["name"] for pod in shop.pods()}
    shop.kubectl("delete", "pod", taken, "--wait=false")


@pytest.fixture
def no_bare_pods(shop: Shop) -> Iterator[None]:
    """Have a policy that only the garbage collector meets: no dry run of another account shows it."""

    def is_bare(request: Request) -> bool:
        pod = request.new or {"metadata": {}}
        return request.verb == "update" and not pod["metadata"].get("ownerReferences")

    rule = refusing("bare pods are not allowed", kind=PODS, user=Garbage.user, only=is_bare)
    with in_force(shop, rule):
        yield


@pytest.mark.usefixtures("no_bare_pods")
def test_a_collector_that_may_not_take_the_owner_off(shop: Shop, fleet: Fleet) -> None:
    """It is told, with the name of the ReplicaSet; a loss is covered; removing the label gives it back."""
    shop.deploy(replicas=N)
    with shop.watch() as watched:
        shop.label()
        assert "has not let go of" in shop.reported("HandoverHangs")
        shop.wait_split(on_demand=0, spot=N)
        assert watched.lowest() >= N
    ending = {
        one["metadata"]["name"] for one in shop.replica_sets() if "deletionTimestamp" in one["metadata"]
    }
    fleet.kill(fleet.names("spot"))
    shop.until(lambda: shop.shape().on_demand == N, "the loss to be covered")
    # What hangs in its deletion then has a pod that no node has, too.
    shop.until(
        lambda: any("nodeName" not in pod["spec"] for pod in shop.pods()), "a replica to probe for spot"
    )
    with shop.watch() as watched:
        shop.unlabel()
        shop.wait_given_back(ending=ending)
        assert watched.lowest() >= N

"""Pods that are let go and that nothing adopts: losses are covered, it is told, and it ends either way."""

from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet

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

"""Pods that a node's shutdown has left Failed go with the others: none is left without an owner."""

from lab.fixtures.shop import Shop
from lab.sandbox import PatchKind
from lab.sandbox.fleet import Fleet


def without_owner(shop: Shop) -> list[str]:
    """Return the pods that nothing owns."""
    return [pod["metadata"]["name"] for pod in shop.pods() if not pod["metadata"].get("ownerReferences")]


def fail(shop: Shop, number: int) -> None:
    """Have some pods as a kubelet's graceful shutdown leaves them, and others in their place."""
    status = {"phase": "Failed", "reason": "Terminated", "conditions": [{"type": "Ready", "status": "False"}]}
    for pod in shop.pods()[:number]:
        path = f"/api/v1/namespaces/{shop.namespace}/pods/{pod['metadata']['name']}/status"
        shop.sandbox.api.patch(path, {"status": status}, kind=PatchKind.STRATEGIC, field_manager="kubelet")


def test_failed_pods_of_a_node_shutdown(shop: Shop, fleet: Fleet) -> None:
    """There, back, and after `kubectl delete deployment`."""
    assert fleet.names("spot")
    shop.deploy(replicas=4)
    fail(shop, 2)
    shop.until(lambda: len(shop.pods()) == 6, "two others")
    shop.wait_rolled_out()
    shop.label()
    shop.wait_split(on_demand=0, spot=4)
    assert not without_owner(shop)
    fail(shop, 1)
    shop.until(lambda: len(shop.pods()) == 5, "another one")
    shop.unlabel()
    shop.wait_given_back()
    assert not without_owner(shop)
    shop.delete()
    shop.until(lambda: not shop.pods(), "all pods to go with their Deployment")

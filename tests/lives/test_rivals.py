"""Other controllers select the pods too: they are named before anything is touched, and take none."""

from lab.fixtures.shop import JsonObject, Shop, manifest
from lab.sandbox.fleet import Fleet


def daemon_set(name: str, labels: dict[str, str]) -> JsonObject:
    """Return a DaemonSet that selects these labels."""
    containers = [{"name": "node", "image": "node:1"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def refused(shop: Shop, name: str, rival: str) -> None:
    """Label a workload, and assert that it is refused for this one, and left as it is."""
    before, pods = shop.snapshot(name), shop.pod_uids(name)
    shop.label(name)
    assert rival in shop.reported("SelectorOverlaps", name=name)
    after = shop.snapshot(name)
    assert (after.spec, after.annotations) == (before.spec, before.annotations)
    assert shop.pod_uids(name) == pods
    assert shop.deployments().isdisjoint({f"{name}-spot", f"{name}-on-demand"})


def test_an_idle_colour(shop: Shop) -> None:
    """Blue and green have one selector and one template, and green is at 0."""
    for name, replicas in (("blue", 6), ("green", 0)):
        template = manifest("shop", replicas)["spec"]["template"]
        shop.deploy(name, replicas, selector={"matchLabels": {"app": "shop"}}, template=template)
    before = {pod["metadata"]["uid"] for pod in shop.pods("shop")}
    shop.label("blue")
    assert "of Deployment green, at 0 replicas" in shop.reported("SelectorOverlaps", name="blue")
    assert {pod["metadata"]["uid"] for pod in shop.pods("shop")} == before
    assert not shop.deployment("blue")["spec"].get("paused")
    shop.delete("green")
    shop.until(lambda: "blue-spot" in shop.deployments(), "blue to be taken over when green is gone")


def test_a_daemon_set_with_a_wider_selector(shop: Shop, fleet: Fleet) -> None:
    """It is named before the take-over. Once it is split, the way back loses nothing either."""
    assert fleet.names("spot")
    template = manifest("web", 6)["spec"]["template"]
    template["metadata"]["labels"]["team"] = "a"
    shop.deploy(replicas=6, template=template)
    shop.apply(daemon_set("agent", {"team": "a"}))
    refused(shop, "web", "DaemonSet agent (selector team=a)")
    shop.kubectl("delete", "daemonset", "agent")
    shop.wait_split(on_demand=0, spot=6)
    shop.apply(daemon_set("agent", {"team": "a"}))
    with shop.watch() as watched:
        shop.unlabel()
        shop.wait_given_back()
        assert watched.lowest() >= 6
    assert "selects its pods too" in shop.reported("SelectorOverlaps", "none changes its owner")
    assert all(pod["metadata"].get("ownerReferences") for pod in shop.pods())

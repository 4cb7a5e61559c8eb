"""Deployments and ReplicaSets of the world do what Kubernetes 1.36 does; each claim names its source."""

from collections.abc import Callable

from leaping import passing
from world.cluster import Cluster
from world.kinds import DEPLOYMENTS, Raw, Ref

WEB = Ref(DEPLOYMENTS, "shop", "web")


def deployment(replicas: int, image: str = "web:1", **spec: object) -> Raw:
    """Return a Deployment of one container."""
    labels = {"app": "web"}
    pod = {"containers": [{"name": "web", "image": image, "resources": {"requests": {"cpu": "100m"}}}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    made = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"metadata": {"name": "web"}, "spec": made}


def changed(cluster: Cluster, ref: Ref, change: Callable[[Raw], None]) -> Raw:
    """Write an object as a user does."""
    import copy

    raw = copy.deepcopy(cluster.objects.get(ref))
    change(raw)
    return cluster.objects.update(ref, raw, "user")


async def until(holds: Callable[[], bool], within_s: float = 120.0) -> None:
    """Let time go by until something holds."""
    for _ in range(int(within_s * 10)):
        if holds():
            return
        await passing(0.1)
    raise AssertionError("it never held")


async def test_comes_up() -> None:
    """Ten pods are created, bound, started, and counted."""
    cluster = Cluster(1)
    cluster.add_node("one")
    async with cluster.running():
        cluster.objects.create(DEPLOYMENTS, "shop", deployment(10), "user")
        await until(lambda: len(cluster.ready()) == 10, 10.0)
        await passing(1.0)
        one = cluster.objects.get(WEB)
        assert one["status"]["availableReplicas"] == 10
        assert one["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
        assert {each["type"]: each["status"] for each in one["status"]["conditions"]} == {
            "Available": "True",
            "Progressing": "True",
        }

"""Workloads that tests of the world begin with, and how users write to them."""

import asyncio
import copy
from collections.abc import Callable
from typing import Any, Final

from leaping import passing
from world.cluster import Cluster
from world.kinds import DEPLOYMENTS, Raw, Ref

WEB: Final = Ref(DEPLOYMENTS, "shop", "web")
_LOOK_S: Final = 0.1


def deployment(replicas: int, image: str = "web:1", **spec: Any) -> Raw:  # noqa: ANN401 (fields of a spec)
    """Return a Deployment of one container."""
    labels = {"app": "web"}
    container = {"name": "web", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    made = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"metadata": {"name": "web"}, "spec": made}


def changed(cluster: Cluster, ref: Ref, change: Callable[[Raw], None]) -> Raw:
    """Write an object as a user does, by what is there."""
    raw = copy.deepcopy(cluster.objects.get(ref))
    change(raw)
    return cluster.objects.update(ref, raw, "user")


def set_image(cluster: Cluster, image: str) -> None:
    """Have another template."""

    def change(raw: Raw) -> None:
        raw["spec"]["template"]["spec"]["containers"][0]["image"] = image

    changed(cluster, WEB, change)


def moments() -> float:
    """Return the loop's time."""
    return asyncio.get_running_loop().time()


async def until(holds: Callable[[], bool], within_s: float = 120.0) -> None:
    """Let time go by until something holds."""
    ends_s = moments() + within_s
    while not holds():
        assert moments() < ends_s, f"it did not hold within {within_s:g} s"
        await passing(_LOOK_S)

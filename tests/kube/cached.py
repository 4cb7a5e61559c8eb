"""A cache, and what is watched into it."""

from splitter.core.names import Key
from splitter.core.nodes.signals import assess
from splitter.kube.cache import Cache


def cache() -> Cache:
    """Make a cache that tells nobody."""

    def enqueue(key: Key, *, urgent: bool) -> None:
        del key, urgent

    return Cache(assess, enqueue)


def pod_on(node: str, name: str, version: int) -> dict[str, object]:
    """Return a pod as it is watched, bound to a node."""
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-05T09:00:00Z",
        },
        "spec": {"nodeName": node, "containers": []},
        "status": {},
    }

"""Many pods of one namespace."""

from kube.cached import pod_on
from kube.raw import Raw


def pod(number: int, namespace: str = "evil", version: int = 1) -> Raw:
    """Return one of many pods."""
    raw: Raw = pod_on("node", f"{namespace}-{number}", version)
    raw["metadata"]["namespace"] = namespace
    return raw

"""Pods as the lab's watch reads them."""

from typing import Any


def pod(node: str | None = "spot-0", *, ready: bool = True, **metadata: str) -> dict[str, Any]:
    """Return a pod."""
    conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": str(ready)}]
    spec = {} if node is None else {"nodeName": node}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": conditions}}

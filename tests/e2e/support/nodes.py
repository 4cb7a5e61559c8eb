"""What a node shows of its machine."""

from typing import Any


def is_hurt(raw: dict[str, Any]) -> bool:
    """Whether a Node bears a notice of any kind, or its machine is not well."""
    spec, conditions = raw["spec"], raw["status"].get("conditions", [])
    reported = any(condition["type"] == "PreemptionScheduled" for condition in conditions)
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    going = "deletionTimestamp" in raw["metadata"]
    silent = raw["metadata"]["labels"].get("sandbox.splitter.io/kubelet") != "running"
    return (
        bool(spec.get("taints"))
        or bool(spec.get("unschedulable"))
        or reported
        or not ready
        or going
        or silent
    )

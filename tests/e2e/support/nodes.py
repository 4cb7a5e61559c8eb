"""What a node shows of its machine, and nodes that take no pods for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from splitter.sandbox.fleet import Fleet
from splitter.sandbox.machines import Notice


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


@contextmanager
def spot_closed(fleet: Fleet) -> Iterator[None]:
    """Have no pod put on spot: what is deployed meanwhile stands on on-demand, and has a way to go to spot.

    Else chance decides, and pods that stand where they are wanted only change their owner.
    """
    spot = fleet.names("spot")
    fleet.notice(spot, Notice.CORDON)
    try:
        yield
    finally:
        fleet.withdraw(spot)

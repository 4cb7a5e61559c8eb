"""The priority of a pod, by its class.

Source: plugin/pkg/admission/priority/admission.go of Kubernetes 1.36.
"""

from typing import Final

from splitter.kube.client import ApiError
from world.admission import Request, Rule
from world.kinds import PODS, PRIORITIES, Raw, Ref
from world.objects import Objects

_BUILT_IN: Final[dict[str, Raw]] = {
    "system-cluster-critical": {"value": 2_000_000_000},
    "system-node-critical": {"value": 2_000_001_000},
}


def prioritised(objects: Objects) -> Rule:
    """Return what writes its priority into each new pod, and refuses one of a class that is not there."""

    def rule(request: Request) -> Raw | None:
        if request.verb != "create" or request.ref.kind != PODS or request.new is None:
            return None
        spec = request.new["spec"]
        name = spec.get("priorityClassName", "")
        known = _BUILT_IN.get(name) or objects.find(Ref(PRIORITIES, "", name)) or ({} if not name else None)
        if known is None:
            said = f"no PriorityClass with name {name} was known"
            raise ApiError(403, "Forbidden", f'pods "{request.ref.name}" is forbidden: {said}')
        policy = known.get("preemptionPolicy", "PreemptLowerPriority")
        return {
            **request.new,
            "spec": {**spec, "priority": known.get("value", 0), "preemptionPolicy": policy},
        }

    return rule

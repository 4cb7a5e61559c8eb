"""What admission asks of a new pod: its class of priority and its ServiceAccount have to be there.

Source: plugin/pkg/admission/{priority,serviceaccount}/admission.go of Kubernetes 1.36; the account `default`,
which each namespace has, is not looked for.
"""

from typing import Final

from splitter.kube.client import ApiError
from world.admission import Request, Rule
from world.kinds import PODS, PRIORITIES, Raw, Ref
from world.objects import Objects

_ACCOUNTS: Final = "/api/v1/serviceaccounts"
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
        there = _BUILT_IN.get(name) or objects.find(Ref(PRIORITIES, "", name))
        priority = {} if not name else there
        if priority is None:
            said = f"no PriorityClass with name {name} was found"
            raise ApiError(403, "Forbidden", f'pods "{request.ref.name}" is forbidden: {said}')
        policy = priority.get("preemptionPolicy", "PreemptLowerPriority")
        return {
            **request.new,
            "spec": {**spec, "priority": priority.get("value", 0), "preemptionPolicy": policy},
        }

    return rule


def accounted(objects: Objects) -> Rule:
    """Return what refuses a new pod whose ServiceAccount is not there."""

    def rule(request: Request) -> None:
        if request.verb != "create" or request.ref.kind != PODS or request.new is None:
            return
        name, namespace = request.new["spec"].get("serviceAccountName", "default"), request.ref.namespace
        if name != "default" and objects.find(Ref(_ACCOUNTS, namespace, name)) is None:
            said = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            raise ApiError(403, "Forbidden", f'pods "{request.ref.name}" is forbidden: {said}')

    return rule

"""The eviction subresource: a budget says whether a pod may be made to go.

Source: pkg/registry/core/pod/storage/eviction.go of Kubernetes 1.36.
"""

from splitter.kube.client import ApiError
from world import clock
from world.kinds import BUDGETS, Raw, Ref
from world.objects import Objects
from world.pods import is_ready, with_condition
from world.selectors import selects

_SUCCESS: Raw = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_MOST_DISRUPTED = 2000


def evict(objects: Objects, ref: Ref, body: Raw, user: str = "") -> Raw:
    """Evict a pod. Raises ApiError: 429 when its budget refuses, 500 when it has several."""
    pod = objects.get(ref)
    options = dict(body.get("deleteOptions") or {})
    wanted = (options.get("preconditions") or {}).get("uid")
    if wanted not in {None, pod["metadata"]["uid"]}:
        raise ApiError(409, "Conflict", "the UID in the precondition does not match the UID in record")
    phase, ending = pod.get("status", {}).get("phase"), "deletionTimestamp" in pod["metadata"]
    if phase not in {"Pending", "Succeeded", "Failed"} and not ending:
        _ask_budget(objects, pod)
    return _deleted(objects, ref, options, user)


def _ask_budget(objects: Objects, pod: Raw) -> None:
    namespace = pod["metadata"]["namespace"]
    budgets = [one for one in objects.all(BUDGETS, namespace) if selects(one["spec"].get("selector"), pod)]
    if len(budgets) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        raise ApiError(500, "", message)
    for budget in budgets:
        status = budget.get("status") or {}
        if not is_ready(pod):
            healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
            if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or healthy >= desired > 0:
                continue
        _take(objects, budget, pod["metadata"]["name"])


def _take(objects: Objects, budget: Raw, pod: str) -> None:
    """Count a disruption (checkAndDecrement)."""
    status, name = budget.get("status") or {}, budget["metadata"]["name"]
    disrupted = status.get("disruptedPods") or {}
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        message = f"The disruption budget {name} is still being processed by the server."
        raise ApiError(
            429,
            "TooManyRequests",
            f"Cannot evict pod as it would violate the pod's disruption budget. {message}",
        )
    if status.get("disruptionsAllowed", 0) < 1 or len(disrupted) > _MOST_DISRUPTED:
        raise ApiError(429, "TooManyRequests", message)
    taken = {
        **status,
        "disruptionsAllowed": status["disruptionsAllowed"] - 1,
        "disruptedPods": {**disrupted, pod: clock.stamp()},
    }
    ref = Ref(BUDGETS, budget["metadata"]["namespace"], name)
    objects.update(ref, {**budget, "status": taken}, part="status")


def _deleted(objects: Objects, ref: Ref, options: Raw, user: str) -> Raw:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    objects.update(ref, with_condition(objects.get(ref), condition), part="status")
    objects.delete(ref, options, user=user)
    return dict(_SUCCESS)

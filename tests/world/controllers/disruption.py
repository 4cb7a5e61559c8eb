"""The disruption controller: how many pods a PodDisruptionBudget lets go.

Source: pkg/controller/disruption/disruption.go of Kubernetes 1.36.
"""

from datetime import timedelta
from math import ceil
from typing import Final

from splitter.kube.client import ApiError
from world import clock
from world.controllers.loop import Controller, Informers, Key
from world.kinds import BUDGETS, DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS, Raw
from world.pods import controller_of, is_ready
from world.selectors import selects

_EXPECTED_S: Final = 120.0  # so long an evicted pod may take to be seen deleted


class Disruptions(Controller):
    """Writes the status of every budget."""

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self._budgets = informers.of(BUDGETS)
        self._pods = informers.of(PODS)
        self._sets = informers.of(REPLICA_SETS)
        self._scaled = {
            "ReplicaSet": self._sets,
            "Deployment": informers.of(DEPLOYMENTS),
            "StatefulSet": informers.of(STATEFUL_SETS),
        }
        self._budgets.on_change(self._budget_changed)
        self._pods.on_change(self._pod_changed)

    def _budget_changed(self, old: Raw | None, new: Raw | None) -> None:
        metadata = (new or old or {})["metadata"]
        self.enqueue((metadata["namespace"], metadata["name"]))

    def _pod_changed(self, old: Raw | None, new: Raw | None) -> None:
        for pod in (old, new):
            if pod is None:
                continue
            selecting = [
                key
                for key, budget in self._budgets.seen.items()
                if key[0] == pod["metadata"]["namespace"] and selects(budget["spec"].get("selector"), pod)
            ]
            if selecting:  # of several it counts one anew, whichever its cache lists first (getPdbForPod)
                self.enqueue(selecting[0] if len(selecting) == 1 else self.dice.choice(selecting))

    async def sync(self, key: Key) -> None:
        """Count anew (trySync)."""
        budget = self._budgets.seen.get(key)
        if budget is None:
            return
        spec, before, now = budget["spec"], budget.get("status") or {}, clock.now()
        pods = [pod for pod in self._pods.of(key[0]) if selects(spec.get("selector"), pod)]
        disrupted = {}
        for pod in pods:
            at = (before.get("disruptedPods") or {}).get(pod["metadata"]["name"])
            if at is None or "deletionTimestamp" in pod["metadata"]:
                continue
            until = clock.instant(at) + timedelta(seconds=_EXPECTED_S)
            if until >= now:
                disrupted[pod["metadata"]["name"]] = at
                self.enqueue(key, (until - now).total_seconds() + 1.0)
        healthy = sum(
            is_ready(pod)
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["name"] not in disrupted
        )
        try:
            expected, desired = self._wanted(spec, pods)
        except ApiError as error:
            await self._fail(budget, error)
            raise
        allowed = healthy - desired if expected > 0 else 0
        status = {
            "observedGeneration": budget["metadata"]["generation"],
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": max(0, allowed),
            **({"disruptedPods": disrupted} if disrupted else {}),
            "conditions": before.get("conditions") or [],
        }
        enough = ("True", "SufficientPods") if status["disruptionsAllowed"] else ("False", "InsufficientPods")
        _say(status, *enough)
        if status != before:
            await self.update(BUDGETS, {**budget, "status": status}, "status")

    async def _fail(self, budget: Raw, error: ApiError) -> None:
        """Let no pod go where the budget cannot be counted (failSafe)."""
        before = budget.get("status") or {}
        status = {**before, "disruptionsAllowed": 0}
        _say(status, "False", "SyncFailed", error.message)
        if status != before:
            await self.update(BUDGETS, {**budget, "status": status}, "status")

    def _wanted(self, spec: Raw, pods: list[Raw]) -> tuple[int, int]:
        """Return how many pods are expected, and how many have to be healthy (getExpectedPodCount)."""
        most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
        if most is not None:
            expected = self._scale(pods)
            return expected, max(0, expected - _share(most, expected))
        if isinstance(least, str):
            expected = self._scale(pods)
            return expected, _share(least, expected)
        return len(pods), int(least or 0)

    def _scale(self, pods: list[Raw]) -> int:
        """Return the replicas of the controllers behind the pods (getExpectedScale)."""
        owners = {}
        for pod in pods:
            namespace, owner = pod["metadata"]["namespace"], controller_of(pod)
            if owner is None:
                continue
            parent = self._seen(namespace, owner)
            above = controller_of(parent) if parent is not None else None
            if above is not None and (top := self._seen(namespace, above)) is not None:
                parent = top
            if parent is None:
                raise ApiError(0, "", f"found no controllers for pod {pod['metadata']['name']}")
            owners[parent["metadata"]["uid"]] = parent
        return sum(one["spec"].get("replicas", 1) for one in owners.values())

    def _seen(self, namespace: str, owner: Raw) -> Raw | None:
        informer = self._scaled.get(owner["kind"])
        there = informer.seen.get((namespace, owner["name"])) if informer is not None else None
        return there if there is not None and there["metadata"]["uid"] == owner["uid"] else None


def _say(status: Raw, value: str, reason: str, message: str = "") -> None:
    """Set the condition DisruptionAllowed."""
    there: Raw = next(iter(status.get("conditions") or ()), {})
    if (there.get("status"), there.get("reason")) == (value, reason):
        return
    said = {"type": "DisruptionAllowed", "status": value, "reason": reason, "message": message}
    status["conditions"] = [{**said, "lastTransitionTime": clock.stamp()}]


def _share(number: int | str, of: int) -> int:
    return number if isinstance(number, int) else ceil(int(number.rstrip("%")) * of / 100)

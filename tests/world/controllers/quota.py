"""ResourceQuotas: what a namespace uses is counted, and what would be too much is refused.

Source: plugin/pkg/admission/resourcequota and pkg/controller/resourcequota of Kubernetes 1.36. Admission
counts what is there at that moment; a dry run is asked, too, and counts none of the others.
"""

from collections.abc import Mapping
from decimal import Decimal

from splitter.kube.client import ApiError
from world.admission import Request
from world.controllers.fitting import amount
from world.controllers.loop import Controller, Informers, Key
from world.kinds import DEPLOYMENTS, PODS, QUOTAS, REPLICA_SETS, STATEFUL_SETS, Raw, Ref
from world.objects import Objects

_COUNTED = {
    "count/deployments.apps": DEPLOYMENTS,
    "count/replicasets.apps": REPLICA_SETS,
    "count/statefulsets.apps": STATEFUL_SETS,
    "count/pods": PODS,
}
_REQUESTS = {"cpu": "cpu", "memory": "memory", "requests.cpu": "cpu", "requests.memory": "memory"}
_CORES = frozenset({"cpu", "requests.cpu"})


def _of(kind: str, raw: Raw, key: str) -> Decimal:
    """Return how much of a quota's key an object uses."""
    if key in _COUNTED:
        return Decimal(kind == _COUNTED[key])
    if kind != PODS or raw.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
        return Decimal(0)
    if key == "pods":
        return Decimal(1)
    if key not in _REQUESTS:
        return Decimal(0)
    requests = (
        ((one.get("resources") or {}).get("requests") or {}) for one in raw["spec"].get("containers") or ()
    )
    return sum((amount(one.get(_REQUESTS[key], "0")) for one in requests), Decimal(0))


def used(objects: Objects, namespace: str, hard: Mapping[str, str]) -> dict[str, Decimal]:
    """Return what a namespace uses of each key."""
    kinds = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, PODS)
    there = [(kind, raw) for kind in kinds for raw in objects.all(kind, namespace)]
    return {key: sum((_of(kind, raw, key) for kind, raw in there), Decimal(0)) for key in hard}


def _written(key: str, number: Decimal) -> str:
    return f"{int(number * 1000)}m" if key in _CORES and number % 1 else str(int(number))


class Quotas(Controller):
    """Writes the status of every quota; `refuse` is its part of admission."""

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self._quotas = informers.of(QUOTAS)
        self._quotas.on_change(self._quota_changed)
        for kind in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, PODS):
            informers.of(kind).on_change(self._object_changed)

    def _quota_changed(self, old: Raw | None, new: Raw | None) -> None:
        metadata = (new or old or {})["metadata"]
        self.enqueue((metadata["namespace"], metadata["name"]))

    def _object_changed(self, old: Raw | None, new: Raw | None) -> None:
        if (old is None) is not (new is None):
            namespace = (new or old or {})["metadata"]["namespace"]
            for key in self._quotas.seen:
                if key[0] == namespace:
                    self.enqueue(key)

    async def sync(self, key: Key) -> None:
        """Count."""
        quota = self.objects.find(Ref(QUOTAS, *key))
        if quota is None:
            return
        hard = quota["spec"].get("hard") or {}
        counts = {name: _written(name, number) for name, number in used(self.objects, key[0], hard).items()}
        status = {"hard": hard, "used": counts}
        if quota.get("status") != status:
            await self.update(QUOTAS, {**quota, "status": status}, "status")

    def refuse(self, request: Request) -> None:
        """Refuse what would be more than a quota allows. Raises ApiError (403)."""
        if request.verb != "create" or request.new is None:
            return
        plural, name = request.ref.kind.rpartition("/")[2], request.ref.name
        for quota in self.objects.all(QUOTAS, request.ref.namespace):
            hard = quota["spec"].get("hard") or {}
            asked = {key: _of(request.ref.kind, request.new, key) for key in hard}
            called = quota["metadata"]["name"]
            if request.ref.kind == PODS and (
                missing := [key for key in hard if key in _REQUESTS and not asked[key]]
            ):
                said = f"failed quota: {called}: must specify {','.join(missing)} for: web"
                raise ApiError(403, "Forbidden", f'{plural} "{name}" is forbidden: {said}')
            there = used(self.objects, request.ref.namespace, hard)
            over = [key for key in hard if asked[key] and there[key] + asked[key] > amount(hard[key])]
            if over:
                counts = (
                    ",".join(f"{key}={_written(key, numbers[key])}" for key in over)
                    for numbers in (asked, there)
                )
                wanted, taken = counts
                limits = ",".join(f"{key}={hard[key]}" for key in over)
                said = f"exceeded quota: {called}, requested: {wanted}, used: {taken}, limited: {limits}"
                raise ApiError(403, "Forbidden", f'{plural} "{name}" is forbidden: {said}')
            if not request.dry and any(asked.values()):
                numbers = {key: _written(key, there[key] + asked[key]) for key in hard}
                ref = Ref(QUOTAS, request.ref.namespace, called)
                self.objects.update(ref, {**quota, "status": {"hard": hard, "used": numbers}}, part="status")

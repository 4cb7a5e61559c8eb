"""The ReplicaSet controller: adoption and release, creation in batches, order of deletion, statuses.

Source: pkg/controller/replicaset/replica_set{,_utils}.go and pkg/controller/controller_utils.go of Kubernetes
1.36. It acts on what it has seen, and waits until that is what it did itself (expectations).
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cmp_to_key
from math import log2
from typing import Final

from splitter.kube.client import ApiError
from world import clock
from world.controllers.loop import Controller, Informers, Key
from world.controllers.owners import claimed
from world.kinds import PODS, REPLICA_SETS, Raw, Ref
from world.pods import condition, controller_of, controller_ref, is_active, is_ready, owned_by, ready_since
from world.selectors import fit, selects

_BURST: Final = 500
_EXPECTED_S: Final = 300.0
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)


class ReplicaSets(Controller):
    """Reconciles every ReplicaSet."""

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self._sets = informers.of(REPLICA_SETS)
        self._pods = informers.of(PODS)
        self._sets.on_change(self._set_changed)
        self._pods.on_change(self._pod_changed)
        self._creating: Counter[Key] = Counter()
        self._deleting: dict[Key, set[str]] = {}  # UIDs of pods
        self._expected_at: dict[Key, datetime] = {}
        self._wrote: dict[Key, int] = {}  # the version of the last status, until it is seen

    # --- what is seen -----------------------------------------------------------------------------

    def _set_changed(self, old: Raw | None, new: Raw | None) -> None:
        metadata = (new or old or {})["metadata"]
        key = metadata["namespace"], metadata["name"]
        replaced = old is not None and new is not None and old["metadata"]["uid"] != metadata["uid"]
        if new is None or replaced:
            for known in (self._creating, self._deleting, self._expected_at, self._wrote):
                known.pop(key, None)
        self.enqueue(key)

    def _pod_changed(self, old: Raw | None, new: Raw | None) -> None:
        owner, before = self._owner(new), self._owner(old)
        if before is not None and before != owner:
            self.enqueue(before)
        ends = new is None or "deletionTimestamp" in new["metadata"]
        seen = new if new is not None else old
        assert seen is not None
        if ends:
            for key in {owner, before} - {None}:
                assert key is not None
                self._deleting.get(key, set()).discard(seen["metadata"]["uid"])
        elif old is None and owner is not None:
            self._creating[owner] = max(0, self._creating[owner] - 1)
        if owner is not None:
            self.enqueue(owner)
            self._look_when_available(old, new, owner)
        elif new is not None and controller_of(new) is None:
            self._enqueue_who_selects(new)

    def _look_when_available(self, old: Raw | None, new: Raw | None, owner: Key) -> None:
        became_ready = new is not None and is_ready(new) and (old is None or not is_ready(old))
        parent = self._sets.seen.get(owner)
        if became_ready and parent is not None and (ready_s := parent["spec"].get("minReadySeconds", 0)):
            self.enqueue(owner, ready_s)

    def _owner(self, pod: Raw | None) -> Key | None:
        """Return which ReplicaSet controls a pod, if that very one is seen."""
        owner = controller_of(pod) if pod is not None else None
        if pod is None or owner is None or owner["kind"] != "ReplicaSet":
            return None
        key = pod["metadata"]["namespace"], owner["name"]
        parent = self._sets.seen.get(key)
        return key if parent is not None and parent["metadata"]["uid"] == owner["uid"] else None

    def _enqueue_who_selects(self, pod: Raw) -> None:
        namespace = pod["metadata"]["namespace"]
        for (within, name), rs in self._sets.seen.items():
            if within == namespace and selects(rs["spec"]["selector"], pod):
                self.enqueue((within, name))

    def _is_satisfied(self, key: Key) -> bool:
        if self._creating[key] <= 0 and not self._deleting.get(key):
            return True
        since = self._expected_at.get(key)
        return since is None or (clock.now() - since).total_seconds() > _EXPECTED_S

    # --- one reconcile ----------------------------------------------------------------------------

    async def sync(self, key: Key) -> None:
        """Do one reconcile (syncReplicaSet)."""
        rs = self._sets.seen.get(key)
        if rs is None:
            return
        if int(rs["metadata"]["resourceVersion"]) < self._wrote.get(key, 0):
            raise ApiError(0, "", "it has not seen its own status yet")
        satisfied = self._is_satisfied(key)
        uid = rs["metadata"]["uid"]
        all_pods = [pod for pod in self._pods.of(key[0]) if controller_of(pod) is None or owned_by(pod, uid)]
        active = await claimed(self, PODS, filter(is_active, all_pods), rs, REPLICA_SETS)
        failure: ApiError | None = None
        if satisfied and "deletionTimestamp" not in rs["metadata"]:
            try:
                await self._manage(key, rs, active)
            except ApiError as error:
                failure = error
        await self._write_status(key, rs, self._status(rs, active, failure))
        if failure is not None:
            raise failure
        self._look_again(key, rs, active)

    async def _manage(self, key: Key, rs: Raw, active: Sequence[Raw]) -> None:
        over = len(active) - rs["spec"]["replicas"]
        if over < 0:
            await self._create(key, rs, min(-over, _BURST))
        elif over > 0:
            related = self._related(rs)
            going = to_delete(active, related, min(over, _BURST), clock.now())
            self._deleting[key] = {pod["metadata"]["uid"] for pod in going}
            self._expected_at[key] = clock.now()
            await self.sent()
            for pod in going:
                try:
                    self.delete_now(PODS, pod)
                except ApiError:
                    self._deleting[key].discard(pod["metadata"]["uid"])
                    raise
                if (key[0], pod["metadata"]["name"]) not in self._pods.seen:  # its end is seen already
                    self._deleting[key].discard(pod["metadata"]["uid"])

    async def _create(self, key: Key, rs: Raw, count: int) -> None:
        """Create pods, 1, 2, 4 at a time; the first refusal ends it (slowStartBatch)."""
        self._creating[key] = count
        self._expected_at[key] = clock.now()
        left, batch = count, 1
        while left > 0:
            await self.sent()
            batch = min(batch, left)
            refused: ApiError | None = None
            for _ in range(batch):
                try:
                    self._create_one(key[0], rs)
                except ApiError as error:
                    refused = error
                    self._creating[key] -= 1
            left -= batch
            if refused is not None:
                self._creating[key] -= left
                raise refused
            batch *= 2

    def _create_one(self, namespace: str, rs: Raw) -> None:
        template = rs["spec"]["template"]
        said = template.get("metadata") or {}
        metadata = {name: said[name] for name in ("labels", "annotations", "finalizers") if said.get(name)}
        metadata |= {"generateName": f"{rs['metadata']['name']}-", "ownerReferences": [controller_ref(rs)]}
        pod = {"metadata": metadata, "spec": template.get("spec") or {}}
        self.objects.create(PODS, namespace, pod, user=self.user)

    def _related(self, rs: Raw) -> list[Raw]:
        """Return the pods of all ReplicaSets of its owner (getIndirectlyRelatedPods)."""
        owner = controller_of(rs)
        namespace = rs["metadata"]["namespace"]
        sets = (
            [rs]
            if owner is None
            else [one for one in self._sets.of(namespace) if owned_by(one, owner["uid"])]
        )
        pods = self._pods.of(namespace)
        return [pod for pod in pods if any(selects(one["spec"]["selector"], pod) for one in sets)]

    # --- status -----------------------------------------------------------------------------------

    def _status(self, rs: Raw, active: Sequence[Raw], failure: ApiError | None) -> Raw:
        before = rs.get("status") or {}
        labels = (rs["spec"]["template"].get("metadata") or {}).get("labels") or {}
        terms = tuple((name, "In", (text,)) for name, text in labels.items())
        ready_s, now = rs["spec"].get("minReadySeconds", 0), clock.now()
        counts = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(fit(terms, pod["metadata"].get("labels") or {}) for pod in active),
            "readyReplicas": sum(map(is_ready, active)),
            "availableReplicas": sum(is_available(pod, ready_s, now) for pod in active),
        }
        status: Raw = {name: number for name, number in counts.items() if number or name == "replicas"}
        conditions = list(before.get("conditions") or ())
        there = condition(rs, "ReplicaFailure")
        if failure is not None and there is None:
            reason = "FailedCreate" if len(active) < rs["spec"]["replicas"] else "FailedDelete"
            said = {"status": "True", "reason": reason, "message": failure.message}
            conditions.append({"type": "ReplicaFailure", **said, "lastTransitionTime": clock.stamp()})
        elif failure is None and there is not None:
            conditions = [one for one in conditions if one["type"] != "ReplicaFailure"]
        return {**status, **({"conditions": conditions} if conditions else {})}

    async def _write_status(self, key: Key, rs: Raw, status: Raw) -> None:
        before = dict(rs.get("status") or {})
        observed = before.pop("observedGeneration", 0)
        if before == status and observed == rs["metadata"]["generation"]:
            return
        status = {**status, "observedGeneration": rs["metadata"]["generation"]}
        try:
            written = await self.update(REPLICA_SETS, {**rs, "status": status}, "status")
        except ApiError as error:
            if error.status != 409:
                raise
            live = self.objects.get(
                Ref(REPLICA_SETS, *key)
            )  # one more attempt, with the version that is there
            written = await self.update(REPLICA_SETS, {**live, "status": status}, "status")
        self._wrote[key] = int(written["metadata"]["resourceVersion"])

    def _look_again(self, key: Key, rs: Raw, active: Sequence[Raw]) -> None:
        ready_s = rs["spec"].get("minReadySeconds", 0)
        if not ready_s:
            return
        now = clock.now()
        waits = [
            ready_s - (now - since).total_seconds()
            for pod in active
            if (since := ready_since(pod)) is not None
        ]
        if left := [wait for wait in waits if wait > 0]:
            self.enqueue(key, min(left))


def is_available(pod: Raw, ready_s: int, now: datetime) -> bool:
    """Whether a pod is ready for so long (podutil.IsPodAvailable)."""
    since = ready_since(pod)
    return since is not None and (not ready_s or (now - since).total_seconds() >= ready_s)


def to_delete(active: Sequence[Raw], related: Sequence[Raw], count: int, now: datetime) -> list[Raw]:
    """Return which pods a scale-down takes (getPodsToDelete, ActivePodsWithRanks.Less)."""
    if count >= len(active):
        return list(active)
    on_node = Counter(pod["spec"].get("nodeName", "") for pod in related if is_active(pod))

    def compared(one: Raw, another: Raw) -> int:
        return -1 if _goes_first(one, another, on_node, now) else 1

    return sorted(active, key=cmp_to_key(compared))[:count]


def _goes_first(one: Raw, another: Raw, on_node: Counter[str], now: datetime) -> bool:
    plain = _plain(one, on_node), _plain(another, on_node)
    if plain[0] != plain[1]:
        return plain[0] < plain[1]
    since = ready_since(one) or _NEVER, ready_since(another) or _NEVER
    if since[0] != since[1]:
        return _is_younger(one, another, since, now)
    restarts = _restarts(one), _restarts(another)
    if restarts[0] != restarts[1]:
        return restarts[0] > restarts[1]
    born = _born(one), _born(another)
    return born[0] != born[1] and _is_younger(one, another, born, now)


def _plain(pod: Raw, on_node: Counter[str]) -> tuple[bool, int, bool, int, int]:
    """Not bound, pending, not ready, cheap, and beside many others: each of them first."""
    node = pod["spec"].get("nodeName", "")
    cost = (pod["metadata"].get("annotations") or {}).get(_COST, "0")
    number = int(cost) if cost.lstrip("-").isdecimal() else 0
    phase = _PHASES.get(pod.get("status", {}).get("phase", "Pending"), 0)
    return bool(node), phase, is_ready(pod), number, -on_node[node]


def _is_younger(one: Raw, another: Raw, since: tuple[datetime, datetime], now: datetime) -> bool:
    """Compare ages by their logarithm; where that is the same, UIDs decide (LogarithmicScaleDown)."""
    ranks = [_rank((now - at).total_seconds()) for at in since]
    if ranks[0] == ranks[1]:
        return bool(one["metadata"]["uid"] < another["metadata"]["uid"])
    return ranks[0] < ranks[1]


def _rank(age_s: float) -> int:
    return int(log2(age_s * 1e9)) if age_s > 0 else -1


def _restarts(pod: Raw) -> int:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return max((one.get("restartCount", 0) for one in statuses), default=0)


def _born(pod: Raw) -> datetime:
    return clock.instant(pod["metadata"]["creationTimestamp"])

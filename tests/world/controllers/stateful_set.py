"""The StatefulSet controller: members by ordinal, in order or at once, updated from the highest.

Source: pkg/controller/statefulset/stateful_{set,set_control,set_utils,pod_control}.go of Kubernetes 1.36;
maxUnavailable is off there by default. A member that ends is waited for: its successor has its name.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

import orjson

from splitter.kube.client import ApiError
from world import clock
from world.controllers.loop import Controller, Informers, Key
from world.controllers.owners import claimed
from world.controllers.replica_set import is_available
from world.kinds import CLAIMS, PODS, STATEFUL_SETS, Raw, Ref
from world.pods import controller_of, controller_ref, is_ready, owned_by
from world.selectors import selects

REVISIONS: Final = "/apis/apps/v1/controllerrevisions"
REVISION: Final = "controller-revision-hash"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_COUNTS: Final = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
_COMPARED: Final = (*_COUNTS, "currentRevision", "updateRevision")


class StatefulSets(Controller):
    """Reconciles every StatefulSet."""

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self._sets = informers.of(STATEFUL_SETS)
        self._pods = informers.of(PODS)
        self._revisions = informers.of(REVISIONS)
        self._sets.on_change(self._set_changed)
        self._pods.on_change(self._pod_changed)

    def _set_changed(self, old: Raw | None, new: Raw | None) -> None:
        metadata = (new or old or {})["metadata"]
        self.enqueue((metadata["namespace"], metadata["name"]))

    def _pod_changed(self, old: Raw | None, new: Raw | None) -> None:
        for pod in (old, new):
            if (
                pod is not None
                and (owner := controller_of(pod)) is not None
                and owner["kind"] == "StatefulSet"
            ):
                self.enqueue((pod["metadata"]["namespace"], owner["name"]))
        if new is not None and controller_of(new) is None:
            for key, one in self._sets.seen.items():
                if key[0] == new["metadata"]["namespace"] and selects(one["spec"]["selector"], new):
                    self.enqueue(key)

    async def sync(self, key: Key) -> None:
        """Do one reconcile (UpdateStatefulSet)."""
        one = self._sets.seen.get(key)
        if one is None:
            return
        members = [
            pod for pod in self._pods.of(key[0]) if ordinal(pod, key[1]) >= 0 or owned_by(pod, _uid(one))
        ]
        pods = await claimed(self, PODS, members, one, STATEFUL_SETS)
        revisions = [rev for rev in self._revisions.of(key[0]) if owned_by(rev, _uid(one))]
        update = await self._update_revision(one, revisions)
        named = (one.get("status") or {}).get("currentRevision")
        current = next((rev for rev in revisions if rev["metadata"]["name"] == named), update)
        step = _Step(self, one, pods, current, update)
        try:
            await step.take()
        finally:
            await self._write_status(one, step.status())
        await self._truncate(one, pods, revisions, {_name(current), _name(update)})
        if ready_s := one["spec"].get("minReadySeconds", 0):
            self.enqueue(key, ready_s)

    async def _update_revision(self, one: Raw, revisions: list[Raw]) -> Raw:
        """Return the revision of the template, created or made the newest (getStatefulSetRevisions)."""
        data = {"spec": {"template": {**one["spec"]["template"], "$patch": "replace"}}}
        revisions.sort(key=lambda rev: (rev["revision"], _name(rev)))
        number = revisions[-1]["revision"] + 1 if revisions else 1
        equal = [rev for rev in revisions if rev["data"] == data]
        if equal and equal[-1] is revisions[-1]:
            return equal[-1]
        if equal:
            return await self.update(REVISIONS, {**equal[-1], "revision": number})
        digest = hashlib.sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).digest()[:10]
        hashed = "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)
        labels = {
            **(one["spec"]["template"]["metadata"].get("labels") or {}),
            "controller.kubernetes.io/hash": hashed,
        }
        made: Raw = {
            "metadata": {
                "name": f"{_name(one)}-{hashed}",
                "labels": labels,
                "ownerReferences": [controller_ref(one)],
            },
            "data": data,
            "revision": number,
        }
        await self.sent()
        namespace = one["metadata"]["namespace"]
        try:
            return self.objects.create(REVISIONS, namespace, made, user=self.user)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return self.objects.get(Ref(REVISIONS, namespace, made["metadata"]["name"]))

    async def _write_status(self, one: Raw, status: Raw) -> None:
        wanted = one["spec"]["replicas"]
        complete = {status.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "replicas")} == {
            wanted
        }
        if complete and one["spec"]["updateStrategy"]["type"] == "RollingUpdate":
            status |= {"currentReplicas": wanted, "currentRevision": status["updateRevision"]}
        status = {
            name: value
            for name, value in status.items()
            if value or name in {"replicas", "availableReplicas"}
        }
        if _is_inconsistent(one.get("status") or {}, status):  # what others wrote there stays until then
            await self.update(STATEFUL_SETS, {**one, "status": status}, "status")

    async def _truncate(self, one: Raw, pods: Sequence[Raw], revisions: list[Raw], live: set[str]) -> None:
        live = live | {revision_of(pod) for pod in pods}
        old = [rev for rev in revisions if _name(rev) not in live]
        for rev in old[: max(0, len(old) - one["spec"].get("revisionHistoryLimit", 10))]:
            await self.delete(REVISIONS, rev)


class _Step:
    """One look at the members of one StatefulSet."""

    def __init__(
        self, controller: StatefulSets, one: Raw, pods: Sequence[Raw], current: Raw, update: Raw
    ) -> None:
        self._controller = controller
        self._one = one
        self._current, self._update = current, update
        self._pods = {ordinal(pod, _name(one)): pod for pod in pods}
        self._first = (one["spec"].get("ordinals") or {}).get("start", 0)
        self._wanted = range(self._first, self._first + one["spec"]["replicas"])
        self._ready_s = one["spec"].get("minReadySeconds", 0)
        self._monotonic = one["spec"].get("podManagementPolicy") != "Parallel"
        self._taken = 0  # members of the current revision that were deleted for their update

    def status(self) -> Raw:
        """Return what is there."""
        pods = self._pods.values()
        now = clock.now()
        stays = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        counts = (
            len(pods),
            sum(map(_serves, pods)),
            sum(_serves(pod) and is_available(pod, self._ready_s, now) for pod in pods),
            sum(revision_of(pod) == _name(self._current) for pod in stays) - self._taken,
            sum(revision_of(pod) == _name(self._update) for pod in stays),
        )
        return {
            **dict(zip(_COUNTS, counts, strict=True)),
            "observedGeneration": self._one["metadata"]["generation"],
            "currentRevision": _name(self._current),
            "updateRevision": _name(self._update),
            "collisionCount": 0,
        }

    async def take(self) -> None:
        """Make what is missing, take what is too much, update what is old: the first that is due."""
        if "deletionTimestamp" in self._one["metadata"]:
            return
        condemned = sorted((number for number in self._pods if number not in self._wanted), reverse=True)
        ill = [number for number in (*self._wanted, *reversed(condemned)) if self._is_unavailable(number)]
        for number in self._wanted:
            if await self._make(number) and self._monotonic:
                return
        for number in condemned:
            if await self._condemn(number, ill) and self._monotonic:
                return
        if self._one["spec"]["updateStrategy"]["type"] == "RollingUpdate":
            await self._renew()

    async def _make(self, number: int) -> bool:
        """Create a member, or wait for it; return whether the others wait (processReplica)."""
        pod = self._pods.get(number)
        if pod is None:
            self._pods[number] = await self._create(number)
            return True
        if pod.get("status", {}).get("phase") in {"Failed", "Succeeded"}:
            if "deletionTimestamp" not in pod["metadata"]:
                await self._controller.delete(PODS, pod)
            return True
        await self._own_claims(number, pod)
        return "deletionTimestamp" in pod["metadata"] or self._is_unavailable(number)

    async def _condemn(self, number: int, ill: Sequence[int]) -> bool:
        """Delete a member that is too much; return whether the others wait (processCondemned)."""
        pod = self._pods[number]
        await self._own_claims(number, pod)
        if "deletionTimestamp" in pod["metadata"]:
            return True
        if self._monotonic and self._is_unavailable(number) and number != ill[0]:
            return True
        await self._controller.delete(PODS, pod)
        return True

    async def _renew(self) -> None:
        """Delete the highest member that is old, and wait for each that is not available."""
        rolling = self._one["spec"]["updateStrategy"].get("rollingUpdate") or {}
        for number in reversed(self._wanted[rolling.get("partition", 0) :]):
            pod = self._pods[number]
            if revision_of(pod) != _name(self._update) and "deletionTimestamp" not in pod["metadata"]:
                await self._controller.delete(PODS, pod)
                self._taken += revision_of(pod) == _name(self._current)
                return
            if self._is_unavailable(number):
                return

    def _is_unavailable(self, number: int) -> bool:
        pod = self._pods.get(number)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return True
        return not (_serves(pod) and is_available(pod, self._ready_s, clock.now()))

    async def _create(self, number: int) -> Raw:
        rolling = self._one["spec"]["updateStrategy"].get("rollingUpdate") or {}
        old = self._one["spec"]["updateStrategy"]["type"] == "RollingUpdate"
        old = old and number < self._first + rolling.get("partition", 0)
        revision = self._current if old else self._update
        template = {
            name: value for name, value in revision["data"]["spec"]["template"].items() if name != "$patch"
        }
        name, said = f"{_name(self._one)}-{number}", template.get("metadata") or {}
        labels = {
            **(said.get("labels") or {}),
            REVISION: _name(revision),
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
        }
        kept = {field: said[field] for field in ("annotations", "finalizers") if said.get(field)}
        metadata = {**kept, "name": name, "labels": labels, "ownerReferences": [controller_ref(self._one)]}
        spec = {**template["spec"], "hostname": name, "subdomain": self._one["spec"].get("serviceName", "")}
        if claims := self._claims(number):
            mounted = [
                {"name": called, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
                for called, claim in claims.items()
            ]
            own = [one for one in spec.get("volumes") or () if one["name"] not in claims]
            spec["volumes"] = [*own, *mounted]
        await self._controller.sent()
        namespace = self._one["metadata"]["namespace"]
        user = self._controller.user
        for claim in claims.values():
            if self._controller.objects.find(Ref(CLAIMS, namespace, claim["metadata"]["name"])) is None:
                self._controller.objects.create(CLAIMS, namespace, claim, user=user)
        return self._controller.objects.create(
            PODS, namespace, {"metadata": metadata, "spec": spec}, user=user
        )

    def _claims(self, number: int) -> dict[str, Raw]:
        """Return a member's claims by the names of their volumes (getPersistentVolumeClaims)."""
        templates = self._one["spec"].get("volumeClaimTemplates") or ()
        labels = (self._one["spec"].get("selector") or {}).get("matchLabels") or {}
        claims = {}
        for one in templates:
            called = one["metadata"]["name"]
            metadata = {"name": f"{called}-{_name(self._one)}-{number}", "labels": labels}
            claims[called] = {"metadata": metadata, "spec": one["spec"]}
        return claims

    async def _own_claims(self, number: int, pod: Raw) -> None:
        """Have a member's claims go with its set, or with its condemned pod (updateClaimOwnerRef)."""
        policy = self._one["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        owners = [controller_ref(self._one)] if policy.get("whenDeleted") == "Delete" else []
        if policy.get("whenScaled") == "Delete" and number not in self._wanted:
            owners = [{**controller_ref({**pod, "kind": "Pod", "apiVersion": "v1"})}]
        for claim in self._claims(number).values():
            ref = Ref(CLAIMS, self._one["metadata"]["namespace"], claim["metadata"]["name"])
            live = self._controller.objects.find(ref)
            if live is not None and (live["metadata"].get("ownerReferences") or []) != owners:
                new = {**live, "metadata": {**live["metadata"], "ownerReferences": owners}}
                await self._controller.update(CLAIMS, new)


def ordinal(pod: Raw, name: str) -> int:
    """Return which member of a StatefulSet a pod is by its name; -1: none."""
    match = re.fullmatch(rf"{re.escape(name)}-(\d+)", pod["metadata"]["name"])
    return int(match[1]) if match is not None else -1


def revision_of(pod: Raw) -> str:
    """Return of which revision a member is."""
    text: str = (pod["metadata"].get("labels") or {}).get(REVISION, "")
    return text


def _is_inconsistent(there: Raw, status: Raw) -> bool:
    """Whether a status has to be written (inconsistentStatus)."""
    newer: bool = status["observedGeneration"] > there.get("observedGeneration", 0)
    return newer or any(there.get(name, 0) != status.get(name, 0) for name in _COMPARED)


def _serves(pod: Raw) -> bool:
    return pod.get("status", {}).get("phase") == "Running" and is_ready(pod)


def _uid(raw: Raw) -> str:
    return str(raw["metadata"]["uid"])


def _name(raw: Raw) -> str:
    return str(raw["metadata"]["name"])

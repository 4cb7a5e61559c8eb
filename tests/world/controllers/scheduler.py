"""The scheduler: it binds a pod to the best node that `fitting` lets it onto, or preempts lesser pods.

Source: pkg/scheduler/{schedule_one,framework/preemption/preemption}.go of Kubernetes 1.36. Of the nodes that
fit it takes the most preferred, then that with the fewest pods of the same owner, then of any.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from splitter.kube.client import ApiError
from world.controllers.fitting import Amounts, Placed, asked, companions, lacks, objection
from world.controllers.loop import Controller, Informers, Key
from world.controllers.preferences import dislikes
from world.controllers.volumes import Volumes
from world.kinds import CLAIMS, NODES, PODS, Raw, Ref
from world.pods import controller_of, with_condition

_AGAIN_S: Final = 60.0
_TOPOLOGY: Final = frozenset({"topology.kubernetes.io/region", "topology.kubernetes.io/zone"})


class Scheduler(Controller):
    """Binds pods one after the other, the most important first."""

    user = "system:kube-scheduler"

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self.filters: list[
            Callable[[Raw, Raw], str]
        ] = []  # plugins of a test's: why a node is none for a pod
        self._pods = informers.of(PODS)
        self._nodes = informers.of(NODES)
        self._volumes = Volumes(informers)
        self._assumed: dict[
            str, str
        ] = {}  # the node of a pod that was bound and is not seen there yet, by UID
        self._nominated: dict[str, tuple[str, Raw]] = {}  # the node that is being emptied for a pod, by UID
        self._pods.on_change(self._pod_changed)
        self._nodes.on_change(self._node_changed)
        informers.of(CLAIMS).on_change(lambda *_: self.look_at_all())

    def _pod_changed(self, old: Raw | None, new: Raw | None) -> None:
        seen = new if new is not None else old
        assert seen is not None
        if new is not None and not new["spec"].get("nodeName"):
            if old is None:
                self.enqueue((new["metadata"]["namespace"], new["metadata"]["name"]))
            return
        self._assumed.pop(seen["metadata"]["uid"], None)
        self._nominated.pop(seen["metadata"]["uid"], None)
        over = new is not None and new.get("status", {}).get("phase") in {"Succeeded", "Failed"}
        if new is None or over:  # there is more free than before
            self.look_at_all()

    def _node_changed(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and (old is None or _offer(old) != _offer(new)):
            self.look_at_all()

    def look_at_all(self) -> None:
        """Look at all pods that wait for a node."""
        waiting = [(key, pod) for key, pod in self._pods.seen.items() if not pod["spec"].get("nodeName")]
        for key, _ in sorted(waiting, key=lambda one: -_priority(one[1])):
            self.enqueue(key)

    async def sync(self, key: Key) -> None:
        """Bind a pod, or say that it fits nowhere."""
        pod = self._pods.seen.get(key)
        if pod is None or pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            return
        uid = pod["metadata"]["uid"]
        if uid in self._assumed or pod["spec"].get("schedulingGates"):
            return
        why = self._objections(pod)
        fitting = [node for node in self._nodes.seen.values() if not why[node["metadata"]["name"]]]
        await self.sent()
        ref = Ref(PODS, *key)
        live = self.objects.find(ref)
        if live is None or live["metadata"]["uid"] != uid or live["spec"].get("nodeName"):
            return
        if not fitting:
            await self._waits(ref, live, why)
            self.enqueue(key, _AGAIN_S)
            return
        node = self._best(pod, fitting)
        self._assumed[uid] = node["metadata"]["name"]
        self._volumes.bind(pod, node, self.user)
        try:
            labels = node["metadata"].get("labels") or {}
            places = {key: text for key, text in labels.items() if key in _TOPOLOGY}  # PodTopologyLabels
            metadata = {**live["metadata"], "labels": {**(live["metadata"].get("labels") or {}), **places}}
            bound = {
                **live,
                "metadata": metadata,
                "spec": {**live["spec"], "nodeName": node["metadata"]["name"]},
            }
            bound = self.objects.update(ref, bound, part="binding", user=self.user)
        except ApiError:
            del self._assumed[uid]
            raise
        scheduled = {"type": "PodScheduled", "status": "True"}
        self.objects.update(ref, with_condition(bound, scheduled), part="status")

    def _objections(self, pod: Raw) -> dict[str, str]:
        """Return why each node is none for a pod; empty where it is one."""
        nodes = list(self._nodes.seen.values())
        if missing := self._volumes.missing(pod):
            return {node["metadata"]["name"]: missing for node in nodes}
        used, objects = self._used(pod), companions(pod, self._placed(), nodes)

        def why(node: Raw) -> str:
            return (
                objection(pod, node)
                or objects(node)
                or self._volumes.objection(pod, node)
                or next((said for one in self.filters if (said := one(pod, node))), "")
                or lacks(pod, node, used[node["metadata"]["name"]])
            )

        return {node["metadata"]["name"]: why(node) for node in nodes}

    def _placed(self) -> list[Placed]:
        names = (
            (pod, pod["spec"].get("nodeName") or self._assumed.get(pod["metadata"]["uid"], ""))
            for pod in self._pods.seen.values()
            if pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
        )
        return [
            Placed(pod, self._nodes.seen["", name]) for pod, name in names if ("", name) in self._nodes.seen
        ]

    def _used(self, pod: Raw) -> dict[str, Amounts]:
        """Return what is taken of each node: by its pods, and by as important ones that it is emptied for."""
        used: dict[str, Amounts] = defaultdict(Counter)
        for other, node in self._placed():
            used[node["metadata"]["name"]].update(asked(other))
        for uid, (node_name, other) in self._nominated.items():
            if uid != pod["metadata"]["uid"] and _priority(other) >= _priority(pod):
                used[node_name].update(asked(other))
        return used

    def _best(self, pod: Raw, fitting: list[Raw]) -> Raw:
        owner = (controller_of(pod) or {}).get("uid", "")
        alike: Counter[str] = Counter()
        every: Counter[str] = Counter()
        placed = self._placed()
        for other, node in placed:
            every[node["metadata"]["name"]] += 1
            alike[node["metadata"]["name"]] += (
                bool(owner) and (controller_of(other) or {}).get("uid") == owner
            )

        def rank(node: Raw) -> tuple[bool, tuple[int, int], int, int]:
            name = node["metadata"]["name"]
            nominated = self._nominated.get(pod["metadata"]["uid"], ("",))[0] == name
            return not nominated, dislikes(pod, node, placed), alike[name], every[name]

        self.dice.shuffle(fitting)
        return min(fitting, key=rank)

    # --- what fits nowhere ------------------------------------------------------------------------

    async def _waits(self, ref: Ref, pod: Raw, why: Mapping[str, str]) -> None:
        """Say that a pod fits nowhere, and make room for it if it may have that of lesser ones."""
        counts = Counter(why.values())
        reasons = ", ".join(sorted(f"{count} {said}" for said, count in counts.items()))
        said = next((said for said in counts if said.startswith("persistentvolumeclaim")), "")
        message = said or f"0/{len(why)} nodes are available: {reasons}."
        made = with_condition(
            pod, {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        )
        victims: list[Raw] = []
        if pod["spec"].get("preemptionPolicy") != "Never" and not said:
            node, victims = self._victims(pod)
            if victims:
                self._nominated[pod["metadata"]["uid"]] = node, pod
                made["status"]["nominatedNodeName"] = node
        self.objects.update(ref, made, part="status")
        for victim in victims:
            await self._preempt(victim)

    def _victims(self, pod: Raw) -> tuple[str, list[Raw]]:
        """Return the node where the fewest of the least importance have to go for a pod, and these."""
        chosen: tuple[str, list[Raw]] = "", []
        best: tuple[int, int, int] | None = None
        placed, used = self._placed(), self._used(pod)
        objects = companions(pod, placed, self._nodes.seen.values())
        for node in self._nodes.seen.values():
            name = node["metadata"]["name"]
            refused = objection(pod, node) or objects(node) or self._volumes.objection(pod, node)
            if refused or any(one(pod, node) for one in self.filters):
                continue
            lesser = [
                one.pod
                for one in placed
                if one.node["metadata"]["name"] == name and _priority(one.pod) < _priority(pod)
            ]
            if any("deletionTimestamp" in one["metadata"] for one in lesser):
                return "", []  # room is being made already (podEligibleToPreemptOthers)
            left = Counter(used[name])
            victims = []
            for one in sorted(lesser, key=_priority):
                if not lacks(pod, node, left):
                    break
                left.subtract(asked(one))
                victims.append(one)
            if lacks(pod, node, left) or not victims:
                continue
            cost = max(map(_priority, victims)), sum(map(_priority, victims)), len(victims)
            if best is None or cost < best:
                best, chosen = cost, (name, victims)
        return chosen

    async def _preempt(self, victim: Raw) -> None:
        live = self.objects.find(Ref(PODS, victim["metadata"]["namespace"], victim["metadata"]["name"]))
        if live is None or live["metadata"]["uid"] != victim["metadata"]["uid"]:
            return
        said = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        await self.update(PODS, with_condition(live, said), "status")
        await self.delete(PODS, victim)


def _priority(pod: Raw) -> int:
    return int(pod["spec"].get("priority", 0))


def _offer(node: Raw) -> tuple[object, ...]:
    """Return what of a node a pod may wait for."""
    spec, labels = node["spec"], node["metadata"].get("labels")
    return spec.get("taints"), spec.get("unschedulable"), labels, node.get("status", {}).get("allocatable")

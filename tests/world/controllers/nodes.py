"""What becomes of pods whose node is silent, tainted or gone.

Source: pkg/controller/nodelifecycle (50 s of grace, looked at every 5 s, NoExecute taints at 0.1 nodes a
second), pkg/controller/tainteviction (tolerationSeconds) and pkg/controller/podgc (every 20 s, 40 s of
quarantine, then a live look) of Kubernetes 1.36.
"""

from datetime import datetime, timedelta
from typing import Final

from leaping import passing
from splitter.kube.client import ApiError
from world import clock
from world.controllers.fitting import tolerates
from world.controllers.kubelet import Machines
from world.controllers.loop import Controller, Informers, Key
from world.kinds import NODES, PODS, Raw, Ref
from world.pods import condition, is_ready, with_condition

_GRACE_S: Final = 50.0
_PERIOD_S: Final = 5.0
_TAINT_EVERY_S: Final = 10.0
_COLLECT_EVERY_S: Final = 20.0
_QUARANTINE_S: Final = 40.0
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"


class NodeLife(Controller):
    """Watches heartbeats: a node that is silent for too long is unreachable, and its pods are not ready."""

    def __init__(self, informers: Informers, machines: Machines) -> None:
        super().__init__(informers)
        self._machines = machines
        self._nodes = informers.of(NODES)
        self._pods = informers.of(PODS)
        self._taint_from: datetime | None = None

    async def run(self) -> None:
        """Look every five seconds."""
        while True:
            await passing(_PERIOD_S)
            for node in list(self._nodes.seen.values()):
                try:
                    await self._look_at(node)
                except ApiError:
                    continue  # at the next look

    async def _look_at(self, node: Raw) -> None:
        name, now = node["metadata"]["name"], clock.now()
        since = self._machines.silent.get(name)
        silent = since is not None and now - since > timedelta(seconds=_GRACE_S)
        if silent:
            if is_ready(node):
                said = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
                node = await self.update(NODES, with_condition(node, said), "status")
            await self._taint(node, "NoSchedule")
            due = self._taint_from is None or now >= self._taint_from
            if due and await self._taint(node, "NoExecute"):
                self._taint_from = now + timedelta(seconds=_TAINT_EVERY_S)
            await self._show_pods_unready(name)
        elif since is None and not is_ready(node) and condition(node, "Ready") is not None:
            node = await self.update(
                NODES, with_condition(node, {"type": "Ready", "status": "True"}), "status"
            )
            left = [one for one in node["spec"].get("taints") or () if one["key"] != _UNREACHABLE]
            await self.update(NODES, {**node, "spec": {**node["spec"], "taints": left}})

    async def _taint(self, node: Raw, effect: str) -> bool:
        live = self.objects.get(Ref(NODES, "", node["metadata"]["name"]))
        taints = live["spec"].get("taints") or []
        if any((one["key"], one["effect"]) == (_UNREACHABLE, effect) for one in taints):
            return False
        added = {"key": _UNREACHABLE, "effect": effect, "timeAdded": clock.stamp()}
        await self.update(NODES, {**live, "spec": {**live["spec"], "taints": [*taints, added]}})
        return True

    async def _show_pods_unready(self, node: str) -> None:
        """Say of the pods of a silent node that they are not ready (MarkPodsNotReady)."""
        for (namespace, name), pod in list(self._pods.seen.items()):
            live = self.objects.find(Ref(PODS, namespace, name))
            if pod["spec"].get("nodeName") == node and live is not None and is_ready(live):
                await self.update(PODS, with_condition(live, {"type": "Ready", "status": "False"}), "status")


class TaintEviction(Controller):
    """Deletes pods that do not tolerate a NoExecute taint, or not for any longer."""

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self._nodes = informers.of(NODES)
        self._pods = informers.of(PODS)
        self._leaves_at: dict[str, datetime] = {}  # by UID of the pod
        self._nodes.on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)

    def _node_changed(self, old: Raw | None, new: Raw | None) -> None:
        node = (new or old or {})["metadata"]["name"]
        for key, pod in self._pods.seen.items():
            if pod["spec"].get("nodeName") == node:
                self.enqueue(key)

    def _pod_changed(self, old: Raw | None, new: Raw | None) -> None:
        if new is None and old is not None:
            self._leaves_at.pop(old["metadata"]["uid"], None)
        elif new is not None and new["spec"].get("nodeName"):
            self.enqueue((new["metadata"]["namespace"], new["metadata"]["name"]))

    async def sync(self, key: Key) -> None:
        """Delete a pod when it is due."""
        pod = self._pods.seen.get(key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        uid, node = pod["metadata"]["uid"], self._nodes.seen.get(("", pod["spec"].get("nodeName", "")))
        taints = [
            one for one in (node or {}).get("spec", {}).get("taints") or () if one["effect"] == "NoExecute"
        ]
        if not taints:
            self._leaves_at.pop(uid, None)
            return
        after_s = _stays_s(pod, taints)
        if after_s is None:
            self._leaves_at.pop(uid, None)
            return
        due = self._leaves_at.setdefault(uid, clock.now() + timedelta(seconds=after_s))
        if after_s == 0:
            due = clock.now()
        if (left_s := (due - clock.now()).total_seconds()) > 0:
            self.enqueue(key, left_s)
            return
        live = self.objects.find(Ref(PODS, *key))
        if live is not None and live["metadata"]["uid"] == uid:
            said = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
            await self.update(PODS, with_condition(live, said), "status")
            await self.delete(PODS, pod)


def _stays_s(pod: Raw, taints: list[Raw]) -> float | None:
    """Return how long a pod stays beside taints: 0: it goes; None: for ever (getMinTolerationTime)."""
    if not all(tolerates(pod, taint) for taint in taints):
        return 0.0
    limits = [
        max(0.0, one["tolerationSeconds"])
        for one in pod["spec"].get("tolerations") or ()
        if one.get("tolerationSeconds") is not None
        and any(tolerates({"spec": {"tolerations": [one]}}, taint) for taint in taints)
    ]
    return min(limits, default=None)


class PodCollector(Controller):
    """Deletes by force the pods whose node is gone for good."""

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self._nodes = informers.of(NODES)
        self._pods = informers.of(PODS)
        self._quarantined: dict[str, datetime] = {}  # until when, by node

    async def run(self) -> None:
        """Look every 20 s, at no particular moment."""
        await passing(self.dice.uniform(0.0, _COLLECT_EVERY_S))
        while True:
            await self._collect()
            await passing(_COLLECT_EVERY_S)

    async def _collect(self) -> None:
        now = clock.now()
        there = {name for _, name in self._nodes.seen}
        pods = list(self._pods.seen.values())
        for pod in pods:
            node = pod["spec"].get("nodeName")
            if node and node not in there:
                self._quarantined.setdefault(node, now + timedelta(seconds=_QUARANTINE_S))
        over = {node for node, until in self._quarantined.items() if until <= now}
        for node in over:
            del self._quarantined[node]
        gone = {
            node for node in over if node not in there and self.objects.find(Ref(NODES, "", node)) is None
        }
        for pod in pods:
            node = pod["spec"].get("nodeName")
            if node in gone or (not node and "deletionTimestamp" in pod["metadata"]):
                await self._delete(pod)

    async def _delete(self, pod: Raw) -> None:
        live = self.objects.find(Ref(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"]))
        if live is None or live["metadata"]["uid"] != pod["metadata"]["uid"]:
            return
        said = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        failed = with_condition(live, said)
        try:
            await self.update(PODS, {**failed, "status": {**failed["status"], "phase": "Failed"}}, "status")
            await self.delete(PODS, pod, {"gracePeriodSeconds": 0})
        except ApiError:
            return  # at the next look

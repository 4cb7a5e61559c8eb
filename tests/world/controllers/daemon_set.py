"""The DaemonSet controller: one pod on each node that takes it, bound there by the scheduler.

Source: pkg/controller/daemon/daemon_controller.go of Kubernetes 1.36, without updates.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from world.controllers.fitting import objection
from world.controllers.loop import Controller, Informers, Key
from world.controllers.owners import claimed
from world.kinds import DAEMON_SETS, NODES, PODS, Raw
from world.pods import controller_of, controller_ref, is_ready, owned_by
from world.selectors import selects

_TOLERATED: Final = (
    *(("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule")),
    *(("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule")),
)
_HOME: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class DaemonSets(Controller):
    """Reconciles every DaemonSet."""

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self._sets = informers.of(DAEMON_SETS)
        self._pods = informers.of(PODS)
        self._nodes = informers.of(NODES)
        self._unseen: set[str] = set()  # UIDs of pods that it has made (its expectations)
        self._sets.on_change(lambda old, new: self._look_at((new or old or {})["metadata"]["namespace"]))
        self._pods.on_change(self._pod_changed)
        self._nodes.on_change(lambda *_: self._look_at())

    def _look_at(self, namespace: str = "") -> None:
        for key in self._sets.seen:
            if namespace in {"", key[0]}:
                self.enqueue(key)

    def _pod_changed(self, old: Raw | None, new: Raw | None) -> None:
        pod = new or old or {}
        self._unseen.discard(pod["metadata"]["uid"])
        for key, one in self._sets.seen.items():
            of_it = owned_by(pod, one["metadata"]["uid"])
            orphan = controller_of(pod) is None and selects(one["spec"]["selector"], pod)
            if key[0] == pod["metadata"]["namespace"] and (of_it or orphan):
                self.enqueue(key)

    async def sync(self, key: Key) -> None:
        """Do one reconcile (syncDaemonSet)."""
        one = self._sets.seen.get(key)
        if one is None or "deletionTimestamp" in one["metadata"] or self._unseen:
            return
        pods = await claimed(self, PODS, self._pods.of(key[0]), one, DAEMON_SETS)
        by_node: dict[str, list[Raw]] = defaultdict(list)
        for pod in pods:
            if home := _home_of(pod):
                by_node[home].append(pod)
        wanted = {name for (_, name), node in self._nodes.seen.items() if not objection(_made(one, ""), node)}
        for name in sorted(wanted - by_node.keys()):
            await self.sent()
            made = self.objects.create(PODS, key[0], _made(one, name), user=self.user)
            self._unseen.add(made["metadata"]["uid"])
            by_node[name].append(made)
        for name, there in by_node.items():
            there.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
            for pod in there[1 if name in wanted else 0 :]:  # the oldest stays (podsShouldBeOnNode)
                if "deletionTimestamp" not in pod["metadata"]:
                    await self.delete(PODS, pod)
        await self._write_status(one, wanted, by_node)

    async def _write_status(self, one: Raw, wanted: set[str], by_node: Mapping[str, list[Raw]]) -> None:
        first = [by_node[name][0] for name in wanted if by_node.get(name)]
        ready = sum(map(is_ready, first))
        status = {
            "currentNumberScheduled": len(first),
            "desiredNumberScheduled": len(wanted),
            "numberMisscheduled": sum(name not in wanted for name in by_node),
            "numberReady": ready,
            "numberAvailable": ready,
            "updatedNumberScheduled": len(first),
            "observedGeneration": one["metadata"]["generation"],
        }
        if status != one.get("status"):
            await self.update(DAEMON_SETS, {**one, "status": status}, "status")


def _made(one: Raw, node: str) -> Raw:
    """Return the pod of a node (CreatePodsWithGenerateName, ReplaceDaemonSetPodNodeNameNodeAffinity)."""
    template = one["spec"]["template"]
    tolerated = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
        for key, effect in _TOLERATED
    ]
    spec = {**template["spec"], "tolerations": [*(template["spec"].get("tolerations") or ()), *tolerated]}
    if node:
        at = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        affinity = spec.get("affinity") or {}
        of_nodes = {**(affinity.get("nodeAffinity") or {}), _HOME: {"nodeSelectorTerms": at}}
        spec["affinity"] = {**affinity, "nodeAffinity": of_nodes}
    metadata = {
        **(template.get("metadata") or {}),
        "generateName": f"{one['metadata']['name']}-",
        "ownerReferences": [controller_ref(one)],
    }
    return {"metadata": metadata, "spec": spec}


def _home_of(pod: Raw) -> str:
    """Return the node that a pod is on, or is meant for."""
    if name := pod["spec"].get("nodeName"):
        return str(name)
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_HOME) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""

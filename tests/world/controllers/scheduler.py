"""The scheduler: a pod is bound where its requests, tolerations, selector and required affinity let it.

Source: pkg/scheduler/framework/plugins/{noderesources,tainttoleration,nodeaffinity,nodeunschedulable,
interpodaffinity} of Kubernetes 1.36. Of the nodes that fit it takes that which the pod prefers, then that
with the fewest pods of the same owner, then of any.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache

from splitter.kube.client import ApiError
from world.controllers.loop import Controller, Informers, Key
from world.controllers.preferences import Surroundings
from world.kinds import NODES, PODS, Raw, Ref
from world.pods import controller_of, with_condition
from world.selectors import expressions, fit, selects

_AGAIN_S = 60.0
_TOPOLOGY = frozenset({"topology.kubernetes.io/region", "topology.kubernetes.io/zone"})
_UNITS: Mapping[str, int | Decimal] = {
    "": 1,
    "m": Decimal("0.001"),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}


@lru_cache(maxsize=4096)
def amount(text: str | float) -> Decimal:
    """Return a quantity as a number.

    >>> amount("250m"), amount("2Ki")
    (Decimal('0.250'), Decimal('2048'))
    """
    digits = str(text).rstrip("mkMGTi")
    return Decimal(digits) * _UNITS[str(text)[len(digits) :]]


def asked(pod: Raw) -> Counter[str]:
    """Return what a pod requests of a node; itself is one of its pods."""
    total: Counter[str] = Counter({"pods": 1})
    for container in pod["spec"].get("containers") or ():
        for name, text in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] += amount(text)  # type: ignore[assignment] # a Decimal counts as well
    return total


def tolerates(pod: Raw, taint: Mapping[str, str]) -> bool:
    """Whether a pod tolerates a taint (core/v1 ToleratesTaint)."""
    for one in pod["spec"].get("tolerations") or ():
        if one.get("effect", "") not in {"", taint["effect"]} or one.get("key", "") not in {"", taint["key"]}:
            continue
        if one.get("operator", "Equal") == "Exists" or one.get("value", "") == taint.get("value", ""):
            return True
    return False


def attracts(pod: Raw, node: Raw) -> bool:
    """Whether a pod's node selector and required affinity allow a node."""
    labels, spec = node["metadata"].get("labels") or {}, pod["spec"]
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    named = {"metadata.name": node["metadata"]["name"]}
    return any(
        fit(expressions(term.get("matchExpressions")), labels)
        and fit(expressions(term.get("matchFields")), named)
        for term in affinity.get("nodeSelectorTerms") or ()
        if term.get("matchExpressions") or term.get("matchFields")
    )


class Scheduler(Controller):
    """Binds pods one after the other."""

    user = "system:kube-scheduler"

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self._pods = informers.of(PODS)
        self._nodes = informers.of(NODES)
        self._assumed: dict[
            str, str
        ] = {}  # the node of a pod that was bound and is not seen there yet, by UID
        self._pods.on_change(self._pod_changed)
        self._nodes.on_change(self._node_changed)

    def _pod_changed(self, old: Raw | None, new: Raw | None) -> None:
        seen = new if new is not None else old
        assert seen is not None
        if new is not None and not new["spec"].get("nodeName"):
            if old is None:
                self.enqueue((new["metadata"]["namespace"], new["metadata"]["name"]))
            return
        self._assumed.pop(seen["metadata"]["uid"], None)
        if new is None:  # there is more free than before
            self._look_at_all()

    def _node_changed(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and (old is None or _offer(old) != _offer(new)):
            self._look_at_all()

    def _look_at_all(self) -> None:
        for key, pod in self._pods.seen.items():
            if not pod["spec"].get("nodeName"):
                self.enqueue(key)

    async def sync(self, key: Key) -> None:
        """Bind a pod, or say that it fits nowhere."""
        pod = self._pods.seen.get(key)
        if pod is None or pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            return
        if pod["metadata"]["uid"] in self._assumed:
            return
        used = self._used()
        apart = self._apart(pod)
        surroundings = self._surroundings(pod)
        fitting = [
            node
            for node in self._nodes.seen.values()
            if self._fits(pod, node, used)
            and not apart.intersection(node["metadata"].get("labels", {}).items())
            and surroundings.spreads(pod, node)
        ]
        await self.sent()
        ref = Ref(PODS, *key)
        live = self.objects.find(ref)
        if live is None or live["metadata"]["uid"] != pod["metadata"]["uid"] or live["spec"].get("nodeName"):
            return
        if not fitting:
            count = len(self._nodes.seen)
            said = {"status": "False", "reason": "Unschedulable", "message": f"0/{count} nodes are available"}
            self.objects.update(ref, with_condition(live, {"type": "PodScheduled", **said}), part="status")
            self.enqueue(key, _AGAIN_S)
            return
        dislikes = {one["metadata"]["name"]: surroundings.dislikes(pod, one) for one in fitting}
        node = self._best(pod, dislikes, used)
        self._assumed[pod["metadata"]["uid"]] = node
        try:
            labels = self._nodes.seen["", node]["metadata"].get("labels") or {}
            places = {key: text for key, text in labels.items() if key in _TOPOLOGY}  # PodTopologyLabels
            metadata = {**live["metadata"], "labels": {**(live["metadata"].get("labels") or {}), **places}}
            bound = {**live, "metadata": metadata, "spec": {**live["spec"], "nodeName": node}}
            bound = self.objects.update(ref, bound, part="binding", user=self.user)
        except ApiError:
            del self._assumed[pod["metadata"]["uid"]]
            raise
        scheduled = {"type": "PodScheduled", "status": "True"}
        self.objects.update(ref, with_condition(bound, scheduled), part="status")

    def _apart(self, pod: Raw) -> set[tuple[str, str]]:
        """Return the labels of nodes on which a pod may not be, by its anti-affinity or another's."""
        taken = set()
        namespace = pod["metadata"]["namespace"]
        for other in self._pods.of(namespace):
            name = other["spec"].get("nodeName") or self._assumed.get(other["metadata"]["uid"])
            node = self._nodes.seen.get(("", name or ""))
            if node is None:
                continue
            labels = node["metadata"].get("labels") or {}
            for term, of in (
                *((one, other) for one in _repelled(pod)),
                *((one, pod) for one in _repelled(other)),
            ):
                key = term["topologyKey"]
                if key in labels and selects(term.get("labelSelector"), of):
                    taken.add((key, labels[key]))
        return taken

    def _used(self) -> dict[str, Counter[str]]:
        used: dict[str, Counter[str]] = defaultdict(Counter)
        for pod in self._pods.seen.values():
            node = pod["spec"].get("nodeName") or self._assumed.get(pod["metadata"]["uid"])
            if node and pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}:
                used[node].update(asked(pod))
        return used

    @staticmethod
    def _fits(pod: Raw, node: Raw, used: Mapping[str, Counter[str]]) -> bool:
        if node["spec"].get("unschedulable"):
            return False
        taints = [
            one for one in node["spec"].get("taints") or () if one["effect"] in {"NoSchedule", "NoExecute"}
        ]
        if not attracts(pod, node) or not all(tolerates(pod, taint) for taint in taints):
            return False
        offered, there = (
            node.get("status", {}).get("allocatable") or {},
            used.get(node["metadata"]["name"], Counter()),
        )
        return all(
            there[name] + wanted <= amount(offered.get(name, "0")) for name, wanted in asked(pod).items()
        )

    def _surroundings(self, pod: Raw) -> Surroundings:
        there: dict[str, list[Raw]] = defaultdict(list)
        for other in self._pods.seen.values():
            if name := other["spec"].get("nodeName") or self._assumed.get(other["metadata"]["uid"]):
                there[name].append(other)
        return Surroundings([node for node in self._nodes.seen.values() if attracts(pod, node)], there)

    def _best(
        self, pod: Raw, dislikes: Mapping[str, tuple[int, int]], used: Mapping[str, Counter[str]]
    ) -> str:
        owner = (controller_of(pod) or {}).get("uid", "")
        alike: Counter[str] = Counter()
        for other in self._pods.seen.values():
            if owner and (controller_of(other) or {}).get("uid") == owner:
                alike[other["spec"].get("nodeName") or self._assumed.get(other["metadata"]["uid"], "")] += 1
        names = list(dislikes)
        self.dice.shuffle(names)

        def order(name: str) -> tuple[tuple[int, int], int, int]:
            return dislikes[name], alike[name], used.get(name, Counter())["pods"]

        return min(names, key=order)


def _repelled(pod: Raw) -> list[Raw]:
    """Return the terms of a pod's required anti-affinity."""
    affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    return list(affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ())


def _offer(node: Raw) -> tuple[object, ...]:
    """Return what of a node a pod may wait for."""
    spec, labels = node["spec"], node["metadata"].get("labels")
    return spec.get("taints"), spec.get("unschedulable"), labels, node.get("status", {}).get("allocatable")

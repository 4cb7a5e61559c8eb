"""What there is of one workload in a world: its twins, ReplicaSets and pods, whom they belong to, who serves.

From the objects of the API server and the machines alone; nothing here asks splitter.
"""

import json
from collections.abc import Iterator
from datetime import timedelta

from splitter.core.labels_annotations import ANNOTATION_REPLICAS, ANNOTATION_TAKEN_OVER, LABEL_POOL, PREFIX
from splitter.core.replica import Pool
from stories.words import Names, images
from world import clock
from world.cluster import POOL, Cluster
from world.controllers.deployment_math import fenceposts
from world.kinds import DEPLOYMENTS, NODES, PODS, REPLICA_SETS, SPLITS, STATEFUL_SETS, Raw, Ref
from world.pods import controller_of, is_active, is_ready, ready_since


class Scene:
    """Looks at one workload of a cluster."""

    def __init__(self, cluster: Cluster, source: Ref) -> None:
        self.cluster = cluster
        self.objects = cluster.objects
        self.ref = source
        self._last: Raw = cluster.objects.get(source)
        self.names = Names(cluster.objects)
        self.doomed: set[str] = set()  # nodes that are announced to go

    # --- objects ----------------------------------------------------------------------------------

    @property
    def source(self) -> Raw:
        """Return the user's workload, as it was last if it is not there."""
        self._last = self.objects.find(self.ref) or self._last
        return self._last

    @property
    def replicas(self) -> int:
        """Return how many replicas its user asks for: a StatefulSet that is at 0 has that written on it."""
        saved = (self.source["metadata"].get("annotations") or {}).get(ANNOTATION_REPLICAS)
        return int(json.loads(saved)["replicas"] if saved else self.source["spec"]["replicas"])

    @property
    def split(self) -> Raw | None:
        """Return its Split."""
        return next(iter(self.objects.all(SPLITS, self.ref.namespace)), None)

    @property
    def status(self) -> Raw:
        """Return the status of its Split; empty: there is none."""
        return (self.split or {}).get("status") or {}

    @property
    def rebalance(self) -> Raw:
        """Return what is remembered of spot."""
        return (self.status.get("memory") or {}).get("rebalance") or {}

    @property
    def twins(self) -> dict[Pool, Raw]:
        """Return the twins by their pools."""
        there = {
            raw["metadata"]["labels"][LABEL_POOL]: raw
            for raw in self.objects.all(self.ref.kind, self.ref.namespace)
            if LABEL_POOL in (raw["metadata"].get("labels") or {})
        }
        return {pool: there[pool.value] for pool in Pool if pool.value in there}

    def counts(self) -> tuple[int, ...]:
        """Return how many replicas each twin is to have: on-demand, spot."""
        return tuple(twin["spec"]["replicas"] for twin in self.twins.values())

    def replica_sets(self, owner: Raw | None = None) -> list[Raw]:
        """Return the ReplicaSets, or those that one object controls."""
        there = self.objects.all(REPLICA_SETS, self.ref.namespace)
        return there if owner is None else [raw for raw in there if _is_of(raw, owner)]

    def parked(self) -> list[Raw]:
        """Return the ReplicaSets that nothing controls."""
        return [raw for raw in self.replica_sets() if controller_of(raw) is None]

    # --- pods -------------------------------------------------------------------------------------

    def pods(self, owner: Raw | None = None) -> list[Raw]:
        """Return the pods that are not ending, or those of a workload."""
        pods = self.cluster.pods(self.ref.namespace)
        if owner is None:
            return pods
        uids = {one["metadata"]["uid"] for one in (owner, *self.replica_sets(owner))}
        return [pod for pod in pods if (of := controller_of(pod)) is not None and of["uid"] in uids]

    def unowned(self) -> list[Raw]:
        """Return the pods that nothing controls."""
        return [pod for pod in self.pods() if controller_of(pod) is None]

    def on(self, *nodes: str) -> list[Raw]:
        """Return the pods on nodes, or on those whose names begin so."""
        return [pod for pod in self.pods() if (pod["spec"].get("nodeName") or "").startswith(nodes)]

    def node_of(self, pod: Raw) -> Raw | None:
        """Return the node of a pod; None: it has none, or that is gone."""
        return self.objects.find(Ref(NODES, "", pod["spec"].get("nodeName") or ""))

    def serves(self, pod: Raw) -> bool:
        """Whether it answers: ready, not ending, and its machine is there."""
        name = pod["spec"].get("nodeName")
        return is_active(pod) and is_ready(pod) and name not in self.cluster.machines.silent

    def stays(self, pod: Raw) -> bool:
        """Whether it answers, has done so for minReadySeconds, and its node is not about to go."""
        since = ready_since(pod)
        if since is None or pod["spec"].get("nodeName") in self.doomed or not self.serves(pod):
            return False
        least_s = self.source["spec"].get("minReadySeconds", 0)
        return not least_s or clock.now() >= since + timedelta(seconds=least_s)

    def available(self) -> int:
        """Count the pods that answer and are to stay."""
        return sum(map(self.stays, self.pods()))

    def serving(self) -> int:
        """Count the pods that answer, wherever they are."""
        return sum(map(self.serves, self.pods()))

    def bound(self) -> int:
        """Count the pods on nodes that stay, ready or not."""
        gone = self.doomed | self.cluster.machines.silent.keys()
        return sum(
            bool(name := pod["spec"].get("nodeName")) and name not in gone and self._is_kept(pod)
            for pod in self.pods()
        )

    def _is_kept(self, pod: Raw) -> bool:
        """Whether what controls it is there: else the garbage collector takes it."""
        if (owner := controller_of(pod)) is None:
            return True
        of = self.objects.find(Ref(REPLICA_SETS, self.ref.namespace, owner["name"]))
        if owner["kind"] != "ReplicaSet" or of is None:
            return bool(owner["kind"] != "ReplicaSet")
        if (above := controller_of(of)) is None:
            return True
        there = self.objects.find(self.ref._replace(name=above["name"]))
        return there is not None and bool(there["metadata"]["uid"] == above["uid"])

    def asked_for(self) -> int:
        """Count what may be there without a further write."""
        count = len(self.unowned())
        for one in (self.source, *self.twins.values()):
            sets = self.replica_sets(one)
            held = sum(rs["spec"].get("replicas", 0) for rs in sets)
            surge = strategy(one)[0] if self.ref.kind == DEPLOYMENTS and is_rolling(self, one) else 0
            most = 0 if one["spec"].get("paused") and not held else one["spec"].get("replicas", 0) + surge
            count += max(most, held, len(self.pods(one)))
        return int(count + sum(rs["spec"].get("replicas", 0) for rs in self.parked()))

    def images(self) -> set[str]:
        """Return what runs."""
        return {images(pod["spec"]) for pod in self.pods()}

    def nodes(self) -> list[str]:
        """Return the nodes that are there."""
        return [raw["metadata"]["name"] for raw in self.objects.all(NODES)]

    def spot_nodes(self) -> list[str]:
        """Return the spot nodes that are there."""
        nodes = self.objects.all(NODES)
        return [raw["metadata"]["name"] for raw in nodes if raw["metadata"]["labels"].get(POOL) == "spot"]

    # --- in words ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        """Say who holds how many: asked for/available."""
        own = self.pods(self.source)
        words = [self._counted("source", self.source, own)] if own or self._is_held() else []
        words += [
            self._counted(f"parked {self.names.of(rs['metadata']['name'])}", rs, pods)
            for rs in self.parked()
            if (pods := [pod for pod in self.pods() if _is_of(pod, rs)]) or rs["spec"].get("replicas")
        ]
        if free := self.unowned():
            words.append(f"no owner {len(free)}/{sum(map(self.stays, free))}")
        words += [self._counted(pool.value, twin, self.pods(twin)) for pool, twin in self.twins.items()]
        return "  ".join(words) or "nothing runs"

    def _is_held(self) -> bool:
        if self.ref.kind == STATEFUL_SETS:
            return bool(self.replicas)
        return any(rs["spec"].get("replicas") for rs in self.replica_sets(self.source))

    def _counted(self, name: str, holder: Raw, pods: list[Raw]) -> str:
        doomed = sum(self.serves(pod) and not self.stays(pod) for pod in pods)
        counted = f"{name} {holder['spec'].get('replicas', 0)}/{sum(map(self.stays, pods))}"
        return f"{counted} +{doomed} doomed" if doomed else counted

    # --- whether it is at rest ----------------------------------------------------------------------

    def traces(self) -> list[str]:
        """Name everything of splitter's that is still there, and what the source lacks (promise 4)."""
        kinds = self.ref.kind, REPLICA_SETS, PODS
        left = [
            f"{key} on {self.names.of(raw['metadata']['name'])}"
            for kind in kinds
            for raw in self.objects.all(kind, self.ref.namespace)
            for key in self._keys(raw)
            if kind != PODS or is_active(raw)
        ]
        left += [f"parked {raw['metadata']['name']}" for raw in self.parked()]
        left += [f"no owner of {raw['metadata']['name']}" for raw in self.unowned()]
        left += ["Split"] if self.split else []
        left += ["pause"] if self.source["spec"].get("paused") else []
        pods = self.pods(self.source)
        if len(pods) != self.replicas or {images(pod["spec"]) for pod in pods} - {
            images(self.source["spec"])
        }:
            left.append(f"it has {len(pods)} of {self.replicas} pods")
        return left

    def _keys(self, raw: Raw) -> Iterator[str]:
        """Yield what is splitter's on an object; a ReplicaSet bears what its Deployment is annotated with."""
        labels, annotations = raw["metadata"].get("labels") or {}, raw["metadata"].get("annotations") or {}
        is_source = raw["metadata"]["name"] == self.ref.name
        ours = {key for key in labels if key.startswith(PREFIX) and not is_source}
        yield from sorted(ours | {ANNOTATION_REPLICAS, ANNOTATION_TAKEN_OVER} & annotations.keys())

    def unsettled(self, on_demand: int) -> list[str]:
        """Name what keeps a split workload from being at rest with `on_demand` replicas there."""
        wanted, there = (on_demand, self.replicas - on_demand), self.counts()
        lines = [f"{there} asked for, not {wanted}"] if there != wanted else []
        for pool, twin in self.twins.items():
            pods = self.pods(twin)
            ran = sorted({images(pod["spec"]) for pod in pods} | {images(twin["spec"])})
            if ran != [images(self.source["spec"])] or len(pods) != twin["spec"]["replicas"]:
                lines.append(f"{pool} has {len(pods)} pods of {ran}")
            if self.ref.kind == DEPLOYMENTS and sum(
                bool(rs["spec"].get("replicas")) for rs in self.replica_sets(twin)
            ) != bool(pods):
                lines.append(f"{pool} rolls")
        lines += [
            f"{rs['metadata']['name']} is parked with {rs['spec']['replicas']}"
            for rs in self.parked()
            if rs["spec"]["replicas"]
        ]
        lines += [f"the source has {len(own)} pods"] if (own := self.pods(self.source)) else []
        lines += [f"{len(free)} pods have no owner"] if (free := self.unowned()) else []
        lines += [f"{self.available()} available"] if self.available() != self.replicas else []
        return lines


def strategy(source: Raw) -> tuple[int, int]:
    """Return a Deployment's maxSurge and maxUnavailable as numbers."""
    return fenceposts(source)


def is_rolling(scene: Scene, deployment: Raw) -> bool:
    """Whether a Deployment has more than one ReplicaSet with replicas, or none of its current template."""
    live = [
        rs
        for rs in scene.replica_sets(deployment)
        if rs["spec"].get("replicas") or (rs.get("status") or {}).get("replicas")
    ]
    return any(images(rs["spec"]) != images(deployment["spec"]) for rs in live) or len(live) > 1


def _is_of(raw: Raw, owner: Raw) -> bool:
    controller = controller_of(raw)
    return controller is not None and controller["uid"] == owner["metadata"]["uid"]

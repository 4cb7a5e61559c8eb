"""A small cluster as relief looks at it: nodes, and pods that really use something. Nothing moves in it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from splitter.core.names import DEPLOYMENT, Key
from splitter.core.nodes.fit import SpreadConstraint
from splitter.core.relief.model import Amounts, Sample, Thresholds
from splitter.core.replica import Pool
from splitter.relief.decide import Relief, relieve
from splitter.relief.loads import Cluster, Domains, NodeLoad, ReplicaLoad, SpreadLoad, WorkloadLoad

MINUTE = timedelta(minutes=1)
WHOLE = Amounts(8000, 32 * 1024.0**3)
ASKED = Amounts(100, 1024.0**3 / 4)
BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
Change = Callable[[Cluster], Cluster]
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


@dataclass
class Pod:
    """A replica and what it really uses, in thousandths of a core."""

    uid: str
    workload: str
    node: str
    uses: float
    ready_since: datetime | None


@dataclass
class Scene:
    """The cluster. All pods ask for the same (`ASKED`), whatever they use."""

    wanted: dict[str, int]
    nodes: list[str]
    thresholds: Thresholds
    pods: dict[str, Pod] = field(default_factory=dict)
    now: datetime = BEGIN
    last: Relief = field(default_factory=Relief)
    on_demand: frozenset[str] = frozenset()
    """The nodes that are no spot; the replicas prefer spot."""
    slots: dict[str, int] = field(default_factory=dict)
    """How many pods a node takes, where that is not 110."""
    soak_s: float | None = None
    spreads: tuple[SpreadConstraint, ...] = ()
    """How every workload asks to be spread."""
    zones: dict[str, str] = field(default_factory=dict)
    """By node."""
    closed: frozenset[str] = frozenset()
    """The nodes that take no pod, and are counted all the same."""

    def add(self, workload: str, node: str, uses: float) -> None:
        """Place a pod that has been ready for a day."""
        uid = f"{workload}-{len(self.pods)}"
        long_ago = self.now - timedelta(days=1)
        self.pods[uid] = Pod(uid, workload, node, uses, long_ago)

    def of(self, workload: str) -> list[Pod]:
        """Return the pods of a workload."""
        return [pod for pod in self.pods.values() if pod.workload == workload]

    def use_of(self, node: str) -> float:
        """Return how full a node is, in percent of its CPU."""
        return (
            sum(one.uses for one in self.pods.values() if one.node == node and one.ready_since) * 100 / 8000
        )

    def cluster(self) -> Cluster:
        """Return what splitter would see now."""

        def used(uses: float) -> Sample:
            return Sample(self.now, Amounts(uses, uses * 1024.0**2))

        on = {node: [pod for pod in self.pods.values() if pod.node == node] for node in self.nodes}
        return Cluster(
            self.now,
            tuple(
                NodeLoad(
                    node,
                    f"uid-{node}",
                    Pool.ON_DEMAND if node in self.on_demand else Pool.SPOT,
                    WHOLE,
                    Amounts(ASKED.cpu * len(pods), ASKED.memory * len(pods)),
                    self.slots.get(node, 110) - len(pods),
                )
                for node, pods in on.items()
            ),
            tuple(
                WorkloadLoad(
                    Key(DEPLOYMENT, "shop", workload),
                    self.thresholds,
                    tuple(
                        ReplicaLoad(
                            pod.uid,
                            pod.uid,
                            pod.node,
                            Pool.SPOT,
                            ASKED,
                            pod.ready_since,
                            may_run_on=frozenset(self.nodes) - self.closed,
                        )
                        for pod in self.of(workload)
                    ),
                    spot_soak_s=self.soak_s,
                    spreads=tuple(self._spread(one, workload) for one in self.spreads),
                )
                for workload in self.wanted
            ),
            {node: used(self.use_of(node) * 80) for node in self.nodes},
            {pod.uid: used(pod.uses) for pod in self.pods.values() if pod.ready_since},
        )

    def _spread(self, constraint: SpreadConstraint, workload: str) -> SpreadLoad:
        uids = frozenset(pod.uid for pod in self.of(workload))
        of_node = {node: self.domain(node, constraint) for node in self.nodes}
        return SpreadLoad(constraint, uids, uids, Domains(of_node, frozenset(of_node.values())))

    def domain(self, node: str, constraint: SpreadConstraint) -> str:
        """Return the value of a constraint's key on a node."""
        return self.zones[node] if constraint.key == ZONE else node

    def minute(self) -> Relief:
        """Look a minute later; nothing moves by that."""
        self.now += MINUTE
        self.last = relieve(self.cluster(), self.last, ())
        return self.last


def a_minute_later(cluster: Cluster) -> Cluster:
    """Return a cluster in which everything is used as before, and was measured anew."""
    now = cluster.now + MINUTE
    return replace(
        cluster,
        now=now,
        node_samples={name: replace(one, at=now) for name, one in cluster.node_samples.items()},
        pod_samples={name: replace(one, at=now) for name, one in cluster.pod_samples.items()},
    )


def looked_at(scene: Scene, minutes: int = 12, change: Change = lambda same: same) -> Relief:
    """Look so often at one moment, a minute apart, without a move; return the last answer."""
    relief, cluster = Relief(), scene.cluster()
    for _ in range(minutes):
        cluster = a_minute_later(cluster)
        relief = relieve(change(cluster), relief, ())
    return relief


def every_workload(**fields: object) -> Change:
    """Change all workloads of a cluster."""

    def changed(one: WorkloadLoad) -> WorkloadLoad:
        return replace(one, **fields)  # type: ignore[arg-type]

    return lambda cluster: replace(cluster, workloads=tuple(map(changed, cluster.workloads)))


def piled(thresholds: Thresholds) -> Scene:
    """Return 12 nodes and 8 workloads of 20; two of them are piled onto two nodes, with 40 % of all load."""
    names = [f"node-{number:02}" for number in range(12)]
    small = [f"app-{number}" for number in range(6)]
    scene = Scene(dict.fromkeys((*small, "big-0", "big-1"), 20), names, thresholds)
    for place in range(20):
        for number in range(2):
            scene.add(f"big-{number}", names[place % 2], 370)
    for place in range(120):
        scene.add(small[place % 6], names[place % 12], 231 if place % 12 > 1 else 30)
    return scene

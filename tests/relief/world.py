"""Plays a small cluster minute by minute: pods that really use something, a scheduler, and moves.

The scheduler filters by requests, and takes the node that is asked for least (NodeResourcesFit with
LeastAllocated, as kube-scheduler does by default). It knows nothing of real use. A ReplicaSet that is lowered
deletes the pod that is not ready, or else the one that bears the deletion cost.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from splitter.core.hot_nodes import Aim
from splitter.core.model import Pool
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.nodes.fit import SpreadConstraint
from splitter.core.relief.model import Amounts, Sample, Thresholds, Tuning
from splitter.core.relief.move import Moving, Newcomer, Step, next_step
from splitter.relief.decide import Relief, relieve
from splitter.relief.loads import Cluster, Domains, NodeLoad, PastMove, ReplicaLoad, SpreadLoad, WorkloadLoad

MINUTE = timedelta(minutes=1)
WHOLE = Amounts(8000, 32 * 1024.0**3)
ASKED = Amounts(100, 1024.0**3 / 4)
BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
START_MINUTES = 1
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
    created: datetime


@dataclass
class Going:
    """A move that goes on."""

    past: PastMove
    leaving: str
    newcomer: str = ""
    marked: str = ""
    raised: bool = False
    crowded: frozenset[str] = frozenset()
    stand: str = ""


@dataclass
class World:
    """The cluster. All pods ask for the same (`ASKED`), whatever they use."""

    wanted: dict[str, int]
    nodes: list[str]
    thresholds: Thresholds
    tuning: Tuning = field(default_factory=Tuning)
    pods: dict[str, Pod] = field(default_factory=dict)
    now: datetime = BEGIN
    past: list[PastMove] = field(default_factory=list)
    going: dict[str, Going] = field(default_factory=dict)
    last: Relief = field(default_factory=Relief)
    lands_on: str = ""
    """Where the scheduler puts every new pod, whatever is asked for there."""
    hint: Literal["none", "hot", "avoid"] = "none"
    """Against which nodes the scheduler has a preference, as with a PreferNoSchedule taint on those."""
    least_available: int = 0
    """The worst there was: available replicas of a workload, less those that are wanted."""
    made: int = 0
    on_demand: frozenset[str] = frozenset()
    """The nodes that are no spot; the replicas prefer spot."""
    slots: dict[str, int] = field(default_factory=dict)
    """How many pods a node takes, where that is not 110."""
    soak_s: float | None = None
    spreads: tuple[SpreadConstraint, ...] = ()
    """How every workload asks to be spread. The scheduler prefers nodes where few stand."""
    zones: dict[str, str] = field(default_factory=dict)
    """By node."""
    closed: frozenset[str] = frozenset()
    """The nodes that take no pod, and are counted all the same."""

    def add(self, workload: str, node: str, uses: float) -> None:
        """Place a pod that has been ready for a day."""
        uid = f"{workload}-{len(self.pods)}"
        long_ago = self.now - timedelta(days=1)
        self.pods[uid] = Pod(uid, workload, node, uses, long_ago, long_ago)

    def of(self, workload: str) -> list[Pod]:
        """Return the pods of a workload."""
        return [pod for pod in self.pods.values() if pod.workload == workload]

    def use_of(self, node: str) -> float:
        """Return how full a node is, in percent of its CPU."""
        return (
            sum(one.uses for one in self.pods.values() if one.node == node and one.ready_since) * 100 / 8000
        )

    def hottest(self) -> float:
        """Return how full the fullest node is."""
        return max(self.use_of(node) for node in self.nodes)

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

    def count(self, workload: str, constraint: SpreadConstraint) -> dict[str, int]:
        """Return how many replicas of a workload each domain holds."""
        counts = dict.fromkeys((self.domain(node, constraint) for node in self.nodes), 0)
        for pod in self.of(workload):
            counts[self.domain(pod.node, constraint)] += 1
        return counts

    def _fits(self, node: str, workload: str) -> tuple[bool, int]:
        """Return whether strict constraints admit a node to a new pod, and beside how many it would stand."""
        beside = []
        for constraint in self.spreads:
            counts = self.count(workload, constraint)
            held = counts[self.domain(node, constraint)]
            if constraint.strict and held + 1 - min(counts.values()) > constraint.max_skew:
                return False, 0
            beside.append(held)
        return True, sum(beside)

    def minute(self) -> Relief:
        """Let a minute pass: pods become ready, a look at the metrics, a step of each move."""
        self.now += MINUTE
        for pod in self.pods.values():
            if pod.ready_since is None and self.now - pod.created >= START_MINUTES * MINUTE:
                pod.ready_since = self.now
        relief = relieve(
            self.cluster(),
            self.last,
            (*self.past, *(one.past for one in self.going.values())),
            self.tuning,
        )
        self.last = relief
        for move in relief.moves:
            begun = PastMove(self.now, move.workload, move.from_node, aim=move.aim)
            self.going[move.workload.name] = Going(
                begun, move.pod_uid, crowded=move.crowded, stand=move.stand
            )
        for workload in list(self.going):
            self._step(workload, relief)
        for workload, wanted in self.wanted.items():
            ready = sum(pod.ready_since is not None for pod in self.of(workload))
            self.least_available = min(self.least_available, ready - wanted)
        return relief

    def _step(self, workload: str, relief: Relief) -> None:
        going, pods = self.going[workload], self.of(workload)
        new = self.pods.get(going.newcomer)
        step = next_step(
            Moving(
                wanted=self.wanted[workload],
                spec=len(pods),
                ready=sum(pod.ready_since is not None for pod in pods),
                leaving=going.leaving if going.leaving in self.pods else "",
                newcomer=None
                if new is None
                else Newcomer(
                    new.uid,
                    new.ready_since is not None,
                    misplaced=self._misplaced(going, new, relief),
                ),
                raised=going.raised,
                marked=going.marked,
            ),
            patience_s=180,
        )
        if step.step is Step.RAISE:
            going.raised = True
            going.newcomer = self._create(workload, self.pods[going.leaving].uses, relief)
        elif step.step is Step.MARK:
            going.marked = step.pod
        elif step.step is Step.LOWER:
            unready = [pod.uid for pod in pods if pod.ready_since is None]
            del self.pods[unready[0] if unready else going.marked]
        elif step.step is Step.DONE:
            del self.going[workload]
            self.past.append(
                PastMove(
                    going.past.at,
                    going.past.workload,
                    going.past.from_node,
                    self.now,
                    f"uid-{new.node}" if new else "",
                    step.taken_back,
                    going.past.aim,
                    going.stand if step.taken_back else "",
                )
            )

    def _misplaced(self, going: Going, new: Pod, relief: Relief) -> str:
        if going.past.aim is Aim.SPOT and new.node in self.on_demand:
            return "stands on on-demand, too"
        if going.past.aim is Aim.SPREAD and new.node in going.crowded:
            return "stands where it is spread no better"
        return "stands on a hot node, too" if new.node in relief.avoid else ""

    def _create(self, workload: str, uses: float, relief: Relief) -> str:
        asked = {node: sum(pod.node == node for pod in self.pods.values()) for node in self.nodes}
        avoided = {"none": (), "hot": relief.hot, "avoid": relief.avoid}[self.hint]
        free = [one for one in self.nodes if asked[one] < self.slots.get(one, 110) and one not in self.closed]
        node = self.lands_on or min(
            (one for one in free if self._fits(one, workload)[0]),
            key=lambda one: (
                one in avoided,
                one in self.on_demand,
                self._fits(one, workload)[1],
                asked[one],
                one,
            ),
        )
        self.made += 1
        uid = f"{workload}-new-{self.made}"
        self.pods[uid] = Pod(uid, workload, node, uses, None, self.now)
        return uid


def a_minute_later(cluster: Cluster) -> Cluster:
    """Return a cluster in which everything is used as before, and was measured anew."""
    now = cluster.now + MINUTE
    return replace(
        cluster,
        now=now,
        node_samples={name: replace(one, at=now) for name, one in cluster.node_samples.items()},
        pod_samples={name: replace(one, at=now) for name, one in cluster.pod_samples.items()},
    )


def played(world: World, minutes: int) -> list[Relief]:
    """Let minutes pass."""
    return [world.minute() for _ in range(minutes)]


def looked_at(world: World, minutes: int = 12, change: Change = lambda same: same) -> Relief:
    """Look so often at one moment, a minute apart, without a move; return the last answer."""
    relief, cluster = Relief(), world.cluster()
    for _ in range(minutes):
        cluster = a_minute_later(cluster)
        relief = relieve(change(cluster), relief, ())
    return relief


def every_workload(**fields: object) -> Change:
    """Change all workloads of a cluster."""

    def changed(one: WorkloadLoad) -> WorkloadLoad:
        return replace(one, **fields)  # type: ignore[arg-type]

    return lambda cluster: replace(cluster, workloads=tuple(map(changed, cluster.workloads)))


def piled(thresholds: Thresholds) -> World:
    """Return 12 nodes and 8 workloads of 20; two of them are piled onto two nodes, with 40 % of all load."""
    names = [f"node-{number:02}" for number in range(12)]
    small = [f"app-{number}" for number in range(6)]
    world = World(dict.fromkeys((*small, "big-0", "big-1"), 20), names, thresholds)
    for place in range(20):
        for number in range(2):
            world.add(f"big-{number}", names[place % 2], 370)
    for place in range(120):
        world.add(small[place % 6], names[place % 12], 231 if place % 12 > 1 else 30)
    return world

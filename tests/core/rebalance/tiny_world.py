"""A tiny world that is played out: pods start, nodes come and go.

One replica a spot node slot; every five seconds the controllers, the scheduler and the kubelets act,
then `decide` is asked and its counts are written. After each step the promises are checked.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import Decision, RebalanceInput, decide
from splitter.core.split_status import RebalanceState

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
STEP_S = 5


@dataclass
class Pod:
    """One replica; `node` is None while it is Pending."""

    created_s: int
    node: str | None = None
    ready_s: int | None = None


@dataclass
class World:
    """A source split in two, its pods, and the nodes under them."""

    desired: int
    policy: Policy
    max_surge: int = 5
    max_unavailable: int = 5
    on_demand_start_s: int = 30
    spot_start_s: int = 30
    on_demand_headroom: int = 1000
    spot_nodes: dict[str, str] = field(default_factory=dict)
    """Name -> "healthy" or "doomed"; one replica fits on each."""
    on_demand: list[Pod] = field(default_factory=list)
    spot: list[Pod] = field(default_factory=list)
    on_demand_spec: int = 0
    spot_spec: int = 0
    state: RebalanceState = field(default_factory=RebalanceState)
    clock_s: int = 0
    born: int = 0
    history: list[Decision] = field(default_factory=list)
    most_ready: int = 0
    least_ready: int = 10**9
    surge_allowed: int = 0

    def settle(self) -> "World":
        """Start divided and ready for hours, on as many spot nodes as are wanted there."""
        base = base_replicas(self.desired, self.policy)
        self.on_demand_spec, self.spot_spec = base, self.desired - base
        self.on_demand = [Pod(-50_000, f"od-{number}", -50_000) for number in range(base)]
        self.add_spot_nodes(self.spot_spec)
        self.spot = [Pod(-50_000, node, -50_000) for node in self.spot_nodes]
        return self

    def add_spot_nodes(self, count: int) -> None:
        """Bring nodes with room for one replica each."""
        for _ in range(count):
            self.born += 1
            self.spot_nodes[f"spot-{self.born}"] = "healthy"

    def doom_spot_nodes(self, count: int) -> None:
        """Announce the end of some nodes."""
        healthy = [node for node, health in self.spot_nodes.items() if health == "healthy"]
        for node in healthy[:count]:
            self.spot_nodes[node] = "doomed"

    def remove_spot_nodes(self, count: int, *, doomed: bool = False) -> None:
        """Take nodes away, their pods with them."""
        leaving = [node for node, health in self.spot_nodes.items() if (health == "doomed") == doomed]
        for node in leaving[:count]:
            del self.spot_nodes[node]

    def happen(self, event: str, amount: int) -> None:
        """Do something to the world, by name."""
        match event:
            case "doom":
                self.doom_spot_nodes(amount)
            case "remove doomed":
                self.remove_spot_nodes(amount, doomed=True)
            case "remove":
                self.remove_spot_nodes(amount)
            case "add":
                self.add_spot_nodes(amount)
            case "scale":
                self.desired = amount * 2
            case "policy":
                self.policy = replace(self.policy, on_demand_base=amount)
            case _:
                pass

    # --- what is seen ---------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """Return the present instant."""
        return START + timedelta(seconds=self.clock_s)

    def healthy(self, pod: Pod) -> bool:
        """Say whether a spot pod's node is neither doomed nor gone."""
        return self.spot_nodes.get(pod.node or "") == "healthy"

    @property
    def ready_on_demand(self) -> int:
        """Count ready on-demand replicas."""
        return sum(pod.ready_s is not None for pod in self.on_demand)

    @property
    def ready_spot(self) -> list[Pod]:
        """List ready spot replicas on healthy nodes."""
        return [pod for pod in self.spot if pod.ready_s is not None and self.healthy(pod)]

    @property
    def ready(self) -> int:
        """Count ready, not doomed replicas."""
        return self.ready_on_demand + len(self.ready_spot)

    @property
    def doomed(self) -> int:
        """Count replicas that are up on doomed nodes."""
        return sum(self.spot_nodes.get(pod.node or "") == "doomed" for pod in self.spot)

    def observe(self) -> RebalanceInput:
        """Count everything as `kube.observe` would."""
        bound = [pod for pod in self.spot if pod.node is not None]
        taken = {pod.node for pod in bound}
        return RebalanceInput(
            now=self.now,
            desired=self.desired,
            max_surge=self.max_surge,
            max_unavailable=self.max_unavailable,
            on_demand_spec=self.on_demand_spec,
            on_demand_ready=self.ready_on_demand,
            on_demand_stuck=sum(
                pod.node is None and self.clock_s - pod.created_s > self.policy.grace_s
                for pod in self.on_demand
            ),
            spot_spec=self.spot_spec,
            spot_ready_since=tuple(
                START + timedelta(seconds=pod.ready_s) for pod in self.ready_spot if pod.ready_s is not None
            ),
            spot_starting=sum(pod.ready_s is None and self.healthy(pod) for pod in bound),
            spot_pending_since=min(
                (
                    START + timedelta(seconds=pod.created_s)
                    for pod in self.spot
                    if pod.node is None and pod.created_s < self.clock_s
                ),
                default=None,
            ),
            spot_doomed=self.doomed,
            lost_node_uids=tuple(sorted({str(pod.node) for pod in bound if not self.healthy(pod)})),
            fit_spot=sum(
                health == "healthy" and node not in taken for node, health in self.spot_nodes.items()
            ),
        )

    # --- what happens ---------------------------------------------------------------------------

    def step(self, seconds: int = STEP_S) -> Decision:
        """Let some seconds pass: the cluster acts, splitter decides and writes."""
        self.clock_s += seconds
        self._cluster_acts()
        before = self.ready
        observed = self.observe()
        decision = decide(observed, self.policy, self.state)
        self.on_demand_spec, self.spot_spec, self.state = decision.on_demand, decision.spot, decision.state
        # splitter deletes the pods of vanished nodes in the reconcile that saw them; their owners replace
        # them.
        self.spot = [pod for pod in self.spot if pod.node is None or pod.node in self.spot_nodes]
        self._controllers_act()
        self.history.append(decision)
        assert self.ready >= min(before, observed.floor), (
            "a write of ours took ready replicas below the floor"
        )
        self.most_ready = max(self.most_ready, self.ready)
        self.least_ready = min(self.least_ready, self.ready)
        return decision

    def run(self, seconds: int, until: Callable[[], bool] = lambda: False, every_s: int = STEP_S) -> int:
        """Let time pass, until something holds; return the seconds it took."""
        started_s = self.clock_s
        while self.clock_s - started_s < seconds and not until():
            self.step(every_s)
        return self.clock_s - started_s

    def _cluster_acts(self) -> None:
        for pod in self.on_demand:
            if (
                pod.node is None
                and sum(other.node is not None for other in self.on_demand) < self.on_demand_headroom
            ):
                self.born += 1
                pod.node = f"od-{self.born}"
                pod.ready_s = None
        taken = {pod.node for pod in self.spot}
        free = [node for node, health in self.spot_nodes.items() if health == "healthy" and node not in taken]
        for pod in self.spot:
            if pod.node is None and free:
                pod.node = free.pop()
                pod.created_s = self.clock_s  # starts now
        for pods, start_s in ((self.on_demand, self.on_demand_start_s), (self.spot, self.spot_start_s)):
            for pod in pods:
                if pod.node is not None and pod.ready_s is None and self.clock_s - pod.created_s >= start_s:
                    pod.ready_s = self.clock_s

    def _controllers_act(self) -> None:
        self.on_demand = self._scaled(self.on_demand, self.on_demand_spec)
        self.spot = self._scaled(self.spot, self.spot_spec)

    def _scaled(self, pods: list[Pod], spec: int) -> list[Pod]:
        """Keep what a ReplicaSet keeps: bound, ready, not doomed (deletion cost), old."""

        def worth(pod: Pod) -> tuple[bool, bool, bool, int]:
            doomed = self.spot_nodes.get(pod.node or "") == "doomed"
            return pod.node is not None, pod.ready_s is not None, not doomed, -pod.created_s

        kept = sorted(pods, key=worth, reverse=True)[:spec]
        return kept + [Pod(self.clock_s) for _ in range(spec - len(kept))]

    @property
    def specs(self) -> tuple[int, int]:
        """Return both twins' counts."""
        return self.on_demand_spec, self.spot_spec

"""One workload of 2 + 8 replicas at one moment: before a move, or in the middle of one."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from builders import NOW, observation, pod, rendered, replica_set, source, split, twin_of
from splitter.core.actions import Scale
from splitter.core.desired.scheduling import NodePresets, ReservationRules
from splitter.core.hot_nodes import HotNodes, LeavingReplica
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, Observation, SourceView
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.replica import Pool, Replica
from splitter.core.split_status import Memory, ReliefStatus, SplitStatus

DEFAULTS = Policy(on_demand_base=2)
BASE, SPOT = 2, 8
N = BASE + SPOT
ASKED = {"splitter.io/relief": "cpu=85"}
WHY = "hot-1 is hot: cpu at 96 %, 85 % are the most"
MEASURED = HotNodes(known=True, hot=("hot-1",), avoid=frozenset({"hot-1"}))
RULES = Rules(defaults=DEFAULTS, reservations=ReservationRules(NodePresets((), ()), "pause:1"))
WANTED = replace(MEASURED, leaves=LeavingReplica("uid-web-spot-0", WHY, stand="so"))


def placed(name: str, node: str, now: datetime, *, ready: bool = True, age_s: float = 3600) -> Replica:
    """Return a pod of a twin on a node."""
    since = now - timedelta(seconds=age_s)
    return pod(
        name,
        node=node,
        node_uid=f"uid-{node}",
        created=since,
        ready_since=since if ready else None,
        on_spot="spot" in name and not node.startswith("od-"),
    )


@dataclass
class Moment:
    """The twins of one workload and their pods."""

    pods: dict[Pool, list[Replica]]
    specs: dict[Pool, int]
    status: SplitStatus = field(default_factory=lambda: SplitStatus(state="Steady"))
    now: datetime = NOW
    hot: HotNodes | None = WANTED
    hints: list[Replica] = field(default_factory=list)
    source: SourceView = field(default_factory=lambda: source(N, annotations=ASKED))
    fit_spot: int = 0
    other_nodes: dict[Pool, frozenset[str]] = field(default_factory=lambda: dict.fromkeys(Pool, frozenset()))

    def observed(self) -> Observation:
        """Return what a reconcile sees."""
        twins = {}
        for pool, pods in self.pods.items():
            only = replica_set(f"web-{pool.value}-1", self.specs[pool], pods, attachment=Attachment.ATTACHED)
            strays = frozenset(one.uid for one in pods if one.node in self.other_nodes[pool])
            twins[pool] = replace(twin_of(pool, [only], updated=len(pods)), strays=strays)
        return observation(
            self.source,
            now=self.now,
            on_demand=twins[Pool.ON_DEMAND],
            spot=twins[Pool.SPOT],
            split=replace(split(), status=self.status),
            hot_nodes=self.hot,
            fit_spot=self.fit_spot,
            placeholders=tuple(self.hints),
        )

    def planned(self) -> Plan:
        """Return what a reconcile would do now."""
        observed = self.observed()
        return plan(observed, policy_in_force(observed, DEFAULTS), rendered(), RULES)

    def begin(self, lands_on: str = "cool-1", *, ready: bool = True) -> None:
        """Have the move begin that a reconcile wants: the twin is raised, and its new replica is there."""
        planned = self.planned()
        assert planned.relief is not None
        assert planned.rebalance is not None
        state = planned.state.value
        memory = Memory(rebalance=planned.rebalance)
        self.status = replace(self.status, state=state, relief=planned.relief, memory=memory)
        [raised] = planned.actions
        assert isinstance(raised, Scale)
        pool = Pool.SPOT if raised.name.endswith("spot") else Pool.ON_DEMAND
        self.specs[pool] = raised.replicas
        self.now += timedelta(seconds=10)
        self.pods[pool].append(placed(f"web-{pool.value}-new", lands_on, self.now, ready=ready, age_s=0))
        if self.hot is not None:
            self.hot = replace(self.hot, leaves=None)

    @property
    def relief(self) -> ReliefStatus:
        """What the Split is to say of relief."""
        relief = self.planned().relief
        assert relief is not None
        return relief


def moment(**fields: object) -> Moment:
    """Return a workload of 2 + 8 whose first spot replica stands on a hot node."""
    spot = [placed(f"web-spot-{n}", "hot-1" if n < 2 else f"node-{n}", NOW) for n in range(SPOT)]
    on_demand = [placed(f"web-on-demand-{n}", f"od-{n}", NOW) for n in range(BASE)]
    made = Moment({Pool.ON_DEMAND: on_demand, Pool.SPOT: spot}, {Pool.ON_DEMAND: BASE, Pool.SPOT: SPOT})
    return replace(made, **fields)  # type: ignore[arg-type]


def begun(lands_on: str = "cool-1", *, ready: bool = True, **fields: object) -> Moment:
    """Return a workload in the middle of a move."""
    one = moment(**fields)
    one.begin(lands_on, ready=ready)
    return one

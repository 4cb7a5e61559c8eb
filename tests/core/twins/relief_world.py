"""One workload of 2 + 8 replicas, its controllers and its scheduler, played: what a move does to it."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from builders import NOW, observation, pod, rendered, replica_set, source, split, twin_of
from splitter.core.actions import Action, CreatePlaceholder, DeletePlaceholder, Scale, SetDeletionCost
from splitter.core.desired.scheduling import NodePresets, ReservationRules
from splitter.core.hot_nodes import HotNodes, LeavingReplica
from splitter.core.labels_annotations import HELD_FOR_RELIEF
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, NodeStatus, Observation, PodView, Pool, SourceView
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.split_status import ReliefStatus, SplitStatus

DEFAULTS = Policy(on_demand_base=2)
BASE, SPOT = 2, 8
N = BASE + SPOT
ASKED = {"splitter.io/relief": "cpu=85"}
WHY = "hot-1 is hot: cpu at 96 %, 85 % are the most"
MEASURED = HotNodes(known=True, hot=("hot-1",), avoid=frozenset({"hot-1"}))
RULES = Rules(defaults=DEFAULTS, reservations=ReservationRules(NodePresets((), ()), "pause:1"))
WANTED = replace(MEASURED, leaves=LeavingReplica("uid-web-spot-0", WHY, stand="so"))


def placed(name: str, node: str, now: datetime, *, ready: bool = True, age_s: float = 3600) -> PodView:
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
class Cluster:
    """The twins of one workload, their pods, and controllers that are played; a tick is ten seconds."""

    pods: dict[Pool, list[PodView]]
    specs: dict[Pool, int]
    status: SplitStatus = field(default_factory=lambda: SplitStatus(state="Steady"))
    now: datetime = NOW
    hot: HotNodes | None = WANTED
    hints: list[PodView] = field(default_factory=list)
    binds_hints: bool = True
    source: SourceView = field(default_factory=lambda: source(N, annotations=ASKED))
    lands_on: str = "cool-1"
    becomes_ready: bool = True
    min_ready_s: float = 0.0
    fit_spot: int = 0
    other_nodes: dict[Pool, frozenset[str]] = field(default_factory=lambda: dict.fromkeys(Pool, frozenset()))
    written: list[Action] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    fewest: int = N
    most: int = N
    made: int = 0

    def observed(self) -> Observation:
        """Return what a reconcile sees."""
        twins = {}
        for pool, pods in self.pods.items():
            only = replica_set(f"web-{pool.value}-1", self.specs[pool], pods, attachment=Attachment.ATTACHED)
            since = self.now - timedelta(seconds=self.min_ready_s)
            ready = sum(one.ready_since is not None and one.ready_since <= since for one in pods)
            only = replace(only, available_replicas=ready)
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

    def reconcile(self, dies_at: int | None = None) -> Plan:
        """Do what a reconcile does; `dies_at`: splitter ends before that write, a status being the last."""
        planned = self.planned()
        begun = planned.relief.current if planned.relief is not None else None
        writes: list[partial[None]] = []
        if begun is not None and planned.relief is not None and self.status.relief.current is None:
            moves = (*planned.relief.moves[:-1], replace(begun, raised=False))
            before = replace(planned, relief=ReliefStatus(moves=moves))
            writes.append(partial(self._report, before))
        asks = any(isinstance(one, CreatePlaceholder) for one in planned.actions)
        if asks and self.hot is not None and self.hot.leaves is not None:
            self.hot = replace(self.hot, leaves=replace(self.hot.leaves, keep_off=()))  # as HotNodesWatch
        writes += [partial(self._write, one) for one in (*planned.actions, *planned.let_go)]
        writes.append(partial(self._report, planned))
        for write in writes[:dies_at]:
            write()
        self.said += [note.message for note in planned.notes]
        return planned

    def _report(self, planned: Plan) -> None:
        relief = planned.relief if planned.relief is not None else self.status.relief
        state = planned.rebalance or self.status.rebalance
        self.status = replace(self.status, state=planned.state.value, relief=relief, rebalance=state)

    def _write(self, action: Action) -> None:
        self.written.append(action)
        match action:
            case Scale():
                pool = Pool.SPOT if action.name.endswith("spot") else Pool.ON_DEMAND
                assert self.specs[pool] == action.was
                self.specs[pool] = action.replicas
            case SetDeletionCost():
                for pods in self.pods.values():
                    pods[:] = [
                        replace(one, deletion_cost=action.cost, cost_before=action.remember)
                        if one.uid == action.uid
                        else one
                        for one in pods
                    ]
            case CreatePlaceholder():
                name = f"web-placeholder-{action.node}"
                held_for = f"{HELD_FOR_RELIEF}{action.node}"
                made = pod(name, NodeStatus.UNBOUND, held_for=held_for, created=self.now)
                self.hints.append(made)
            case DeletePlaceholder():
                self.hints.remove(next(one for one in self.hints if one.uid == action.uid))
            case _:
                raise AssertionError(action)

    def play(self) -> None:
        """Let the controllers, the scheduler and the kubelets do their part."""
        self.now += timedelta(seconds=10)
        if self.binds_hints:
            self.hints[:] = [
                replace(one, node=one.held_for.removeprefix(HELD_FOR_RELIEF), node_status=NodeStatus.SOUND)
                for one in self.hints
            ]
        for pool, pods in self.pods.items():
            if self.becomes_ready:
                pods[:] = [
                    one if one.ready_since is not None else replace(one, ready_since=self.now) for one in pods
                ]
            while len(pods) > self.specs[pool]:
                pods.remove(min(pods, key=_goes_first))
            while len(pods) < self.specs[pool]:
                self.made += 1
                pods.append(
                    placed(f"web-{pool.value}-new-{self.made}", self.lands_on, self.now, ready=False, age_s=0)
                )
        self.fewest = min(self.fewest, sum(one.available for pods in self.pods.values() for one in pods))
        self.most = max(self.most, sum(len(pods) for pods in self.pods.values()))

    def run(self, ticks: int = 20) -> None:
        """Reconcile and play so many times; a look says once that a replica is to leave."""
        for _ in range(ticks):
            self.reconcile()
            if self.status.relief.current is not None and self.hot is not None:
                self.hot = replace(self.hot, leaves=None)
            self.play()

    @property
    def uids(self) -> set[str]:
        """The pods that there are."""
        return {one.uid for pods in self.pods.values() for one in pods}


def _goes_first(one: PodView) -> tuple[bool, int, float]:
    """Order pods as a ReplicaSet removes them: unready, then by cost, then the youngest."""
    created = one.created.timestamp() if one.created is not None else 0.0
    return one.ready_since is not None, int(one.deletion_cost or 0), -created


def cluster(**fields: object) -> Cluster:
    """Return a workload of 2 + 8 whose first spot replica stands on a hot node."""
    spot = [placed(f"web-spot-{n}", "hot-1" if n < 2 else f"node-{n}", NOW) for n in range(SPOT)]
    on_demand = [placed(f"web-on-demand-{n}", f"od-{n}", NOW) for n in range(BASE)]
    made = Cluster({Pool.ON_DEMAND: on_demand, Pool.SPOT: spot}, {Pool.ON_DEMAND: BASE, Pool.SPOT: SPOT})
    return replace(made, **fields)  # type: ignore[arg-type]


def calm(one: Cluster) -> bool:
    """Whether nothing is left of a move: the counts, no cost of ours, no move that goes on."""
    costs = [pod for pods in one.pods.values() for pod in pods if pod.cost_before is not None]
    counts = one.specs == {Pool.ON_DEMAND: BASE, Pool.SPOT: SPOT} and not one.hints
    return counts and not costs and one.status.relief.current is None and one.status.state == "Steady"


def begun(ticks: int = 1) -> Cluster:
    """Return a workload in the middle of a move."""
    one = cluster()
    one.run(ticks)
    assert one.specs[Pool.SPOT] == SPOT + 1
    return one

"""A replica leaves a hot node: one more, wait, one less; and what is more important comes first."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from builders import NOW, observation, pod, rendered, replica_set, source, split, twin_of
from splitter.core.actions import Action, Scale, SetDeletionCost
from splitter.core.hot_nodes import HotNodes, LeavingReplica
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, NodeStatus, Observation, PodView, Pool, SourceView, Trouble
from splitter.core.plan import Plan, Rules, unseen
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.split_status import ReliefStatus, SplitStatus

DEFAULTS = Policy(on_demand_base=2)
BASE, SPOT = 2, 8
N = BASE + SPOT
ASKED = {"splitter.io/relief": "cpu=85"}
WHY = "hot-1 is hot: cpu at 96 %, 85 % are the most"
MEASURED = HotNodes(known=True, hot=("hot-1",), avoid=frozenset({"hot-1"}))
WANTED = replace(MEASURED, leaves=LeavingReplica("uid-web-spot-0", WHY))


def placed(name: str, node: str, now: datetime, *, ready: bool = True, age_s: float = 3600) -> PodView:
    """Return a pod of a twin on a node."""
    since = now - timedelta(seconds=age_s)
    return pod(
        name,
        node=node,
        node_uid=f"uid-{node}",
        created=since,
        ready_since=since if ready else None,
        on_spot="spot" in name,
    )


@dataclass
class Cluster:
    """The twins of one workload, their pods, and controllers that are played; a tick is ten seconds."""

    pods: dict[Pool, list[PodView]]
    specs: dict[Pool, int]
    status: SplitStatus = field(default_factory=lambda: SplitStatus(state="Steady"))
    now: datetime = NOW
    hot: HotNodes | None = WANTED
    source: SourceView = field(default_factory=lambda: source(N, annotations=ASKED))
    lands_on: str = "cool-1"
    becomes_ready: bool = True
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
            twins[pool] = twin_of(pool, [only], updated=len(pods))
        return observation(
            self.source,
            now=self.now,
            on_demand=twins[Pool.ON_DEMAND],
            spot=twins[Pool.SPOT],
            split=replace(split(), status=self.status),
            hot_nodes=self.hot,
        )

    def planned(self) -> Plan:
        """Return what a reconcile would do now."""
        observed = self.observed()
        return plan(observed, policy_in_force(observed, DEFAULTS), rendered(), Rules(defaults=DEFAULTS))

    def reconcile(self, dies_at: int | None = None) -> Plan:
        """Do what a reconcile does; `dies_at`: splitter ends before that write, a status being the last."""
        planned = self.planned()
        begun = planned.relief.current if planned.relief is not None else None
        writes: list[partial[None]] = []
        if begun is not None and planned.relief is not None and self.status.relief.current is None:
            moves = (*planned.relief.moves[:-1], replace(begun, raised=False))
            before = replace(planned, relief=ReliefStatus(moves=moves))
            writes.append(partial(self._report, before))
        writes += [partial(self._write, one) for one in planned.actions]
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
            case _:
                raise AssertionError(action)

    def play(self) -> None:
        """Let the controllers, the scheduler and the kubelets do their part."""
        self.now += timedelta(seconds=10)
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
    counts = one.specs == {Pool.ON_DEMAND: BASE, Pool.SPOT: SPOT}
    return counts and not costs and one.status.relief.current is None and one.status.state == "Steady"


class TestMove:
    def test_make_before_break(self) -> None:
        """One more is made, the one on the hot node goes, and the rest stays as it was."""
        one = cluster()
        one.run()
        assert calm(one)
        assert "uid-web-spot-0" not in one.uids
        assert len(one.uids) == N
        assert (one.fewest, one.most) == (N, N + 1)
        (move,) = one.status.relief.moves
        assert (move.to_node_uid, move.taken_back) == ("uid-cool-1", False)
        assert one.said == [
            f"scale spot 8 -> 9 (+1): web-spot-0 is to leave, {WHY}",
            "scale spot 9 -> 8 (-1): web-spot-0 goes, the new replica is ready elsewhere",
        ]

    def test_of_on_demand_too(self) -> None:
        """The extra replica on on-demand is no cover: no loss is charged for it."""
        one = cluster(hot=replace(WANTED, leaves=LeavingReplica("uid-web-on-demand-0", WHY)))
        one.run()
        assert calm(one)
        assert "uid-web-on-demand-0" not in one.uids
        assert one.status.rebalance.last_loss is None

    def test_off_by_default(self) -> None:
        """Who asks for nothing is not moved, and nothing is written about it."""
        one = cluster(source=source(N))
        one.run()
        assert one.written == []
        assert "relief" not in one.status.to_json()

    @pytest.mark.parametrize("dies_at", range(4))
    @pytest.mark.parametrize("step", range(5))
    def test_survives_a_crash_at_every_write(self, step: int, dies_at: int) -> None:
        """Whatever was written last, the workload comes to rest with its counts, and misses no replica."""
        one = cluster()
        for _ in range(step):
            one.reconcile()
            one.play()
        one.reconcile(dies_at)
        # Three looks later the next leader knows which nodes are hot.
        one.hot = HotNodes()
        one.play()
        one.run(3)
        one.hot = MEASURED
        one.run(20)
        assert calm(one)
        assert len(one.uids) == N
        assert one.fewest == N
        assert one.most <= N + 1
        assert one.status.rebalance.last_loss is None

    def test_a_new_replica_on_a_hot_node_is_taken_back(self) -> None:
        """It is said, the old one stays, and the workload is remembered to rest."""
        one = cluster(lands_on="hot-1")
        one.run()
        assert calm(one)
        assert "uid-web-spot-0" in one.uids
        assert one.status.relief.moves[-1].taken_back
        assert one.said[-1].endswith("goes, the new replica stands on a hot node, too")
        assert one.fewest == N

    def test_one_that_does_not_become_ready_is_taken_back(self) -> None:
        """After the time that it may take, and nothing else is touched."""
        one = cluster(becomes_ready=False)
        one.run(70)
        assert calm(one)
        assert "uid-web-spot-0" in one.uids
        assert one.said[-1].endswith("the new replica did not become ready")

    def test_of_a_raise_without_an_answer_nothing_is_taken_for_a_loss(self) -> None:
        """It may come to pass a minute later: until then the move goes on, and the extra one is no cover."""
        one = cluster(hot=replace(WANTED, leaves=LeavingReplica("uid-web-on-demand-0", WHY)))
        one.reconcile(dies_at=1)  # the status is written, and of the raise nothing is heard
        one.hot = MEASURED
        one.reconcile()
        assert one.status.relief.current is not None
        one.specs[Pool.ON_DEMAND] += 1  # now it comes
        one.play()
        one.run()
        assert calm(one)
        assert one.status.rebalance.last_loss is None
        assert (one.fewest, one.most) == (N, N + 1)

    def test_no_node_is_bought_for_one(self) -> None:
        """A new replica that the scheduler finds no node for is taken back at once."""
        one = cluster(becomes_ready=False)
        one.reconcile()
        one.play()
        pods = one.pods[Pool.SPOT]
        pods[-1] = replace(
            pods[-1], node_status=NodeStatus.UNBOUND, node=None, node_uid=None, unschedulable_since=one.now
        )
        one.run(4)
        assert one.specs[Pool.SPOT] == SPOT
        assert one.said[-1].endswith("the new replica did not become ready")

    def test_users_own_cost_is_put_back(self) -> None:
        """A deletion cost of the user's is remembered while ours is set."""
        one = cluster(lands_on="hot-1")
        pods = one.pods[Pool.SPOT]
        pods[0] = replace(pods[0], deletion_cost="5")
        one.run()
        kept = next(pod for pod in one.pods[Pool.SPOT] if pod.uid == "uid-web-spot-0")
        assert (kept.deletion_cost, kept.cost_before) == ("5", None)

    def test_not_beside_a_lower_cost_of_the_users(self) -> None:
        """A ReplicaSet would take that pod in its place: the move does not begin."""
        one = cluster()
        one.pods[Pool.SPOT][5] = replace(one.pods[Pool.SPOT][5], deletion_cost="-5000")
        one.run()
        assert one.written == []


def begun(ticks: int = 1) -> Cluster:
    """Return a workload in the middle of a move."""
    one = cluster()
    one.run(ticks)
    assert one.specs[Pool.SPOT] == SPOT + 1
    return one


class TestWhatIsMoreImportant:
    """A move stops for it, in that very reconcile."""

    def test_a_loss(self) -> None:
        """A doomed node is answered as without a move; the extra replica counts as what it is."""
        one = begun(2)
        pods = one.pods[Pool.SPOT]
        pods[:] = [
            replace(pod, node_status=NodeStatus.DOOMED) if pod.node == "hot-1" else pod for pod in pods
        ]
        planned = one.reconcile()
        raises = [
            write for write in planned.actions if isinstance(write, Scale) and write.replicas > write.was
        ]
        assert [(write.name, write.replicas) for write in raises] == [("web-on-demand", BASE + 1)]
        assert planned.relief is not None
        assert planned.relief.current is None

    @pytest.mark.parametrize("ticks", [1, 2, 3])
    def test_relief_turned_off(self, ticks: int) -> None:
        """Turned off in the middle, the extra replica goes and nothing is left."""
        one = begun(1)
        for _ in range(ticks - 1):
            one.reconcile()
        one.source = source(N)
        one.run()
        assert one.specs == {Pool.ON_DEMAND: BASE, Pool.SPOT: SPOT}
        assert one.status.relief.current is None
        assert one.fewest == N
        assert all(pod.cost_before is None for pods in one.pods.values() for pod in pods)

    def test_a_surge_that_is_taken_away(self) -> None:
        """There is no room for one more any more: it goes as surplus."""
        one = begun()
        one.becomes_ready = False
        one.source = replace(one.source, max_surge=0)
        one.run(3)
        assert one.specs == {Pool.ON_DEMAND: BASE, Pool.SPOT: SPOT}
        assert one.status.relief.current is None

    def test_a_move_of_the_future_is_none(self) -> None:
        """Whoever writes one into a status keeps no extra replica by it."""
        one = begun()
        (move,) = one.status.relief.moves
        later = replace(move, at=NOW + timedelta(days=400))
        one.status = replace(one.status, relief=ReliefStatus(moves=(later,)))
        one.run(5)
        assert calm(one)

    def test_scaling(self) -> None:
        """Somebody scales: the move ends and the new N is divided at once."""
        one = begun()
        one.source = source(N + 4, annotations=ASKED)
        one.run()
        assert sum(one.specs.values()) == N + 4
        assert one.status.relief.moves[-1].taken_back

    def test_metrics_that_go(self) -> None:
        """Without real use nobody knows whether the new node is hot: the move is broken off."""
        one = begun(2)
        one.hot = HotNodes(paused="this cluster does not serve metrics.k8s.io; install metrics-server")
        one.run()
        assert one.specs[Pool.SPOT] == SPOT
        assert any("it stays, and its workload rests" in said for said in one.said)
        assert one.status.relief.reason == Reason.RELIEF_PAUSED.value

    def test_a_quota_that_is_full(self) -> None:
        """A new replica that the API server refuses is not waited for."""
        one = begun()
        pods = one.pods[Pool.SPOT]
        one.pods[Pool.SPOT] = [pod for pod in pods if "new" not in pod.name]
        observed = one.observed()
        assert observed.spot is not None
        (only,) = observed.spot.replica_sets
        refused = replace(only, refusal=Trouble(Reason.QUOTA_EXCEEDED, "no room"))
        spot = replace(observed.spot, replica_sets=(refused,))
        observed = replace(observed, spot=spot)
        made = plan(observed, policy_in_force(observed, DEFAULTS), rendered(), Rules(defaults=DEFAULTS))
        assert made.relief is not None
        assert made.relief.current is None

    def test_freeze(self) -> None:
        """Frozen in the middle, all counts stay; afterwards the extra one goes."""
        one = begun(2)
        one.source = source(N, annotations={**ASKED, "splitter.io/freeze": "true"})
        one.run(5)
        assert one.specs[Pool.SPOT] == SPOT + 1
        one.source = source(N, annotations=ASKED)
        one.run()
        assert one.specs[Pool.SPOT] == SPOT

    def test_a_new_template(self) -> None:
        """A rollout that is due ends the move first."""
        one = begun(2)
        observed = one.observed()
        made = plan(observed, policy_in_force(observed, DEFAULTS), rendered("v2"), Rules(defaults=DEFAULTS))
        assert made.relief is not None
        assert made.relief.current is None

    def test_a_view_that_is_old(self) -> None:
        """While a watch fails, no move begins and none goes on."""
        one = cluster()
        held = unseen(one.planned(), one.observed(), "pods cannot be followed")
        assert held.actions == ()
        assert held.relief is None

    @pytest.mark.parametrize(
        "fields",
        [
            {"source": source(N, annotations=ASKED, max_surge=0)},
            {"source": source(N, annotations={**ASKED, "splitter.io/freeze": "true"})},
            {"source": source(N, annotations={**ASKED, "splitter.io/dry-run": "true"})},
            {"source": source(N + 2, annotations=ASKED)},
            {"source": source(N, annotations={**ASKED, "splitter.io/spot-max": "8"})},
            {"hot": None},
            {"hot": MEASURED},
        ],
    )
    def test_nothing_begins(self, fields: dict[str, object]) -> None:
        """Without room for one more, while counts are held or changed, after a loss, or without a cause."""
        planned = cluster(**fields).planned()
        assert planned.relief is None or planned.relief.current is None
        assert planned.state is not State.MOVING or planned.verdict.reason is not Reason.RELIEVING


def test_what_is_said_fits_into_the_split() -> None:
    """Ten hot nodes with the longest names, and a long reason: the status can be written all the same."""
    names = tuple(f"ip-{number}-{'x' * 240}.internal" for number in range(10))
    one = cluster(hot=replace(MEASURED, hot=names, left="y" * 2000))
    one.reconcile()
    relief = one.status.relief
    assert len(relief.message) == 1024
    assert ReliefStatus.from_json(relief.to_json()) == relief


class TestSaid:
    @pytest.mark.parametrize(
        ("hot", "reason", "message"),
        [
            (
                HotNodes(paused="this cluster does not serve metrics.k8s.io; install metrics-server"),
                Reason.RELIEF_PAUSED,
                "relief pauses: this cluster does not serve metrics.k8s.io; install metrics-server",
            ),
            (
                None,
                Reason.RELIEF_PAUSED,
                "relief pauses: the settings give no source of real use (relief_source)",
            ),
            (HotNodes(), Reason.NODES_COOL, "real use is being measured; nothing is known yet"),
            (
                replace(MEASURED, left="hot-1: no replica on it may move now"),
                Reason.NODES_HOT,
                "its replicas stand on hot nodes (hot-1); hot-1: no replica on it may move now",
            ),
            (
                replace(MEASURED, hot=()),
                Reason.NODES_COOL,
                "none of its replicas stands on a hot node (cpu=85)",
            ),
        ],
    )
    def test_how_it_stands(self, hot: HotNodes | None, reason: Reason, message: str) -> None:
        """The Split says what is hot, or what is missing."""
        planned = cluster(hot=hot).planned()
        assert planned.relief is not None
        assert (planned.relief.reason, planned.relief.message) == (reason.value, message)
        assert planned.state is State.STEADY
        warned = [note.reason for note in planned.advice if note.reason is not Reason.UNGUARDED]
        assert warned == ([Reason.RELIEF_PAUSED] if reason is Reason.RELIEF_PAUSED else [])

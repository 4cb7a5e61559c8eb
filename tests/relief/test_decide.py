"""Which replicas leave their hot nodes: few, by rank, where there is room, and never back and forth."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relief.scene import BEGIN, MINUTE, WHOLE, Scene, a_minute_later, piled
from splitter.core.hot_nodes import Aim
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.relief.model import Amounts, Resource, Sample, Thresholds, Tuning
from splitter.core.replica import Pool
from splitter.relief.decide import Relief, relieve
from splitter.relief.loads import Cluster, NodeLoad, PastMove, Qos, ReplicaLoad, WorkloadLoad

CPU = Thresholds({Resource.CPU: 85.0, Resource.MEMORY: 90.0})


def looked_at(
    cluster: Cluster,
    change: Callable[[Cluster], Cluster] = lambda same: same,
    past: tuple[PastMove, ...] = (),
    tuning: Tuning = Tuning(),  # noqa: B008 - frozen
) -> Relief:
    """Look three times, a minute apart, at the same use."""
    relief = Relief()
    for _ in range(3):
        cluster = a_minute_later(cluster)
        relief = relieve(change(cluster), relief, past, tuning)
    return relief


def every_workload(change: Callable[[WorkloadLoad], WorkloadLoad]) -> Callable[[Cluster], Cluster]:
    """Change all workloads of a cluster."""
    return lambda cluster: replace(cluster, workloads=tuple(map(change, cluster.workloads)))


def every_replica(change: Callable[[ReplicaLoad], ReplicaLoad]) -> Callable[[Cluster], Cluster]:
    """Change all replicas of a cluster."""
    return every_workload(lambda one: replace(one, replicas=tuple(map(change, one.replicas))))


def every_node(change: Callable[[NodeLoad], NodeLoad]) -> Callable[[Cluster], Cluster]:
    """Change all nodes of a cluster."""
    return lambda cluster: replace(cluster, nodes=tuple(map(change, cluster.nodes)))


class TestTheScene:
    """12 nodes, 8 split workloads of 20, 40 % of all load on 2 nodes."""

    def test_is_as_it_says(self) -> None:
        """The two hot nodes are over 95 %, and 40 % of all use is theirs."""
        scene = piled(CPU)
        uses = [scene.use_of(node) for node in scene.nodes]
        assert min(uses[:2]) > 95
        assert sum(uses[:2]) / sum(uses) == pytest.approx(0.4, abs=0.005)

    def test_a_node_once_hot_is_relieved_down_to_the_margin(self) -> None:
        """At 78 % it would not be hot by itself: it goes on, since it gave a replica lately."""
        scene = piled(CPU)
        for pod in scene.pods.values():
            pod.uses -= 75 if pod.workload.startswith("big") and pod.node == "node-00" else 0
        assert scene.use_of("node-00") < 85
        cluster, gave = scene.cluster(), PastMove(BEGIN - MINUTE, Key(DEPLOYMENT, "shop", "x"), "uid-node-00")
        ended = replace(gave, ended=BEGIN)
        assert looked_at(cluster).hot == ("node-01",)
        assert looked_at(cluster, past=(ended,)).hot == ("node-01", "node-00")
        assert looked_at(cluster, past=(replace(ended, taken_back=True),)).hot == ("node-01",)
        for pod in scene.pods.values():
            pod.uses = 100 if pod.node == "node-01" else pod.uses
        gives = looked_at(scene.cluster(), past=(ended,))
        assert gives.moves[0].why == "node-00 is hot: cpu at 78 %, on its way down to 65 %"


class TestACandidate:
    """Who leaves."""

    def test_is_of_the_lowest_priority_then_of_the_lowest_qos(self) -> None:
        """Whatever the others use."""
        cluster = piled(CPU).cluster()

        def ranked(one: ReplicaLoad) -> ReplicaLoad:
            last = one.pod.startswith("big-1")
            return replace(one, priority=0 if last else 5, qos=Qos.GUARANTEED if last else Qos.BEST_EFFORT)

        relief = looked_at(cluster, every_replica(ranked))
        assert relief.moves[0].workload == Key(DEPLOYMENT, "shop", "big-1")

    def test_is_the_smallest_that_is_enough(self) -> None:
        """A node that one replica brings below the target gives that one, and no bigger one."""
        cluster = Cluster(
            BEGIN,
            (
                NodeLoad("a", "uid-a", Pool.SPOT, Amounts(1000, 1000), Amounts(), 9),
                NodeLoad("b", "uid-b", Pool.SPOT, Amounts(1000, 1000), Amounts(), 9),
                NodeLoad("c", "uid-c", Pool.SPOT, Amounts(1000, 1000), Amounts(), 9),
            ),
            tuple(
                WorkloadLoad(
                    Key(DEPLOYMENT, "shop", name),
                    CPU,
                    (
                        ReplicaLoad(
                            name,
                            name,
                            "a",
                            Pool.SPOT,
                            Amounts(1, 1),
                            BEGIN - timedelta(days=1),
                            may_run_on=frozenset("abc"),
                        ),
                    ),
                )
                for name in ("large", "right", "small")
            ),
            {
                "a": Sample(BEGIN, Amounts(900, 10)),
                "b": Sample(BEGIN, Amounts(10, 10)),
                "c": Sample(BEGIN, Amounts(10, 10)),
            },
            {
                "large": Sample(BEGIN, Amounts(400, 1)),
                "right": Sample(BEGIN, Amounts(300, 1)),
                "small": Sample(BEGIN, Amounts(100, 1)),
            },
        )
        [move] = looked_at(cluster).moves
        assert move.pod == "right"
        assert move.why == "a is hot: cpu at 90 %, 85 % are the most"

    @pytest.mark.parametrize(
        "change",
        [
            every_workload(lambda one: replace(one, thresholds=None)),
            every_workload(lambda one: replace(one, busy="a roll goes on")),
            every_workload(lambda one: replace(one, restarts=True)),
            every_replica(lambda one: replace(one, ready_since=None)),
            every_replica(lambda one: replace(one, ready_since=BEGIN - timedelta(minutes=20))),
            every_replica(lambda one: replace(one, may_run_on=frozenset({one.node}))),
            every_node(lambda one: replace(one, sound=False)),
            every_node(lambda one: replace(one, pool=Pool.ON_DEMAND)),
            every_node(lambda one: replace(one, free_pods=0)),
            every_node(lambda one: replace(one, requested=one.allocatable)),
            lambda cluster: replace(cluster, alarm="node-07 is going"),
            lambda cluster: replace(cluster, pod_samples={}),
        ],
        ids=[
            "not asked for",
            "busy",
            "a restart",
            "not ready",
            "young",
            "no other node is admitted",
            "every node may go",
            "all nodes are of the other pool",
            "no pod more",
            "no room by requests",
            "a node is going",
            "nobody knows what pods use",
        ],
    )
    def test_stays(self, change: Callable[[Cluster], Cluster]) -> None:
        """Nothing moves, where the same would without this."""
        cluster = piled(CPU).cluster()
        assert looked_at(cluster).moves
        assert not looked_at(cluster, change).moves

    def test_that_would_make_another_node_hot_stays(self) -> None:
        """Room by requests is not enough: all others are at 61 %, and are to stay below 65 %."""
        scene = piled(CPU)
        for pod in scene.pods.values():
            if pod.node not in {"node-00", "node-01"}:
                pod.uses = 490
        relief = looked_at(scene.cluster())
        assert relief.hot == ("node-00", "node-01")
        assert relief.left == (
            "node-00: no other node of the pool has room, by requests and by use",
            "node-01: no other node of the pool has room, by requests and by use",
        )

    def test_for_which_nobody_has_room_keeps_no_smaller_one_back(self) -> None:
        """By its priority the large one would go first; a second like it is as little asked for room."""
        scene = Scene({"large": 1, "like-it": 1, "small": 1}, ["node-00", "node-01"], CPU)
        scene.add("large", "node-00", 4000)
        scene.add("like-it", "node-00", 4000)
        scene.add("small", "node-00", 3000)
        scene.add("other", "node-01", 2000)
        first = every_replica(lambda one: replace(one, priority=9 if one.pod.startswith("small") else 0))
        [move] = looked_at(scene.cluster(), first).moves
        assert move.workload == Key(DEPLOYMENT, "shop", "small")

    def test_whose_node_is_hot_by_others_stays(self) -> None:
        """Moves that would not bring the node below its threshold only cost."""
        scene = piled(CPU)
        for pod in scene.of("app-0"):
            pod.uses = 85
        others = every_workload(lambda one: replace(one, thresholds=CPU if one.key.name == "app-0" else None))
        relief = looked_at(scene.cluster(), others)
        assert not relief.moves
        assert relief.left == (
            "node-00: what may move there would not bring it below its threshold",
            "node-01: no replica on it may move now",
        )

    def test_goes_to_no_node_that_is_hot_for_somebody_else(self) -> None:
        """Another workload's lower threshold counts there, too."""
        cluster = piled(CPU).cluster()
        low = Thresholds({Resource.MEMORY: 50.0})
        cool = {one.name for one in cluster.nodes[2:]}
        full = {
            name: replace(one, used=replace(one.used, memory=WHOLE.memory * 0.6 if name in cool else 0.0))
            for name, one in cluster.node_samples.items()
        }
        cluster = replace(
            cluster,
            node_samples=full,
            pod_samples={
                uid: replace(one, used=replace(one.used, memory=0.0))
                for uid, one in cluster.pod_samples.items()
            },
        )
        somebody = every_workload(
            lambda one: replace(one, thresholds=low if one.key.name == "app-5" else CPU)
        )
        assert looked_at(cluster).moves
        assert not looked_at(cluster, somebody).moves

    def test_says_why_a_pause_is(self) -> None:
        """An alarm, with what is hot meanwhile."""
        relief = looked_at(piled(CPU).cluster(), lambda one: replace(one, alarm="node-07 is going"))
        assert (relief.paused, relief.hot) == ("node-07 is going", ("node-00", "node-01"))


class TestBounds:
    """Few moves at a time, and none back."""

    def past(self, count: int, minutes: int) -> tuple[PastMove, ...]:
        """Return moves of other workloads and nodes so many minutes before the looks."""
        at = BEGIN - timedelta(minutes=minutes)
        return tuple(PastMove(at, Key(DEPLOYMENT, "shop", f"x-{n}"), f"uid-x{n}", at) for n in range(count))

    def test_of_a_cycle_count_what_was_moved_lately(self) -> None:
        """Six within ten minutes; those before are forgotten."""
        cluster = piled(CPU).cluster()
        assert len(looked_at(cluster, past=self.past(5, 1)).moves) == 1
        assert looked_at(cluster, past=self.past(6, 1)).left == (
            "node-00: 6 moves in 600 s are the most",
            "node-01: 6 moves in 600 s are the most",
        )
        assert len(looked_at(cluster, past=self.past(6, 8)).moves) == 2

    def test_count_no_replica_that_stood_in_the_other_pool(self) -> None:
        """Nobody has asked for those moves, and they take no place of others; nor do they rest a workload."""
        cluster = piled(CPU).cluster()
        big = Key(DEPLOYMENT, "shop", "big-0")
        back = PastMove(BEGIN - 20 * MINUTE, big, "uid-x", BEGIN - 15 * MINUTE, taken_back=True, aim=Aim.POOL)
        pool = tuple(replace(one, aim=Aim.POOL) for one in self.past(6, 1))
        assert looked_at(cluster, past=(*pool, back)).moves == looked_at(cluster).moves

    def test_of_a_workload_let_one_replica_move_at_a_time(self) -> None:
        """One that goes on holds the next; one that was taken back rests the workload."""
        cluster = piled(CPU).cluster()
        big = Key(DEPLOYMENT, "shop", "big-0")
        goes_on = PastMove(BEGIN, big, "uid-x")
        back = PastMove(BEGIN - 20 * MINUTE, big, "uid-x", BEGIN - 15 * MINUTE, taken_back=True)
        for one in (goes_on, back):
            assert big not in {move.workload for move in looked_at(cluster, past=(one,)).moves}

    def test_of_a_workload_let_a_tenth_of_its_replicas_move_in_a_cycle(self) -> None:
        """Two of twenty; the third waits until the first is ten minutes old."""
        cluster = piled(CPU).cluster()
        big = Key(DEPLOYMENT, "shop", "big-0")
        one = PastMove(BEGIN - MINUTE, big, "uid-x", BEGIN)
        old = PastMove(BEGIN - 8 * MINUTE, big, "uid-x", BEGIN - 7 * MINUTE)
        for past, moves in (((one,), True), ((one, one), False), ((one, old), True)):
            assert (big in {move.workload for move in looked_at(cluster, past=past).moves}) is moves

    def test_let_no_small_replica_go_in_place_of_a_large_one_that_waits(self) -> None:
        """Else two are moved where one is enough, as soon as its workload may move the next."""
        scene = Scene({"heavy": 8, "light": 8}, ["node-00", "node-01", "node-02"], CPU)
        for _ in range(8):
            scene.add("heavy", "node-00", 720)
            scene.add("light", "node-00", 240)
        heavy = Key(DEPLOYMENT, "shop", "heavy")
        assert [move.workload for move in looked_at(scene.cluster()).moves] == [heavy]
        moved = PastMove(BEGIN - MINUTE, heavy, "uid-x", BEGIN)
        held = looked_at(scene.cluster(), past=(moved,))
        assert (held.moves, held.left) == (
            (),
            ("node-00: larger replicas on it go first, one of a workload at a time",),
        )
        relieving = every_workload(lambda one: replace(one, busy="Relieving" if one.key == heavy else ""))
        assert looked_at(scene.cluster(), relieving).moves == ()
        rolling = every_workload(lambda one: replace(one, busy="RollingOut" if one.key == heavy else ""))
        assert len(looked_at(scene.cluster(), rolling).moves) == 1

    def test_let_a_node_receive_one_replica_at_a_time(self) -> None:
        """Two workloads that may run on one cool node only: one of them moves."""
        cluster = piled(CPU).cluster()
        one = every_replica(lambda replica: replace(replica, may_run_on=frozenset({"node-05"})))
        assert len(looked_at(cluster).moves) == 2
        assert len(looked_at(cluster, one).moves) == 1

    @pytest.mark.parametrize("ended", [None, BEGIN + MINUTE])
    def test_judge_a_node_that_gave_by_what_is_measured_afterwards(self, ended: datetime | None) -> None:
        """While a move goes on, and until three samples are younger: it is not hot, and to be avoided."""
        gave = PastMove(BEGIN, Key(DEPLOYMENT, "shop", "x"), "uid-node-00", ended)
        relief = looked_at(piled(CPU).cluster(), past=(gave,))
        assert relief.hot == ("node-01",)
        assert set(relief.avoid) == {"node-00", "node-01"}

    def test_keep_a_node_that_gave_or_received_from_being_a_target(self) -> None:
        """Half an hour, and a cycle; the ten cool nodes are all of them here."""
        cluster = piled(CPU).cluster()
        ago = BEGIN - 6 * MINUTE
        gave = tuple(
            PastMove(ago, Key(DEPLOYMENT, "shop", f"x-{n}"), f"uid-node-{n:02}", ago) for n in range(2, 12)
        )
        took = tuple(replace(one, from_node="uid-x", to_node=one.from_node) for one in gave)
        wide = Tuning(moves_per_cycle=100)
        for past, later in ((gave, 23 * MINUTE), (took, 3 * MINUTE)):
            assert not looked_at(cluster, past=past, tuning=wide).moves
            rested = tuple(replace(one, at=one.at - later, ended=ago - later) for one in past)
            assert looked_at(cluster, past=rested, tuning=wide).moves


class TestProperties:
    """Whatever the load."""

    @settings(max_examples=60, deadline=None)
    @given(
        cpu=st.floats() | st.just(8000.0),
        memory=st.floats() | st.just(0.0),
        age_s=st.integers(-600, 600),
        count=st.integers(7, 12),
    )
    def test_bad_samples_move_nothing(self, cpu: float, memory: float, age_s: int, count: int) -> None:
        """Any number of any age is answered; where it cannot be true of most nodes, nothing moves."""

        def lies(cluster: Cluster) -> Cluster:
            at = cluster.now - timedelta(seconds=age_s)
            wrong = dict.fromkeys(
                [one.name for one in cluster.nodes][:count], Sample(at, Amounts(cpu, memory))
            )
            return replace(cluster, node_samples={**cluster.node_samples, **wrong})

        relief = looked_at(piled(CPU).cluster(), lies)
        possible = 0 <= cpu <= 80_000 and 0 <= memory <= 10 * 32 * 1024.0**3 and -30 <= age_s <= 180
        assert possible or (relief.paused and not relief.moves)

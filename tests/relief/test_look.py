"""One look at the cluster: whose turn it may be, where there is room, and what was in vain before."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from splitter.core.hot_nodes import Aim
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.reasons import Reason
from splitter.core.relief.model import Amounts, Resource, Sample, Thresholds, Tuning
from splitter.core.replica import Pool
from splitter.relief import look as look_module
from splitter.relief.loads import Cluster, NodeLoad, PastMove, ReplicaLoad, WorkloadLoad
from splitter.relief.look import Candidate, Look

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WEB = Key(DEPLOYMENT, "shop", "web")
HALF = Thresholds({Resource.CPU: 85.0})
NODES = ("a", "b", "c")


def ago(seconds: float) -> datetime:
    """Return an instant before noon."""
    return NOON - timedelta(seconds=seconds)


def node(name: str, **fields: Any) -> NodeLoad:  # noqa: ANN401 - any field
    """Return a node of 1000m."""
    made = NodeLoad(name, f"uid-{name}", Pool.SPOT, Amounts(1000, 1000), Amounts(100, 100), 10)
    return replace(made, **fields)


def replica(number: int, on: str = "a", **fields: Any) -> ReplicaLoad:  # noqa: ANN401 - any field
    """Return a replica that asks for 100m and may stand anywhere."""
    made = ReplicaLoad(f"web-{number}", f"uid-{number}", on, Pool.SPOT, Amounts(100, 100), ago(9_000))
    return replace(made, **{"may_run_on": frozenset(NODES), **fields})


def workload(*replicas: ReplicaLoad, **fields: Any) -> WorkloadLoad:  # noqa: ANN401 - any field
    """Return a workload that asks for relief."""
    return replace(WorkloadLoad(WEB, HALF, replicas), **fields)


def looked(
    *workloads: WorkloadLoad,
    past: tuple[PastMove, ...] = (),
    nodes: tuple[NodeLoad, ...] = tuple(map(node, NODES)),
    used: float = 100,
    hot: tuple[str, ...] = (),
) -> Look:
    """Return a look in which each node uses so much, and each replica 100m."""
    samples = {one.name: Sample(NOON, Amounts(used, 100)) for one in nodes}
    pods = {one.uid: Sample(NOON, Amounts(100, 10)) for each in workloads for one in each.replicas}
    cluster = Cluster(NOON, nodes, workloads, samples, pods)
    history = {one.uid: (samples[one.name],) for one in nodes}
    result = Look(cluster, history, past, Tuning(), frozenset())
    look_module.count_moves(result)
    look_module.count(result, hot)
    return result


def candidate(of: WorkloadLoad, **fields: Any) -> Candidate:  # noqa: ANN401 - any field
    """Return the first replica of a workload as one that is to leave."""
    return replace(Candidate(of, HALF, of.replicas[0], Amounts(100, 10), (), waits=False), **fields)


def moved(seconds: float, **fields: Any) -> PastMove:  # noqa: ANN401 - any field
    """Return a move off node a that was begun so long ago and ended at once."""
    made = PastMove(ago(seconds), WEB, "uid-a", ended=ago(seconds), to_node="uid-b")
    return replace(made, **fields)


class TestWhoseTurn:
    @pytest.mark.parametrize(
        ("fields", "past", "listed", "waits"),
        [
            ({}, (), True, False),
            ({"thresholds": None}, (), False, False),
            ({"busy": Reason.SPOT_LOST.value}, (), False, False),
            ({"busy": Reason.RELIEVING.value}, (), True, True),
            ({"restarts": True}, (), False, False),
            ({}, (moved(30),), True, True),  # its share of this cycle is one
            ({}, (moved(700),), True, False),
            ({}, (moved(700, ended=None),), True, True),
            ({}, (moved(700, taken_back=True),), False, False),  # it rests
            ({}, (moved(1_900, taken_back=True),), True, False),
            ({}, (moved(30, aim=Aim.POOL),), True, False),  # of another kind
        ],
    )
    def test_by_what_it_does_and_did(
        self, fields: dict[str, Any], past: tuple[PastMove, ...], *, listed: bool, waits: bool
    ) -> None:
        """Who waits keeps its place: no smaller one goes instead."""
        look = looked(workload(replica(0), **fields), past=past)
        assert bool(look.by_node) is listed
        assert (WEB in look.waiting) is waits

    def test_of_many_replicas_a_tenth(self) -> None:
        """And no more than that counts against the others."""
        many = workload(*(replica(number) for number in range(20)))
        past = (moved(30), moved(40), moved(50))
        look = looked(many, past=past[:1])
        assert (WEB in look.waiting, look.lately) == (False, 1)
        look = looked(many, past=past)
        assert (WEB in look.waiting, look.lately) == (True, 2)

    @pytest.mark.parametrize(
        ("ready_since", "waits", "may"),
        [
            (None, False, False),
            (ago(1_799), False, False),
            (ago(1_800), False, True),
            (ago(9_000), True, False),
        ],
    )
    def test_a_young_replica_stays(self, ready_since: datetime | None, *, waits: bool, may: bool) -> None:
        """It has just come; or its workload waits."""
        own = workload(replica(0, ready_since=ready_since))
        assert looked(own).may_move(candidate(own, waits=waits)) is may

    @pytest.mark.parametrize(("hot", "most"), [(True, 3), (False, 6)])
    def test_half_is_kept_for_hot_nodes(self, *, hot: bool, most: int) -> None:
        """While one is."""
        assert look_module.most_moves(looked(), hot=hot) == most


class TestRoom:
    @pytest.mark.parametrize(
        ("nodes", "used", "target"),
        [
            ((node("a"), node("b")), 100, "a"),  # of alike ones the first
            ((node("a", requested=Amounts(901, 0)), node("b")), 100, "b"),
            ((node("a", free_pods=0), node("b")), 100, "b"),
            ((node("a", pool=Pool.ON_DEMAND), node("b")), 100, "b"),
            ((node("a", sound=False), node("b")), 100, "b"),
            ((node("x"), node("b")), 100, "b"),  # where its own rules do not let it
            ((node("a"), node("b")), 560, None),  # 660m are above 85 % less the margin
            ((node("a"), node("b")), 550, "a"),
            ((), 100, None),
        ],
    )
    def test_by_requests_and_by_use(
        self, nodes: tuple[NodeLoad, ...], used: float, target: str | None
    ) -> None:
        """Of its own pool, and no hot one is made of it."""
        own = workload(replica(0))
        look = looked(own, nodes=nodes, used=used)
        to = look_module.target_for(look, candidate(own))
        assert (to.name if to is not None else None) == target
        assert look_module.has_room(look, candidate(own)) is (target is not None)

    def test_a_node_rests_from_a_move(self) -> None:
        """The one that gave for half an hour, the one that received for ten minutes; each has room."""
        own = workload(replica(0))
        for past, targets in (
            ((moved(500),), {"c"}),
            ((moved(700),), {"b", "c"}),
            ((moved(1_900),), {"a", "b", "c"}),
        ):
            look = looked(own, past=past)
            assert look.targets == targets
            assert look.roomy == {"a", "b", "c"}
        assert looked(own, hot=("a", "b")).roomy == {"c"}

    def test_what_is_taken_is_gone(self) -> None:
        """One replica a node, and what it uses counts from then on; for larger ones there is none either."""
        own = workload(replica(0), replica(1))
        look = looked(own, nodes=(node("a"), node("b")))
        for number, to in enumerate(("b", "a")):
            one = candidate(own, replica=own.replicas[number])
            target = next(each for each in look.cluster.nodes if each.name == to)
            look_module.take(look, look.cluster.nodes[0], one, target, "hot")
        assert look_module.target_for(look, candidate(own)) is None
        assert (look.used["b"], look.requested["b"]) == (Amounts(200, 110), Amounts(200, 200))
        larger = replace(own.replicas[0], requests=Amounts(200, 200))
        assert look_module.target_for(look, candidate(own, replica=larger)) is None
        assert [one.pod for one in look.moves] == ["web-0", "web-1"]

    def test_ends_with_the_cycle(self) -> None:
        """Six moves of all together, those begun lately among them."""
        look = looked(workload(replica(0)), past=(moved(30),))
        assert not look.is_full
        look.lately = 6
        assert look.is_full


class TestVain:
    def test_while_all_stands_so(self) -> None:
        """For a day: until a replica or a node stands otherwise."""
        own = workload(replica(0), replica(1, "b"))
        stand = look_module.stand_of(looked(own), Aim.COOL, candidate(own))
        tried = moved(5_000, stand=stand, taken_back=True)
        assert look_module.is_vain(looked(own, past=(tried,)), Aim.COOL, candidate(own))
        assert not look_module.is_vain(looked(own, past=(tried,)), Aim.SPOT, candidate(own))
        old = replace(tried, at=ago(86_401))
        assert not look_module.is_vain(looked(own, past=(old,)), Aim.COOL, candidate(own))
        elsewhere = workload(replica(0), replica(1, "c"))
        assert not look_module.is_vain(looked(elsewhere, past=(tried,)), Aim.COOL, candidate(elsewhere))
        more = (*map(node, NODES), node("d", sound=False))
        assert look_module.is_vain(looked(own, past=(tried,), nodes=more), Aim.COOL, candidate(own))

    def test_another_node_or_one_that_is_cool_now_makes_a_difference(self) -> None:
        """Where the replica may run there."""
        own = workload(replica(0, may_run_on=frozenset("abcd")))
        looks = [looked(own), looked(own, nodes=(*map(node, NODES), node("d"))), looked(own)]
        looks[2].avoid = ("b",)
        assert len({look_module.stand_of(one, Aim.COOL, candidate(own)) for one in looks}) == 3

    def test_is_known_after_a_restart(self) -> None:
        """The same facts are told the same way."""
        assert look_module.shortened("cool", ["a"]) == look_module.shortened("cool", ["a"])
        assert look_module.shortened("cool", ["a"]) != look_module.shortened("cool", ["b"])
        assert len(look_module.shortened("x")) == 16


class TestMeasured:
    def test_those_that_are_ready_and_known(self) -> None:
        """Of a node of which the use is known."""
        own = workload(replica(0), replica(1, ready_since=None), replica(2, "b"))
        look = looked(own)
        assert [one.replica.uid for one in look_module.measured_on(look, look.cluster.nodes[0])] == ["uid-0"]
        del look.used["a"]
        assert list(look_module.measured_on(look, look.cluster.nodes[0])) == []

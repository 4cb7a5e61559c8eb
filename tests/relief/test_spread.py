"""Replicas that crowd a node or zone against their own constraints are spread, and then nothing moves."""

from dataclasses import replace

import pytest

from relief.scene import HOST, ZONE, Change, Scene, a_minute_later, every_workload, looked_at
from splitter.core.hot_nodes import Aim
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.nodes.fit import SpreadConstraint
from splitter.core.relief.model import Resource, Thresholds
from splitter.relief.decide import Relief, relieve
from splitter.relief.loads import Domains, PastMove, WorkloadLoad
from splitter.relief.spread import Crowding, _Spread

CPU = Thresholds({Resource.CPU: 85.0})
NODES = [f"node-{n}" for n in range(5)]
WEB = Key(DEPLOYMENT, "shop", "web")
BY_HOST = SpreadConstraint(HOST, 1, strict=True, selector=())
BY_ZONE = SpreadConstraint(ZONE, 1, strict=True, selector=())


def crowd(*held: int, workloads: int = 1, spreads: tuple[SpreadConstraint, ...] = (BY_HOST,)) -> Scene:
    """Return workloads with so many replicas on each node; half of the nodes are in zone a."""
    names = ["web", *(f"app-{n}" for n in range(1, workloads))]
    nodes = NODES[: len(held)]
    scene = Scene(dict.fromkeys(names, sum(held)), nodes, CPU)
    scene.spreads = spreads
    scene.zones = {node: "a" if place < len(held) // 2 else "b" for place, node in enumerate(nodes)}
    for name in names:
        for node, count in zip(nodes, held, strict=True):
            for _ in range(count):
                scene.add(name, node, 100)
    return scene


def every_spread(**fields: object) -> Change:
    """Change the constraints of all workloads."""

    def changed(one: WorkloadLoad) -> WorkloadLoad:
        spreads = (replace(spread, **fields) for spread in one.spreads)  # type: ignore[arg-type]
        return replace(one, spreads=tuple(spreads))

    return lambda cluster: replace(cluster, workloads=tuple(map(changed, cluster.workloads)))


class TestTheScene:
    def test_why_is_said(self) -> None:
        """The move says how its constraint is violated, and where the new replica may not stay."""
        (move,) = looked_at(crowd(4, 3, 1, 0)).moves
        assert (move.workload, move.aim, move.from_node) == (WEB, Aim.SPREAD, "uid-node-0")
        assert move.why == "node-0 holds 4 of its replicas and node-3 0 (kubernetes.io/hostname, maxSkew 1)"
        assert move.crowded == {"node-0", "node-1", "node-2"}

    def test_where_it_is_only_wished_more_nodes_will_do(self) -> None:
        """ScheduleAnyway: each node where it is better than now."""
        (move,) = looked_at(crowd(4, 3, 1, 0, spreads=(replace(BY_HOST, strict=False),))).moves
        assert move.crowded == {"node-0", "node-1"}


class TestSoak:
    def test_a_whole_cycle(self) -> None:
        """Ten minutes, and not before."""
        scene = crowd(3, 0)
        assert looked_at(scene, 10).moves == ()
        assert looked_at(scene, 11).moves != ()
        assert looked_at(scene, 10).badly_placed == {
            WEB: "node-0 holds 3 of its replicas and node-1 0 (kubernetes.io/hostname, maxSkew 1):"
            " it is to be so for 600 s before one moves"
        }

    def test_begins_anew_when_it_was_kept(self) -> None:
        """A node that goes again was none to move to."""
        scene = crowd(3, 0)
        [scene.minute() for _ in range(9)]
        scene.nodes = NODES[:1]
        assert scene.minute().badly_placed == {}
        scene.nodes = NODES[:2]
        assert all(not look.moves for look in [scene.minute() for _ in range(10)])
        assert scene.minute().moves != ()

    def test_goes_on_while_a_sample_does_not_come(self) -> None:
        """A node that is not measured now and then is crowded all the same, and nobody is told otherwise."""
        relief, cluster = Relief(), crowd(3, 0, 0).cluster()
        said, moves = set[str](), list[int]()
        for number in range(12):
            cluster = a_minute_later(cluster)
            missing = "node-0" if number % 5 == 4 else ""
            samples = {name: one for name, one in cluster.node_samples.items() if name != missing}
            relief = relieve(replace(cluster, node_samples=samples), relief, ())
            moves.append(len(relief.moves))
            said |= {relief.badly_placed.get(WEB, "")} if number < 10 else set()
        assert moves == [0] * 10 + [1, 1]
        assert len(said) == 1

    def test_begins_anew_after_an_alarm(self) -> None:
        """While nodes go, nothing is spread."""
        scene = crowd(3, 0)
        [scene.minute() for _ in range(9)]
        answer = relieve(replace(scene.cluster(), alarm="node-9 goes"), scene.last, ())
        assert (answer.moves, answer.crowding) == ((), Crowding())


class TestStays:
    """Where it stands as it asks, could stand no better, or may not be moved."""

    @pytest.mark.parametrize(
        "fields",
        [{"thresholds": None}, {"busy": "SpotLost"}, {"busy": "RollingOut"}, {"restarts": True}],
    )
    def test_of_a_workload_that_may_not_move(self, fields: dict[str, object]) -> None:
        """Nobody has asked, or something more important goes on."""
        answer = looked_at(crowd(3, 0), 30, every_workload(**fields))
        assert (answer.moves, dict(answer.badly_placed)) == ((), {})

    @pytest.mark.parametrize("held", [(2, 1), (1, 1), (0, 1), (5, 4, 4)])
    def test_within_the_skew(self, held: tuple[int, ...]) -> None:
        """One more than elsewhere is what it asks for."""
        answer = looked_at(crowd(*held), 30)
        assert (answer.moves, dict(answer.badly_placed)) == ((), {})

    @pytest.mark.parametrize(
        "fields", [{"counted": frozenset()}, {"pods": frozenset()}, {"domains": Domains()}]
    )
    def test_where_the_constraint_counts_nobody(self, fields: dict[str, object]) -> None:
        """Its selector is of other pods, it is of another twin, or no node bears its key."""
        assert looked_at(crowd(3, 0), 30, every_spread(**fields)).moves == ()

    def test_where_only_a_closed_node_is_empty(self) -> None:
        """The scheduler counts a tainted node, so that the new replica would wait for ever."""
        scene = crowd(3, 3, 0)
        scene.closed = frozenset({"node-2"})
        answer = looked_at(scene, 30)
        assert answer.moves == ()
        assert answer.badly_placed[WEB].endswith(": nothing that may move now could stand better")

    def test_where_the_domains_are_too_few(self) -> None:
        """minDomains: a third node is missing, and no move makes one."""
        scene = crowd(3, 3, spreads=(replace(BY_HOST, min_domains=3),))
        answer = looked_at(scene, 30)
        assert answer.moves == ()
        assert "(kubernetes.io/hostname, maxSkew 1, minDomains 3)" in answer.badly_placed[WEB]

    def test_where_the_empty_node_is_of_the_other_pool(self) -> None:
        """A replica of a spot twin is spread on spot."""
        scene = crowd(3, 0)
        scene.on_demand = frozenset({"node-1"})
        assert looked_at(scene, 30).moves == ()

    def test_where_the_empty_node_is_full_by_use(self) -> None:
        """Nobody is brought above what a node may use."""
        scene = crowd(3, 0)
        scene.pods["hog"] = replace(scene.pods["web-0"], uid="hog", workload="hog", node="node-1", uses=6000)
        assert looked_at(scene, 30).moves == ()

    def test_young_ones(self) -> None:
        """The half-hour of a young replica counts here, too."""
        scene = crowd(3, 0)
        for one in scene.pods.values():
            one.ready_since = scene.now
        assert looked_at(scene, 29).moves == ()
        assert looked_at(scene, 30).moves != ()


class TestTakenBack:
    def test_after_a_restart(self) -> None:
        """It stands in the Split: who comes then tries it again as little."""
        relief, cluster = Relief(), crowd(3, 0).cluster()
        for _ in range(11):
            cluster = a_minute_later(cluster)
            relief = relieve(cluster, relief, ())
        (move,) = relief.moves
        now = cluster.now
        undone = PastMove(now, WEB, "uid-node-0", now, taken_back=True, aim=Aim.SPREAD, stand=move.stand)
        for stand, begins in ((move.stand, False), ("", True)):
            relief, moves = Relief(), list[int]()
            for _ in range(60):
                cluster = a_minute_later(cluster)
                relief = relieve(cluster, relief, (replace(undone, stand=stand),))
                moves.append(len(relief.moves))
            assert any(moves) is begins

    @pytest.mark.parametrize("alarm", ["", "node-9 goes"])
    def test_not_after_a_moment_in_which_it_was_kept(self, alarm: str) -> None:
        """Nor after an alarm: where nodes come and go it would go on for ever."""
        scene = crowd(3, 0)
        (move,) = looked_at(scene).moves
        undone = PastMove(
            scene.now, WEB, "uid-node-0", scene.now, taken_back=True, aim=Aim.SPREAD, stand=move.stand
        )
        relief, cluster = Relief(), scene.cluster()
        for number in range(60):
            cluster = a_minute_later(cluster)
            kept = every_spread(domains=Domains()) if number == 20 and not alarm else (lambda same: same)
            seen = replace(kept(cluster), alarm=alarm if number == 20 else "")
            relief = relieve(seen, relief, (undone,))
            assert not relief.moves
            assert number != 20 or relief.badly_placed == {}


class TestComesToSpot:
    @pytest.mark.parametrize("strict", [True, False])
    def test_not_where_the_scheduler_would_not_let_it_in(self, *, strict: bool) -> None:
        """It would come to on-demand again, and be taken back, each half an hour for ever."""
        scene = crowd(2, 0, 1, 0, spreads=(replace(BY_ZONE, strict=strict),))
        scene.on_demand, scene.soak_s = frozenset({"node-2", "node-3"}), 900.0
        assert bool(looked_at(scene, 30).moves) is not strict


class TestManyWorkloads:
    def test_moves_that_never_begin_keep_nobody_back(self) -> None:
        """A twin that may hold no more, say: it is chosen, and its reconcile does nothing."""
        scene = crowd(4, 4, 0, 0, 0, workloads=8)
        scene.nodes += [f"late-{n}" for n in range(5)]
        relief, cluster, chosen = Relief(), scene.cluster(), set[Key]()
        for _ in range(14):
            cluster = a_minute_later(cluster)
            relief = relieve(cluster, relief, ())
            chosen |= {one.workload for one in relief.moves}
        assert len(chosen) == 8

    def test_moves_of_others_are_no_news(self) -> None:
        """What nothing can help is said in the same words while six others move, and no Split is written."""
        scene = crowd(3, 3, 0)
        scene.closed = frozenset({"node-2"})
        last, cluster = looked_at(scene), scene.cluster()
        for _ in range(13):
            cluster = a_minute_later(cluster)
        others = [Key(DEPLOYMENT, "shop", f"other-{n}") for n in range(6)]
        past = tuple(PastMove(cluster.now, key, "uid-node-9", cluster.now) for key in others)
        for moved in (past, (), past, past):
            answer = relieve(cluster, last, moved)
            assert answer.badly_placed == last.badly_placed
            last, cluster = answer, a_minute_later(cluster)

    def test_replicas_that_stand_alike_are_asked_for_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hundreds of replicas that nothing helps are not held against hundreds of nodes each."""
        scene = crowd(3, 3, 3, 3, 0)
        scene.closed = frozenset({"node-4"})
        asked, admits = list[str](), _Spread.admits

        def counted(self: _Spread, from_node: str, to_node: str) -> bool:
            asked.append(to_node)
            return admits(self, from_node, to_node)

        monkeypatch.setattr(_Spread, "admits", counted)
        assert looked_at(scene).moves == ()
        assert len(asked) == len(set(asked)) * 2, "two looks since it has been so for long enough"


class TestHotNodesFirst:
    def test_half_of_the_moves_are_kept_for_them(self) -> None:
        """Three of six, while a node is hot that nothing can leave."""
        scene = crowd(4, 4, 0, 0, 0, workloads=8)
        assert len(looked_at(scene, 30).moves) == 3, "a node receives one"
        scene.nodes += [f"late-{n}" for n in range(5)]
        assert len(looked_at(scene, 30).moves) == 6
        scene.pods["hog"] = replace(scene.pods["web-0"], uid="hog", workload="hog", node="late-0", uses=7900)
        answer = looked_at(scene, 30)
        assert (answer.hot, len(answer.moves)) == (("late-0",), 3)

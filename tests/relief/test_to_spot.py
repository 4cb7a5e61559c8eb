"""Replicas that prefer spot and stand on on-demand: they come when spot has had room for their soak."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relief.scene import ASKED, BEGIN, MINUTE, Scene, every_workload, looked_at
from splitter.core.hot_nodes import Aim
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.relief.model import Amounts, Resource, Sample, Thresholds
from splitter.core.replica import Pool
from splitter.relief.decide import Relief, relieve
from splitter.relief.loads import Cluster, PastMove

CPU = Thresholds({Resource.CPU: 85.0})
SOAK_S = 600.0
SPOT = [f"spot-{n}" for n in range(4)]
ON_DEMAND = ["od-0", "od-1"]
WEB = Key(DEPLOYMENT, "shop", "web")


def strayed(workloads: int = 1, replicas: int = 8, uses: float = 100) -> Scene:
    """Return workloads whose replicas stand half on spot, which was full, and half on on-demand."""
    names = ["web", *(f"app-{n}" for n in range(1, workloads))]
    scene = Scene(dict.fromkeys(names, replicas), [*SPOT, *ON_DEMAND], CPU)
    scene.on_demand, scene.soak_s = frozenset(ON_DEMAND), SOAK_S
    for name in names:
        for place in range(replicas):
            nodes = SPOT if place % 2 else ON_DEMAND
            scene.add(name, nodes[place // 2 % len(nodes)], uses)
    return scene


def stray(scene: Scene) -> int:
    """Return how many pods stand on on-demand."""
    return sum(pod.node in scene.on_demand for pod in scene.pods.values())


class TestTheScene:
    def test_why_is_said(self) -> None:
        """The move says it of the node it leaves, and that it is to end on spot."""
        (move,) = looked_at(strayed()).moves
        assert (move.workload, move.aim, move.from_node) == (WEB, Aim.SPOT, "uid-od-0")
        assert move.why == "od-0 is on-demand, and spot has had room for 600 s"


class TestSoak:
    def test_begins_with_the_room(self) -> None:
        """Ten minutes, as the workload says, and not before."""
        scene = strayed()
        assert looked_at(scene, 10).moves == ()
        assert looked_at(scene, 11).moves != ()
        assert looked_at(scene, 10).badly_placed == {
            WEB: "4 of its replicas prefer spot and stand on on-demand:"
            " spot has room, and is to have it for 600 s first"
        }

    def test_begins_anew_when_the_room_was_gone(self) -> None:
        """Room that comes and goes is no reason to move."""
        scene = strayed()
        [scene.minute() for _ in range(9)]
        scene.slots = dict.fromkeys(SPOT, 1)
        assert scene.minute().badly_placed == {
            WEB: "4 of its replicas prefer spot and stand on on-demand:"
            " no spot node has room, by requests and by use"
        }
        scene.slots = {}
        assert all(not look.moves for look in [scene.minute() for _ in range(10)])
        assert scene.minute().moves != ()

    def test_begins_anew_after_an_alarm(self) -> None:
        """A node that goes under some workload tells that spot is not calm."""
        scene = strayed()
        [scene.minute() for _ in range(9)]
        answer = relieve(replace(scene.cluster(), alarm="spot-9 goes"), scene.last, ())
        assert (answer.moves, dict(answer.spot_room)) == ((), {})

    @pytest.mark.parametrize("where", SPOT)
    def test_one_node_with_room_is_enough(self, where: str) -> None:
        """Whichever it is."""
        scene = strayed()
        scene.slots = {name: 1 for name in SPOT if name != where}
        assert looked_at(scene).moves != ()


class TestStays:
    """Where it is no better elsewhere, or may not be moved."""

    @pytest.mark.parametrize(
        "fields",
        [
            {"spot_soak_s": None},
            {"thresholds": None},
            {"busy": "SpotLost"},
            {"busy": "RollingOut"},
            {"restarts": True},
        ],
    )
    def test_of_a_workload_that_may_not_move(self, fields: dict[str, object]) -> None:
        """Spot is required there, nobody has asked, or something more important goes on."""
        answer = looked_at(strayed(), 30, every_workload(**fields))
        assert (answer.moves, dict(answer.badly_placed)) == ((), {})

    def test_where_spot_is_full_by_use(self) -> None:
        """A node that would be above the margin with it has no room, whatever is requested."""
        scene = strayed()
        for name in SPOT:
            scene.pods[f"hog-{name}"] = replace(
                scene.pods["web-0"], uid=f"hog-{name}", workload="hog", node=name, uses=5200
            )
        answer = looked_at(scene, 30)
        assert (answer.moves, answer.hot) == ((), ())
        assert "no spot node has room" in answer.badly_placed[WEB]

    def test_where_its_rules_admit_no_spot_node(self) -> None:
        """Its own node selector, taints: the scheduler would not take it there."""

        def only_on_demand(cluster: Cluster) -> Cluster:
            (one,) = cluster.workloads
            admitted = frozenset(ON_DEMAND)
            replicas = tuple(replace(pod, may_run_on=admitted) for pod in one.replicas)
            return replace(cluster, workloads=(replace(one, replicas=replicas),))

        assert looked_at(strayed(), 30, only_on_demand).moves == ()

    def test_where_no_spot_node_is_healthy(self) -> None:
        """A cordon or a notice: it takes nothing."""

        def unsound(cluster: Cluster) -> Cluster:
            nodes = (replace(one, sound=one.pool is Pool.ON_DEMAND) for one in cluster.nodes)
            return replace(cluster, nodes=tuple(nodes))

        assert looked_at(strayed(), 30, unsound).moves == ()

    def test_while_it_is_young(self) -> None:
        """For half an hour since it was ready: what was moved is not moved again at once."""
        scene = strayed()
        for pod in scene.pods.values():
            pod.ready_since = BEGIN - 10 * MINUTE
        assert looked_at(scene, 19).moves == ()
        assert looked_at(scene, 20).moves != ()

    def test_where_its_node_is_not_measured(self) -> None:
        """It works by what the source of real use says, and no other way."""

        def unmeasured(cluster: Cluster) -> Cluster:
            samples = {name: one for name, one in cluster.node_samples.items() if name not in ON_DEMAND}
            return replace(cluster, node_samples=samples)

        assert looked_at(strayed(), 30, unmeasured).moves == ()


class TestHotNodes:
    """They come first."""

    def test_one_of_a_hot_node_moves_first(self) -> None:
        """Of the same workload nothing else moves with it."""
        scene = strayed()
        hot = [pod for pod in scene.pods.values() if pod.node == "spot-0"]
        hot[0].uses = 4000
        scene.pods["hog"] = replace(hot[0], uid="hog", workload="hog", uses=3900)
        (move,) = looked_at(scene, 30).moves
        assert (move.from_node, move.aim) == ("uid-spot-0", Aim.COOL)

    def test_half_of_the_moves_are_kept_for_them(self) -> None:
        """A node that is hot, and that nothing can leave now, may give a replica next."""
        scene = strayed(workloads=8)
        assert len(looked_at(scene, 30).moves) == 4, "a spot node receives one"
        scene.pods["hog"] = replace(scene.pods["web-0"], uid="hog", workload="hog", node="od-1", uses=7900)
        answer = looked_at(scene, 30)
        assert answer.hot == ("od-1",)
        assert sum(move.aim is Aim.SPOT for move in answer.moves) == 3

    def test_a_node_that_gave_one_to_spot_is_not_relieved_below_its_threshold(self) -> None:
        """It was never hot: at 78 % it is not to go down to 65 %."""
        scene = strayed()
        scene.pods["hog"] = replace(scene.pods["web-0"], uid="hog", workload="hog", node="od-0", uses=6000)
        gave = PastMove(BEGIN - 5 * MINUTE, WEB, "uid-od-0", BEGIN - MINUTE, "uid-spot-0")
        answers = {}
        for aim in (Aim.COOL, Aim.SPOT, Aim.SPREAD):
            relief = Relief()
            for number in range(1, 4):
                scene.now = BEGIN + number * MINUTE
                past = (replace(gave, aim=aim),)
                relief = relieve(scene.cluster(), relief, past)
            answers[aim] = relief.hot
        assert answers == {Aim.COOL: ("od-0",), Aim.SPOT: (), Aim.SPREAD: ()}


@settings(max_examples=40, deadline=None)
@given(
    used=st.lists(st.floats(0, 8000), min_size=6, max_size=6),
    slots=st.lists(st.integers(0, 12), min_size=6, max_size=6),
    soak_s=st.floats(0, 2000),
)
def test_bounds_hold_whatever_is_seen(used: list[float], slots: list[int], soak_s: float) -> None:
    """No more than six, one of a workload, none without a node that has room; only of on-demand nodes."""
    scene = strayed(workloads=8)
    scene.soak_s = soak_s
    scene.slots = dict(zip(scene.nodes, slots, strict=True))

    def measured(cluster: Cluster) -> Cluster:
        samples = {
            node: Sample(cluster.now, Amounts(cpu, ASKED.memory))
            for node, cpu in zip(scene.nodes, used, strict=True)
        }
        return replace(cluster, node_samples=samples)

    answer = looked_at(scene, 5, measured)
    to_spot = [move for move in answer.moves if move.aim is Aim.SPOT]
    free = sum(slots[n] > sum(pod.node == SPOT[n] for pod in scene.pods.values()) for n in range(4))
    assert len(answer.moves) <= 6
    assert len({move.workload for move in answer.moves}) == len(answer.moves)
    assert all(move.from_node in {"uid-od-0", "uid-od-1"} for move in to_spot)
    assert len(to_spot) <= free
    assert not to_spot or timedelta(seconds=soak_s) <= 4 * MINUTE

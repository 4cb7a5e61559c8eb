"""Replicas that prefer spot and stand on on-demand: they come when spot has had room for their soak."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relief.world import ASKED, BEGIN, MINUTE, World, every_workload, looked_at, played
from splitter.core.hot_nodes import Aim
from splitter.core.model import Pool
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.relief.model import Amounts, Resource, Sample, Thresholds
from splitter.relief.decide import Relief, relieve
from splitter.relief.loads import Cluster, PastMove

CPU = Thresholds({Resource.CPU: 85.0})
SOAK_S = 600.0
SPOT = [f"spot-{n}" for n in range(4)]
ON_DEMAND = ["od-0", "od-1"]
WEB = Key(DEPLOYMENT, "shop", "web")


def strayed(workloads: int = 1, replicas: int = 8, uses: float = 100) -> World:
    """Return workloads whose replicas stand half on spot, which was full, and half on on-demand."""
    names = ["web", *(f"app-{n}" for n in range(1, workloads))]
    world = World(dict.fromkeys(names, replicas), [*SPOT, *ON_DEMAND], CPU)
    world.on_demand, world.soak_s = frozenset(ON_DEMAND), SOAK_S
    for name in names:
        for place in range(replicas):
            nodes = SPOT if place % 2 else ON_DEMAND
            world.add(name, nodes[place // 2 % len(nodes)], uses)
    return world


def stray(world: World) -> int:
    """Return how many pods stand on on-demand."""
    return sum(pod.node in world.on_demand for pod in world.pods.values())


class TestTheScene:
    def test_all_come_to_spot_and_stay(self) -> None:
        """One after the other, none missing; in the hours after, nothing moves."""
        world = strayed()
        played(world, 120)
        assert (stray(world), world.made) == (0, 4)
        assert world.least_available == 0
        played(world, 240)
        assert world.made == 4

    def test_six_of_all_in_ten_minutes(self) -> None:
        """And one of a workload at a time, whatever else waits."""
        world = strayed(workloads=10)
        looks = played(world, 180)
        begun = [number for number, look in enumerate(looks) for _ in look.moves]
        assert stray(world) == 0
        assert max(sum(at <= one < at + 10 for one in begun) for at in begun) <= 6
        assert world.least_available == 0

    def test_why_is_said(self) -> None:
        """The move says it of the node it leaves, and that it is to end on spot."""
        (move,) = looked_at(strayed()).moves
        assert (move.workload, move.aim, move.from_node) == (WEB, Aim.SPOT, "uid-od-0")
        assert move.why == "od-0 is on-demand, and spot has had room for 600 s"


class TestSoak:
    def test_begins_with_the_room(self) -> None:
        """Ten minutes, as the workload says, and not before."""
        world = strayed()
        assert looked_at(world, 10).moves == ()
        assert looked_at(world, 11).moves != ()
        assert looked_at(world, 10).badly_placed == {
            WEB: "4 of its replicas prefer spot and stand on on-demand:"
            " spot has room, and is to have it for 600 s first"
        }

    def test_begins_anew_when_the_room_was_gone(self) -> None:
        """Room that comes and goes is no reason to move."""
        world = strayed()
        played(world, 9)
        world.slots = dict.fromkeys(SPOT, 1)
        assert world.minute().badly_placed == {
            WEB: "4 of its replicas prefer spot and stand on on-demand:"
            " no spot node has room, by requests and by use"
        }
        world.slots = {}
        assert all(not look.moves for look in played(world, 10))
        assert world.minute().moves != ()

    def test_begins_anew_after_an_alarm(self) -> None:
        """A node that goes under some workload tells that spot is not calm."""
        world = strayed()
        played(world, 9)
        answer = relieve(replace(world.cluster(), alarm="spot-9 goes"), world.last, ())
        assert (answer.moves, dict(answer.spot_room)) == ((), {})

    @pytest.mark.parametrize("where", ["spot-0", "spot-1", "spot-2", "spot-3"])
    def test_one_node_with_room_is_enough(self, where: str) -> None:
        """That it rests from a move does not end its soak: it has room all the same."""
        world = strayed()
        world.slots = {name: 1 for name in SPOT if name != where}
        played(world, 60)
        assert stray(world) <= 1
        assert {pod.node for pod in world.pods.values() if "new" in pod.uid} == {where}


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
        world = strayed()
        for name in SPOT:
            world.pods[f"hog-{name}"] = replace(
                world.pods["web-0"], uid=f"hog-{name}", workload="hog", node=name, uses=5200
            )
        answer = looked_at(world, 30)
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
        world = strayed()
        for pod in world.pods.values():
            pod.ready_since = BEGIN - 10 * MINUTE
        assert looked_at(world, 19).moves == ()
        assert looked_at(world, 20).moves != ()

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
        world = strayed()
        hot = [pod for pod in world.pods.values() if pod.node == "spot-0"]
        hot[0].uses = 4000
        world.pods["hog"] = replace(hot[0], uid="hog", workload="hog", uses=3900)
        (move,) = looked_at(world, 30).moves
        assert (move.from_node, move.aim) == ("uid-spot-0", Aim.COOL)

    def test_half_of_the_moves_are_kept_for_them(self) -> None:
        """A node that is hot, and that nothing can leave now, may give a replica next."""
        world = strayed(workloads=8)
        assert len(looked_at(world, 30).moves) == 4, "a spot node receives one"
        world.pods["hog"] = replace(world.pods["web-0"], uid="hog", workload="hog", node="od-1", uses=7900)
        answer = looked_at(world, 30)
        assert answer.hot == ("od-1",)
        assert sum(move.aim is Aim.SPOT for move in answer.moves) == 3

    def test_a_node_that_gave_one_to_spot_is_not_relieved_below_its_threshold(self) -> None:
        """It was never hot: at 78 % it is not to go down to 65 %."""
        world = strayed()
        world.pods["hog"] = replace(world.pods["web-0"], uid="hog", workload="hog", node="od-0", uses=6000)
        gave = PastMove(BEGIN - 5 * MINUTE, WEB, "uid-od-0", BEGIN - MINUTE, "uid-spot-0")
        answers = {}
        for aim in (Aim.COOL, Aim.SPOT):
            relief = Relief()
            for number in range(1, 4):
                world.now = BEGIN + number * MINUTE
                past = (replace(gave, aim=aim),)
                relief = relieve(world.cluster(), relief, past)
            answers[aim] = relief.hot
        assert answers == {Aim.COOL: ("od-0",), Aim.SPOT: ()}


class TestTakenBack:
    def test_one_that_lands_on_on_demand_again(self) -> None:
        """Nothing is missing, and where the scheduler insists it is tried once a day."""
        world = strayed()
        world.lands_on = "od-1"
        looks = played(world, 23 * 60)
        assert (stray(world), world.made) == (4, 1)
        assert all(one.taken_back for one in world.past)
        assert world.least_available == 0
        assert looks[-1].badly_placed == {
            WEB: "4 of its replicas prefer spot and stand on on-demand:"
            " a move has not helped, and is tried again when they stand otherwise"
        }
        played(world, 90)
        assert world.made == 2

    @pytest.mark.parametrize("what", ["a node", "a replica"])
    def test_it_is_tried_again_when_they_stand_otherwise(self, what: str) -> None:
        """Another spot node, or a replica that has gone elsewhere."""
        world = strayed()
        world.lands_on = "od-1"
        played(world, 120)
        world.lands_on = ""
        if what == "a node":
            world.nodes.append("spot-9")
        else:
            next(pod for pod in world.pods.values() if pod.node == "spot-0").node = "spot-1"
        played(world, 120)
        assert stray(world) == 0


@settings(max_examples=40, deadline=None)
@given(
    used=st.lists(st.floats(0, 8000), min_size=6, max_size=6),
    slots=st.lists(st.integers(0, 12), min_size=6, max_size=6),
    soak_s=st.floats(0, 2000),
)
def test_bounds_hold_whatever_is_seen(used: list[float], slots: list[int], soak_s: float) -> None:
    """No more than six, one of a workload, none without a node that has room; only of on-demand nodes."""
    world = strayed(workloads=8)
    world.soak_s = soak_s
    world.slots = dict(zip(world.nodes, slots, strict=True))

    def measured(cluster: Cluster) -> Cluster:
        samples = {
            node: Sample(cluster.now, Amounts(cpu, ASKED.memory))
            for node, cpu in zip(world.nodes, used, strict=True)
        }
        return replace(cluster, node_samples=samples)

    answer = looked_at(world, 5, measured)
    to_spot = [move for move in answer.moves if move.aim is Aim.SPOT]
    free = sum(slots[n] > sum(pod.node == SPOT[n] for pod in world.pods.values()) for n in range(4))
    assert len(answer.moves) <= 6
    assert len({move.workload for move in answer.moves}) == len(answer.moves)
    assert all(move.from_node in {"uid-od-0", "uid-od-1"} for move in to_spot)
    assert len(to_spot) <= free
    assert not to_spot or timedelta(seconds=soak_s) <= 4 * MINUTE

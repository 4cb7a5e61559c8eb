"""The cluster in small: pods take time to start, go with their nodes, and the right ones are scaled away."""

from datetime import UTC, datetime, timedelta

import pytest

from splitter.plugin.simulate.world import TERMINATION_S, World

START = datetime(2026, 1, 5, tzinfo=UTC)


def world(*spot: str, slots: int = 1, visible: bool = True, notice_s: float = 120.0) -> World:
    """Return a world with these spot nodes: on-demand starts in 60 s, spot in 30 s."""
    return World(START, 60.0, 30.0, slots, visible, notice_s, dict.fromkeys(spot, False))


class TestStarting:
    def test_takes_as_long_as_the_pool_does(self) -> None:
        """And it is told when."""
        small = world("a", "b")
        assert sorted(small.scale(1, 2)) == [30.0, 30.0, 60.0]
        assert (small.serving, small.spot_paid) == (0, 2)
        small.clock_s = 30.0
        assert (small.serving, small.spot_serving) == (2, 2)
        small.clock_s = 60.0
        assert small.serving == 3
        assert small.scale(1, 2) == [], "nothing new"

    def test_waits_for_a_free_slot(self) -> None:
        """One a node; the next node takes it at once, and nobody pays for one that waits."""
        small = world("a")
        small.scale(0, 2)
        assert small.spot_paid == 1
        small.doomed["b"] = False
        small.clock_s = 10.0
        assert small.scale(0, 2) == [40.0]

    def test_spreads(self) -> None:
        """The node with the fewest of ours first."""
        small = world("a", "b", slots=3)
        small.scale(0, 4)
        assert sorted(pod.node or "" for pod in small.spot) == ["a", "a", "b", "b"]

    def test_is_never_on_a_doomed_node(self) -> None:
        """The scheduler heeds its taint."""
        small = world("a")
        small.doomed["a"] = True
        assert small.scale(0, 1) == []


class TestScaledAway:
    def test_the_pending_then_the_starting_then_the_doomed_then_the_young(self) -> None:
        """As a ReplicaSet does, with the deletion costs that splitter writes."""
        small = world("old", "doomed")
        small.scale(0, 2)
        small.clock_s = 100.0
        small.doomed |= {"doomed": True, "young": False}
        small.scale(0, 3)
        small.clock_s = 200.0
        small.doomed["starting"] = False
        small.scale(0, 5)
        assert [pod.node for pod in small.spot] == ["old", "doomed", "young", "starting", None]
        for count, left in (
            (4, {"old", "doomed", "young", "starting"}),
            (3, {"old", "doomed", "young"}),
            (2, {"old", "young"}),
            (1, {"old"}),
        ):
            small.scale(0, count)
            assert {pod.node for pod in small.spot} == left

    def test_what_stood_on_a_node_that_is_gone_is_made_anew(self) -> None:
        """It waits for another one."""
        small = world("a", "b")
        small.scale(0, 2)
        del small.doomed["a"]
        small.scale(0, 2)
        assert [pod.node for pod in small.spot] == ["b", None]


class TestSeen:
    def test_by_the_state_of_nodes(self) -> None:
        """Who is ready, starts, goes; which nodes were lost, and what is free."""
        small = world("a", "b", "c", slots=2)
        small.scale(2, 3)
        small.clock_s = 90.0
        small.doomed |= {"a": True, "d": False}
        small.scale(2, 4)
        seen = small.observe(6, 2, 1)
        assert (seen.now, seen.desired, seen.max_surge, seen.max_unavailable) == (
            START + timedelta(seconds=90),
            6,
            2,
            1,
        )
        assert (seen.on_demand_spec, seen.on_demand_ready, seen.spot_spec) == (2, 2, 4)
        assert (seen.spot_ready, seen.spot_starting, seen.spot_doomed) == (2, 1, 1)
        assert seen.spot_ready_since == (START + timedelta(seconds=30),) * 2
        assert (seen.lost_node_uids, seen.fit_spot) == (("a",), 3)

    @pytest.mark.parametrize(("notice_s", "stop_after_s"), [(120.0, 120.0 - TERMINATION_S), (0.0, None)])
    def test_how_long_the_doomed_may_stay(self, notice_s: float, stop_after_s: float | None) -> None:
        """The notice, less what they are given to end; without one nobody knows."""
        assert world(notice_s=notice_s).observe(1, 1, 0).spot_stop_after_s == stop_after_s

    def test_room_that_cannot_be_seen_is_none(self) -> None:
        """Behind an autoscaler nobody knows before a pod is bound."""
        assert world("a", "b", visible=False).observe(1, 1, 0).fit_spot == 0

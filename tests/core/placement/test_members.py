"""A member in placement mode: whether it serves, is between two lives, and keeps the majority."""

from typing import Any

import pytest

from builders import NOW, ago
from core.placement.placed_members import MAJORITY, OD, SPOT, five, member, observed, reservation
from splitter.core.clock import Waits
from splitter.core.placement.members import TRANSIT_S, Member, rebalance_input
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Pool, Trouble

STARTING: dict[str, Any] = {"ready_since": None}


class TestStanding:
    @pytest.mark.parametrize(
        ("one", "serves", "sound", "doomed", "lost", "pool"),
        [
            (member(0, OD), True, True, False, False, Pool.ON_DEMAND),
            (member(0, SPOT), True, True, False, False, Pool.SPOT),
            (member(0, SPOT, **STARTING), False, False, False, False, Pool.SPOT),
            (member(0, SPOT, NodeStatus.DOOMED), True, False, True, False, None),
            (member(0, SPOT, NodeStatus.DOOMED, voluntary=True), True, False, False, False, None),
            (member(0, OD, NodeStatus.DOOMED), True, False, False, False, None),
            (member(0, SPOT, NodeStatus.LOST), False, False, True, True, None),
            (member(0, SPOT, NodeStatus.UNBOUND), False, False, False, False, None),
            (member(0, SPOT, terminating=True), False, False, False, False, None),
            (Member(0, None), False, False, False, False, None),
        ],
    )
    def test_by_its_node_and_readiness(
        self, one: Member, *, serves: bool, sound: bool, doomed: bool, lost: bool, pool: Pool | None
    ) -> None:
        """A doomed one serves until it goes; where it stands is known of a sound one only."""
        assert (one.serves, one.is_sound, one.is_doomed, one.is_lost) == (serves, sound, doomed, lost)
        assert one.pool is pool


class TestTransit:
    @pytest.mark.parametrize(
        ("one", "left_s"),
        [
            (Member(0, None), TRANSIT_S - 20),  # ended by us 20 s ago, and not made yet
            (member(0, SPOT, finished=True), TRANSIT_S - 20),
            (member(0, SPOT, terminating=True, terminating_since=ago(30)), TRANSIT_S - 30),
            (member(0, SPOT, terminating=True), TRANSIT_S - 20),
            (member(0, SPOT, ready_since=ago(4)), 6.0),  # of minReadySeconds
            (member(0, SPOT, ready_since=ago(40)), 0.0),
            (member(0, SPOT, unready_since=ago(5), **STARTING), TRANSIT_S - 5),
            (member(0, SPOT, created=ago(7), **STARTING), TRANSIT_S - 7),
            (member(0, SPOT, created=ago(9_000), **STARTING), 0.0),
            (member(0, SPOT, trouble=Trouble(Reason.CRASH_LOOPING, ""), created=ago(7), **STARTING), 0.0),
            (member(0, SPOT, NodeStatus.UNBOUND, unschedulable_since=ago(900), created=ago(7)), 0.0),
            (member(0, SPOT, NodeStatus.LOST, created=ago(7)), 0.0),
        ],
    )
    def test_lasts_while_nothing_is_known_against_it(self, one: Member, left_s: float) -> None:
        """And for a time at most: then it counts as missing."""
        assert one.transit_s(Waits(NOW), ago(20), 180.0, 10.0) == left_s

    def test_without_an_end_of_ours_is_none(self) -> None:
        """A member that is not there, and that nobody has ended, is missing."""
        assert Member(0, None).transit_s(Waits(NOW), None, 180.0, 10.0) == 0.0

    @pytest.mark.parametrize(("ready_s", "available"), [(9, False), (10, True)])
    def test_available_is_later_than_ready(self, ready_s: float, *, available: bool) -> None:
        """By `minReadySeconds`."""
        assert member(0, SPOT, ready_since=ago(ready_s)).is_available(Waits(NOW), 10.0) is available


class TestMajority:
    @pytest.mark.parametrize(
        ("others", "surplus", "leaving", "keeps"),
        [
            ((), (), 2, True),
            ((), (), 3, False),
            ((member(4, SPOT, **STARTING),), (), 1, True),
            ((member(4, SPOT, **STARTING),), (), 2, False),
            ((), (member(5, SPOT).pod,), 1, True),  # six are known to the application
            ((), (member(5, SPOT).pod,), 2, False),
            ((), (member(5, SPOT, finished=True).pod,), 2, True),
        ],
    )
    def test_of_all_that_the_application_knows(
        self, others: tuple[Member, ...], surplus: tuple[Any, ...], leaving: int, *, keeps: bool
    ) -> None:
        """More than half of them are ready after so many have left."""
        assert observed(*five(*others), surplus=surplus).keeps_majority_without(leaving) is keeps


class TestRebalance:
    def test_counts_what_stands_where(self) -> None:
        """The two that count for spot's soak, who starts, who goes, and the room that is held as a proof."""
        members = five(
            member(2, OD, **STARTING),
            member(3, SPOT, NodeStatus.DOOMED, node_uid="uid-x"),
            member(4, SPOT, ready_since=ago(70)),
        )
        seen = rebalance_input(observed(*members, placeholder=reservation(0, since_s=100)), MAJORITY)
        assert (seen.desired, seen.on_demand_spec, seen.on_demand_ready) == (5, 3, 2)
        assert (seen.spot_spec, seen.spot_doomed, seen.lost_node_uids) == (2, 1, ("uid-x",))
        assert seen.spot_ready_since == (ago(100), ago(70))

    def test_a_hint_begins_the_soak_anew(self) -> None:
        """It may go: it holds its place, and earns no return."""
        members = five(member(3, SPOT, hinted=True), member(4, SPOT, **STARTING))
        seen = rebalance_input(observed(*members), MAJORITY)
        assert (seen.spot_ready_since, seen.spot_starting) == ((NOW,), 1)

    def test_a_choice_is_no_loss(self) -> None:
        """Nor is a node live that says nothing."""
        chosen = five(member(3, SPOT, NodeStatus.DOOMED, voluntary=True))
        assert rebalance_input(observed(*chosen), MAJORITY).lost_node_uids == ()
        silent = rebalance_input(observed(*five(member(3, SPOT, NodeStatus.LOST))), MAJORITY)
        assert (silent.lost_node_uids, silent.lost_nodes_live) == (("uid-spot-3",), False)

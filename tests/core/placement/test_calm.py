"""What a planned move waits for: that all others are available."""

import pytest

from builders import ago, pod
from core.placement.placed_members import MAJORITY, OD, five, member, observed
from splitter.core.placement.calm import waits_for_others, waits_long
from splitter.core.placement.members import Member, rebalance_input
from splitter.core.rebalance import Tuning, losses
from splitter.core.replica import NodeStatus, Pool
from splitter.core.split_status import RebalanceState

MOVES = member(4, OD)


def cordoned(ordinal: int) -> Member:
    """Return a member whose node is cordoned, and nothing worse."""
    return member(ordinal, OD, NodeStatus.DOOMED, cordoned=True, signal="cordoned")


class TestCordoned:
    @pytest.mark.parametrize(
        ("on_cordoned", "since_s", "held"),
        [((1,), 3599, True), ((1,), 3600, False), ((0, 1), 3600, True)],
        ids=["may be drained", "left so", "no majority would be left"],
    )
    def test_who_was_left_there_holds_up_nobody(
        self, on_cordoned: tuple[int, ...], since_s: float, held: bool
    ) -> None:
        """After an hour, where more than half stay ready though all of them were drained that moment."""
        seen = observed(*five(MOVES, *map(cordoned, on_cordoned)))
        state = RebalanceState(on_demand_doomed_since=ago(since_s))
        hold = waits_for_others(seen, MOVES, Pool.SPOT, state)
        assert (hold is not None) is held
        if hold is not None:
            assert "is not: node od-" in hold.note.message
            assert hold.lasts_s == (1 if since_s < 3600 else None)

    @pytest.mark.parametrize(
        "other",
        [
            member(1, OD, NodeStatus.DOOMED),
            member(1, OD, NodeStatus.LOST),
            member(1, OD, NodeStatus.DOOMED, cordoned=True, ready=False),
        ],
        ids=["about to go", "silent", "not ready"],
    )
    def test_whatever_is_worse_holds_up_everybody(self, other: Member) -> None:
        """However long it lasts."""
        state = RebalanceState(on_demand_doomed_since=ago(86_400))
        assert waits_for_others(observed(*five(MOVES, other)), MOVES, Pool.SPOT, state) is not None

    def test_since_when_is_remembered(self) -> None:
        """A Node does not tell it."""
        seen = observed(*five(cordoned(1)))
        state = losses(rebalance_input(seen, MAJORITY), MAJORITY, RebalanceState(), Tuning())
        assert state.on_demand_doomed_since == seen.now
        later = losses(rebalance_input(observed(*five()), MAJORITY), MAJORITY, state, Tuning())
        assert later.on_demand_doomed_since is None


class TestWaitsLong:
    @pytest.mark.parametrize(
        ("other", "long"),
        [
            (member(1, OD, ready=False, unready_since=ago(300)), True),
            (member(1, OD, ready=False, unready_since=ago(299)), False),
            (member(1, OD, NodeStatus.UNBOUND, ready=False, created=ago(300)), True),
            (member(1, OD, terminating=True, terminating_since=ago(300)), True),
            (member(1, OD, terminating=True), False),
            (cordoned(1), True),
            (Member(1), False),
            (member(1, OD, ready_since=ago(1)), False),
        ],
    )
    def test_for_one_member(self, other: Member, long: bool) -> None:
        """What is not known to last may end in a moment."""
        state = RebalanceState(on_demand_doomed_since=ago(300))
        assert waits_long(observed(*five(MOVES, other)), state, 300.0) is long

    def test_for_one_that_is_scaled_away(self) -> None:
        """It may have a finalizer of somebody who is gone."""
        ends = pod("db-5", terminating=True, terminating_since=ago(300))
        assert waits_long(observed(*five(MOVES), surplus=(ends,)), RebalanceState(), 300.0)

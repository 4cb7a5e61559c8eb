"""How a move of a member ended, and how long the next one waits for it."""

from typing import Any

import pytest

from builders import NOW, ago
from core.placement.placed_members import MAJORITY, OD, SPOT, member, observed
from splitter.core.placement.members import Member
from splitter.core.placement.outcome import judged, rest
from splitter.core.reasons import Reason
from splitter.core.rebalance import Tuning
from splitter.core.replica import NodeStatus, Pool
from splitter.core.split_status import RebalanceState
from splitter.core.split_status.backoff import Backoff

TO_SPOT = RebalanceState(
    moved=0, moved_uid="uid-before", last_step=ago(50), failed_moves=Backoff(1), failed_covers=Backoff(1)
)
UP = RebalanceState(
    moved=0,
    moved_uid="uid-before",
    moved_up=True,
    last_step=ago(50),
    failed_moves=Backoff(1),
    failed_covers=Backoff(1),
)
STUCK: dict[str, Any] = {"unschedulable_since": ago(3600)}


class TestJudged:
    @pytest.mark.parametrize(
        ("state", "now", "why"),
        [
            (TO_SPOT, member(0, OD, born=Pool.SPOT), "the scheduler chose on-demand node od-0"),
            (UP, member(0, SPOT, born=Pool.ON_DEMAND), "the scheduler chose spot node spot-0"),
            (TO_SPOT, member(0, OD, NodeStatus.DOOMED, born=Pool.SPOT), "the scheduler chose on-demand node"),
            (TO_SPOT, member(0, SPOT, NodeStatus.UNBOUND, born=Pool.SPOT, **STUCK), "and found no node"),
            (TO_SPOT, member(0, SPOT, NodeStatus.DOOMED, born=Pool.SPOT), "spot-0, which is about to go"),
            (TO_SPOT, member(0, SPOT, NodeStatus.LOST, born=Pool.SPOT), "spot-0, which is about to go"),
            (TO_SPOT, member(0, SPOT), "was created without the label of policy splitter-placement"),
        ],
    )
    def test_in_vain(self, state: RebalanceState, now: Member, why: str) -> None:
        """It is said once, and counted for the pool that it was to go to."""
        after, note = judged(observed(now), MAJORITY, state)
        assert note is not None
        assert (note.reason, note.warning) == (Reason.MOVE_UNDONE, True)
        assert why in note.message
        up = state.moved_up
        assert (after.failed_moves.count, after.failed_covers.count) == ((1, 2) if up else (2, 1))
        assert after.last_step == (NOW if up else state.last_step), "to find no node takes the whole grace"
        assert (after.moved, after.unplaced) == (None, now.born is None)

    @pytest.mark.parametrize(
        ("state", "now", "failed"),
        [
            (TO_SPOT, member(0, SPOT, born=Pool.SPOT), (0, 1)),
            (UP, member(0, OD, born=Pool.ON_DEMAND), (1, 0)),
        ],
    )
    def test_as_it_was_meant(self, state: RebalanceState, now: Member, failed: tuple[int, int]) -> None:
        """When it serves there; moves to the other pool are not proven by it."""
        after, note = judged(observed(now), MAJORITY, state)
        assert note is None
        assert (after.moved, after.failed_moves.count, after.failed_covers.count) == (None, *failed)

    @pytest.mark.parametrize(
        "now",
        [
            member(0, SPOT, born=Pool.SPOT, ready_since=None),
            member(0, SPOT, NodeStatus.UNBOUND, born=Pool.SPOT, unschedulable_since=ago(5)),
            member(0, OD, uid="uid-before"),
            Member(0, None),
        ],
    )
    def test_not_yet(self, now: Member) -> None:
        """While it starts, waits for a node, or is the old one still."""
        assert judged(observed(now), MAJORITY, TO_SPOT) == (TO_SPOT, None)

    @pytest.mark.parametrize(("made_s", "unplaced"), [(51, True), (49, False)])
    def test_a_pod_that_was_made_later_tells_that_the_policy_acts(self, made_s: int, unplaced: bool) -> None:
        """Whoever made it: nobody waits for hours, on notice too, for a policy that is there again."""
        state = RebalanceState(last_step=ago(50), failed_moves=Backoff(9), unplaced=True)
        other = member(1, OD, born=Pool.ON_DEMAND, created=ago(made_s))
        after, note = judged(observed(member(0, OD), other), MAJORITY, state)
        assert (after.unplaced, after.failed_moves.count, note) == (unplaced, 9, None)

    def test_of_a_member_that_is_none_any_more(self) -> None:
        """Scaled away: how it ended is nobody's business."""
        after, note = judged(observed(member(1, SPOT)), MAJORITY, TO_SPOT)
        assert (after.moved, note) == (None, None)
        assert (after.failed_moves.count, after.failed_covers.count) == (1, 1)

    def test_of_nothing(self) -> None:
        """No move, or one of which nobody knows when it was."""
        for state in (RebalanceState(), RebalanceState(moved=0)):
            assert judged(observed(member(0, OD)), MAJORITY, state) == (state, None)


class TestRest:
    TUNING = Tuning(step_interval_s=60.0, soak_max_s=600.0)

    @pytest.mark.parametrize(("failed", "rest_s"), [(0, 60.0), (1, 120.0), (2, 240.0), (30, 61_440.0)])
    def test_to_spot_doubles_to_the_better_part_of_a_day(self, failed: int, rest_s: float) -> None:
        """For each in a row that ended elsewhere."""
        assert (
            rest(
                RebalanceState(failed_moves=Backoff(failed), failed_covers=Backoff(9)), self.TUNING, Pool.SPOT
            )
            == rest_s
        )

    def test_to_on_demand_is_none_but_after_a_failure(self) -> None:
        """Safety does not wait; one that leaves a member without a node does."""
        assert rest(RebalanceState(failed_moves=Backoff(9)), self.TUNING, Pool.ON_DEMAND) == 0.0
        assert rest(RebalanceState(failed_covers=Backoff(1)), self.TUNING, Pool.ON_DEMAND) == 120.0
        assert rest(RebalanceState(failed_covers=Backoff(6)), self.TUNING, Pool.ON_DEMAND) > 600.0

"""Members that stand in the wrong pool move one after the other, and not before it is safe."""

from dataclasses import replace

import pytest

from builders import NOW, ago, pod
from core.placement.placed_members import MAJORITY, OD, SPOT, five, member, observed, reservation, said
from splitter.core.labels_annotations.policy import Policy
from splitter.core.placeable import EvictionRefusal, Reach
from splitter.core.placement.members import Reservation
from splitter.core.placement.place import place
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Pool, Trouble
from splitter.core.split_status import RebalanceState
from splitter.core.split_status.backoff import Backoff


class TestMisplaced:
    """Members that stand in the wrong pool, slowly."""

    returned = five(member(3, OD), member(4, OD))

    def test_room_is_held_first(self) -> None:
        """The highest first."""
        placed = place(observed(*self.returned), MAJORITY, RebalanceState())
        assert placed.evict is None
        assert placed.reservation == Reservation(Pool.SPOT, 4)
        assert said(placed) == (
            "WaitingForRoom: db-4 stays on on-demand until room on spot is held for it: a placeholder asks"
            " for it"
        )

    def test_a_placeholder_that_cannot_run_is_named(self) -> None:
        """Its image is on no mirror, say: nobody would ever be moved, and nothing tell why."""
        trouble = Trouble(Reason.IMAGE_PULL_FAILED, '"pause:1": not found')
        held = reservation(4, ready_since=None, trouble=trouble)
        placed = place(observed(*self.returned, placeholder=held), MAJORITY, RebalanceState())
        assert said(placed) == (
            "WaitingForRoom: db-4 stays on on-demand until room on spot is held for it: the placeholder held"
            ' on node node-1 does not run: "pause:1": not found'
        )
        assert placed.verdict.warning

    def test_then_it_is_evicted(self) -> None:
        """A workload that lost nothing yet need not soak."""
        placed = place(observed(*self.returned, placeholder=reservation(4)), MAJORITY, RebalanceState())
        assert placed.evict is not None
        assert (placed.evict.pod, placed.evict.to) == ("db-4", Pool.SPOT)
        assert (placed.state.moved, placed.state.last_step) == (4, NOW)

    def test_the_next_one_rests(self) -> None:
        """60 s between two moves."""
        state = RebalanceState(last_step=ago(20))
        placed = place(observed(*self.returned, placeholder=reservation(4)), MAJORITY, state)
        assert placed.evict is None
        assert placed.requeue_after_s == 40
        assert placed.verdict.reason is Reason.RETURNING

    def test_after_a_loss_spot_has_to_soak(self) -> None:
        """What stands on spot, a placeholder if nothing else, has to stand for the soak."""
        state = RebalanceState(last_loss=ago(900), soak_s=None)
        seen = observed(*self.returned, in_force=(0, 1, 2, 3, 4), placeholder=reservation(4, since_s=300))
        placed = place(seen, MAJORITY, state)
        assert placed.evict is None
        assert placed.ordinals == (0, 1, 2, 3, 4)
        assert placed.requeue_after_s == 300
        assert said(placed) == (
            "Soaking: db-4 stays on on-demand until 10:05:00Z: spot has to stand for 600 s first"
        )

    def test_flapping_doubles_the_soak(self) -> None:
        """The state and the back-off are those of twins."""
        state = RebalanceState(last_loss=ago(900), soak_s=1200.0)
        seen = observed(*self.returned, in_force=(0, 1, 2, 3, 4), placeholder=reservation(4, since_s=800))
        placed = place(seen, MAJORITY, state)
        assert placed.verdict.reason is Reason.SOAKING
        assert "1200 s" in placed.verdict.message

    def test_what_has_soaked_returns_one_at_a_time(self) -> None:
        """It leaves the set in one reconcile and is evicted in the next."""
        state = RebalanceState(last_loss=ago(2000))
        seen = observed(*self.returned, in_force=(0, 1, 2, 3, 4), placeholder=reservation(4, since_s=700))
        first = place(seen, MAJORITY, state)
        assert first.ordinals == (0, 1, 2, 3)
        assert first.evict is None
        assert first.verdict.reason is Reason.RETURNING
        second = place(replace(seen, in_force=first.ordinals), MAJORITY, first.state)
        assert second.evict is not None
        assert second.evict.ordinal == 4

    def test_a_move_that_ended_where_it_began_is_remembered(self) -> None:
        """The scheduler chose on-demand again: the next try waits twice as long."""
        state = RebalanceState(moved=4, last_step=ago(50))
        members = five(member(4, OD, born=Pool.SPOT))
        placed = place(observed(*members), MAJORITY, state)
        assert (placed.state.moved, placed.state.failed_moves.count) == (None, 1)
        assert [note.reason for note in placed.notes] == [Reason.MOVE_UNDONE]
        again = place(observed(*members, placeholder=reservation(4)), MAJORITY, placed.state)
        assert again.evict is None
        assert again.requeue_after_s == 70

    def test_a_move_that_went_well_is_forgotten(self) -> None:
        """So are those that did not."""
        state = RebalanceState(moved=4, last_step=ago(50), failed_moves=Backoff(3))
        placed = place(observed(*five(member(4, SPOT, born=Pool.SPOT))), MAJORITY, state)
        assert (placed.state.moved, placed.state.failed_moves.count) == (None, 0)

    def test_to_on_demand_room_is_held_too(self) -> None:
        """A policy that wants more on on-demand moves nobody before there is room."""
        seen = observed(*five(member(1, SPOT)))
        assert place(seen, MAJORITY, RebalanceState()).reservation == Reservation(Pool.ON_DEMAND, 1)
        held = replace(seen, placeholder=reservation(1, Pool.ON_DEMAND))
        placed = place(held, MAJORITY, RebalanceState())
        assert placed.evict is not None
        assert placed.evict.to is Pool.ON_DEMAND

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"rolling": "2 of 5 updated"}, Reason.ROLLOUT_IN_PROGRESS),
            ({"surplus": (pod("db-5"),)}, Reason.WAITING_FOR_REPLICAS),
            ({"blocked": "the autoscaler says no", "placeholder": None}, Reason.SPOT_BLOCKED),
            ({"placeholder": reservation(4, hinted=True)}, Reason.SPOT_BLOCKED),
            ({"refused": EvictionRefusal("uid-db-4", "no", NOW)}, Reason.EVICTION_REFUSED),
            ({"made_of": "another template"}, Reason.WAITING_FOR_ROOM),
        ],
    )
    def test_it_waits(self, fields: dict[str, object], reason: Reason) -> None:
        """For whatever else is under way."""
        seen = replace(observed(*self.returned, placeholder=reservation(4)), **fields)  # type: ignore[arg-type]
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.evict is None
        assert placed.verdict.reason is reason

    def test_no_room_is_asked_for_while_spot_cannot_be_had(self) -> None:
        """What an autoscaler refuses it would refuse again: a placeholder that found no node is let go."""
        waiting = reservation(4, node_status=NodeStatus.UNBOUND, ready=False)
        for held in (None, waiting):
            seen = observed(*self.returned, blocked="Karpenter finds no spot machine", placeholder=held)
            placed = place(seen, MAJORITY, RebalanceState())
            assert (placed.evict, placed.reservation) == (None, None)
            assert said(placed) == (
                "SpotBlocked: db-4 stays on on-demand, and no placeholder asks for spot: Karpenter finds no"
                " spot machine"
            )
            assert placed.outlook[4] == ("db-4: on on-demand node od-4; wanted on spot: waits (SpotBlocked)")

    @pytest.mark.parametrize(
        "fields", [{"fit_spot": 1}, {"placeholder": reservation(4)}], ids=["there is room", "it is held"]
    )
    def test_room_that_is_there_needs_no_autoscaler(self, fields: dict[str, object]) -> None:
        """Else one that never stops asking for others would keep members on on-demand for ever."""
        seen = replace(observed(*self.returned, blocked="cluster-autoscaler backs off"), **fields)  # type: ignore[arg-type]
        assert place(seen, MAJORITY, RebalanceState()).reservation == Reservation(Pool.SPOT, 4)

    def test_a_deadline_that_comes_near_ends_the_patience(self) -> None:
        """Ten minutes before it the member moves in a hurry, and no event tells that they have begun."""
        far = five(member(4, SPOT, NodeStatus.DOOMED, deadline=ago(-700)))
        placed = place(observed(*far, in_force=(0, 1, 2, 4)), MAJORITY, RebalanceState())
        assert (placed.verdict.reason, placed.requeue_after_s) == (Reason.WAITING_FOR_ROOM, 100)

    def test_spot_that_rests_keeps_the_room_that_is_held(self) -> None:
        """No machine is bought for one more placeholder; the one that stands may prove that spot lasts."""
        rests = RebalanceState(barren=10, barren_since=ago(4 * 3600), last_loss=ago(3600))
        placed = place(observed(*self.returned), MAJORITY, rests)
        assert (placed.verdict.reason, placed.reservation) == (Reason.SPOT_UNPROFITABLE, None)
        assert placed.requeue_after_s is not None
        assert placed.requeue_after_s <= 2 * 3600
        stands = place(observed(*self.returned, placeholder=reservation(4, since_s=10)), MAJORITY, rests)
        assert (stands.verdict.reason, stands.reservation) == (Reason.SOAKING, Reservation(Pool.SPOT, 4))

    def test_all_others_have_to_be_ready(self) -> None:
        """Counted from pods."""
        members = five(member(4, OD), member(0, OD, ready=False))
        placed = place(observed(*members, placeholder=reservation(4)), MAJORITY, RebalanceState())
        assert placed.evict is None
        assert said(placed) == (
            "WaitingForReplicas: db-4 waits to move to spot: 4 of 5 are ready on nodes that stay, db-0 is not"
        )

    @pytest.mark.parametrize("n", [1, 2])
    def test_too_few_are_left_where_they_are(self, n: int) -> None:
        """One of two is no majority; no room is held for nothing."""
        members = tuple(member(k, OD) for k in range(n))
        placed = place(observed(*members, in_force=()), Policy(), RebalanceState())
        assert placed.evict is None
        assert placed.reservation is None
        assert placed.verdict.reason is Reason.QUORUM_HELD
        assert "scale it to 3 members or more, or split it into twins" in placed.verdict.message

    @pytest.mark.parametrize("n", [1, 2])
    def test_too_few_are_not_moved_on_notice(self, n: int) -> None:
        """It is said, with what to do; where they are born changes all the same."""
        members = tuple(member(k, SPOT, NodeStatus.DOOMED) for k in range(n))
        joined = place(observed(*members, in_force=()), MAJORITY, RebalanceState())
        assert joined.ordinals == tuple(range(n))
        placed = place(observed(*members, in_force=joined.ordinals), MAJORITY, RebalanceState())
        assert placed.evict is None
        assert said(placed) == (
            f"QuorumHeld: db-0 stays on doomed node spot-0: without it {n - 1} of {n} would be ready, no"
            " majority; it starts on on-demand when it is made again. To have it moved, scale it to 3 members"
            " or more, or split it into twins (splitter.io/mode: twins)"
        )
        assert placed.verdict.warning

    @pytest.mark.parametrize("n", [1, 2])
    def test_too_few_are_made_anew_after_a_loss(self, n: int) -> None:
        """Nothing of them runs any more: there is no majority to keep by waiting."""
        members = tuple(member(k, SPOT, NodeStatus.LOST, vanished=True) for k in range(n))
        placed = place(observed(*members, in_force=tuple(range(n))), MAJORITY, RebalanceState())
        assert [one.name for one in placed.vanished] == [f"db-{k}" for k in range(n)]
        assert placed.outlook[0] == (
            "db-0: on node spot-0, which has gone or says nothing; wanted on on-demand: removed, and made"
            " again"
        )

    def test_a_volume_keeps_its_member(self) -> None:
        """Who cannot go to spot stays, and is not asked about."""
        pinned = Reach(spot=False, why="no spot node in zone c")
        placed = place(observed(*five(member(4, OD, reach=pinned))), MAJORITY, RebalanceState())
        assert placed.reservation is None
        assert placed.outlook[4] == (
            "db-4: on on-demand node od-4; wanted on spot: stays (no spot node in zone c)"
        )

    def test_at_rest_nothing_is_written(self) -> None:
        """And the sentence has the numbers."""
        placed = place(observed(*five()), MAJORITY, RebalanceState())
        assert (placed.evict, placed.reservation, placed.notes) == (None, None, ())
        assert said(placed) == "Balanced: ordinals 0-2 on on-demand, 3-4 on spot, as wanted"
        assert placed.outlook[0] == "db-0: on on-demand node od-0; wanted on on-demand"

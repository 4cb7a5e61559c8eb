"""Placement: which ordinals are on on-demand, and which one pod is moved next."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, ago, pod
from core.placement.placed_members import MAJORITY, OD, SPOT, five, member, observed, reservation, said
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import NodeStatus, PodView, Pool, Trouble
from splitter.core.placeable import EvictionRefusal, Reach
from splitter.core.placement.members import Member, spoken
from splitter.core.placement.mover import Reservation
from splitter.core.placement.place import place
from splitter.core.reasons import Reason
from splitter.core.split_status import RebalanceState, Restart

SAYS_NOTHING = "which has gone or says nothing"


class TestOrdinals:
    """Which ordinals are on on-demand."""

    @pytest.mark.parametrize(
        ("n", "policy", "wanted"),
        [
            (5, MAJORITY, (0, 1, 2)),
            (1, MAJORITY, (0,)),
            (2, MAJORITY, (0, 1)),
            (7, MAJORITY, (0, 1, 2, 3)),
            (5, Policy(on_demand_base=2), (0, 1)),
            (5, Policy(on_demand_base=1, spot_percent=50), (0, 1, 2)),
            (5, Policy(on_demand_base=0), ()),
            (4, Policy(on_demand_base=9), (0, 1, 2, 3)),
        ],
    )
    def test_the_lowest(self, n: int, policy: Policy, wanted: tuple[int, ...]) -> None:
        """As many as the policy divides, lowest first."""
        members = tuple(Member(k) for k in range(n))
        assert place(observed(*members, in_force=()), policy, RebalanceState()).ordinals == wanted

    def test_ordinals_begin_where_the_user_says(self) -> None:
        """`spec.ordinals.start` is respected."""
        members = tuple(Member(k) for k in range(10, 13))
        placed = place(observed(*members, in_force=()), MAJORITY, RebalanceState())
        assert placed.ordinals == (10, 11)

    def test_a_scale_up_by_anyone_joins_at_once(self) -> None:
        """3 -> 7: the ordinals that a majority of 7 needs join; nothing else is written in that reconcile."""
        members = tuple(member(k, SPOT if k > 1 else OD) for k in range(7))
        placed = place(observed(*members, in_force=(0, 1)), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2, 3)
        assert placed.evict is None
        assert said(placed) == (
            "Scaled: db-2, db-3 will start on on-demand: 4 of 7 are wanted there; on-demand has ordinals"
            " 0-3 now"
        )

    def test_a_scale_down_keeps_who_stands_on_on_demand(self) -> None:
        """7 -> 3: the third stands on on-demand, and leaves the set only when it is moved."""
        members = tuple(member(k, OD) for k in range(3))
        placed = place(observed(*members, in_force=(0, 1, 2, 3)), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2)

    def test_the_doomed_join_at_once(self) -> None:
        """A notice changes where the doomed will be born, before anything is moved."""
        members = five(member(4, SPOT, NodeStatus.DOOMED, signal="PreemptionScheduled"))
        placed = place(observed(*members), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2, 4)
        assert placed.evict is None
        assert said(placed) == (
            "SpotInterrupted: db-4 will start on on-demand: node spot-4 (PreemptionScheduled) is about to"
            " go; on-demand has ordinals 0-2, 4 now"
        )

    def test_the_lost_join_at_once(self) -> None:
        """So does who was lost without a notice; its pod is removed in the next reconcile."""
        members = five(member(3, SPOT, NodeStatus.LOST, vanished=True))
        placed = place(observed(*members), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2, 3)
        assert placed.vanished == ()
        assert placed.verdict.reason is Reason.SPOT_LOST

    def test_a_node_that_goes_by_choice_changes_nothing(self) -> None:
        """Karpenter's consolidation moves its pods itself, and spot is not distrusted."""
        members = five(member(4, SPOT, NodeStatus.DOOMED, voluntary=True))
        placed = place(observed(*members), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2)
        assert placed.evict is None

    def test_a_cap_holds_emergencies_too(self) -> None:
        """`on-demand-max` is kept."""
        policy = Policy(on_demand_base="majority", on_demand_max=3)
        members = five(member(4, SPOT, NodeStatus.DOOMED))
        placed = place(observed(*members), policy, RebalanceState())
        assert placed.ordinals == (0, 1, 2)
        assert placed.evict is None
        assert placed.verdict.reason is Reason.ON_DEMAND_CAPPED

    def test_volumes_narrow_the_choice(self) -> None:
        """An ordinal whose volume no on-demand node can have is passed over, and another takes its place."""
        pinned = Reach(on_demand=False, why="its volume is in zone b, without on-demand nodes")
        members = five(member(1, SPOT, reach=pinned))
        placed = place(observed(*members, in_force=()), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 2, 3)

    def test_freeze_holds_the_set(self) -> None:
        """In an emergency too; only what no node has any more is removed."""
        members = five(member(3, SPOT, NodeStatus.DOOMED), member(4, SPOT, NodeStatus.LOST, vanished=True))
        placed = place(observed(*members), replace(MAJORITY, freeze=True), RebalanceState())
        assert placed.ordinals == (0, 1, 2)
        assert placed.evict is None
        assert [one.name for one in placed.vanished] == ["db-4"]
        assert said(placed) == "Frozen: hold ordinals 0-2 on on-demand: splitter.io/freeze is set"

    def test_a_broken_view_holds_everything(self) -> None:
        """When on-demand looks as bad as spot, it is us who cannot see."""
        members = five(member(3, SPOT, NodeStatus.LOST))
        placed = place(observed(*members, view_broken=True), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2)
        assert placed.verdict.reason is Reason.CONTROL_PLANE_VIEW


class TestNoRoomOnOnDemand:
    """A Pending ordinal would block those behind it."""

    stuck = {"ready": False, "unschedulable_since": ago(3600), "born": Pool.ON_DEMAND}  # noqa: RUF012

    def test_it_yields_after_the_grace(self) -> None:
        """Its pod may then start on spot: the set first; the next reconcile removes the Pending pod."""
        waits = member(1, OD, NodeStatus.UNBOUND, **self.stuck)  # type: ignore[arg-type]
        first = place(observed(*five(waits)), MAJORITY, RebalanceState())
        assert first.ordinals == (0, 2)
        assert first.unbound == ()
        assert first.state.yielded == (1,)
        assert said(first) == (
            "OnDemandShort: db-1 may start on spot: on-demand had no room for the whole grace; on-demand has"
            " ordinals 0, 2 now"
        )
        second = place(observed(*five(waits), in_force=(0, 2)), MAJORITY, first.state)
        assert [one.name for one in second.unbound] == ["db-1"]

    def test_not_before(self) -> None:
        """Within the grace it waits, and the next look comes when that is over."""
        waits = member(
            1, OD, NodeStatus.UNBOUND, ready=False, unschedulable_since=ago(100), born=Pool.ON_DEMAND
        )
        placed = place(observed(*five(waits)), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2)
        assert placed.requeue_after_s == 81

    def test_it_stays_out_while_its_new_pod_is_made(self) -> None:
        """Joined again at once, it would be born for on-demand again."""
        members = five(Member(1))
        placed = place(observed(*members, in_force=(0, 2)), MAJORITY, RebalanceState(yielded=(1,)))
        assert placed.ordinals == (0, 2)

    def test_it_joins_again_when_room_is_held(self) -> None:
        """Then it is moved like anyone else."""
        seen = observed(
            *five(member(1, SPOT)), in_force=(0, 2), placeholder=reservation(1, Pool.ON_DEMAND, on_spot=False)
        )
        first = place(seen, MAJORITY, RebalanceState(yielded=(1,)))
        assert first.ordinals == (0, 1, 2)
        assert first.state.yielded == ()
        second = place(replace(seen, in_force=(0, 1, 2)), MAJORITY, first.state)
        assert second.evict is not None
        assert (second.evict.pod, second.evict.to) == ("db-1", Pool.ON_DEMAND)


class TestDoomed:
    """On notice."""

    in_force = (0, 1, 2, 3, 4)

    def both(self, **fields: object) -> tuple[Member, ...]:
        """Return five members, two of them doomed."""
        return five(*(member(k, SPOT, NodeStatus.DOOMED, signal="a notice", **fields) for k in (3, 4)))  # type: ignore[arg-type]

    def test_one_is_evicted_at_once(self) -> None:
        """The one with the least time; the other waits for it."""
        late, soon = (
            member(k, SPOT, NodeStatus.DOOMED, deadline=NOW + timedelta(seconds=s), signal="a notice")
            for k, s in ((3, 120), (4, 30))
        )
        placed = place(observed(*five(late, soon), in_force=self.in_force), MAJORITY, RebalanceState())
        assert placed.evict is not None
        assert placed.evict.pod == "db-4"
        assert said(placed) == (
            "SpotInterrupted: evict db-4: node spot-4 is about to go (a notice); it starts again on on-demand"
        )

    @pytest.mark.parametrize(
        "other",
        [
            member(4, SPOT, NodeStatus.DOOMED, terminating=True),
            Member(4),
            member(4, OD, NodeStatus.UNBOUND, ready=False, created=ago(5)),
            member(4, OD, ready=False, created=ago(5)),
        ],
    )
    def test_one_at_a_time(self, other: Member) -> None:
        """While another member is ending, not there or starting."""
        seen = observed(*five(member(3, SPOT, NodeStatus.DOOMED), other), in_force=self.in_force)
        placed = place(seen, MAJORITY, RebalanceState(restarts=(Restart(4, ago(5)),)))
        assert placed.evict is None
        assert said(placed) == (
            "WaitingForReplicas: db-3 on doomed node spot-3 waits for db-4: one member at a time"
        )
        assert placed.requeue_after_s in {55, 60}

    @pytest.mark.parametrize(
        "other",
        [
            member(0, OD, ready=False, unready_since=ago(172_800)),
            member(0, OD, ready=False, created=ago(61)),
            member(0, OD, terminating=True, terminating_since=ago(61)),
            Member(0),
        ],
        ids=["not ready for days", "slow to start", "slow to end", "never made, for want of quota"],
    )
    def test_not_for_longer_than_the_notice_allows(self, other: Member) -> None:
        """A doomed member goes anyway; more than half of the members stay ready all the same."""
        seen = observed(*five(member(3, SPOT, NodeStatus.DOOMED), other), in_force=(0, 1, 2, 3))
        placed = place(seen, MAJORITY, RebalanceState(restarts=(Restart(0, ago(61)),)))
        assert placed.evict is not None
        assert placed.evict.pod == "db-3"

    def test_until_the_last_one_is_available(self) -> None:
        """`minReadySeconds` counts, but no longer than a start does."""
        for ready_s, moved in ((1, False), (61, True)):
            young = member(2, OD, ready_since=ago(ready_s))
            seen = observed(
                *five(young, member(3, SPOT, NodeStatus.DOOMED)), in_force=(0, 1, 2, 3), min_ready_s=600.0
            )
            assert (place(seen, MAJORITY, RebalanceState()).evict is not None) is moved

    def test_who_is_scaled_away_is_known_to_the_others(self) -> None:
        """5 -> 3, two end: without a third, 2 of the 5 that the application knows would be left."""
        three = (member(0, OD), member(1, OD), member(2, SPOT, NodeStatus.DOOMED))
        ending = tuple(pod(f"db-{k}", ordinal=k, terminating=True) for k in (3, 4))
        placed = place(observed(*three, surplus=ending), MAJORITY, RebalanceState())
        assert placed.evict is None
        assert said(placed) == (
            "QuorumHeld: db-2 stays on doomed node spot-2: without it 2 of 5 would be ready, no majority"
        )
        assert place(observed(*three), MAJORITY, RebalanceState()).evict is not None

    def test_an_update_may_take_several(self) -> None:
        """`rollingUpdate.maxUnavailable: 2`: the StatefulSet may take two in this very moment."""
        seen = observed(
            *five(member(4, SPOT, NodeStatus.DOOMED)),
            in_force=(0, 1, 2, 4),
            rolling="2 of 5 updated",
            update_at_once=2,
        )
        placed = place(seen, MAJORITY, RebalanceState())
        assert said(placed) == (
            "QuorumHeld: db-4 stays on doomed node spot-4: without it beside the 2 that are rolled 2 of 5"
            " would be ready, no majority"
        )
        assert place(replace(seen, update_at_once=1), MAJORITY, RebalanceState()).evict is not None

    def test_a_crashing_member_does_not_hold_them_up(self) -> None:
        """It would never be ready, and the doomed go anyway; the majority is kept all the same."""
        crashing = member(0, OD, ready=False, trouble=Trouble(Reason.CRASH_LOOPING, "app"))
        seen = observed(*five(crashing, *self.both()[3:]), in_force=self.in_force)
        assert place(seen, MAJORITY, RebalanceState()).evict is not None

    def test_never_the_majority(self) -> None:
        """With two crashing, one more would leave 2 of 5."""
        crashing = [member(k, OD, ready=False, trouble=Trouble(Reason.CRASH_LOOPING, "app")) for k in (0, 1)]
        seen = observed(*five(*crashing, *self.both()[3:]), in_force=self.in_force)
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.evict is None
        assert said(placed) == (
            "QuorumHeld: db-3 stays on doomed node spot-3: without it 2 of 5 would be ready, no majority"
        )

    def test_what_does_not_serve_goes_first(self) -> None:
        """It costs nothing."""
        idle = member(4, SPOT, NodeStatus.DOOMED, ready=False, trouble=Trouble(Reason.NOT_READY, ""))
        crashing = [member(k, OD, ready=False, trouble=Trouble(Reason.CRASH_LOOPING, "app")) for k in (0, 1)]
        seen = observed(*five(*crashing, member(3, SPOT, NodeStatus.DOOMED), idle), in_force=self.in_force)
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.evict is not None
        assert placed.evict.pod == "db-4"

    def test_an_update_counts_as_one_more(self) -> None:
        """The StatefulSet's own update may take a member in this very moment."""
        three = (member(0, OD), member(1, OD), member(2, SPOT, NodeStatus.DOOMED))
        seen = observed(*three, rolling="1 of 3 updated")
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.evict is None
        assert said(placed) == (
            "QuorumHeld: db-2 stays on doomed node spot-2: without it beside the one that is rolled 1 of 3"
            " would be ready, no majority"
        )

    def test_a_silent_node_keeps_its_pod(self) -> None:
        """NotReady is not gone: the old pod may still run."""
        seen = observed(*five(member(4, SPOT, NodeStatus.LOST)), in_force=(0, 1, 2, 4))
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.evict is None
        assert placed.vanished == ()
        assert said(placed) == (
            "SpotLost: db-4 is made again as soon as it ends or Node spot-4 is deleted: spot-4 is silent,"
            " the old pod may still run there, and no name may run twice"
        )

    def test_pods_of_vanished_nodes_are_removed(self) -> None:
        """All at once: nothing of them runs. One that was ending already would end for ever."""
        gone = [
            member(3, SPOT, NodeStatus.LOST, vanished=True),
            member(4, SPOT, NodeStatus.LOST, vanished=True, terminating=True),
        ]
        placed = place(observed(*five(*gone), in_force=self.in_force), MAJORITY, RebalanceState())
        assert [one.name for one in placed.vanished] == ["db-3", "db-4"]

    def test_a_budget_is_respected(self) -> None:
        """429: asked again after 10 s."""
        seen = observed(
            *self.both(),
            in_force=self.in_force,
            refused=EvictionRefusal("uid-db-3", "PodDisruptionBudget db: 4 of 5 needed", ago(4)),
        )
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.evict is None
        assert placed.requeue_after_s == 6
        assert said(placed) == (
            "EvictionRefused: db-3 may not be evicted now: PodDisruptionBudget db: 4 of 5 needed"
        )
        later = replace(seen, refused=EvictionRefusal("uid-db-3", "", ago(11)))
        assert place(later, MAJORITY, RebalanceState()).evict is not None


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
        assert (placed.state.moved, placed.state.failed_moves) == (None, 1)
        assert [note.reason for note in placed.notes] == [Reason.MOVE_UNDONE]
        again = place(observed(*members, placeholder=reservation(4)), MAJORITY, placed.state)
        assert again.evict is None
        assert again.requeue_after_s == 70

    def test_a_move_that_went_well_is_forgotten(self) -> None:
        """So are those that did not."""
        state = RebalanceState(moved=4, last_step=ago(50), failed_moves=3)
        placed = place(observed(*five(member(4, SPOT, born=Pool.SPOT))), MAJORITY, state)
        assert (placed.state.moved, placed.state.failed_moves) == (None, 0)

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


def views() -> st.SearchStrategy[PodView | None]:
    """Return pods in every condition."""
    return st.one_of(
        st.none(),
        st.builds(
            lambda node_status, on_spot, ready, ending, vanished, voluntary: pod(
                "any",
                node_status,
                ready=ready,
                on_spot=on_spot,
                terminating=ending,
                vanished=vanished and node_status is NodeStatus.LOST,
                voluntary=voluntary,
            ),
            st.sampled_from(NodeStatus),
            st.booleans(),
            st.booleans(),
            st.booleans(),
            st.booleans(),
            st.booleans(),
        ),
    )


class TestTheOutlook:
    """What each member would do next, as `splitter plan` shows it."""

    @pytest.mark.parametrize(
        ("one", "next_"),
        [
            (member(4, SPOT), "on spot node spot-4; wanted on spot"),
            (Member(4), "not there now; wanted on spot: the StatefulSet makes it again"),
            (
                member(4, SPOT, terminating=True),
                "ending on node spot-4; wanted on spot: the StatefulSet makes it again",
            ),
            (
                member(4, SPOT, NodeStatus.LOST, node="s"),
                f"on node s, {SAYS_NOTHING}; wanted on on-demand: made again when Node s is gone",
            ),
            (
                member(4, SPOT, NodeStatus.DOOMED, voluntary=True),
                "on doomed node spot-4; wanted on spot: left to whoever drains the node",
            ),
            (member(4, SPOT, NodeStatus.DOOMED), "on doomed node spot-4; wanted on on-demand: moves now"),
        ],
    )
    def test_of_one(self, one: Member, next_: str) -> None:
        """Where it stands, where it is wanted, what comes next."""
        in_force = (0, 1, 2, 4) if one.is_doomed else (0, 1, 2)
        placed = place(observed(*five(one), in_force=in_force), MAJORITY, RebalanceState())
        assert placed.outlook[4] == f"db-4: {next_}"

    def test_of_the_doomed_one_at_a_time(self) -> None:
        """Who is not first waits its turn; while one restarts, the other does."""
        doomed = five(*(member(k, SPOT, NodeStatus.DOOMED) for k in (3, 4)))
        placed = place(observed(*doomed, in_force=(0, 1, 2, 3, 4)), MAJORITY, RebalanceState())
        assert [one.partition("; ")[2] for one in placed.outlook[3:]] == [
            "wanted on on-demand: moves now",
            "wanted on on-demand: moves later",
        ]
        moved = five(Member(3), member(4, SPOT, NodeStatus.DOOMED))
        state = RebalanceState(restarts=(Restart(3, ago(5)),))
        placed = place(observed(*moved, in_force=(0, 1, 2, 3, 4)), MAJORITY, state)
        assert placed.outlook[4].endswith("wanted on on-demand: waits (WaitingForReplicas)")

    def test_while_frozen(self) -> None:
        """It is said of each where it stands; nobody moves."""
        frozen = replace(MAJORITY, freeze=True)
        placed = place(observed(*five(member(4, OD))), frozen, RebalanceState())
        assert placed.outlook[4] == "db-4: on on-demand node od-4; wanted on spot: waits (Frozen)"


class TestAlways:
    """Whatever is observed."""

    @given(
        st.lists(views(), min_size=1, max_size=7),
        st.sets(st.integers(0, 8)),
        st.sampled_from([MAJORITY, Policy(), Policy(on_demand_base=1, on_demand_max=2)]),
        st.one_of(st.none(), st.tuples(st.integers(0, 6), st.sampled_from(Pool))),
    )
    def test_no_move_takes_the_majority(
        self,
        pods: list[PodView | None],
        in_force: set[int],
        policy: Policy,
        held: tuple[int, Pool] | None,
    ) -> None:
        """Nor restarts who is where the policy wants it; what is removed by force has no node."""
        members = tuple(
            Member(k, None if one is None else replace(one, name=f"db-{k}", uid=f"uid-{k}"))
            for k, one in enumerate(pods)
        )
        seen = observed(
            *members,
            in_force=tuple(sorted(in_force)),
            placeholder=None if held is None else reservation(*held),
        )
        placed = place(seen, policy, RebalanceState())
        assert all(one.vanished for one in placed.vanished)
        assert set(placed.ordinals) <= set(range(len(members)))
        if set(placed.ordinals) != in_force:
            assert (placed.evict, placed.vanished, placed.unbound) == (None, (), ())
        if placed.evict is None:
            return
        moved = members[placed.evict.ordinal]
        assert not moved.serves or seen.keeps_majority_without(1)
        assert not (moved.pool is Pool.ON_DEMAND and moved.ordinal in placed.base)
        if not moved.is_doomed:
            assert all(one.is_sound for one in members)
            assert placed.reservation is not None


def test_ordinals_as_people_write_them() -> None:
    """Runs are joined."""
    assert [spoken(one) for one in ([], [3], [0, 1, 2], [4, 0, 2, 1])] == ["none", "3", "0-2", "0-2, 4"]

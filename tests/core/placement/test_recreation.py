"""No member is evicted that could not be made again, and what it waits for instead is told."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from builders import NOW, ago
from core.placement.placed_members import MAJORITY, OD, SPOT, five, member, observed, reservation, said
from splitter.core.labels_annotations.policy import Policy
from splitter.core.placement.disruption import Cause, End, hindrance
from splitter.core.placement.members import Member, Reservation
from splitter.core.placement.place import place
from splitter.core.reasons import Reason
from splitter.core.rebalance import Tuning
from splitter.core.replica import NodeStatus, Pool
from splitter.core.split_status import RebalanceState, Restart
from splitter.core.split_status.backoff import Backoff

DOOMED = member(4, SPOT, NodeStatus.DOOMED, signal="a notice")
CORDONED = member(4, SPOT, NodeStatus.DOOMED, signal="cordoned", cordoned=True)
IN_FORCE = (0, 1, 2, 4)
ILL = member(1, OD, ready=False, unready_since=ago(7200))


def in_seconds(seconds: float, one: Member = DOOMED) -> Member:
    """Return the member with the end of its node so far away."""
    assert one.pod is not None
    return replace(one, pod=replace(one.pod, deadline=NOW + timedelta(seconds=seconds)))


class TestOrderedReady:
    """The controller makes no pod behind a lower ordinal that is not available."""

    @pytest.mark.parametrize(
        ("lower", "why"),
        [
            (ILL, "db-1 is not ready"),
            (Member(1), "db-1 is not there"),
            (member(1, OD, terminating=True, terminating_since=ago(90)), "db-1 is ending"),
            (member(1, OD, finished=True, ready=False), "db-1 has failed"),
            (member(1, OD, NodeStatus.LOST), "db-1 is not ready"),
        ],
    )
    def test_what_is_not_available_is_named(self, lower: Member, why: str) -> None:
        """With what the controller would do, and what ends the wait."""
        placed = place(observed(*five(lower, DOOMED), in_force=IN_FORCE), MAJORITY, RebalanceState())
        assert placed.evict is None
        assert said(placed) == (
            f"WaitingForReplicas: db-4 stays on doomed node spot-4: {why}, and the StatefulSet controller"
            " (OrderedReady) would not make db-4 again; it moves when db-1 is available"
        )
        assert placed.verdict.warning

    def test_a_higher_one_holds_up_nobody(self) -> None:
        """It is made behind."""
        lower = member(0, SPOT, NodeStatus.DOOMED)
        placed = place(observed(*five(ILL, lower)), MAJORITY, RebalanceState())
        assert placed.evict is not None
        assert placed.evict.pod == "db-0"

    def test_of_two_the_one_that_is_made_again_goes(self) -> None:
        """Though the other does not serve, and would go first."""
        idle = member(4, SPOT, NodeStatus.DOOMED, ready=False, unready_since=ago(300))
        lower = member(0, SPOT, NodeStatus.DOOMED)
        seven = (*five(ILL, lower, idle), member(5, SPOT), member(6, SPOT))
        placed = place(observed(*seven, in_force=(0, 1, 2, 3, 4)), MAJORITY, RebalanceState())
        assert placed.evict is not None
        assert placed.evict.pod == "db-0"

    def test_min_ready_seconds(self) -> None:
        """Kubernetes 1.36 waits until it is available; that ends by time alone."""
        young = member(1, OD, ready_since=ago(61))
        seen = observed(*five(young, DOOMED), in_force=IN_FORCE, min_ready_s=600.0)
        placed = place(seen, MAJORITY, RebalanceState())
        assert (placed.evict, placed.requeue_after_s) == (None, 539)
        assert "db-1 has not been ready for 600 s (minReadySeconds)" in placed.verdict.message

    def test_parallel_knows_no_order(self) -> None:
        """There the majority is all that counts."""
        seen = observed(*five(ILL, DOOMED), in_force=IN_FORCE, ordered=False)
        assert place(seen, MAJORITY, RebalanceState()).evict is not None

    def test_a_pod_that_waits_for_the_wrong_pool_is_left(self) -> None:
        """Deleted, it would not be there at all."""
        waits = member(
            3, OD, NodeStatus.UNBOUND, ready=False, born=Pool.ON_DEMAND, unschedulable_since=ago(9)
        )
        seen = observed(*five(ILL, waits))
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.unbound == ()
        assert [
            pod.name for pod in place(replace(seen, ordered=False), MAJORITY, RebalanceState()).unbound
        ] == ["db-3"]

    def test_pods_of_vanished_nodes_go_all_the_same(self) -> None:
        """They run no more: nothing is lost by it."""
        gone = member(4, SPOT, NodeStatus.LOST, vanished=True)
        placed = place(observed(*five(ILL, gone), in_force=IN_FORCE), MAJORITY, RebalanceState())
        assert [pod.name for pod in placed.vanished] == ["db-4"]


class TestNear:
    """What is lost with its node anyway ends in order."""

    @pytest.mark.parametrize(
        ("seconds", "moved"), [(400, False), (41, False), (40, True), (1, True), (-299, True), (-301, False)]
    )
    def test_by_its_termination_grace(self, seconds: float, moved: bool) -> None:
        """30 s, and 10 s to get there; a node that outlives its end by minutes was not taken."""
        seen = observed(*five(ILL, in_seconds(seconds)), in_force=IN_FORCE)
        assert (place(seen, MAJORITY, RebalanceState()).evict is not None) is moved

    def test_when_it_will_be_is_told(self) -> None:
        """And it is looked at again in that second."""
        seen = observed(*five(ILL, in_seconds(100)), in_force=IN_FORCE)
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.requeue_after_s == 60
        assert placed.verdict.message.endswith(
            "it moves when db-1 is available, or at 10:01:00Z, so that it ends before its node does"
        )

    def test_a_long_grace_begins_earlier(self) -> None:
        """A database that takes two minutes to end has them."""
        slow = member(4, SPOT, NodeStatus.DOOMED, termination_s=120, deadline=NOW + timedelta(seconds=120))
        seen = observed(*five(ILL, slow), in_force=IN_FORCE)
        assert place(seen, MAJORITY, RebalanceState()).evict is not None

    def test_what_the_provider_gives(self) -> None:
        """Where no deadline is told: after the last notice."""
        taken = member(4, SPOT, NodeStatus.DOOMED, reclaim_s=120.0, node_uid="n")
        seen = observed(*five(ILL, taken), in_force=IN_FORCE)
        for since_s, moved in ((10, False), (81, True), (421, False)):
            state = RebalanceState(last_loss=ago(since_s), charged=("n",))
            assert (place(seen, MAJORITY, state).evict is not None) is moved

    def test_never_the_majority(self) -> None:
        """That is no matter of a deadline."""
        seen = observed(*five(ILL, member(0, OD, ready=False), in_seconds(5)), in_force=IN_FORCE)
        placed = place(seen, MAJORITY, RebalanceState(restarts=()))
        assert placed.evict is None


class TestOneIsAway:
    """A moved member that has no node tells that there may be none."""

    @pytest.mark.parametrize("ordered", [True, False])
    @pytest.mark.parametrize(
        ("other", "why"),
        [
            (member(3, OD, NodeStatus.UNBOUND, ready=False, unschedulable_since=ago(9)), "has no node"),
            (member(3, OD, NodeStatus.UNBOUND, ready=False, created=ago(90)), "has no node"),
            (Member(3), "is not made again yet"),
            (member(3, SPOT, terminating=True, terminating_since=ago(61)), "is ending"),
            (member(3, SPOT, terminating=True, terminating_since=ago(-3600)), "is ending"),
        ],
    )
    def test_no_other_follows(self, other: Member, why: str, ordered: bool) -> None:
        """In any order, unless the end of its own node is near."""
        state = RebalanceState(restarts=(Restart(3, ago(61)),))
        lower = member(0, SPOT, NodeStatus.DOOMED)  # nothing is behind it
        seen = observed(*five(lower, other), in_force=(0, 1, 2, 3), ordered=ordered)
        placed = place(seen, MAJORITY, state)
        assert placed.evict is None
        assert said(placed) == (
            f"WaitingForReplicas: db-0 stays on doomed node spot-0: db-3 {why}, and nothing tells that"
            " another would fare better; it moves when db-3 has a node"
        )
        near = observed(*five(in_seconds(40, lower), other), in_force=(0, 1, 2, 3), ordered=ordered)
        assert place(near, MAJORITY, state).evict is not None

    def test_one_whose_turn_has_not_come_is_not_away(self) -> None:
        """A scale-up in order: what is above the one that starts is not missing."""
        starts = member(5, OD, ready=False, created=ago(90))
        lower = member(0, SPOT, NodeStatus.DOOMED)
        seven = (*five(lower), starts, Member(6))
        placed = place(observed(*seven, in_force=(0, 1, 2, 3)), MAJORITY, RebalanceState())
        assert placed.evict is not None

    def test_a_move_that_found_no_node_is_remembered(self) -> None:
        """On-demand is full: another member is not tried for the same rest."""
        state = RebalanceState(failed_covers=Backoff(1), last_step=ago(20))
        placed = place(observed(*five(DOOMED), in_force=IN_FORCE), MAJORITY, state)
        assert (placed.evict, placed.requeue_after_s) == (None, 100)
        assert placed.verdict.reason is Reason.MOVE_UNDONE
        near = place(observed(*five(in_seconds(40)), in_force=IN_FORCE), MAJORITY, state)
        assert near.evict is not None


class TestCordoned:
    """A node that is cordoned or drained without a deadline leaves time for a planned move."""

    def test_room_first(self) -> None:
        """The ordinal joins when the room is held: drained before, the pod starts wherever it can."""
        waits = place(observed(*five(CORDONED)), MAJORITY, RebalanceState())
        assert (waits.ordinals, waits.evict) == ((0, 1, 2), None)
        assert waits.reservation == Reservation(Pool.ON_DEMAND, 4)
        assert said(waits) == (
            "WaitingForRoom: db-4 stays on doomed node spot-4 until room on on-demand is held for it: a"
            " placeholder asks for it"
        )
        held = reservation(4, Pool.ON_DEMAND, on_spot=False)
        joins = place(observed(*five(CORDONED), placeholder=held), MAJORITY, waits.state)
        assert (joins.ordinals, joins.evict) == (IN_FORCE, None)
        moves = place(observed(*five(CORDONED), placeholder=held, in_force=IN_FORCE), MAJORITY, joins.state)
        assert moves.evict is not None
        assert moves.state.restarts == (Restart(4, NOW, planned=True),)
        assert said(moves) == (
            "SpotInterrupted: evict db-4: node spot-4 is to go (cordoned); it starts again on on-demand,"
            " where its room is held"
        )

    def test_a_drain_joins_at_once(self) -> None:
        """The node goes for sure: what another client evicts starts on on-demand, as P7 has it."""
        drained = member(4, SPOT, NodeStatus.DOOMED, undated=True)
        assert place(observed(*five(drained)), MAJORITY, RebalanceState()).ordinals == IN_FORCE
        waits = place(observed(*five(drained), in_force=IN_FORCE), MAJORITY, RebalanceState())
        assert (waits.evict, waits.reservation) == (None, Reservation(Pool.ON_DEMAND, 4))

    def test_it_leaves_the_set_with_its_room(self) -> None:
        """A rival has preempted the placeholder."""
        placed = place(observed(*five(CORDONED), in_force=IN_FORCE), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2)

    @pytest.mark.parametrize(
        ("fields", "planned"),
        [
            ({"undated": True}, True),
            ({"cordoned": True}, True),
            ({"deadline": NOW + timedelta(seconds=601)}, True),
            ({"deadline": NOW + timedelta(seconds=600)}, False),
            ({"cordoned": True, "deadline": NOW + timedelta(seconds=60)}, False),
            ({}, False),
        ],
    )
    def test_which_nodes_leave_time(self, fields: dict[str, Any], planned: bool) -> None:
        """Those that say nothing of an end, or of one that is far."""
        one = member(4, SPOT, NodeStatus.DOOMED, **fields)
        placed = place(observed(*five(one), in_force=IN_FORCE), MAJORITY, RebalanceState())
        assert (placed.evict is None) is planned
        assert (placed.reservation is not None) is planned

    def test_a_node_that_falls_silent_is_lost(self) -> None:
        """Whatever its deadline was: its ordinal joins at once."""
        far = NOW + timedelta(seconds=3600)
        lost = member(4, SPOT, NodeStatus.LOST, deadline=far, undated=True)
        placed = place(observed(*five(lost)), MAJORITY, RebalanceState())
        assert (placed.ordinals, placed.reservation) == (IN_FORCE, None)

    def test_others_on_cordoned_nodes_count_as_available(self) -> None:
        """They are ready until another client drains them."""
        both = five(CORDONED, member(3, SPOT, NodeStatus.DOOMED, cordoned=True))
        held = reservation(3, Pool.ON_DEMAND, on_spot=False)
        seen = observed(*both, placeholder=held, in_force=(0, 1, 2, 3))
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.evict is not None
        assert placed.evict.pod == "db-3"

    def test_all_others_have_to_be_available(self) -> None:
        """And who is not is named, with what the controller would do."""
        held = reservation(4, Pool.ON_DEMAND, on_spot=False)
        seen = observed(*five(CORDONED, ILL), placeholder=held, in_force=IN_FORCE)
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.evict is None
        assert said(placed) == (
            "WaitingForReplicas: db-4 stays on doomed node spot-4: db-1 is not ready, and the StatefulSet"
            " controller (OrderedReady) would not make db-4 again; it moves when db-1 is available"
        )
        parallel = place(replace(seen, ordered=False), MAJORITY, RebalanceState())
        assert parallel.evict is None
        assert "4 of 5 are ready on nodes that stay, db-1 is not" in parallel.verdict.message

    def test_a_notice_elsewhere_goes_first(self) -> None:
        """What is cordoned waits until nothing is in a hurry."""
        seen = observed(*five(member(3, SPOT, NodeStatus.DOOMED, cordoned=True), DOOMED), in_force=IN_FORCE)
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.evict is not None
        assert placed.evict.pod == "db-4"

    def test_the_cap_of_on_demand(self) -> None:
        """No room is asked for that it would not give."""
        capped = Policy(on_demand_base="majority", on_demand_max=3)
        placed = place(observed(*five(CORDONED)), capped, RebalanceState())
        assert (placed.reservation, placed.verdict.reason) == (None, Reason.ON_DEMAND_CAPPED)

    @pytest.mark.parametrize("n", [1, 2])
    def test_too_few_are_left_where_they_are(self, n: int) -> None:
        """One of two is no majority."""
        members = tuple(member(k, SPOT, NodeStatus.DOOMED, cordoned=True) for k in range(n))
        placed = place(observed(*members, in_force=()), Policy(), RebalanceState())
        assert (placed.evict, placed.reservation) == (None, None)
        assert placed.verdict.reason is Reason.QUORUM_HELD


@pytest.mark.parametrize("cause", [Cause.ORDER, Cause.NOTICE, Cause.UNBOUND])
def test_the_gate_asks_whatever_the_cause(cause: Cause) -> None:
    """So no path that ends a pod gets around it."""
    seen = observed(*five(ILL, member(4, SPOT)))
    pod = seen.members[4].pod
    assert pod is not None
    held = hindrance(seen, End(4, pod, cause), RebalanceState(), Tuning())
    assert held is not None
    assert "db-1 is not ready" in held.note.message

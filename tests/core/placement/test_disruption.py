"""The gate for the end of a pod: evidence, quorum, budget, back-off, and a count that nothing gets around."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, ago, pod
from core.placement.placed_members import MAJORITY, OD, SPOT, five, member, observed, reservation, said
from cpu import cpu_below
from splitter.core.placement.disruption import Cause, End, hindrance, permitted
from splitter.core.placement.members import Member
from splitter.core.placement.place import place
from splitter.core.reasons import Reason
from splitter.core.rebalance import Tuning
from splitter.core.replica import NodeStatus, Pool
from splitter.core.split_status import RebalanceState, Restart
from splitter.core.split_status.backoff import Backoff

HELD_UP = reservation(1, Pool.ON_DEMAND, on_spot=False)
MISPLACED = five(member(1, SPOT))
DOOMED = five(member(4, SPOT, NodeStatus.DOOMED))
VANISHED = five(member(4, SPOT, NodeStatus.LOST, vanished=True, vanished_since=ago(10)))
IN_FORCE = (0, 1, 2, 4)


class TestEvidence:
    """How old it is, and who says it."""

    def test_a_node_that_went_while_ready_may_still_run_its_pods(self) -> None:
        """Deleted by hand, or registering anew: as long as Kubernetes' own collector waits, so do we."""
        placed = place(observed(*VANISHED, in_force=IN_FORCE), MAJORITY, RebalanceState())
        assert (placed.vanished, placed.state.restarts, placed.requeue_after_s) == ((), (), 30)
        assert said(placed) == (
            "SpotLost: db-4 is removed at 10:00:30Z: Node spot-4 was Ready when its object went, so the pod"
            " may still run there, or the node may register anew"
        )
        later = replace(observed(*VANISHED, in_force=IN_FORCE), now=NOW + timedelta(seconds=30))
        assert [one.name for one in place(later, MAJORITY, RebalanceState()).vanished] == ["db-4"]

    def test_one_that_was_going_is_gone(self) -> None:
        """It had a notice, or was not Ready: nothing of it runs."""
        gone = replace(VANISHED[4], pod=replace(VANISHED[4].pod, vanished_since=None))  # type: ignore[type-var]
        placed = place(observed(*five(gone), in_force=IN_FORCE), MAJORITY, RebalanceState())
        assert [one.name for one in placed.vanished] == ["db-4"]
        assert placed.state.restarts == (Restart(4, NOW),)

    def test_frozen_waits_as_long(self) -> None:
        """And looks again when it is over."""
        frozen = replace(MAJORITY, freeze=True)
        placed = place(observed(*VANISHED, in_force=IN_FORCE), frozen, RebalanceState())
        assert (placed.vanished, placed.requeue_after_s) == ((), 30)

    def test_a_node_that_registered_anew_keeps_its_pods(self) -> None:
        """Its kubelet starts what is bound to it: nobody has to end that, least of all everybody at once."""
        again = [
            member(k, OD, NodeStatus.LOST, vanished=True, successor="uid-again", vanished_since=ago(999))
            for k in (0, 1, 2)
        ]
        placed = place(observed(*five(*again)), MAJORITY, RebalanceState())
        assert (placed.vanished, placed.evict) == ((), None)
        assert placed.outlook[0] == (
            "db-0: on node od-0, which has gone or says nothing; wanted on on-demand: the kubelet of the new"
            " node od-0 starts it"
        )

    @pytest.mark.parametrize("members", [MISPLACED, DOOMED], ids=["in the wrong pool", "doomed"])
    def test_nobody_is_evicted_that_nothing_would_place(self, members: object) -> None:
        """It would start anywhere, on the node that goes as well; no room is held for it either."""
        seen = observed(*members, in_force=(0, 1, 2, 4) if members is DOOMED else (0, 1, 2))  # type: ignore[misc]
        seen = replace(seen, unplaceable="the policy is not there", placeholder=HELD_UP)
        placed = place(seen, MAJORITY, RebalanceState())
        assert (placed.evict, placed.reservation, placed.verdict.reason) == (
            None,
            None,
            Reason.PLACEMENT_UNSUPPORTED,
        )
        assert place(replace(seen, unplaceable=""), MAJORITY, RebalanceState()).evict is not None

    def test_one_pod_without_its_label_speaks_for_all(self) -> None:
        """The policy does not act: nobody is evicted until it is tried once more, later."""
        state = RebalanceState(moved=3, moved_uid="before", moved_up=True, last_step=ago(10))
        seen = observed(
            *five(member(4, SPOT, NodeStatus.DOOMED), member(3, SPOT, born=None)), in_force=IN_FORCE
        )
        placed = place(seen, MAJORITY, state)
        assert (placed.evict, placed.state.unplaced, placed.state.failed_covers.count) == (None, True, 1)
        assert placed.verdict.reason is Reason.PLACEMENT_UNSUPPORTED
        assert placed.requeue_after_s == 120
        later = replace(seen, now=NOW + timedelta(seconds=121))
        assert place(later, MAJORITY, placed.state).evict is not None

    def test_nobody_is_ended_before_the_policy_is_told(self) -> None:
        """What a reconcile does not write, it does not count either."""
        placed = place(observed(*DOOMED, in_force=IN_FORCE, published=False), MAJORITY, RebalanceState())
        assert (placed.evict, placed.state.restarts, placed.state.moved) == (None, (), None)
        frozen = replace(MAJORITY, freeze=True)
        gone = replace(VANISHED[4], pod=replace(VANISHED[4].pod, vanished_since=None))  # type: ignore[type-var]
        placed = place(observed(*five(gone), in_force=IN_FORCE, published=False), frozen, RebalanceState())
        assert (placed.vanished, placed.state.restarts) == ((), ())


class TestCount:
    """So often within an hour, and no more."""

    def test_of_a_doomed_member(self) -> None:
        """The fifth time within an hour it stays, and is told when it is looked at again."""
        state = RebalanceState(restarts=tuple(Restart(4, ago(s)) for s in (3000, 2000, 1000, 100)))
        placed = place(observed(*DOOMED, in_force=IN_FORCE), MAJORITY, state)
        assert placed.evict is None
        assert placed.requeue_after_s is not None
        assert placed.requeue_after_s <= 601
        assert said(placed) == (
            "RestartLimit: db-4 is left alone until 10:10:01Z: splitter has ended it 4 times within the hour"
        )
        later = replace(observed(*DOOMED, in_force=IN_FORCE), now=NOW + timedelta(seconds=601))
        assert place(later, MAJORITY, state).evict is not None

    def test_for_the_sake_of_order_half_as_often(self) -> None:
        """What is left is for emergencies. No room is held meanwhile: it may cost a node."""
        state = RebalanceState(
            restarts=(Restart(1, ago(2000), planned=True), Restart(1, ago(1000), planned=True))
        )
        seen = observed(*MISPLACED, placeholder=HELD_UP)
        placed = place(seen, MAJORITY, state)
        assert (placed.evict, placed.reservation, placed.verdict.reason) == (None, None, Reason.RESTART_LIMIT)
        assert place(seen, MAJORITY, RebalanceState(restarts=state.restarts[:1])).evict is not None

    def test_who_has_to_rest_holds_up_nobody_else(self) -> None:
        """On notice the other doomed member is moved; for the sake of order, the other misplaced one."""
        often = tuple(Restart(3, ago(s), planned=True) for s in (3000, 2000, 1000, 100))
        both = five(*(member(k, SPOT, NodeStatus.DOOMED) for k in (3, 4)))
        placed = place(observed(*both, in_force=(0, 1, 2, 3, 4)), MAJORITY, RebalanceState(restarts=often))
        assert placed.evict is not None
        assert placed.evict.pod == "db-4"
        misplaced = five(member(0, SPOT), member(1, SPOT))
        own = tuple(one._replace(ordinal=0) for one in often[:2])
        placed = place(observed(*misplaced), MAJORITY, RebalanceState(restarts=own))
        assert placed.reservation is not None
        assert placed.reservation.ordinal == 1

    def test_each_member_has_its_own(self) -> None:
        """And what is older than an hour is forgotten."""
        state = RebalanceState(restarts=(Restart(3, ago(10)), Restart(4, ago(3601))))
        placed = place(
            observed(*DOOMED, in_force=IN_FORCE), MAJORITY, replace(state, restarts=state.restarts[1:])
        )
        assert placed.state.restarts == (Restart(4, NOW),)

    def test_a_doomed_member_that_came_back_to_spot_waits_ever_longer(self) -> None:
        """Its node is not cordoned, and something pulls it there."""
        state = RebalanceState(
            failed_covers=Backoff(2),
            last_step=ago(100),
            restarts=(Restart(4, ago(300)), Restart(4, ago(100))),
        )
        placed = place(observed(*DOOMED, in_force=IN_FORCE), MAJORITY, state)
        assert (placed.evict, placed.requeue_after_s, placed.verdict.reason) == (
            None,
            140,
            Reason.MOVE_UNDONE,
        )

    @given(
        st.lists(st.tuples(st.sampled_from(Cause), st.integers(0, 1200)), max_size=60),
        st.integers(1, 6),
    )
    def test_whatever_is_asked(self, asked: list[tuple[Cause, int]], most: int) -> None:
        """Whatever the causes and the pauses between them, no hour has more ends of one member."""
        now, state, ended = NOW, RebalanceState(), []
        for cause, pause_s in asked:
            now += timedelta(seconds=pause_s)
            seen = replace(observed(*DOOMED, in_force=IN_FORCE), now=now)
            target = pod("db-4", NodeStatus.DOOMED, on_spot=True, uid=f"uid-{now}", created=now)
            granted, _, state = permitted(
                seen, [End(4, target, cause)], state, Tuning(restarts_per_hour=most)
            )
            ended += [now] * len(granted)
            assert sum(at > now - timedelta(hours=1) for at in ended) <= most

    def test_two_evictions_in_one_pass_are_one(self) -> None:
        """The quorum was counted before the first."""
        ends = [End(k, pod(f"db-{k}"), Cause.NOTICE) for k in (3, 4)]
        granted, _, state = permitted(observed(*five()), ends, RebalanceState(), Tuning())
        assert [one.ordinal for one in granted] == [3]
        assert state.restarts == (Restart(3, NOW),)

    def test_no_more_than_one_pass_writes(self) -> None:
        """What is counted is done: the others come in the next reconcile, which is soon."""
        lost = tuple(member(k, OD, NodeStatus.LOST, vanished=True) for k in range(30))
        seen = observed(*lost, in_force=tuple(range(16)))
        first = place(seen, MAJORITY, RebalanceState())
        assert (len(first.vanished), len(first.state.restarts), first.requeue_after_s) == (20, 20, 1.0)
        left = tuple(one if k >= 20 else Member(k) for k, one in enumerate(lost))
        second = place(replace(seen, members=left), MAJORITY, first.state)
        assert [one.name for one in second.vanished] == [f"db-{k}" for k in range(20, 30)]

    def test_who_has_to_wait_is_looked_at_again(self) -> None:
        """One is removed now, one of a node that went later: no event tells when its time is over."""
        lost = member(3, OD, NodeStatus.LOST, vanished=True)
        placed = place(observed(*five(lost, VANISHED[4]), in_force=IN_FORCE), MAJORITY, RebalanceState())
        assert ([one.name for one in placed.vanished], placed.requeue_after_s) == (["db-3"], 1.0)

    def test_what_is_remembered_survives_a_restart(self) -> None:
        """As JSON in the Split; what is malformed is left out."""
        state = RebalanceState(
            restarts=(Restart(0, ago(10)), Restart(4, NOW, planned=True)),
            moved=4,
            moved_uid="u",
            moved_up=True,
        )
        assert RebalanceState.from_json(state.to_json()) == state
        at = "2026-01-05T10:00:00Z"
        odd = {"restarts": [[4, at, False], [4], ["x", "y", True], 7, [-1, at, True]]}
        assert RebalanceState.from_json(odd).restarts == (Restart(4, NOW),)
        forged = {"restarts": [[k, at, False] for k in range(100_000)]}
        assert len(RebalanceState.from_json(forged).restarts) == 4096

    def test_a_thousand_members_are_decided_in_time(self) -> None:
        """All doomed, each ended as often as may be: less than a second, whatever the Split remembers."""
        doomed = tuple(member(k, SPOT, NodeStatus.DOOMED) for k in range(1000))
        often = tuple(Restart(k, ago(60)) for k in range(1000) for _ in range(4))
        seen = observed(*doomed, in_force=tuple(range(1000)))
        with cpu_below(1.0):
            outcome = place(seen, MAJORITY, RebalanceState(restarts=often))
        assert outcome.verdict.reason is Reason.RESTART_LIMIT


def test_without_a_node_nobody_asks_for_a_majority() -> None:
    """Nothing of them runs: there is none to keep by waiting."""
    lost = five(*(member(k, SPOT, NodeStatus.LOST, vanished=True) for k in range(5)))
    seen = observed(*lost, in_force=tuple(range(5)))
    assert hindrance(seen, End(4, pod("db-4"), Cause.VANISHED), RebalanceState(), Tuning()) is None

"""What is seen of a workload: which pods count, serve, wait and go, and who holds them."""

from itertools import product
from typing import Any

import pytest

from builders import NOW, ago, observation, pod, pods, replica_set, source, split, twin
from splitter.core.clock import Waits
from splitter.core.model import Attachment, Move, NodeStatus, Pool, ReplicaState, Trouble, seconds_between
from splitter.core.reasons import Reason
from splitter.core.split_status import UNREPORTED, RebalanceState


class TestPods:
    @pytest.mark.parametrize(
        ("fields", "status", "counts", "available", "going", "doomed"),
        [
            ({}, NodeStatus.SOUND, True, True, False, False),
            ({"ready_since": None}, NodeStatus.SOUND, True, False, False, False),
            ({}, NodeStatus.UNSEEN, True, False, False, False),
            ({}, NodeStatus.DOOMED, True, False, True, True),
            ({"ready_since": None}, NodeStatus.DOOMED, True, False, True, True),
            ({}, NodeStatus.LOST, True, False, True, False),
            ({}, NodeStatus.UNBOUND, True, False, False, False),
            ({"terminating": True}, NodeStatus.SOUND, False, False, False, False),
            ({"terminating": True}, NodeStatus.DOOMED, False, False, True, False),
            ({"finished": True}, NodeStatus.SOUND, False, False, False, False),
        ],
    )
    def test_by_their_node_and_readiness(
        self,
        fields: dict[str, Any],
        status: NodeStatus,
        *,
        counts: bool,
        available: bool,
        going: bool,
        doomed: bool,
    ) -> None:
        """A doomed one is not available: who relies on it would have nothing when it goes."""
        one = pod("web", status, **fields)
        assert (one.counts, one.available, one.going, one.state is ReplicaState.DOOMED) == (
            counts,
            available,
            going,
            doomed,
        )

    def test_each_is_in_one_state_and_the_state_agrees_with_what_is_asked_of_it(self) -> None:
        """Over all that a state is decided by: life first, then the node, then readiness."""
        troubles = (None, Trouble(Reason.VOLUME_UNAVAILABLE, "gone"), Trouble(Reason.CRASH_LOOPING, "exit 1"))
        seen = set()
        for status, ready, terminating, finished, vanished, trouble in product(
            NodeStatus, (NOW, None), (False, True), (False, True), (False, True), troubles
        ):
            life = {"terminating": terminating, "finished": finished, "vanished": vanished}
            one = pod("web", status, ready_since=ready, trouble=trouble, **life)
            counts = not terminating and not finished
            state = one.state
            seen.add(state)
            assert state.counts is one.counts is counts
            assert one.ready is (counts and ready is not None)
            assert one.serves is (one.ready and status is not NodeStatus.LOST)
            assert one.available is (one.ready and status is NodeStatus.SOUND)
            assert (state is ReplicaState.OVER) is finished
            if counts:
                lost = {True: ReplicaState.VANISHED, False: ReplicaState.SILENT}[vanished]
                assert (state is lost) is state.is_lost is (status is NodeStatus.LOST)
                assert (state is ReplicaState.DOOMED) is (status is NodeStatus.DOOMED)
                assert state.is_placed is (status in {NodeStatus.SOUND, NodeStatus.UNSEEN})
                no_node_helps = trouble is not None and trouble.reason is Reason.VOLUME_UNAVAILABLE
                assert (state is ReplicaState.HINDERED) is (status is NodeStatus.UNBOUND and no_node_helps)
        assert seen == set(ReplicaState)

    @pytest.mark.parametrize(
        ("fields", "of_replica_set", "of_stateful_set"),
        [
            ({}, True, True),
            ({"terminating": True}, False, True),
            ({"vanished": True}, False, True),
            ({"finished": True}, False, False),
            ({"node_status": NodeStatus.SOUND, "terminating": True}, False, False),
        ],
    )
    def test_who_is_to_be_replaced(
        self, fields: dict[str, Any], *, of_replica_set: bool, of_stateful_set: bool
    ) -> None:
        """A ReplicaSet does so itself as soon as one is to end; a StatefulSet waits for the name."""
        lost = {"node_status": NodeStatus.LOST, **fields}
        assert pod("web", **lost).is_to_be_replaced is of_replica_set
        assert pod("db-0", ordinal=0, **lost).is_to_be_replaced is of_stateful_set

    @pytest.mark.parametrize(
        ("waited_s", "stuck"), [(None, False), (59.0, False), (59.9, False), (60.0, True)]
    )
    def test_is_stuck_after_the_grace(self, waited_s: float | None, *, stuck: bool) -> None:
        """One that ends waits for nothing."""
        since = ago(waited_s) if waited_s is not None else None
        one = pod("web", NodeStatus.UNBOUND, unschedulable_since=since)
        assert one.is_stuck(Waits(NOW), 60.0) is stuck
        ends = pod("web", NodeStatus.UNBOUND, unschedulable_since=since, terminating=True)
        assert not ends.is_stuck(Waits(NOW), 60.0)


class TestRefused:
    @pytest.mark.parametrize(("spec", "refused"), [(5, 2), (3, 0), (1, 0)])
    def test_is_what_is_missing(self, spec: int, refused: int) -> None:
        """Where the API server says no; else it is on its way."""
        why = Trouble(Reason.QUOTA_EXCEEDED, "pods: 3")
        ends = pod("ending", terminating=True)
        assert replica_set(spec=spec, of=(*pods(3), ends), refusal=why).refused == refused
        assert replica_set(spec=spec, of=pods(3)).refused == 0


class TestObservation:
    def test_who_holds_pods(self) -> None:
        """The source's ReplicaSets first, then the twins', on-demand's before spot's."""
        parked, attached = replica_set("web-1"), replica_set("web-2", attachment=Attachment.ATTACHED)
        seen = observation(
            source(),
            [parked, attached],
            on_demand=twin(Pool.ON_DEMAND, pods(1)),
            spot=twin(Pool.SPOT, pods(doomed=1)),
        )
        assert [rs.name for rs in seen.holders] == ["web-1", "web-2", "web-on-demand-1", "web-spot-1"]
        assert seen.attached_as(Attachment.PARKED) == (parked,)
        assert seen.attached_as(Attachment.RETURNING) == ()
        assert [one.is_losing for one in seen.twins] == [False, True]

    def test_of_twins_those_that_exist(self) -> None:
        """Either may be missing."""
        only = observation(spot=twin(Pool.SPOT))
        assert (only.twin(Pool.ON_DEMAND), only.twin(Pool.SPOT)) == (None, only.spot)
        assert [one.pool for one in only.twins] == [Pool.SPOT]

    def test_without_a_split_nothing_is_remembered(self) -> None:
        """With one, what it says."""
        assert observation(split=None).reported is UNREPORTED
        assert observation(split=None).rebalance == RebalanceState()
        assert observation(split=split(rebalance={"lost": True})).rebalance.lost


def test_a_move_is_said_with_its_difference() -> None:
    """As a sentence begins: who reads the decisions of a Split goes by it."""
    assert str(Move(Pool.SPOT, 8, 5)) == "scale spot 8 -> 5 (-3)"
    assert str(Move(Pool.ON_DEMAND, 0, 5)) == "scale on-demand 0 -> 5 (+5)"


def test_seconds_have_a_direction() -> None:
    """Clocks of two machines differ."""
    assert (seconds_between(ago(5), NOW), seconds_between(NOW, ago(5))) == (5.0, -5.0)

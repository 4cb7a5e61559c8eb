"""Which pods count, are ready, serve, wait and go: the one state that each is in."""

from itertools import product
from typing import Any

import pytest

from builders import NOW, ago, pod
from splitter.core.clock import Waits
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, ReplicaState, Trouble


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
            assert one.counts is counts
            assert (state in {ReplicaState.ENDING, ReplicaState.OVER}) is not counts
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

"""Members on spot nodes that go soon are moved at once, one at a time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, ago, pod
from core.placement.placed_members import MAJORITY, OD, SPOT, five, member, observed, said
from splitter.core.placeable import EvictionRefusal
from splitter.core.placement.members import Member
from splitter.core.placement.place import place
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Trouble
from splitter.core.split_status import RebalanceState, Restart


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
            member(0, OD, ready_since=ago(-3600)),
            member(0, OD, ready=False, unready_since=ago(-3600)),
        ],
        ids=[
            *("not ready for days", "slow to start"),
            *("ready in an hour by its node's clock", "not ready in an hour"),
        ],
    )
    def test_not_for_longer_than_the_notice_allows(self, other: Member) -> None:
        """Parallel: a doomed member goes anyway; more than half of the members stay ready all the same."""
        seen = observed(
            *five(member(3, SPOT, NodeStatus.DOOMED), other), in_force=(0, 1, 2, 3), ordered=False
        )
        placed = place(seen, MAJORITY, RebalanceState(restarts=(Restart(0, ago(61)),)))
        assert placed.evict is not None
        assert placed.evict.pod == "db-3"

    def test_until_the_last_one_is_available(self) -> None:
        """`minReadySeconds` counts, but no longer than a start does."""
        for ready_s, moved in ((1, False), (61, True)):
            young = member(2, OD, ready_since=ago(ready_s))
            seen = observed(
                *five(young, member(3, SPOT, NodeStatus.DOOMED)),
                in_force=(0, 1, 2, 3),
                min_ready_s=600.0,
                ordered=False,
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
        """Parallel: it may never be ready, and the doomed go anyway; the majority is kept all the same."""
        crashing = member(0, OD, ready=False, trouble=Trouble(Reason.CRASH_LOOPING, "app"))
        seen = observed(*five(crashing, *self.both()[3:]), in_force=self.in_force, ordered=False)
        assert place(seen, MAJORITY, RebalanceState()).evict is not None

    def test_never_the_majority(self) -> None:
        """With two crashing, one more would leave 2 of 5."""
        crashing = [member(k, OD, ready=False, trouble=Trouble(Reason.CRASH_LOOPING, "app")) for k in (0, 1)]
        seen = observed(*five(*crashing, *self.both()[3:]), in_force=self.in_force, ordered=False)
        placed = place(seen, MAJORITY, RebalanceState())
        assert placed.evict is None
        assert said(placed) == (
            "QuorumHeld: db-3 stays on doomed node spot-3: without it 2 of 5 would be ready, no majority"
        )

    def test_what_does_not_serve_goes_first(self) -> None:
        """It costs nothing."""
        idle = member(4, SPOT, NodeStatus.DOOMED, ready=False, trouble=Trouble(Reason.NOT_READY, ""))
        crashing = [member(k, OD, ready=False, trouble=Trouble(Reason.CRASH_LOOPING, "app")) for k in (0, 1)]
        seen = observed(
            *five(*crashing, member(3, SPOT, NodeStatus.DOOMED), idle), in_force=self.in_force, ordered=False
        )
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

    def test_who_has_ended_with_its_node_is_made_again(self) -> None:
        """A graceful shutdown leaves pods that have failed: no cap has anything to do with it."""
        ended = member(4, SPOT, NodeStatus.DOOMED, finished=True, ready=False)
        placed = place(observed(*five(ended), in_force=(0, 1, 2, 4)), MAJORITY, RebalanceState())
        assert said(placed) == "WaitingForReplicas: db-4 has ended on doomed node spot-4, and is made again"

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

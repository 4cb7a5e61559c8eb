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
from splitter.core.placeable import EvictionRefusal
from splitter.core.placement.members import Member, spoken
from splitter.core.placement.place import place
from splitter.core.reasons import Reason
from splitter.core.split_status import RebalanceState, Restart

SAYS_NOTHING = "which has gone or says nothing"


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

"""Placement: which ordinals are on on-demand, and which one pod is moved next."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import ago, pod
from core.placement.placed_members import MAJORITY, OD, SPOT, five, member, observed, reservation, said
from splitter.core.labels_annotations.policy import Policy
from splitter.core.placement.members import Member, spoken
from splitter.core.placement.place import place
from splitter.core.replica import NodeStatus, Pool, Replica
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
        assert placed.requeue_after_s == 80

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


def views() -> st.SearchStrategy[Replica | None]:
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
        pods: list[Replica | None],
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

"""The arithmetic of MAKE and BREAK, and how holders are counted for it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import observation, pod, pods, replica_set, source, twin, twin_of
from holding import share
from splitter.core.holders.holder import floor_of, is_rolling
from splitter.core.holders.shares import Share, break_, make, surge_headroom
from splitter.core.replica import NodeStatus, Pool, ReplicaState


class TestCounting:
    """What a holder has, and what of it serves."""

    def test_available_is_counted_from_pods_and_capped(self) -> None:
        """A status that is full for a minute after its nodes are gone is not believed."""
        holder = share(replica_set(of=pods(2, lost=3)), target=0, rank=0)
        assert (holder.spec, holder.available) == (5, 2)

    def test_a_spec_caps_what_serves(self) -> None:
        """Scaled down a moment ago: the surplus is spent already."""
        assert share(replica_set(spec=2, of=pods(5)), target=0, rank=0).available == 2

    def test_unschedulable_replicas_take_no_room(self) -> None:
        """A Pending probe must not take the room that on-demand needs."""
        assert share(replica_set(of=pods(2, stuck=3)), target=0, rank=0).held == 2

    def test_pods_that_no_status_shows_take_room(self) -> None:
        """A ReplicaSet that was just scaled to 0 has its pods still."""
        lagging = replace(replica_set(spec=0, of=pods(starting=2)), status_replicas=0)
        assert share(lagging, target=0, rank=0).held == 2

    def test_a_doomed_pod_that_serves_is_not_free(self) -> None:
        """It goes only one for one with a newly available one."""
        holder = share(replica_set(of=pods(1, doomed=2, starting=1)), target=0, rank=0)
        assert [holder.cost(given) for given in range(5)] == [0, 0, 1, 2, 3]
        assert holder.shrink(least=4) == 1

    def test_a_rolling_twin_counts_the_least(self) -> None:
        """It may surge above its spec, and go down to spec - maxUnavailable; what it gives may be serving."""
        old = replica_set("a", 3, pods(3), template="v0")
        new = replica_set("b", 1, pods(starting=1))
        rolling = twin_of(Pool.SPOT, [old, new], updated=1, spec_replicas=4, max_surge=2, max_unavailable=2)
        holder = share(rolling, target=0, rank=0, on_demand=False)
        assert is_rolling(rolling)
        assert (holder.held, holder.available) == (6, 2)
        assert (holder.shrink(least=1), holder.shrink(least=0)) == (0, 4)

    def test_a_roll_begins_with_its_write(self) -> None:
        """From the write of a template on its controller may take replicas, long before pods show it."""
        calm = twin(Pool.SPOT, pods(4), max_unavailable=2)
        assert share(calm, 0, 0, on_demand=False).available == 4
        written = replace(calm, observed=False)
        assert share(written, 0, 0, on_demand=False).available == 2
        begun = replace(calm, template_hash="v2")
        assert is_rolling(begun)
        assert share(begun, 0, 0, on_demand=False).available == 2

    def test_what_its_controller_has_taken_from_a_replica_set_is_not_available(self) -> None:
        """The old ReplicaSet was cut to 3 and its pods are still 4; the sum with the new one says 4."""
        old = replica_set("a", 3, pods(4), template="v1")
        new = replica_set("b", 1, (), template="v2")
        rolling = twin_of(
            Pool.ON_DEMAND, [old, new], template="v3", updated=0, spec_replicas=4, max_surge=2, observed=False
        )
        assert share(rolling, 4, 0, on_demand=True).available == 3

    def test_ready_pods_that_no_status_shows_may_go_in_a_roll(self) -> None:
        """The Deployment controller cleans up what the status of an old ReplicaSet calls unavailable."""
        old = replace(replica_set("a", 3, pods(3), template="v1"), available_replicas=1)
        new = replica_set("b", 2, pods(2), template="v2")
        rolling = twin_of(Pool.ON_DEMAND, [old, new], template="v2", updated=2, available_replicas=5)
        assert share(rolling, 4, 0, on_demand=True).available == 3

    def test_a_roll_in_which_nothing_serves_is_free(self) -> None:
        """Whichever replicas the controller takes, nobody misses them."""
        old = replica_set("a", 2, pods(starting=2), template="v0")
        new = replica_set("b", 1, pods(starting=1))
        broken = twin_of(Pool.SPOT, [old, new], updated=1, spec_replicas=2)
        assert share(broken, target=0, rank=0, on_demand=False).shrink(least=2) == 2

    def test_a_terminating_pod_is_nobodys(self) -> None:
        """Neither available nor free nor doomed."""
        ending = pod(terminating=True)
        assert not ending.available
        assert replace(ending, node_status=NodeStatus.DOOMED).state is ReplicaState.ENDING


COUNTS = st.integers(0, 12)


@st.composite
def holders(draw: st.DrawFn) -> list[Share]:
    """Draw up to four holders whose numbers fit together."""
    made = []
    for number in range(draw(st.integers(1, 4))):
        spec = draw(COUNTS)
        available = draw(st.integers(0, spec))
        target = draw(COUNTS)
        made.append(Share(f"h{number}", spec, spec, available, target, number == 0, number))
    return made


class TestMake:
    """Growing, within the room."""

    @given(holders(), COUNTS)
    def test_never_exceeds_room_or_target(self, given_holders: list[Share], space: int) -> None:
        """What is made fits into the room, and nobody grows past the target."""
        grown = make(given_holders, space)
        by_name = {holder.name: holder for holder in given_holders}
        assert sum(spec - by_name[name].spec for name, spec in grown.items()) <= space
        for name, spec in grown.items():
            assert by_name[name].spec < spec <= by_name[name].target

    @pytest.mark.parametrize(("given", "kept"), [(0, 4), (1, 4), (2, 3), (9, 0)])
    def test_who_gives_keeps_what_its_spec_leaves(self, given: int, kept: int) -> None:
        """No more than is available, and never less than nothing."""
        assert Share("x", 5, 5, 4, 0).kept(given) == kept

    def test_on_demand_comes_first(self) -> None:
        """The safe half is made before the cheap one."""
        spot = Share("spot", 0, 0, 0, 6)
        on_demand = Share("on-demand", 0, 0, 0, 2, on_demand=True)
        assert make([spot, on_demand], 3) == {"on-demand": 2, "spot": 1}

    def test_room_makes_place_for_what_goes(self) -> None:
        """In an emergency the doomed do not take the place of their replacements."""
        held = [Share("x", 13, 13, 10, 10)]
        assert surge_headroom(held, 10, 3, going=0) == 0
        assert surge_headroom(held, 10, 3, going=4) == 4


class TestBreak:
    """Shrinking, down to the floor."""

    @given(holders(), COUNTS)
    def test_never_goes_below_the_floor(self, given_holders: list[Share], floor: int) -> None:
        """Of what serves, no more goes than is above the floor."""
        shrunk = break_(given_holders, floor)
        before = sum(holder.available for holder in given_holders)
        after = 0
        for holder in given_holders:
            left = shrunk.get(holder.name, holder.spec)
            assert min(holder.spec, holder.target) <= left <= holder.spec
            after += min(holder.available, left)
        assert after >= min(before, floor)

    def test_takes_the_lowest_rank_first(self) -> None:
        """Parked ones oldest first, then spot, then on-demand."""
        old = Share("old", 2, 2, 2, 0, rank=0)
        spot = Share("spot", 4, 4, 4, 2, rank=1)
        assert break_([spot, old], floor=3) == {"old": 0, "spot": 3}

    @pytest.mark.parametrize(
        ("replicas", "surge", "unavailable", "floor"),
        [(10, 3, 2, 10), (10, 0, 2, 8), (1, 1, 0, 1), (0, 0, 1, 0), (1, 0, 1, 0)],
    )
    def test_the_floor(self, replicas: int, surge: int, unavailable: int, floor: int) -> None:
        """F is N where surge is allowed, N - U where it is not, and never negative."""
        assert floor_of(replicas, surge, unavailable) == floor


def test_the_source_of_the_builders_is_at_rest() -> None:
    """The builders say what they mean."""
    assert source().paused
    assert observation().split is not None

"""An outage of spot that is known before fewer replicas are wanted on spot is known after (R29)."""

from dataclasses import replace

import pytest

from core.rebalance.tiny_world import World
from splitter.core.labels_annotations.policy import Policy

ALL_ON_SPOT = Policy()
GONE_S = 60


def in_outage(policy: Policy = ALL_ON_SPOT, *, left: int = 0) -> World:
    """Return 6 replicas that have lost their spot nodes, but for some, and are covered."""
    world = World(6, policy, max_surge=2).settle()
    world.run(7200, every_s=60)
    world.remove_spot_nodes(6 - left)
    world.run(GONE_S)
    assert world.ready == 6
    return world


def scale(world: World, *counts: int, waits_s: int = 300) -> None:
    """Scale to each count in turn, and wait before the next."""
    for count in counts[:-1]:
        world.desired = count
        world.run(waits_s)
    world.desired = counts[-1]


class TestZeroReplicas:
    """KEDA and other tools scale to 0 at night."""

    @pytest.mark.parametrize("waits_s", [5, 300, 36_000])
    def test_the_outage_is_covered_at_once_afterwards(self, waits_s: int) -> None:
        """Nothing of spot has come back: on-demand is asked for all in the first reconcile."""
        world = in_outage()
        scale(world, 0, 6, waits_s=waits_s)
        decision = world.step()
        assert decision.on_demand == 6
        assert decision.spot >= 1

    def test_a_notice_is_covered_at_once_afterwards(self) -> None:
        """The replicas were scaled to 0 while their nodes had a notice."""
        world = World(6, ALL_ON_SPOT, max_surge=2).settle()
        world.doom_spot_nodes(6)
        world.step()
        scale(world, 0, 6)
        world.remove_spot_nodes(6, doomed=True)
        assert world.step().on_demand == 6

    def test_a_shortage_is_covered_at_once_afterwards(self) -> None:
        """No node was lost: spot had no room for the whole grace, and has none now."""
        world = World(0, ALL_ON_SPOT, max_surge=2).settle()
        scale(world, 6, 0, 6)
        assert world.step().on_demand == 6

    def test_a_start_that_was_cut_short_is_no_shortage(self) -> None:
        """Scaled up and down within the grace, spot is waited for as before."""
        world = World(0, ALL_ON_SPOT, max_surge=2).settle()
        scale(world, 6, 0, 6, waits_s=60)
        assert world.step().on_demand == 0

    def test_room_for_all_ends_it(self) -> None:
        """Spot nodes have come back meanwhile, for others: they are asked for all, and on-demand for none."""
        for world in (in_outage(), World(0, ALL_ON_SPOT, max_surge=2).settle()):
            scale(world, 6, 0, 6)
            world.add_spot_nodes(6)
            decision = world.step()
            assert (decision.on_demand, decision.spot) == (0, 6)
            world.run(120)
            assert (world.ready, world.state.lost, world.state.short_since) == (6, False, None)

    def test_room_for_some_does_not(self) -> None:
        """Spot takes what it has room for, and on-demand covers all until those are ready."""
        world = in_outage()
        scale(world, 0, 6)
        world.add_spot_nodes(3)
        decision = world.step()
        assert (decision.on_demand, decision.spot) == (6, 2)

    def test_it_ends_when_spot_is_back(self) -> None:
        """All replicas return to spot, and the next scaling waits for spot as before."""
        world = in_outage()
        scale(world, 0, 6)
        world.run(300)
        world.add_spot_nodes(8)
        world.run(7200, until=lambda: world.specs == (0, 6) and world.ready == 6)
        assert not world.state.lost
        world.desired = 12
        assert world.step().on_demand == 0

    def test_the_window_begins_again(self) -> None:
        """It doubles from one replica on, whatever was asked for before."""
        world = in_outage(left=5)
        world.desired = 0
        world.run(60)
        world.remove_spot_nodes(5)
        world.desired = 6
        world.run(60)
        world.add_spot_nodes(1)
        world.run(60)
        assert (world.state.window, world.spot_spec) == (2, 2)


class TestFewerOnSpot:
    """Less is wanted on spot than before, for another reason."""

    def test_survivors_are_no_proof(self) -> None:
        """4 of 6 are lost and not back; scaled to the 2 that are left and up again, 4 are missing."""
        world = in_outage(left=2)
        scale(world, 2, 6, waits_s=1200)
        assert world.specs == (0, 2)
        assert world.step().on_demand == 4

    def test_nor_are_those_that_had_room(self) -> None:
        """Spot had room for 2 of 6 and no more; scaled to 2 and up again, 4 are missing."""
        world = World(0, ALL_ON_SPOT, max_surge=2).settle()
        world.add_spot_nodes(2)
        scale(world, 6, 2, 6, waits_s=1200)
        assert world.specs == (0, 2)
        assert world.step().on_demand == 4

    def test_nor_are_those_that_came_back(self) -> None:
        """3 of 6 came back, the others did not; scaled to 3 and up again, 3 are missing."""
        world = in_outage()
        world.add_spot_nodes(3)
        world.run(1800)
        scale(world, 3, 6, waits_s=1800)
        assert world.step().on_demand == 3

    def test_one_more_replica_is_proof(self) -> None:
        """Spot grows beyond the survivors: the outage is over."""
        world = in_outage(left=2)
        scale(world, 2, 3)
        world.add_spot_nodes(4)
        world.run(1800)
        assert (world.specs, world.state.lost) == ((0, 3), False)
        world.desired = 6
        assert world.step().on_demand == 0

    @pytest.mark.parametrize("none", [Policy(spot_percent=0), Policy(spot_max=0), Policy(on_demand_base=6)])
    def test_a_policy_without_spot_proves_nothing(self, none: Policy) -> None:
        """Back to the first policy while on-demand holds none: what is missing is covered at once."""
        world = in_outage()
        world.policy = none
        world.run(600)
        scale(world, 0, 6)
        world.policy = ALL_ON_SPOT
        assert world.step().on_demand == 6

    def test_frozen_meanwhile(self) -> None:
        """Frozen at 0 replicas, and no longer."""
        world = in_outage()
        world.desired = 0
        world.run(60)
        world.policy = replace(ALL_ON_SPOT, freeze=True)
        scale(world, 0, 6)
        world.step()
        world.policy = ALL_ON_SPOT
        assert world.step().on_demand == 6

    def test_a_notice_that_is_taken_back_is_proof(self) -> None:
        """The nodes stay: nothing is missing, nothing is remembered."""
        world = World(6, ALL_ON_SPOT, max_surge=2).settle()
        world.run(7200, every_s=60)
        world.doom_spot_nodes(4)
        world.step()
        assert world.state.lost
        world.spot_nodes = dict.fromkeys(world.spot_nodes, "healthy")
        world.run(20)
        assert not world.state.lost

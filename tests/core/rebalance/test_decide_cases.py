"""The cases that broke earlier drafts of the decision, played out in a tiny world."""

import copy
from dataclasses import replace
from datetime import timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.rebalance.tiny_world import START, STEP_S, World
from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.reasons import Reason
from splitter.core.rebalance import RebalanceInput, decide
from splitter.core.split_status import RebalanceState

EIGHTY = Policy(spot_percent=80)


class TestALossWithNotice:
    """A third of the spot nodes is announced to go, goes, and comes back."""

    def test_is_covered_before_it_happens_and_returned_after_it_has_proven_itself(self) -> None:
        """Never under N ready, never above N + S; back to the division by itself."""
        world = World(20, EIGHTY).settle()
        world.run(60)
        world.doom_spot_nodes(6)
        decision = world.step()
        assert decision.on_demand == 10
        assert decision.notes[0].reason is Reason.SPOT_INTERRUPTED
        world.run(60)
        world.remove_spot_nodes(6, doomed=True)
        world.run(300)
        assert world.ready == 20
        world.add_spot_nodes(6)
        world.run(3000, until=lambda: world.specs == (4, 16))
        world.run(120)
        assert world.specs == (4, 16)
        assert world.least_ready >= 14
        assert world.most_ready <= 25

    def test_lets_the_doomed_go_when_cover_has_stood_for_the_release(self) -> None:
        """Doomed nodes that stay (a cordon): replaced, then let go after 60 s, one probe stays."""
        world = World(20, EIGHTY).settle()
        world.run(60)
        world.doom_spot_nodes(6)
        world.run(300, until=lambda: world.history != [] and world.doomed == 0)
        assert Reason.COVERED in {note.reason for d in world.history for note in d.notes}
        assert world.specs[0] == 10
        assert world.ready >= 20

    def test_a_probe_stays_asked_for_beside_doomed_nodes_that_stay(self) -> None:
        """All doomed replicas leave at once, then a new one is asked for: it is Pending, not doomed."""
        world = World(20, EIGHTY).settle()
        world.run(60)
        world.doom_spot_nodes(6)
        world.run(300)
        assert world.doomed == 0
        assert sum(pod.node is None for pod in world.spot) == 1
        assert world.specs == (10, 11)


class TestAllSpotGoneAtOnce:
    """The worst case: every spot node vanishes without a notice."""

    def test_is_covered_in_one_write_and_probed(self) -> None:
        """On-demand takes all; spot keeps asking for one, so that the autoscaler has something to buy for."""
        world = World(20, EIGHTY).settle()
        world.run(60)
        world.remove_spot_nodes(16)
        assert world.step().on_demand == 20
        world.run(120)
        assert world.specs == (20, 1)
        assert world.ready == 20

    def test_returns_within_minutes_of_the_first_proof(self) -> None:
        """One replica soaks; the rest follows at surge speed, never above N + S, never under N."""
        world = World(20, EIGHTY).settle()
        world.run(60)
        world.remove_spot_nodes(16)
        world.run(300)
        world.least_ready = world.ready
        world.add_spot_nodes(20)
        took_s = world.run(7200, until=lambda: world.specs == (4, 16) and world.ready == 20)
        assert 600 <= took_s <= 2400
        assert world.most_ready <= 25
        assert world.least_ready >= 20


class TestFlapping:
    """Part of the spot nodes come and go, the others stay."""

    def outages(self, every_s: int) -> World:
        """Take six of sixteen nodes without a notice, bring them back after a minute, four times."""
        world = World(20, EIGHTY).settle()
        world.run(7200)
        for _ in range(4):
            world.remove_spot_nodes(6)
            world.run(60)
            world.add_spot_nodes(6)
            world.run(every_s - 60)
        return world

    def test_the_survivors_prove_nothing(self) -> None:
        """Cover stays through a row of outages: having been old before a loss vouches for nothing."""
        world = self.outages(every_s=400)
        counts = [decision.on_demand for decision in world.history]
        assert counts == sorted(counts)
        assert 10 <= counts[-1] <= 13
        assert world.state.soak(world.policy.soak_s) == 3600

    def test_peace_ends_the_cover(self) -> None:
        """The soak after the last outage, and the split is back."""
        world = self.outages(every_s=400)
        took_s = world.run(7200, until=lambda: world.specs == (4, 16) and world.ready == 20)
        assert took_s <= 3600 + 400


class TestSpotThatEarnsNothing:
    """All of spot goes every hour, which is as long as the longest soak: it is paid for and never trusted."""

    @classmethod
    def hourly(cls, barren: int, policy: Policy = Policy()) -> World:  # noqa: B008 - frozen
        """Return a world of four after so many losses, once four have brought the soak to its longest.

        Nodes are back at once, and stay for an hour. Played once: each test goes on with a copy.
        """
        world = cls._hourly(barren, policy)
        return copy.deepcopy(world, {id(decision): decision for decision in world.history})  # never changed

    @classmethod
    @cache
    def _hourly(cls, barren: int, policy: Policy) -> World:
        if barren:
            world = cls.hourly(barren - 1, policy)
            cls.lose(world)
            return world
        world = World(4, policy, max_surge=2).settle()
        world.run(7200, every_s=60)
        for _ in range(4):
            cls.lose(world)
        return world

    @staticmethod
    def lose(world: World) -> None:
        """Take all spot nodes away, bring as many back, and let the rest of the hour pass."""
        world.remove_spot_nodes(100)
        world.step()
        world.add_spot_nodes(4)
        world.run(600 - STEP_S)
        world.run(3000, every_s=60)

    def test_is_asked_for_while_nobody_knows(self) -> None:
        """After nine losses that brought nothing spot is still probed, as after the first."""
        world = self.hourly(9)
        assert (world.state.barren, world.spot_spec) == (9, 2)

    def test_rests_as_long_as_it_has_earned_nothing(self) -> None:
        """After the tenth on-demand serves alone for ten hours, and says until when; spot has no replica."""
        world = self.hourly(10)
        assert world.specs == (4, 0)
        why = (
            "spot was lost 10 times in a row before it had earned anything (soak 3600 s): it costs more than"
            " it saves, and is tried again at 2026-01-06 11:00:05Z"
        )
        assert [(note.reason, note.message) for note in world.history[-1].notes] == [
            (Reason.SPOT_UNPROFITABLE, f"hold on-demand at 4, 0 wanted: {why}"),
            (Reason.SPOT_UNPROFITABLE, f"hold spot at 0, 4 wanted: {why}"),
        ]
        assert world.run(36_000, until=lambda: world.spot_spec > 0) == pytest.approx(32_400, abs=STEP_S)

    def test_is_tried_again_with_one_replica(self) -> None:
        """Whatever room there is, one has to stand for the soak. If it is lost, spot rests as long again."""
        world = self.hourly(10)
        world.run(36_000, until=lambda: world.spot_spec > 0)
        world.run(3000)
        assert world.specs == (4, 1)
        self.lose(world)
        assert world.state.barren == 11
        rest_s = world.run(200_000, until=lambda: world.spot_spec > 0, every_s=3 * STEP_S)
        assert rest_s == pytest.approx(75_000 - 3600, abs=3 * STEP_S)

    def test_comes_back_when_it_stays(self) -> None:
        """One soak of the one replica, and all return within minutes; the count begins anew."""
        world = self.hourly(10)
        world.run(36_000, until=lambda: world.spot_spec > 0)
        took_s = world.run(7200, until=lambda: world.specs == (0, 4))
        assert took_s <= 3600 + 600
        assert world.state.barren == 0

    def test_is_asked_for_at_once_where_on_demand_does_not_serve_alone(self) -> None:
        """Four replicas of which on-demand may hold two: spot earns its keep, whatever it costs."""
        world = self.hourly(12, Policy(on_demand_max=2))
        assert world.state.barren == 0
        assert world.spot_spec >= 2

    def test_a_part_that_stays_is_kept(self) -> None:
        """Losses of one node beside three that stay count for nothing: on-demand holds one replica for it."""
        world = World(4, Policy(), max_surge=2).settle()
        world.run(7200, every_s=60)
        for _ in range(12):
            world.remove_spot_nodes(1)
            world.step()
            world.add_spot_nodes(1)
            world.run(600 - STEP_S)
            world.run(3000, every_s=60)
        assert world.state.barren == 0


class TestThreeOutages:
    """The bar: all of spot gone for 60 s, three times, 120 s apart (16 of 20, a pod ready after 5 s)."""

    def test_only_the_first_one_hurts(self) -> None:
        """At most 110 replica-seconds lost in all, no return in between, and the division in the end."""
        world = World(20, EIGHTY, on_demand_start_s=STEP_S, spot_start_s=STEP_S).settle()
        world.run(7200)
        lost_s = 0
        for outage_s, peace_s in ((60, 120), (60, 120), (60, 120)):
            world.remove_spot_nodes(100)
            for _ in range(outage_s // STEP_S):
                world.step()
                lost_s += STEP_S * max(0, 20 - world.ready)
            world.add_spot_nodes(16)
            for _ in range(peace_s // STEP_S):
                world.step()
                lost_s += STEP_S * max(0, 20 - world.ready)
        # One start-up of sixteen replicas, seen in steps of five seconds.
        assert lost_s <= 16 * (STEP_S + 5)
        assert world.on_demand_spec == 20
        world.run(7200, until=lambda: world.specs == (4, 16) and world.ready == 20)
        assert world.specs == (4, 16)
        assert world.most_ready <= 25


class TestARestart:
    """splitter was down while things happened."""

    def test_a_shortage_that_nobody_watched_counts_from_its_beginning(self) -> None:
        """Pods that have been Pending for longer than the grace are covered in the first reconcile."""
        observed = RebalanceInput(
            now=START,
            desired=20,
            max_surge=5,
            max_unavailable=0,
            on_demand_spec=4,
            on_demand_ready=4,
            spot_spec=16,
            spot_pending_since=START - timedelta(seconds=200),
        )
        assert decide(observed, EIGHTY, RebalanceState()).on_demand == 20


class TestMaxSurgeZero:
    """A workload that allows no surge still comes back."""

    def test_returns_one_by_one(self) -> None:
        """The probe is one more than N; each soaked replica frees the place of the next."""
        world = World(10, EIGHTY, max_surge=0, max_unavailable=1).settle()
        world.run(60)
        world.remove_spot_nodes(8)
        world.run(300)
        assert world.specs == (10, 1)
        world.least_ready = world.ready
        world.add_spot_nodes(10)
        world.run(7200, until=lambda: world.specs == (2, 8) and world.ready == 10)
        assert world.specs == (2, 8)
        assert world.least_ready >= 9
        assert world.most_ready <= 11


class TestForgotten:
    """What a crash, or a status with room for so many, cannot remember."""

    def test_a_raise_that_nobody_remembers_makes_spot_soak(self) -> None:
        """Written, but not its status: 10 are there, 2 were decided, and proven spot is believed no more."""
        young = START - timedelta(seconds=100)
        known = RebalanceState(proven=True, up_since=START - timedelta(hours=3), decided=2)
        seen = RebalanceInput(
            now=START,
            desired=10,
            max_surge=3,
            max_unavailable=0,
            on_demand_spec=10,
            on_demand_ready=10,
            spot_spec=3,
            spot_ready_since=(young,) * 3,
        )
        policy = Policy(on_demand_base=2)
        assert decide(seen, policy, replace(known, decided=10)).on_demand < 10
        decision = decide(seen, policy, known)
        assert (decision.on_demand, decision.state.proven, decision.state.last_loss) == (10, False, START)
        later = replace(seen, now=START + timedelta(seconds=120))
        assert decide(later, policy, decision.state).on_demand == 10

    def test_further_losses_are_covered_at_once(self) -> None:
        """256 nodes are remembered by name; 100 more are lost, and then one more."""
        old = tuple(f"old-{number}" for number in range(256))
        new = tuple(f"new-{number}" for number in range(101))
        ready = (START - timedelta(hours=2),) * 200
        seen = RebalanceInput(
            now=START,
            desired=300,
            max_surge=10,
            max_unavailable=0,
            on_demand_spec=0,
            on_demand_ready=0,
            spot_spec=300,
            spot_ready_since=ready,
            lost_node_uids=(*old, *new[:100]),
        )
        before = RebalanceState(charged=old, last_loss=START - timedelta(hours=3), proven=True)
        decision = decide(seen, Policy(), before)
        assert (decision.on_demand, len(decision.state.charged), decision.state.uncharged) == (100, 256, 100)
        again = replace(seen, now=START + timedelta(minutes=30))
        assert decide(again, Policy(), decision.state).state.last_loss == START
        more = replace(again, lost_node_uids=(*old, *new))
        assert decide(more, Policy(), decision.state).state.last_loss == more.now
        assert RebalanceState.from_json(decision.state.to_json()) == decision.state


class TestNobodyCovers:
    """An autoscaler says that no more spot can be had, and on-demand may not hold more."""

    @pytest.mark.parametrize(("cap", "asked"), [(2, 8), (None, 4)])
    def test_the_room_that_is_there_is_used(self, cap: int | None, asked: int) -> None:
        """All that fits at once, not one replica each start-up time; what is covered waits."""
        seen = RebalanceInput(
            now=START,
            desired=10,
            max_surge=3,
            max_unavailable=0,
            on_demand_spec=2 if cap else 7,
            on_demand_ready=2 if cap else 7,
            spot_spec=3,
            spot_ready_since=(START - timedelta(hours=1),) * 3,
            fit_spot=5,
            blocked="no more spot nodes",
        )
        assert decide(seen, Policy(on_demand_base=2, on_demand_max=cap), RebalanceState()).spot == asked


class TestScaling:
    """N changes."""

    def test_in_from_20_to_10_is_one_step(self) -> None:
        """At 80 %: 4 + 16 to 2 + 8 in the very next reconcile."""
        world = World(20, EIGHTY).settle()
        world.run(60)
        world.desired, world.max_surge = 10, 3
        decision = world.step()
        assert (decision.on_demand, decision.spot) == (2, 8)
        assert {note.reason for note in decision.notes} == {Reason.SCALED}

    @pytest.mark.parametrize("percent", [50, 80])
    def test_in_from_40_to_2_takes_a_minute(self, percent: int) -> None:
        """A quarter of 2 is one replica a minute: what is above N + S needs no steps."""
        world = World(40, Policy(spot_percent=percent), max_surge=10).settle()
        world.run(30)
        world.desired = 2
        world.run(120)
        assert (world.on_demand_spec, world.spot_spec) == (1, 1)

    def test_out_while_spot_nodes_take_90_s_needs_no_cover(self) -> None:
        """20 -> 40: on-demand goes to its 8 and no further."""
        world = World(20, EIGHTY).settle()
        world.run(60)
        world.desired, world.max_surge = 40, 10
        world.run(90)
        assert world.specs == (8, 32)
        world.add_spot_nodes(16)
        world.run(600)
        assert max(decision.on_demand for decision in world.history) == 8
        assert world.ready == 40

    def test_out_while_spot_nodes_take_240_s_is_covered_after_the_grace(self) -> None:
        """Cover of 16 after 180 s, at least 26 of 32 stay asked for, and the division is reached."""
        world = World(20, EIGHTY).settle()
        world.run(60)
        world.desired, world.max_surge = 40, 10
        world.run(240)
        assert world.specs[0] == 24
        assert world.specs[1] >= 26
        world.add_spot_nodes(16)
        world.run(3600, until=lambda: world.specs == (8, 32) and world.ready == 40)
        assert world.specs == (8, 32)
        assert world.most_ready <= 50

    def test_says_when_cover_will_come(self) -> None:
        """Within the grace the sentence names the instant at which on-demand steps in."""
        world = World(20, EIGHTY).settle()
        world.run(60)
        world.desired, world.max_surge = 40, 10
        world.run(30)
        notes = {note.reason: note.message for note in world.step().notes}
        assert notes[Reason.SPOT_SHORT] == (
            "hold on-demand at 8: spot has placed 16 of 32; on-demand covers what is missing at 10:04:05Z"
        )
        assert world.history[-1].requeue_after_s == pytest.approx(150, abs=STEP_S)


class TestBothPoolsShort:
    """Neither pool can be had: ask everywhere."""

    def test_spot_that_returns_serves_within_its_start_up_time(self) -> None:
        """20 ready as soon as the pods have started, not after the soak."""
        world = World(20, EIGHTY, on_demand_headroom=6).settle()
        world.run(60)
        world.remove_spot_nodes(16)
        world.run(600)
        assert world.ready == 6
        assert world.specs[1] >= 14
        assert Reason.ON_DEMAND_SHORT in {note.reason for note in world.history[-1].notes}
        world.add_spot_nodes(20)
        assert world.run(600, until=lambda: world.ready >= 20) <= 2 * world.spot_start_s
        world.on_demand_headroom = 1000
        world.run(7200, until=lambda: world.specs == (4, 16) and world.ready == 20)
        assert world.specs == (4, 16)


class TestAPolicyChange:
    """on-demand-base goes from 0 to 10 and back at N = 20."""

    @pytest.mark.parametrize(
        ("max_surge", "max_unavailable", "least", "most"), [(5, 0, 20, 25), (0, 5, 15, 20)]
    )
    @pytest.mark.parametrize("bases", [(0, 10), (10, 0)])
    def test_moves_within_the_users_own_bounds(
        self, bases: tuple[int, int], max_surge: int, max_unavailable: int, least: int, most: int
    ) -> None:
        """S 5: never under 20 ready nor over 25. S 0, U 5: never under 15 nor over 20 (21 with the probe)."""
        before, after = bases
        world = World(
            20, Policy(on_demand_base=before), max_surge=max_surge, max_unavailable=max_unavailable
        ).settle()
        world.add_spot_nodes(10)
        world.run(60)
        world.policy = Policy(on_demand_base=after)
        world.run(3600, until=lambda: world.specs == (after, 20 - after) and world.ready == 20)
        assert world.specs == (after, 20 - after)
        assert world.least_ready >= least
        assert world.most_ready <= max(most, 20 + max(1, max_surge) if after < before else 0)


class TestOneReplica:
    """N = 1 moves as a whole."""

    def test_goes_and_comes_back(self) -> None:
        """Covered at once, returned after the soak, one ready all the while it can be."""
        world = World(1, Policy(), max_surge=1, max_unavailable=0).settle()
        world.run(60)
        world.doom_spot_nodes(1)
        assert world.step().on_demand == 1
        world.run(60)
        world.remove_spot_nodes(1, doomed=True)
        world.run(60)
        assert world.specs == (1, 1)
        world.add_spot_nodes(1)
        world.least_ready = world.ready
        world.run(3600, until=lambda: world.specs == (0, 1) and world.ready == 1)
        assert world.specs == (0, 1)
        assert world.least_ready == 1


class TestTheWake:
    """next_wake_s is exact: looking only then misses nothing."""

    def test_a_return_driven_by_wakes_alone_is_as_quick(self) -> None:
        """With every pod ready and no more events, the timers alone bring on-demand down to its base."""
        now = START
        since = tuple(now - timedelta(seconds=age_s) for age_s in (1000, 300, 200, 100, 50, 20, 10, 5) * 2)
        observed = RebalanceInput(
            now=now,
            desired=20,
            max_surge=16,
            max_unavailable=0,
            on_demand_spec=20,
            on_demand_ready=20,
            spot_spec=16,
            spot_ready_since=since,
        )
        state, reconciles, elapsed_s = RebalanceState(), 0, 0.0
        while True:
            decision = decide(observed, EIGHTY, state)
            state, reconciles = decision.state, reconciles + 1
            if decision.requeue_after_s is None:
                break
            elapsed_s += decision.requeue_after_s
            observed = replace(
                observed,
                now=observed.now + timedelta(seconds=decision.requeue_after_s),
                on_demand_spec=decision.on_demand,
                on_demand_ready=decision.on_demand,
            )
        assert decision.on_demand == 4
        assert elapsed_s <= 300
        assert reconciles <= 12


EVENTS = st.sampled_from(
    ["quiet", "quiet", "quiet", "doom", "remove doomed", "remove", "add", "scale", "policy"]
)


OUTAGES = st.sampled_from(["quiet", "doom", "remove doomed", "remove", "add"])


@pytest.mark.slow
class TestAnyStory:
    """Random worlds: whatever happens, no write of ours breaks a promise, and peace brings the division."""

    @given(
        desired=st.integers(1, 20),
        max_surge=st.integers(0, 5),
        start_s=st.tuples(*[st.sampled_from([20, 60, 120])] * 2),
        events=st.lists(st.tuples(OUTAGES, st.integers(1, 12), st.integers(1, 100)), max_size=12),
    )
    @settings(max_examples=60)
    def test_never_grows_beyond_the_surge(
        self, desired: int, max_surge: int, start_s: tuple[int, int], events: list[tuple[str, int, int]]
    ) -> None:
        """Without a shortage covered after the grace, no step adds ready replicas beyond N + S + doomed."""
        policy = replace(EIGHTY, grace_s=1e9)
        world = World(desired, policy, max_surge, 1, start_s[0], start_s[1]).settle()
        for event, amount, steps in events:
            world.happen(event, amount)
            for _ in range(steps):
                before = world.ready
                world.step()
                assert world.ready <= max(before, desired + max(1, max_surge) + world.doomed)

    @given(
        desired=st.integers(1, 24),
        max_surge=st.integers(0, 6),
        max_unavailable=st.integers(0, 6),
        events=st.lists(st.tuples(EVENTS, st.integers(1, 12)), max_size=25),
        percent=st.sampled_from([50, 80, 100]),
    )
    @settings(max_examples=60)
    def test_ends_divided(
        self, desired: int, max_surge: int, max_unavailable: int, events: list[tuple[str, int]], percent: int
    ) -> None:
        """The floor holds at every step (checked by the world), and the split is reached in the end."""
        unavailable = max(max_unavailable, 0 if max_surge else 1)
        world = World(desired, Policy(spot_percent=percent), max_surge, unavailable).settle()
        for event, amount in events:
            world.happen(event, amount)
            world.run(20 * amount)
        world.remove_spot_nodes(1000, doomed=True)
        world.add_spot_nodes(60)
        base = base_replicas(world.desired, world.policy)
        goal = (base, world.desired - base)
        world.run(40_000, until=lambda: world.specs == goal and world.ready == world.desired)
        assert world.specs == goal
        world.run(120)
        assert world.specs == goal

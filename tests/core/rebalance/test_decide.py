"""The decision: what holds for every input, whatever the page's cases say (those: test_rebalance_cases)."""

import json
from dataclasses import replace
from datetime import timedelta
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rebalance.moments import NOW, ago, settled
from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.reasons import Reason
from splitter.core.rebalance import Decision, RebalanceInput, Tuning, decide
from splitter.core.rebalance.steps import CHARGED_MAX, credit, losses
from splitter.core.replica import Trouble
from splitter.core.split_status import RebalanceState

TUNING = Tuning()


INSTANTS = st.integers(0, 20_000).map(ago)
MAYBE = st.none() | INSTANTS
NODES = st.lists(st.sampled_from("abcdefgh"), max_size=6, unique=True).map(tuple)
CAPS = st.none() | st.integers(0, 24)
POLICIES = st.builds(
    Policy,
    on_demand_base=st.integers(0, 24) | st.just("majority"),
    spot_percent=st.integers(0, 100),
    on_demand_max=CAPS,
    spot_max=CAPS,
    grace_s=st.sampled_from([0.0, 60.0, 180.0]),
    soak_s=st.sampled_from([60.0, 600.0, 7200.0]),
)
UNCAPPED = POLICIES.map(lambda policy: replace(policy, on_demand_max=None))
STATES = st.builds(
    RebalanceState,
    soak_s=st.none() | st.floats(1, 3600),
    last_loss=MAYBE,
    lost=st.booleans(),
    interrupted=st.booleans(),
    window=st.integers(1, 32),
    asked=st.none() | st.integers(1, 32),
    up_since=MAYBE,
    proven=st.booleans(),
    short_since=MAYBE,
    last_step=MAYBE,
    cover_since=MAYBE,
    doomed_since=MAYBE,
    charged=NODES,
    barren=st.integers(0, 12),
    barren_since=MAYBE,
)


@st.composite
def inputs(draw: st.DrawFn) -> RebalanceInput:
    """Draw any moment that a cluster can show, also in the middle of scaling and rolling."""
    on_demand_spec, spot_spec = draw(st.integers(0, 30)), draw(st.integers(0, 30))
    return RebalanceInput(
        now=NOW,
        desired=draw(st.integers(0, 24)),
        max_surge=draw(st.integers(0, 6)),
        max_unavailable=draw(st.integers(0, 6)),
        on_demand_spec=on_demand_spec,
        on_demand_ready=draw(st.integers(0, on_demand_spec + 2)),
        on_demand_stuck=draw(st.integers(0, 3)),
        on_demand_over_quota=draw(st.integers(0, 3)),
        on_demand_doomed=draw(st.integers(0, 3)),
        spot_spec=spot_spec,
        spot_ready_since=tuple(draw(st.lists(INSTANTS, max_size=spot_spec + 2))),
        spot_starting=draw(st.integers(0, 5)),
        spot_hindered=draw(st.integers(0, 5)),
        spot_silent=draw(st.integers(0, 2)),
        spot_doomed=draw(st.integers(0, 5)),
        spot_stop_at=draw(MAYBE),
        spot_stop_after_s=draw(st.none() | st.floats(-60, 120)),
        lost_node_uids=draw(NODES),
        lost_nodes_live=draw(st.booleans()),
        fit_spot=draw(st.integers(0, 20)),
        blocked=draw(st.sampled_from(["", "cluster-autoscaler backs off from spot-a"])),
        view_broken=draw(st.integers(0, 9).map(lambda dice: dice == 0)),
        cover=draw(st.integers(0, 9).map(lambda dice: dice > 0)),
    )


def taken(before: int, after: int, ready: int) -> int:
    """Count the ready, not doomed replicas that a scale-down takes: the unready and the doomed go first."""
    return max(0, ready - after) if before > after else 0


class TestRelease:
    """Covered replicas on doomed nodes are let go while they can still end by themselves."""

    @pytest.mark.parametrize(
        ("moment", "tuning", "waits_s"),
        [
            ({}, {}, 60),
            ({"spot_stop_after_s": 90.0}, {}, 60),  # AWS, covered soon
            ({"spot_stop_after_s": 10.0}, {}, 5),  # noticed 5 s before it was covered
            ({"spot_stop_after_s": 0.0}, {}, 0),
            ({"spot_stop_at": NOW + timedelta(seconds=7)}, {}, 7),
            ({"spot_stop_at": NOW - timedelta(seconds=7)}, {}, 0),
            ({"spot_stop_after_s": 0.0, "spot_stop_at": ago(9)}, {"release_s": 25.0}, 25),  # it was asked for
        ],
    )
    def test_waits(self, moment: dict[str, Any], tuning: dict[str, Any], waits_s: int) -> None:
        """60 s, no longer than the notice allows, and exactly as long as a setting says."""
        policy = Policy(on_demand_base=4)
        rules = Tuning(**tuning)
        covered = replace(
            settled(10, policy), on_demand_spec=10, on_demand_ready=10, spot_ready_since=(), spot_doomed=6
        )
        state = RebalanceState(lost=True, cover_since=NOW, doomed_since=ago(5), last_loss=ago(5))

        def spot(after_s: float) -> int:
            at = NOW + timedelta(seconds=after_s)
            return decide(replace(covered, now=at, **moment), policy, state, rules).spot

        assert spot(waits_s) == 0
        assert not waits_s or spot(waits_s - 0.1) == 6

    def test_never_before_it_is_covered(self) -> None:
        """However short the notice is: nothing is taken before its replacement is ready."""
        policy = Policy(on_demand_base=4)
        starting = replace(
            settled(10, policy),
            on_demand_spec=10,
            on_demand_ready=9,
            spot_ready_since=(),
            spot_doomed=6,
            spot_stop_after_s=-60.0,
            spot_stop_at=ago(600),
        )
        state = RebalanceState(lost=True, doomed_since=ago(60), last_loss=ago(60))
        assert decide(starting, policy, state).spot == 6


class TestEveryDecision:
    """The invariants of the page, over any input and any state."""

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_keeps_the_base_of_on_demand(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """On-demand is never below what there was of the base."""
        base = base_replicas(observed.desired, policy)
        decision = decide(observed, policy, state)
        assert decision.on_demand >= min(observed.on_demand_spec, base)

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_raises_on_demand_no_higher_than_needed(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """On-demand is never above what there was, or what is needed plus the doomed."""
        seen = observed.within_spec()
        need_up = credit(seen, policy, losses(seen, policy, state, TUNING), TUNING).need_up
        ceiling = max(seen.on_demand_spec, need_up + seen.on_demand_doomed)
        assert decide(observed, policy, state).on_demand <= ceiling
        assert need_up <= observed.desired

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_asks_spot_for_no_more_than_is_wanted(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """Spot stays within 0 and what is wanted there plus the doomed, or what there was."""
        want = observed.desired - base_replicas(observed.desired, policy)
        spot = decide(observed, policy, state).spot
        assert 0 <= spot <= max(want + observed.spot_doomed, observed.spot_spec)

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_backs_off_no_further_than_the_maximum(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """H never exceeds Hmax, or the user's own soak where that is longer."""
        soak_s = decide(observed, policy, state).state.soak(policy.soak_s)
        assert policy.soak_s <= soak_s <= max(TUNING.soak_max_s, policy.soak_s)

    @given(observed=inputs(), policy=UNCAPPED, state=STATES, node=st.sampled_from("xyz"))
    def test_covers_any_loss_in_the_same_call(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState, node: str
    ) -> None:
        """With no on-demand-max, whatever spot does not have ready is asked of on-demand at once."""
        observed = replace(observed, lost_node_uids=(*observed.lost_node_uids, node), cover=True)
        decision = decide(observed, policy, state)
        if observed.desired:
            assert decision.on_demand >= observed.desired - len(observed.spot_ready_since)

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_takes_no_ready_replica_below_the_floor(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """Both lowerings together leave the floor ready, or take nothing that is ready."""
        seen = observed.within_spec()
        decision = decide(observed, policy, state)
        on_demand = taken(seen.on_demand_spec, decision.on_demand, seen.on_demand_ready)
        spot = taken(seen.spot_spec, decision.spot, seen.spot_ready)
        ready = seen.spot_ready + seen.on_demand_ready
        assert on_demand + spot <= max(0, ready - seen.floor)

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_lowers_on_demand_by_at_most_one_step(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """A return goes in steps of N/4, at least a minute apart; what is above N + S goes without."""
        decision = decide(observed, policy, state)
        lowered = observed.on_demand_spec - decision.on_demand
        if lowered > 0 and observed.desired:
            seen = observed.within_spec()
            held = seen.on_demand_spec - seen.on_demand_doomed + seen.spot_spec - seen.spot_doomed
            above = held - seen.desired - max(1, seen.max_surge)
            resting = state.last_step is not None and (NOW - state.last_step).total_seconds() < 60
            assert lowered <= max(above, 0 if resting else max(1, ceil(observed.desired / 4)))
            assert decision.state.last_step == NOW

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_says_why(self, observed: RebalanceInput, policy: Policy, state: RebalanceState) -> None:
        """There is a sentence for each move, with its two numbers, and always at least one."""
        decision = decide(observed, policy, state)
        text = " | ".join(note.message for note in decision.notes)
        assert decision.notes
        for pool, before, after in (
            ("on-demand", observed.on_demand_spec, decision.on_demand),
            ("spot", observed.spot_spec, decision.spot),
        ):
            assert (before == after) != (f"scale {pool} {before} -> {after} ({after - before:+d}): " in text)

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_is_the_same_after_a_restart(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """State that went through the Split's status decides as if it had stayed in memory."""
        read = RebalanceState.from_json(json.loads(json.dumps(state.to_json())))
        assert read == state
        assert decide(observed, policy, read) == decide(observed, policy, state)

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_charges_a_loss_once(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """The same moment seen twice neither doubles the soak nor restarts the window."""
        first = decide(observed, policy, state).state
        again = decide(observed, policy, first).state
        assert again.soak(policy.soak_s) == first.soak(policy.soak_s) or again.soak_s is None
        assert again.last_loss == first.last_loss

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_wakes_in_the_future(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """The next look is later than now, or needs an event."""
        requeue_after_s = decide(observed, policy, state).requeue_after_s
        assert requeue_after_s is None or requeue_after_s > 0


class TestTheSteadyState:
    """What is divided and ready stays as it is."""

    @given(
        desired=st.integers(0, 60),
        policy=POLICIES,
        max_surge=st.integers(0, 6),
        state=STATES.map(lambda state: replace(state, charged=())),
    )
    def test_is_a_fixed_point(
        self, desired: int, policy: Policy, max_surge: int, state: RebalanceState
    ) -> None:
        """Whatever is remembered, nothing moves, and the second look changes nothing at all."""
        observed = settled(desired, policy, max_surge=max_surge)
        first = decide(observed, policy, state)
        second = decide(observed, policy, first.state)
        assert (first.on_demand, first.spot) == (observed.on_demand_spec, observed.spot_spec)
        assert second == replace(first, state=second.state)
        assert second.state == first.state
        if (due_s := second.requeue_after_s) is not None:
            later = decide(replace(observed, now=NOW + timedelta(seconds=due_s)), policy, second.state)
            assert (later.on_demand, later.spot) == (first.on_demand, first.spot)

    def test_says_so(self) -> None:
        """One sentence with both numbers."""
        decision = decide(settled(20, Policy(spot_percent=80)), Policy(spot_percent=80), RebalanceState())
        assert [(note.reason, note.message) for note in decision.notes] == [
            (
                Reason.BALANCED,
                "4 on on-demand and 16 on spot, as 20 replicas are divided into 4 on-demand and 16 spot",
            )
        ]


class TestHolds:
    """What stops a decision."""

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_freeze_holds_all_counts(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """A frozen workload keeps both counts, whatever happens, and says so."""
        decision = decide(observed, replace(policy, freeze=True), state)
        assert (decision.on_demand, decision.spot) == (observed.on_demand_spec, observed.spot_spec)
        assert [note.reason for note in decision.notes] == [Reason.FROZEN]

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_a_broken_view_lowers_nothing(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """When more than half of on-demand is NotReady too, only cover is written, and nobody is blamed."""
        observed = replace(observed, view_broken=True)
        decision = decide(observed, policy, state)
        if observed.desired:
            assert decision.on_demand >= observed.on_demand_spec
            assert decision.spot == observed.spot_spec
            assert Reason.CONTROL_PLANE_VIEW in {note.reason for note in decision.notes}
        assert decision.state.last_loss == state.last_loss

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_without_cover_on_demand_goes_to_its_base_alone(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """With `cover` off, on-demand is never raised above its base but for its own doomed."""
        decision = decide(replace(observed, cover=False), policy, state)
        base = base_replicas(observed.desired, policy)
        ceiling = base + observed.within_spec().on_demand_doomed
        assert decision.on_demand <= max(observed.on_demand_spec, ceiling)

    @given(observed=inputs(), policy=POLICIES, state=STATES)
    def test_zero_replicas_are_zero_at_once(
        self, observed: RebalanceInput, policy: Policy, state: RebalanceState
    ) -> None:
        """N = 0 takes both twins to 0 in one call."""
        decision = decide(replace(observed, desired=0), policy, state)
        assert (decision.on_demand, decision.spot) == (0, 0)


class TestLosses:
    """What is charged as a loss, and how far the soak backs off."""

    POLICY = Policy(spot_percent=80)

    def lose(self, count: int, state: RebalanceState, *, gone: bool = False) -> Decision:
        """Lose some of 16 spot replicas, one a node."""
        observed = settled(20, self.POLICY)
        observed = replace(
            observed,
            spot_ready_since=observed.spot_ready_since[count:],
            spot_doomed=0 if gone else count,
            lost_node_uids=tuple(f"node-{number}" for number in range(count)),
        )
        return decide(observed, self.POLICY, state)

    def test_covers_a_notice_at_once(self) -> None:
        """Six doomed of sixteen: on-demand 4 -> 10 in the same call, spot keeps them and asks for no more."""
        decision = self.lose(6, RebalanceState())
        assert (decision.on_demand, decision.spot) == (10, 16)
        assert [(note.reason, note.message) for note in decision.notes] == [
            (
                Reason.SPOT_INTERRUPTED,
                "scale on-demand 4 -> 10 (+6): 6 of 16 spot replicas are on doomed nodes",
            ),
            (
                Reason.PROBING,
                "hold spot at 16, 22 wanted: 10 ready; spot is probed again when the 6 doomed are gone",
            ),
        ]

    def test_covers_vanished_nodes_at_once(self) -> None:
        """All sixteen gone: on-demand 4 -> 20, and spot keeps one probe."""
        decision = self.lose(16, RebalanceState(), gone=True)
        assert (decision.on_demand, decision.spot) == (20, 1)
        assert decision.notes[0].reason is Reason.SPOT_LOST

    def test_leaves_a_quota_to_those_who_can_serve(self) -> None:
        """While a quota keeps on-demand from covering, no probe waits in its place; free nodes do count."""
        state = self.lose(16, RebalanceState(), gone=True).state
        lost = replace(settled(20, self.POLICY), on_demand_spec=20, on_demand_ready=19, spot_ready_since=())
        lost = replace(lost, spot_spec=1)
        assert decide(lost, self.POLICY, state).spot == 1
        refused = replace(lost, on_demand_over_quota=1)
        decision = decide(refused, self.POLICY, state)
        assert (decision.on_demand, decision.spot) == (20, 0)
        assert "0 ready; spot is probed again when the quota lets on-demand cover" in {
            note.message.partition(": no spot capacity is available now; ")[2] for note in decision.notes
        }
        later = replace(refused, now=NOW + timedelta(seconds=60), fit_spot=2)
        assert decide(later, self.POLICY, state).spot == 2
        covered = replace(lost, on_demand_ready=20, spot_spec=0)
        assert decide(covered, self.POLICY, state).spot == 1

    def test_doubles_the_soak_while_spot_flaps(self) -> None:
        """Spot was up for less than an hour: 600 s become 1200, 2400, 3600 and stay there."""
        soak_s = []
        state = RebalanceState(last_loss=ago(500), up_since=ago(400))
        for _ in range(5):
            state = self.lose(6, replace(state, charged=(), last_loss=ago(500))).state
            soak_s.append(state.soak(self.POLICY.soak_s))
        assert soak_s == [1200, 2400, 3600, 3600, 3600]

    def test_is_calm_again_after_an_hour_up(self) -> None:
        """A loss after a calm hour starts from the user's own soak."""
        state = RebalanceState(soak_s=2400, last_loss=ago(4000), up_since=ago(3700))
        assert self.lose(6, state).state.soak_s is None

    def test_takes_a_burst_as_one_step(self) -> None:
        """Losses within two minutes of each other double the soak once."""
        state = RebalanceState(soak_s=1200, last_loss=ago(60), up_since=ago(60))
        decided = self.lose(6, state).state
        assert decided.soak_s == 1200
        assert decided.last_loss == NOW

    def test_forgets_after_two_quiet_hours(self) -> None:
        """No loss for the reset time: the user's own soak again."""
        state = RebalanceState(soak_s=2400, last_loss=ago(7200))
        assert decide(settled(20, self.POLICY), self.POLICY, state).state.soak_s is None

    def test_keeps_the_soak_of_the_first_look(self) -> None:
        """A loss seen in the very first reconcile says nothing about how long spot had been up."""
        assert self.lose(6, RebalanceState()).state.soak_s is None

    def test_charges_a_node_again_when_it_had_recovered(self) -> None:
        """NotReady, Ready, NotReady again is two losses: both are covered at once."""
        lost = self.lose(2, RebalanceState(), gone=True)
        recovered = decide(settled(20, self.POLICY), self.POLICY, lost.state)
        assert recovered.state.charged == ()
        assert self.lose(2, recovered.state, gone=True).on_demand == 6

    def test_a_pod_that_ends_on_a_healthy_node_is_none(self) -> None:
        """A rollout or an eviction makes a replica unready, not lost: nothing moves."""
        observed = settled(20, self.POLICY)
        observed = replace(observed, spot_ready_since=observed.spot_ready_since[3:], spot_starting=3)
        decision = decide(observed, self.POLICY, RebalanceState())
        assert (decision.on_demand, decision.spot) == (4, 16)
        assert not decision.state.lost

    def test_a_voluntary_disruption_is_replaced_within_spot_first(self) -> None:
        """Doomed but not lost: spot surges, on-demand waits for the grace and then covers."""
        observed = settled(20, self.POLICY)
        observed = replace(observed, spot_ready_since=observed.spot_ready_since[3:], spot_doomed=3)
        decision = decide(observed, self.POLICY, RebalanceState())
        assert (decision.on_demand, decision.spot) == (4, 19)
        later = decide(observed, self.POLICY, replace(decision.state, short_since=ago(180)))
        assert later.on_demand == 7
        assert later.state.soak_s is None

    def test_remembers_a_bounded_number_of_nodes(self) -> None:
        """A disaster bigger than the memory is charged once, not in every reconcile."""
        observed = replace(
            settled(400, Policy()), spot_ready_since=(), lost_node_uids=tuple(f"{n:04}" for n in range(400))
        )
        first = decide(observed, Policy(), RebalanceState()).state
        later = replace(observed, now=NOW + timedelta(seconds=30))
        assert len(first.charged) == CHARGED_MAX
        assert decide(later, Policy(), first).state.last_loss == NOW

    def test_does_not_blame_spot_for_a_broken_view(self) -> None:
        """The nodes of both pools NotReady: covered, but no back-off."""
        observed = replace(
            settled(20, self.POLICY), spot_ready_since=(), lost_node_uids=("a",), view_broken=True
        )
        decision = decide(observed, self.POLICY, RebalanceState())
        assert decision.on_demand == 20
        assert decision.state.last_loss is None


class TestSettling:
    """Notices for many nodes do not all arrive at the same instant (docs/adr/0011)."""

    def after_a_notice(self, seconds: float) -> Decision:
        """Two of 16 spot replicas are doomed since `seconds`, and 50 would fit on other spot nodes."""
        observed = replace(
            settled(20, Policy(spot_percent=80)),
            spot_ready_since=(ago(9000),) * 14,
            spot_doomed=2,
            lost_node_uids=("a",),
            fit_spot=50,
            on_demand_spec=6,
        )
        state = RebalanceState(lost=True, last_loss=ago(seconds), asked=15, charged=("a",))
        return decide(observed, Policy(spot_percent=80), state)

    def test_free_nodes_are_not_believed_at_once(self) -> None:
        """Nothing is asked for beyond what runs and is doomed; the wake is when that is over."""
        decision = self.after_a_notice(3)
        assert decision.spot == 16
        assert decision.requeue_after_s == pytest.approx(7)

    def test_the_room_counts_again_afterwards(self) -> None:
        """Two replicas fit elsewhere on spot, and are asked for."""
        assert self.after_a_notice(11).spot == 18


class TestHindered:
    """Replicas that no other node would help are no shortage of spot (docs/adr/0013)."""

    POLICY = Policy(spot_percent=80)

    def scaled_out(self, **fields: object) -> RebalanceInput:
        """10 replicas became 20 long ago, and 8 of the 16 on spot do not run."""
        ready = replace(settled(20, self.POLICY), spot_ready_since=(ago(9000),) * 8)
        return replace(ready, **fields)  # type: ignore[arg-type]

    def decided(self, observed: RebalanceInput) -> Decision:
        """Decide when the shortage, if it is one, has lasted for an hour."""
        return decide(observed, self.POLICY, RebalanceState(short_since=ago(3600)))

    def test_a_shortage_is_covered(self) -> None:
        """Eight that find no node are covered after the grace."""
        assert self.decided(self.scaled_out()).on_demand == 12

    def test_the_hindered_are_not(self) -> None:
        """Eight that are refused, or wait for their volume, are not, and the timer does not run."""
        decision = self.decided(self.scaled_out(spot_hindered=8))
        assert (decision.on_demand, decision.spot, decision.state.short_since) == (4, 16, None)
        assert {note.reason for note in decision.notes} == {Reason.BALANCED}

    def test_nor_the_starting(self) -> None:
        """Eight that have a node and do not get ready (image, crash) move nothing either."""
        assert self.decided(self.scaled_out(spot_starting=8)).on_demand == 4

    def test_both(self) -> None:
        """Of eight, the five that find no node are covered; the three that are refused are not."""
        assert self.decided(self.scaled_out(spot_hindered=3)).on_demand == 9

    def test_a_loss_is_covered_whoever_is_hindered(self) -> None:
        """In an emergency nobody asks why a replica is missing."""
        observed = self.scaled_out(spot_hindered=4, lost_node_uids=("a",))
        assert self.decided(observed).on_demand == 12

    def test_the_true_cause_is_named(self) -> None:
        """Nodes that do not take the pods are covered as a shortage is, under their own name."""
        tainted = Trouble(Reason.NODES_UNSUITABLE, "4 of 4 healthy spot nodes have a taint")
        decision = self.decided(self.scaled_out(spot_unplaceable=tainted))
        first = decision.notes[0]
        assert (decision.on_demand, first.reason, first.warning) == (12, Reason.NODES_UNSUITABLE, True)
        assert first.message == (
            "scale on-demand 4 -> 12 (+8): spot has placed 8 of 16 after the grace of 180 s:"
            " 4 of 4 healthy spot nodes have a taint"
        )


class TestBlocked:
    """An autoscaler says that no more spot can be had."""

    POLICY = Policy(spot_percent=80)
    WHY = "cluster-autoscaler backs off from spot-a"

    def scaled_out(self, blocked: str) -> Decision:
        """Decide about a scale-out that has found 10 of 16 places on spot, a minute ago."""
        short = RebalanceState(short_since=ago(60), up_since=ago(50_000))
        observed = replace(
            settled(20, self.POLICY),
            spot_ready_since=(ago(50_000),) * 10,
            spot_pending_since=ago(60),
            blocked=blocked,
        )
        return decide(observed, self.POLICY, short)

    def test_covers_without_waiting_for_the_grace(self) -> None:
        """Nothing would come of waiting; one replica stays asked for as the probe."""
        decision = self.scaled_out(self.WHY)
        assert (decision.on_demand, decision.spot) == (10, 11)
        first = decision.notes[0]
        assert first.reason is Reason.SPOT_BLOCKED
        assert first.message == f"scale on-demand 4 -> 10 (+6): spot has placed 10 of 16; {self.WHY}"

    def test_ends_with_the_autoscalers_word(self) -> None:
        """Then all that is wanted is asked for, and the grace counts."""
        decision = self.scaled_out("")
        assert (decision.on_demand, decision.spot) == (4, 16)
        assert decision.notes[0].reason is Reason.SPOT_SHORT


class TestTheStateOnPaper:
    """What is persisted in the Split, which anybody may edit."""

    @given(state=STATES, policy=POLICIES)
    def test_is_not_held_up_by_the_future(self, state: RebalanceState, policy: Policy) -> None:
        """After the clock was set back by a day, instants of the future count as now."""
        earlier = replace(settled(20, policy), now=NOW - timedelta(days=1))
        decided = decide(earlier, policy, state).state
        for instant in (decided.last_loss, decided.last_step, decided.short_since, decided.cover_since):
            assert instant is None or instant <= earlier.now

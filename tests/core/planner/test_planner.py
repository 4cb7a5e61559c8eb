"""One reconcile as a whole: which writes, in which order, for which reason."""

from dataclasses import replace

import pytest

from builders import ago, free_source, observation, pods, replica_set, source, split, twin, twin_of
from core.one_reconcile import DEFAULTS, at_rest, kinds, planned
from splitter.core.actions import (
    ApplyTwin,
    DeleteReplicaSet,
    DeleteVanishedPod,
    EnsureSplit,
    HolderKind,
    Park,
    RestoreTemplate,
    Scale,
)
from splitter.core.handover import Step
from splitter.core.limits import MAX_WRITES
from splitter.core.model import Attachment, Observation, SourceView
from splitter.core.names import Key
from splitter.core.nodes.pools import Barrier, PoolFit
from splitter.core.planner import policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool
from splitter.core.stateful import StatefulView


class TestExternalSignals:
    """Events and autoscalers' words end by time alone, and no event tells."""

    @pytest.mark.parametrize(("left_s", "requeue_after_s"), [(20.0, 21.0), (-5.0, 1.0)])
    def test_is_looked_at_again_when_it_ends(self, left_s: float, requeue_after_s: float) -> None:
        """A reconcile is due just after it; a moment that has passed already does not spin."""
        assert planned(at_rest(signal_ends_at=ago(-left_s))).requeue_after_s == requeue_after_s

    def test_does_not_put_off_an_earlier_timer(self) -> None:
        """The grace of a pod that finds no node comes first."""
        waiting = replace(pods(stuck=1)[0], unschedulable_since=ago(170))
        spot = twin(Pool.SPOT, [*pods(5), waiting])
        assert planned(at_rest(spot=spot, signal_ends_at=ago(-60))).requeue_after_s == 10.0


class TestGone:
    """A source that is deleted, or about to be."""

    @pytest.mark.parametrize("left", [None, source(deleting=True)])
    def test_nothing_is_written(self, left: SourceView | None) -> None:
        """The garbage collector takes what it owned: its Split, its twins, its parked ReplicaSets."""
        result = planned(at_rest(source=left, spot=twin(Pool.SPOT, pods(2, doomed=4))))
        assert (result.step, result.actions) == (Step.NOTHING, ())


class TestRunning:
    """While it is ours."""

    def test_a_template_that_no_on_demand_node_takes_is_not_rolled_out(self) -> None:
        """The twins keep the last one, which a loss can be covered with; counts go on."""
        pinned = PoolFit(on_demand=Barrier("nodeSelector x=spot", certain=True))
        assert kinds(planned(at_rest(), template="v2")) == [ApplyTwin]
        held = planned(at_rest(pools=pinned), template="v2", look_again_s=7.0)
        assert (held.actions, held.state, held.verdict.reason) == ((), State.HELD, Reason.COVER_IMPOSSIBLE)
        assert held.verdict.message.endswith("Until then the twins keep the template that they have")
        assert held.requeue_after_s == 7.0
        assert held.objection is not None, "it would be refused today"
        lost = at_rest(pools=pinned, spot=twin(Pool.SPOT, pods(2, lost=4)))
        assert Scale in kinds(planned(lost, template="v2"))

    def test_at_rest_nothing_is_written(self) -> None:
        """A steady state is a fixed point."""
        result = planned(at_rest())
        assert (result.actions, result.state) == ((), State.STEADY)
        assert result.verdict.reason is Reason.BALANCED

    def test_missing_twins_are_created_at_zero(self) -> None:
        """Their counts come later, with MAKE or decide()."""
        result = planned(observation(sets=[replica_set(of=pods(10))]))
        assert kinds(result) == [ApplyTwin, ApplyTwin]
        assert all(isinstance(action, ApplyTwin) and action.replicas == 0 for action in result.actions)

    def test_an_emergency_raises_on_demand_first(self) -> None:
        """Every doomed replica is replaced in this very reconcile."""
        doomed = twin(Pool.SPOT, pods(3, doomed=3))
        result = planned(at_rest(spot=doomed))
        first = result.actions[0]
        assert isinstance(first, Scale)
        assert (first.name, first.replicas, first.resource_version) == ("web-on-demand", 7, None)
        assert result.verdict.reason is Reason.SPOT_INTERRUPTED

    def test_a_count_goes_before_a_template(self) -> None:
        """A roll waits until there is no count to write."""
        result = planned(at_rest(source=source(12, template_hash="v2")), template="v2")
        assert all(isinstance(action, Scale) for action in result.actions)

    def test_frozen_counts_stay(self) -> None:
        """Freeze holds all counts."""
        frozen = source(12, annotations={"splitter.io/freeze": "true"})
        result = planned(at_rest(source=frozen))
        assert result.actions == ()
        assert result.verdict.reason is Reason.FROZEN

    def test_dry_run_writes_nothing(self) -> None:
        """It says what would be written."""
        dry = source(12, annotations={"splitter.io/dry-run": "true"})
        result = planned(at_rest(source=dry))
        assert result.actions == ()
        assert result.verdict.reason is Reason.DRY_RUN
        assert "Scale" in result.verdict.message or "scale" in result.verdict.message


class TestABadTemplateInALoss:
    """A roll to what does not come up is taken back when spot goes."""

    @pytest.mark.parametrize(
        ("ready", "starting", "restored"), [(3, 6, True), (10, 0, False)], ids=["missing", "all there"]
    )
    def test_again_after_a_raise_that_went_without_it(
        self, ready: int, starting: int, restored: bool
    ) -> None:
        """The raise is written, the template was refused: it is tried while replicas are missing."""
        good = replica_set(
            "web-on-demand-1", of=pods(ready, starting=starting), attachment=Attachment.ATTACHED
        )
        bad = replica_set(
            "web-on-demand-2", of=pods(starting=1), attachment=Attachment.ATTACHED, template="v2"
        )
        rolling = twin_of(Pool.ON_DEMAND, [good, bad], template="v2", updated=1, spec_replicas=10)
        result = planned(at_rest(on_demand=rolling, spot=twin(Pool.SPOT, pods(doomed=1))), "v2")
        assert not result.raises
        assert (RestoreTemplate in kinds(result)) is restored

    @pytest.mark.parametrize(("good", "bad", "restored"), [(7, 2, True), (8, 1, False)])
    def test_where_a_raise_was_spread_over_it(self, *, good: int, bad: int, restored: bool) -> None:
        """Without a surge N - U is enough for a roll, but not for the cover that never comes up."""
        sets = [
            replica_set("web-on-demand-1", of=pods(good)),
            replica_set("web-on-demand-2", of=pods(starting=bad), template="v2"),
        ]
        rolling = twin_of(Pool.ON_DEMAND, sets, template="v2", updated=bad, max_surge=0, max_unavailable=1)
        within = source(template_hash="v2", max_surge=0, max_unavailable=2)
        spot = twin(Pool.SPOT, pods(1, doomed=5))
        result = planned(at_rest(source=within, on_demand=rolling, spot=spot), "v2")
        assert not result.raises
        assert (RestoreTemplate in kinds(result)) is restored


class TestThePolicyInForce:
    """Bad input moves nothing."""

    def test_the_last_good_policy_holds(self) -> None:
        """What is written now is wrong; what was written before was not."""
        wrong = source(annotations={"splitter.io/spot-percent": "80%"})
        observed = observation(wrong, split=split(good_annotations={"splitter.io/spot-percent": "50"}))
        in_force = policy_in_force(observed, DEFAULTS)
        assert not in_force.valid
        assert in_force.policy.spot_percent == 50
        assert in_force.problems[0].reason is Reason.INVALID_ANNOTATION

    def test_caps_that_hold_too_few_are_refused(self) -> None:
        """N is known, so it can be said."""
        caps = {"splitter.io/on-demand-max": "3", "splitter.io/spot-max": "6"}
        in_force = policy_in_force(observation(free_source(annotations=caps), split=None), DEFAULTS)
        assert not in_force.valid
        assert in_force.problems[0].reason is Reason.INVALID_POLICY


class TestTrimming:
    """Old parked ReplicaSets, beyond the source's own limit (row 12)."""

    def parked(self, *templates: str) -> Observation:
        """Return a workload at rest with these parked at 0, oldest first."""
        sets = [
            replica_set(f"web-{n}", spec=0, template=template, age_s=1000 - n)
            for n, template in enumerate(templates)
        ]
        return at_rest(source=source(revisions_kept=1), replica_sets=tuple(sets))

    def test_the_oldest_go(self) -> None:
        """By their age, as the Deployment controller would have it."""
        result = planned(self.parked("v-3", "v-2", "v-1"))
        assert result.actions == (
            DeleteReplicaSet("web-0", "uid-web-0", "rv-web-0"),
            DeleteReplicaSet("web-1", "uid-web-1", "rv-web-1"),
        )

    def test_what_keeps_the_template_of_running_pods_stays(self) -> None:
        """They go back with it, however old it is."""
        running = [replace(pod, revision="h1") for pod in pods(4)]
        kept = replica_set("web-splith1", spec=0, template="v-9", age_s=2000)
        observed = self.parked("v-2", "v-1")
        observed = replace(observed, replica_sets=(kept, *observed.replica_sets))
        result = planned(replace(observed, on_demand=twin(Pool.ON_DEMAND, running)))
        assert result.actions == (DeleteReplicaSet("web-0", "uid-web-0", "rv-web-0"),)

    def test_within_the_limit_nothing_goes(self) -> None:
        """As many as the Deployment controller would keep."""
        assert planned(self.parked("v-1")).actions == ()

    def test_what_still_has_pods_stays(self) -> None:
        """A hand-over is under way."""
        busy = replica_set("web-9", of=pods(1), template="v-9")
        observed = self.parked("v-3", "v-2", "v1")
        result = planned(replace(observed, replica_sets=(*observed.replica_sets, busy)))
        assert DeleteReplicaSet not in kinds(result)


class TestIneligibleWhileSplit:
    """Kept safe and reported, never dropped."""

    def test_strategy_recreate(self) -> None:
        """Nothing is written, nothing is given back; the objection goes along."""
        result = planned(at_rest(source=source(recreate=True)))
        assert result.actions == ()
        assert result.state is State.STEADY
        assert result.objection is not None
        assert result.objection.reason is Reason.STRATEGY_RECREATE

    def test_none_for_a_sound_one(self) -> None:
        """The rule, not the exception."""
        assert planned(at_rest()).objection is None


class TestWithoutItsReport:
    """A Split that is gone, or cannot be written because its kind is, must not cost a replica."""

    def test_a_loss_is_covered_first(self) -> None:
        """The raise goes out before the Split is tried again, in each reconcile anew."""
        going = twin(Pool.SPOT, pods(2, doomed=4))
        result = planned(at_rest(split=None, spot=going))
        assert result.actions == (
            Scale(HolderKind.DEPLOYMENT, "web-on-demand", 4, 8, None),
            EnsureSplit(takes_over=True),
        )

    def test_what_can_wait_waits(self) -> None:
        """Nothing is lowered, rolled or parked without a memory."""
        crowded = twin(Pool.ON_DEMAND, pods(9))
        assert planned(at_rest(split=None, on_demand=crowded)).actions == (EnsureSplit(takes_over=True),)


class TestWhileTheControllerLags:
    """An image or another N is written to the source, and its controller has not seen that yet."""

    def test_a_loss_is_covered_all_the_same(self) -> None:
        """It never touches twins: what it has to catch up with is no reason to leave replicas missing."""
        going = twin(Pool.SPOT, pods(2, doomed=4))
        result = planned(at_rest(source=source(10, observed=False), spot=going))
        assert result.actions == (Scale(HolderKind.DEPLOYMENT, "web-on-demand", 4, 8, None),)
        assert result.verdict.reason is Reason.SPOT_INTERRUPTED

    def test_what_is_scaled_waits(self) -> None:
        """Another N is no emergency: it is answered, and explained, once the controller has seen it."""
        result = planned(at_rest(source=source(12, observed=False)))
        assert (result.actions, result.verdict.reason) == ((), Reason.WAITING_FOR_CONTROLLER)
        assert (result.wanted_on_demand, result.wanted_spot) == (4, 8), "how the new N will be divided"

    def test_not_beside_pods_of_its_own(self) -> None:
        """While the source holds pods, or may take some back, nobody can count what there will be."""
        going = twin(Pool.SPOT, pods(2, doomed=4))
        for attachment in (Attachment.ATTACHED, Attachment.RETURNING):
            sets = (replica_set("web-2", spec=0, attachment=attachment),)
            result = planned(at_rest(source=source(10, observed=False), spot=going, replica_sets=sets))
            assert result.actions == ()


class TestANameUsedAgain:
    """A pod of a machine that is gone, under whose name another one has come up."""

    def test_is_deleted_by_the_uid_of_the_other(self) -> None:
        """Nobody else would: to Kubernetes the node of that name is there."""
        left = replace(pods(lost=1)[0], vanished=True, successor="uid-later")
        result = planned(at_rest(spot=twin(Pool.SPOT, (*pods(5), left))))
        deletion = DeleteVanishedPod(left.name, left.uid, "node-1", "uid-later")
        assert kinds(result) == [Scale]  # the raise goes out alone
        covered = replace(
            at_rest(spot=twin(Pool.SPOT, (*pods(5), left))), on_demand=twin(Pool.ON_DEMAND, pods(5))
        )
        assert deletion in planned(covered).actions


class TestAMemberThatMayStillRun:
    """A StatefulSet's pod whose Node object went while Ready: its kubelet may run it on."""

    @pytest.mark.parametrize(("gone_s", "removed", "again_s"), [(10.0, False, 30.0), (41.0, True, None)])
    def test_is_removed_when_nobody_runs_it_any_more(
        self, gone_s: float, removed: bool, again_s: float | None
    ) -> None:
        """Two of one identity never run; the cover does not wait for it."""
        member = replace(pods(lost=1)[0], vanished=True, vanished_since=ago(gone_s), ordinal=5)
        seen = at_rest(spot=twin(Pool.SPOT, (*pods(5), member)), on_demand=twin(Pool.ON_DEMAND, pods(5)))
        result = planned(seen)
        assert (DeleteVanishedPod in kinds(result)) == removed
        if again_s is not None:
            assert result.requeue_after_s is not None
            assert result.requeue_after_s <= again_s

    def test_announced(self) -> None:
        """A Node whose end was told, or that was NotReady, is believed."""
        member = replace(pods(lost=1)[0], vanished=True, ordinal=5)
        result = planned(
            at_rest(spot=twin(Pool.SPOT, (*pods(5), member)), on_demand=twin(Pool.ON_DEMAND, pods(5)))
        )
        assert DeleteVanishedPod in kinds(result)


class TestOneWriteForEach:
    """What is written once for each object, of which a tenant may have any number, is written in parts."""

    def test_a_pass_writes_so_much(self) -> None:
        """The first ones in their order, never the one with the pods, and the next part at once."""
        old = [
            replica_set(f"old-{n}", 0, attachment=Attachment.ATTACHED, template=f"old-{n}") for n in range(50)
        ]
        current = replica_set("current", 10, attachment=Attachment.ATTACHED)
        result = planned(observation(sets=[current, *old]))
        assert kinds(result) == [Park] * MAX_WRITES
        assert "current" not in {one.name for one in result.actions if isinstance(one, Park)}
        assert result.requeue_after_s is not None
        assert result.requeue_after_s < 0.1
        rest = planned(observation(sets=[current, *old[:5]]))
        assert [one.name for one in rest.actions if isinstance(one, Park)] == [one.name for one in old[:5]]

    def test_too_many_to_begin_with(self) -> None:
        """Nobody keeps so many revisions; more of them would keep the one loop busy."""
        sets = [
            replica_set(f"old-{n}", 0, attachment=Attachment.ATTACHED, template=f"old-{n}")
            for n in range(251)
        ]
        result = planned(observation(free_source(), sets, split=None))
        assert (result.state, result.verdict.reason) == (State.REFUSED, Reason.TOO_LARGE)
        assert planned(observation(free_source(), sets[:250], split=None)).state is not State.REFUSED


NEWER_MARK = '{"uid":"uid-web","time":"2026-01-31T12:00:00Z","format":3}'


class TestNewerState:
    """What a newer version has written in a form of its own is not read, and not written."""

    @pytest.mark.parametrize("labelled", [True, False])
    @pytest.mark.parametrize(
        ("annotations", "fields"),
        [
            ({"splitter.io/taken-over": NEWER_MARK}, {}),
            ({"splitter.io/taken-over": '{"format":3,"owner":["uid-web"]}'}, {}),
            ({"splitter.io/replicas": '{"format":7,"replicas":{"wanted":5}}'}, {}),
            ({}, {"format": 3}),
            ({}, {"format": 3, "takes_over": False}),
        ],
    )
    def test_is_left_exactly_as_it_is(
        self, labelled: bool, annotations: dict[str, str], fields: dict[str, object]
    ) -> None:
        """Neither a loss nor a removed label moves anything; who is to do what is said."""
        lost = twin(Pool.SPOT, pods(3, lost=3))
        was = at_rest(spot=lost)
        assert planned(was).actions
        kept = replace(source(labelled=labelled), annotations={**source().annotations, **annotations})
        outcome = planned(replace(was, source=kept, split=split(**fields)))
        assert (outcome.state, outcome.verdict.reason) == (State.REFUSED, Reason.NEWER_STATE)
        assert outcome.untouched
        assert outcome.actions == ()
        assert outcome.notes == (outcome.verdict,)
        assert "reads up to 2. It is left exactly as it is" in outcome.verdict.message
        assert "Run the newer version again" in outcome.verdict.message

    @pytest.mark.parametrize("form", ["1", "2", "0", "-3", "true", '"3"', "null", "[3]", "3.5"])
    def test_what_is_no_higher_number_says_nothing(self, form: str) -> None:
        """The forms until today, and what nobody of ours has written."""
        mark = NEWER_MARK.replace("3}", f"{form}}}")
        kept = replace(source(), annotations={**source().annotations, "splitter.io/taken-over": mark})
        outcome = planned(at_rest(source=kept))
        assert (outcome.step, outcome.untouched) == (Step.RUN, False)


class TestNamesThatGrow:
    """The names of what is ours are longer than the source's."""

    @pytest.mark.parametrize(
        "annotations", [{}, {"splitter.io/mode": "twins"}, {"splitter.io/replicas": "5"}]
    )
    @pytest.mark.parametrize("length", [60, 245, 253])
    @pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
    def test_refused(self, kind: str, length: int, annotations: dict[str, str]) -> None:
        """With the reason; and a report is made only where it can be named."""
        key = Key(kind, "shop", "d" * length)
        only = StatefulView(5, 5, 5, ago(500)) if kind == "StatefulSet" else None
        named = free_source(5, key=key, stateful=only, annotations=annotations)
        result = planned(replace(observation(named, split=None), key=key))
        if kind == "Deployment" and length == 60:
            assert result.state is not State.REFUSED
            return
        if length == 60 and "splitter.io/replicas" in annotations:
            return  # ours already, by its annotation
        assert (result.step, result.verdict.reason) == (Step.CONSIDER, Reason.NAME_TOO_LONG)
        assert kinds(result) == ([EnsureSplit] if length == 60 else [])

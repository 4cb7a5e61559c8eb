"""Spot that goes while pods have no owner: on-demand covers it, and the loss is remembered."""

from dataclasses import replace
from typing import Any

import pytest

from builders import NOW, ago, observation, pod, rendered, replica_set, split, twin_of
from core.deployment.owners import OD, SPOT, labelled, running
from cpu import cpu_below
from splitter.core.actions import DeletePod, HolderKind, Park, Scale
from splitter.core.deployment.unowned import completed, given_up, is_over, lost_meanwhile, orphans_of
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, Note, TwinView
from splitter.core.plan import Plan, PlanInput, PolicyInForce, Rules
from splitter.core.planner import plan
from splitter.core.reasons import Reason, State
from splitter.core.replica import NodeStatus, Replica
from splitter.core.split_status import Condition, Memory, PastDecision, RebalanceState

LOST, SOUND = NodeStatus.LOST, NodeStatus.SOUND


def waits(count: int) -> TwinView:
    """Return a paused spot twin that is to adopt so many pods."""
    return replace(twin_of(SPOT, [], updated=0, spec_replicas=count), paused=True)


def on_demand(count: int = 3) -> TwinView:
    """Return the on-demand twin with its pods."""
    own = replica_set("web-on-demand-h1", of=running(count, 0, born=True))
    return twin_of(OD, [own], updated=count)


def moment(
    orphans: tuple[Replica, ...],
    policy: Policy | None = None,
    **fields: Any,  # noqa: ANN401 - of an observation
) -> PlanInput:
    """Return a moment of 3 + 2 replicas, of which spot's have no owner."""
    seen = {"on_demand": on_demand(), "spot": waits(2)} | fields
    observed = replace(observation(labelled(), **seen), orphans=orphans)
    in_force = PolicyInForce(policy or Policy(on_demand_base=3), (), {}, valid=True)
    return PlanInput(observed, labelled(), in_force, rendered(), Rules())


def going(count: int, **fields: Any) -> tuple[Replica, ...]:  # noqa: ANN401 - of a pod
    """Return pods of spot on a node that goes."""
    return tuple(
        pod(f"going-{n}", NodeStatus.DOOMED, on_spot=True, born=SPOT, **fields) for n in range(count)
    )


class TestMemory:
    def test_of_what_has_gone(self) -> None:
        """Nothing else will tell of it: the twin would ask for it as for any new replica."""
        lost = lost_meanwhile(moment(running(0, 1, born=True)))
        assert lost is not None
        first_window = Rules().tuning.first_window
        assert (lost.lost, lost.last_loss, lost.window, lost.asked) == (True, NOW, first_window, first_window)

    @pytest.mark.parametrize(
        ("orphans", "fields"),
        [
            (running(0, 2, born=True), {}),
            (going(2), {}),  # they are there yet, and tell of it themselves
            ((), {"spot": None}),
            (
                (),
                {"replica_sets": (replica_set("web-1", 2, attachment=Attachment.ATTACHED),)},
            ),  # not let go yet
            ((), {"spot": twin_of(SPOT, [replica_set("web-spot-h1", 2)], updated=0)}),  # it makes them itself
        ],
    )
    def test_of_nothing_is_none(self, orphans: tuple[Replica, ...], fields: dict[str, Any]) -> None:
        """Where all are there, or somebody makes them."""
        assert lost_meanwhile(moment(orphans, **fields)) is None

    @pytest.mark.parametrize(("step", "begins"), [(Step.WAIT_CONTROLLER, False), (Step.SETTLE, True)])
    def test_only_when_all_are_let_go(self, step: Step, begins: bool) -> None:
        """Before that the pods are seen in parts: on-demand would be raised for no loss."""
        begun = Plan(step, State.TAKING_OVER, Note(Reason.HANDING_OVER, "so"))
        planned = completed(moment(running(0, 1, born=True)), begun)
        assert (planned.rebalance is not None) is begins

    def test_of_a_loss_that_is_known_is_not_begun_anew(self) -> None:
        """Else its soak would never end."""
        this = moment(running(0, 1, born=True))
        assert this.observed.split is not None
        known = replace(
            this.observed.split,
            status=replace(this.observed.split.status, memory=Memory(RebalanceState(lost=True))),
        )
        assert lost_meanwhile(replace(this, observed=replace(this.observed, split=known))) is None


def test_whose_they_are_is_their_label() -> None:
    """Those that end, or bear none, are nobody's."""
    orphans = (*running(1, 1, born=True), pod("none"), pod("ending", born=SPOT, terminating=True))
    assert [one.name for one in orphans_of(moment(orphans), SPOT)] == ["spot-0"]


class TestTheEnd:
    """How long pods may have no owner that acts on them."""

    @pytest.mark.parametrize(
        ("lasted_s", "fields", "over"),
        [
            (9, {"reason": "WriteDenied"}, False),
            (11, {"reason": "WriteDenied"}, True),
            (11, {}, False),  # after a restart: the ReplicaSet that adopts is not even asked for yet
            (61, {}, True),
        ],
    )
    def test_of_the_moment(self, lasted_s: float, fields: dict[str, str], over: bool) -> None:
        """By what the Split has told, 10 s; nothing lasts longer than a minute."""
        let_go = PastDecision(ago(lasted_s), "HandingOver", "running pods change their owner: 2")
        seen = observation(labelled(), spot=waits(2), split=split(decisions=(let_go,), **fields))
        assert is_over(replace(seen, orphans=running(0, 2, born=True))) is over

    def test_of_a_moment_that_is_not_told_yet(self) -> None:
        """The one before ended in a hand-over: its time says nothing about this one."""
        let_go = PastDecision(ago(600), "HandingOver", "running pods change their owner: 2")
        handed_over = PastDecision(ago(590), "TakenOver", "handed over: 1 replicas on on-demand, 1 on spot")
        seen = observation(labelled(), spot=waits(2), split=split(decisions=(let_go, handed_over)))
        assert not is_over(replace(seen, orphans=running(0, 2, born=True)))

    def test_of_a_moment_that_is_never_told(self) -> None:
        """The process ended before it wrote so: the moment is no older than the last decision."""
        before = PastDecision(ago(3), "GivingBack", "the twins are about to give their pods back")
        reported = split(
            decisions=(before,), conditions=(Condition("Eligible", "True", "Eligible", "", ago(600)),)
        )
        gone = observation(labelled(), spot=waits(2), split=reported, leaving=True)
        assert not is_over(replace(gone, orphans=running(0, 2, born=True)))

    @pytest.mark.parametrize(
        ("lasted_s", "status", "over"), [(3, LOST, True), (1, LOST, False), (3, SOUND, False)]
    )
    def test_of_a_loss(self, lasted_s: float, status: NodeStatus, over: bool) -> None:
        """It is covered sooner."""
        pods = tuple(replace(one, node_status=status) for one in running(0, 2, born=True))
        hung = replace(replica_set("web-h1", of=pods), deleted=ago(lasted_s))
        assert is_over(observation(labelled(), leaving=True, going=(hung,))) is over

    def test_of_what_is_adopted(self) -> None:
        """A ReplicaSet that adopts is given as long once it is there."""
        let_go = PastDecision(ago(30), "HandingOver", "running pods change their owner: 2")
        for age_s, over in ((5, False), (11, True)):
            adopts = replica_set("web-spot-h1", 2, age_s=age_s)
            twin = replace(twin_of(SPOT, [adopts], updated=0), paused=True)
            seen = observation(labelled(), spot=twin, split=split(decisions=(let_go,)))
            assert is_over(replace(seen, orphans=running(0, 2, born=True))) is over

    @pytest.mark.parametrize("paused", [False, True])
    def test_where_both_twins_run(self, paused: bool) -> None:
        """Not counted they would be made up for by raises; a clock that was set back tells of no moment.

        What a twin selects is its own at once: its controller may take minutes to adopt it, and a count that
        is lowered meanwhile ends what it adopts.
        """
        let_go = PastDecision(ago(-30), "HandingOver", "running pods change their owner: 2")
        other = replace(replica_set("web-spot-h2", 2), hashes=("h2",))
        twin = replace(twin_of(SPOT, [other], updated=0), paused=paused)
        seen = observation(labelled(), on_demand=on_demand(), spot=twin, split=split(decisions=(let_go,)))
        seen = replace(seen, orphans=running(0, 2, born=True))
        assert is_over(seen) is not paused
        selects = replace(replica_set("web-spot-h1", 2), hashes=("h1",))
        seen = replace(seen, spot=replace(twin, replica_sets=(selects,)))
        assert is_over(seen) is not paused
        assert (given_up(seen).orphans == ()) is not paused

    @pytest.mark.parametrize("parked", [False, True])
    def test_of_what_a_replica_set_selects(self, parked: bool) -> None:
        """It may adopt the pods at any moment, so its count is not lowered as if it had none."""
        let_go = PastDecision(ago(30), "HandingOver", "running pods change their owner: 2")
        pods = running(0, 2, born=True)
        adopts = replace(replica_set("web-spot-h1", 2, age_s=11), hashes=(pods[0].revision,))
        twin = twin_of(SPOT, [] if parked else [adopts], updated=0)
        seen = observation(
            labelled(),
            on_demand=on_demand(),
            spot=twin,
            split=split(decisions=(let_go,)),
            replica_sets=(adopts,) if parked else (),
        )
        result = given_up(replace(seen, orphans=pods))
        assert not result.orphans
        holders = [*result.replica_sets, *(rs for one in result.twins for rs in one.replica_sets)]
        assert [rs.name for rs in holders if set(pods) & set(rs.pods)] == ["web-spot-h1"]

    def test_of_many(self) -> None:
        """Twice as many pods cost twice as much: 6,000 that a ReplicaSet selects, 6,000 that none does."""
        let_go = PastDecision(ago(30), "HandingOver", "running pods change their owner: 2")
        pods = running(0, 6_000, born=True)
        others = tuple(replace(one, uid=f"{one.uid}-x", revision="other") for one in pods)
        adopts = replace(replica_set("web-spot-h1", 2, age_s=11), hashes=(pods[0].revision,))
        spot = twin_of(SPOT, [adopts], updated=0)
        seen = observation(labelled(), on_demand=on_demand(), spot=spot, split=split(decisions=(let_go,)))
        with cpu_below(1.0):
            result = given_up(replace(seen, orphans=(*pods, *others)))
        assert [len(rs.pods) for one in result.twins for rs in one.replica_sets] == [3, 6_000]
        assert [len(rs.pods) for rs in result.replica_sets] == [6_000]

    def test_the_youngest_of_those_that_are_ready_goes_first(self) -> None:
        """As a ReplicaSet would end them: one that is younger than `minReadySeconds` for the others."""
        ages = {"a": 900, "b": 5, "c": 900}
        pods = [pod(name, ready_since=ago(age_s), born=OD) for name, age_s in ages.items()]
        hung = replace(replica_set("web-h1", of=pods), deleted=ago(20))
        lowered = Scale(HolderKind.REPLICA_SET, "web-h1", 3, 2, "rv-web-h1")
        note = Note(Reason.HANDING_OVER, "scale web-h1 3 -> 2")
        planned = Plan(Step.RUN, State.TAKING_OVER, note, (lowered,))
        result = completed(moment((), sets=[hung]), planned)
        assert result.actions == (DeletePod("b", "uid-b"),)

    def test_of_what_hangs(self) -> None:
        """It is parked by its name, as a twin's where it is one; its finalizer is left alone."""
        pods = running(0, 2, born=True)
        hung = replace(replica_set("web-spot-h1", of=pods), deleted=ago(12), held_by=SPOT)
        seen = observation(labelled(), leaving=True, going=(hung,), spot=waits(2))
        in_force = PolicyInForce(Policy(on_demand_base=3), (), {}, valid=True)
        result = plan(seen, in_force, rendered(), Rules())
        assert result.actions == (Park("web-spot-h1", "rv-web-spot-h1", ("app",), SPOT),)
        assert result.verdict.reason is Reason.HANDOVER_HANGS
        assert "web-spot-h1" in result.verdict.message

"""No batch goes below the floor, whatever step asked for it; what costs nobody is never held up."""

from dataclasses import replace

import pytest

from builders import observation, pods, rendered, replica_set, source, split, twin
from splitter.core.actions import ApplyTwin, HolderKind, Scale
from splitter.core.floor_gate import within_floor
from splitter.core.handover import Step
from splitter.core.holders.holder import Deployment
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, Move, Note, Observation, SourceView
from splitter.core.plan import Plan, PlanInput, Rules
from splitter.core.planner import policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool, Replica
from splitter.core.split_status import RebalanceState

SAID = Note(Reason.SCALED, "a step said so")


def gated(observed: Observation, of: SourceView, *actions: Scale | ApplyTwin, **fields: object) -> Plan:
    """Return what is left of a careless step's plan."""
    policy = policy_in_force(observed, Policy())
    this = PlanInput(observed, of, policy, rendered("v1"), Rules())
    planned = Plan(Step.RUN, State.MOVING, SAID, actions, (SAID,))
    return within_floor(this, replace(planned, **fields))  # type: ignore[arg-type]


def scale(name: str, was: int, replicas: int) -> Scale:
    """Return a write of a count."""
    return Scale(HolderKind.DEPLOYMENT, name, was, replicas, "rv")


def split_in(
    on_demand: tuple[Replica, ...], spot: tuple[Replica, ...], parked: tuple[Replica, ...] = ()
) -> Observation:
    """Return a workload whose replicas are these."""
    return observation(
        sets=[replica_set("web-old", of=parked, attachment=Attachment.PARKED)],
        on_demand=twin(Pool.ON_DEMAND, on_demand),
        spot=twin(Pool.SPOT, spot),
    )


@pytest.mark.parametrize("name", ["web-old", "web-on-demand", "web-spot"])
def test_no_holder_is_lowered_below_the_floor(name: str) -> None:
    """Ten are wanted, ten serve: each of them is missed, in whichever holder."""
    observed = split_in(pods(4), pods(3), pods(3))
    was = {"web-old": 3, "web-on-demand": 4, "web-spot": 3}[name]
    held = gated(observed, source(10), scale(name, was, was - 1))
    assert held.actions == ()
    assert (held.state, held.verdict.reason) == (State.HELD, Reason.WAITING_FOR_REPLICAS)
    assert f"{name} at {was}, {was - 1} asked for" in held.verdict.message
    assert held.notes == (held.verdict,)


def test_two_lowerings_of_one_batch_share_one_surplus() -> None:
    """Two serve beyond N. The first write may take them, and then the second one takes none."""
    observed = split_in(pods(6), pods(6))
    first, second = scale("web-on-demand", 6, 4), scale("web-spot", 6, 5)
    assert gated(observed, source(10), first, second).actions == (first,)
    assert gated(observed, source(10), first).actions == (first,)


def test_a_lowering_goes_as_far_as_that_is_sure() -> None:
    """Two serve beyond N, and all six are asked for: two go."""
    held = gated(split_in(pods(6), pods(6)), source(10), scale("web-on-demand", 6, 0))
    assert held.actions == (scale("web-on-demand", 6, 4),)
    assert "web-on-demand at 4, 0 asked for" in held.verdict.message


def test_without_surge_as_many_may_go_as_the_strategy_allows() -> None:
    """F is N - maxUnavailable then."""
    observed, without_surge = split_in(pods(5), pods(5)), source(10, max_surge=0)
    assert gated(observed, without_surge, scale("web-spot", 5, 3)).actions
    assert gated(observed, without_surge, scale("web-spot", 5, 2)).actions == (scale("web-spot", 5, 3),)


def test_what_costs_nobody_goes_below_the_floor_too() -> None:
    """Half are there, and what does not serve is lowered all the same: else nothing would ever move."""
    observed = split_in(pods(5), pods(stuck=5))
    lowered = scale("web-spot", 5, 0)
    assert gated(observed, source(10), lowered).actions == (lowered,)


def test_the_doomed_serve_and_are_not_taken_before_they_are_replaced() -> None:
    """They keep no floor, and clients miss them."""
    observed = split_in(pods(5), pods(doomed=5))
    assert not gated(observed, source(10), scale("web-spot", 5, 0)).actions
    covered = split_in(pods(10), pods(doomed=5))
    assert gated(covered, source(10), scale("web-spot", 5, 0)).actions


def test_pods_of_the_source_count_beside_ours() -> None:
    """On the way back it runs its own, and ours go."""
    home = replica_set("web-new", of=pods(10), attachment=Attachment.ATTACHED)
    observed = replace(split_in(pods(4), pods(3)), replica_sets=(home,))
    given = scale("web-on-demand", 4, 0)
    assert gated(observed, source(10, paused=False), given).actions == (given,)


def test_a_raise_is_never_held_up() -> None:
    """It goes out with whatever else the batch asks for, and is said."""
    observed = split_in(pods(4), pods(3))
    more, less = scale("web-on-demand", 4, 7), scale("web-spot", 3, 2)
    move = Move(Pool.ON_DEMAND, 4, 7)
    raised = Note(Reason.SPOT_LOST, f"{move}: 3 lost", move=move)
    held = gated(observed, source(10), more, less, notes=(raised, SAID))
    assert held.actions == (more,)
    assert held.notes == (raised, held.verdict)


def test_a_lowering_that_is_held_is_not_remembered_as_a_step() -> None:
    """Of a count that nobody remembers `decide` would think that it covers a loss (R26)."""
    remembered = RebalanceState(decided=6)
    observed = replace(split_in(pods(6), pods(4)), split=split(rebalance=remembered.to_json()))
    lowered = RebalanceState(decided=3, last_step=observed.now)
    held = gated(observed, source(10), scale("web-on-demand", 6, 3), rebalance=lowered)
    assert held.actions == ()
    assert held.rebalance == remembered


def test_what_is_asked_for_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a roll a count may be safe although one above it is not: rounding may cut some."""
    keeps = {6: 6, 5: 6, 4: 2, 3: 6}
    monkeypatch.setattr(Deployment, "surely_keeps", lambda _, replicas, *__: keeps[replicas])
    observed = replace(split_in(pods(6), ()), spot=None)
    lowered = scale("web-on-demand", 6, 3)
    assert gated(observed, source(6), lowered).actions == (lowered,)


class TestRolls:
    """The controller of a twin takes what a roll's numbers allow it."""

    @staticmethod
    def roll(unavailable: int, hash_: str = "v2") -> ApplyTwin:
        """Return the write of a template."""
        return ApplyTwin(Pool.SPOT, "{}", hash_, 5, 0, unavailable, "rv")

    def test_takes_no_more_than_the_strategy_of_the_source(self) -> None:
        """Two of ten may be missing while surge finds no node, and no third one."""
        observed = split_in(pods(5), pods(5))
        two, three = self.roll(2), self.roll(3)
        assert gated(observed, source(10), two).actions == (two,)
        held = gated(observed, source(10), three)
        assert held.actions == ()
        assert "the template of web-spot" in held.verdict.message

    def test_a_broken_twin_is_mended_whatever_is_missing(self) -> None:
        """None of its replicas serves, so none is missed."""
        observed = split_in(pods(5), pods(starting=5))
        mended = self.roll(5)
        assert gated(observed, source(10), mended).actions == (mended,)

    def test_the_same_template_again_rolls_nothing(self) -> None:
        """A label that another client took away is written again; no pod is replaced for that."""
        observed = split_in(pods(5), pods(5))
        spot = observed.spot
        assert spot is not None
        again = self.roll(5, spot.rendered_hash)
        assert gated(observed, source(10), again).actions == (again,)

"""Pods that would find no new owner keep the one that they have (H18)."""

from dataclasses import replace

import pytest

from builders import observation, rendered, replica_set, source, twin, twin_of
from core.deployment.owners import N, home, labelled, running
from splitter.core.actions import OrphanPods, PauseTwin, SetPaused
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation, TwinView
from splitter.core.plan import Plan, Rules, lets_go
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool

OD, SPOT = Pool.ON_DEMAND, Pool.SPOT
DEFAULTS = Policy(on_demand_base=3)
REFUSED = Note(Reason.WRITE_DENIED, "no bare pods here", warning=True)
KEPT = replica_set("web-splith1", spec=0)
BACK = replica_set("web-split1", spec=0)  # of the twins' own pods
HOME = home(running(3, 2, born=True))


def planned(observed: Observation) -> Plan:
    """Return the plan of one reconcile."""
    return plan(observed, policy_in_force(observed, DEFAULTS), rendered(), Rules(defaults=DEFAULTS))


def waiting() -> dict[str, TwinView]:
    """Return both twins, paused and without pods."""
    return {
        name: replace(twin_of(pool, [], updated=0, spec_replicas=count, max_surge=1), paused=True)
        for name, pool, count in (("on_demand", OD, 3), ("spot", SPOT, 2))
    }


def owning(*, paused: bool) -> dict[str, TwinView]:
    """Return both twins with the pods."""
    made = {}
    for name, pool, pods in (("on_demand", OD, running(3, 0)), ("spot", SPOT, running(0, 2))):
        made[name] = replace(twin(pool, pods, max_surge=1), paused=paused)
    return made


class TestOnTheWayThere:
    def test_pods_are_let_go_after_a_rehearsal(self) -> None:
        """What lets them go says so; the reconciler asks the API server then."""
        observed = observation(labelled(), [HOME, KEPT], **waiting())
        result = planned(observed)
        assert [type(one) for one in result.actions] == [OrphanPods]
        assert lets_go(result, observed)

    def test_refused_the_source_goes_on_by_itself(self) -> None:
        """With the pods that it has; the Split says why."""
        observed = observation(labelled(), [HOME, KEPT], letting_go_refused=REFUSED, **waiting())
        result = planned(observed)
        assert [(type(one), getattr(one, "paused", None)) for one in result.actions] == [(SetPaused, False)]
        assert (result.state, result.verdict) == (State.HELD, REFUSED)
        assert result.requeue_after_s == Rules().look_again_s
        assert not lets_go(result, observed)

    def test_refused_it_is_not_paused_again(self) -> None:
        """It runs, rolls and replaces losses as before; nothing flaps."""
        free = labelled(paused=False, paused_by_us=False)
        observed = observation(free, [HOME, KEPT], letting_go_refused=REFUSED, **waiting())
        result = planned(observed)
        assert (result.step, result.state, result.verdict, result.actions) == (
            Step.PAUSE,
            State.HELD,
            REFUSED,
            (),
        )

    def test_the_next_pause_is_rehearsed(self) -> None:
        """Some time later it is tried again, before the pause; nothing is asked before the first one."""
        free = labelled(paused=False, paused_by_us=False)
        observed = observation(free, [HOME, KEPT], **waiting())
        result = planned(observed)
        assert result.step is Step.PAUSE
        assert lets_go(result, observed)
        first = observation(free, [HOME])
        assert not lets_go(planned(first), first)

    def test_a_foreign_unpause_of_what_is_handed_over_is_undone_at_once(self) -> None:
        """What was refused about letting go says nothing about that."""
        free = labelled(paused=False, paused_by_us=False)
        observed = observation(free, [KEPT], letting_go_refused=REFUSED, **owning(paused=False))
        result = planned(observed)
        assert [type(one) for one in result.actions] == [SetPaused]
        assert not lets_go(result, observed)


class TestOnTheWayBack:
    @pytest.mark.parametrize("paused", [False, True])
    def test_is_rehearsed(self, paused: bool) -> None:
        """Before the twins are paused, and before their pods are let go."""
        observed = observation(source(N, labelled=False), [KEPT, BACK], **owning(paused=paused))
        result = planned(observed)
        assert {type(one) for one in result.actions} == {OrphanPods if paused else PauseTwin}
        assert lets_go(result, observed)

    @pytest.mark.parametrize("paused", [False, True])
    def test_refused_the_source_makes_its_own(self, paused: bool) -> None:
        """No pod loses its owner, and the label may be removed at any time."""
        observed = observation(
            source(N, labelled=False), [KEPT], letting_go_refused=REFUSED, **owning(paused=paused)
        )
        result = planned(observed)
        assert result.actions == (SetPaused(paused=False, resource_version="rv-web"),)
        assert result.state is State.GIVING_BACK
        assert REFUSED.message in result.verdict.message
        assert not lets_go(result, observed)

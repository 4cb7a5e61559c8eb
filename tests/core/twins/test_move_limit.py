"""How many workloads make voluntary moves at once."""

from dataclasses import replace

import pytest

from builders import pods, rendered, source, twin
from core.one_reconcile import at_rest, kinds
from splitter.core.actions import Scale, SetPaused
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.rebalance.sentences import waiting
from splitter.core.replica import Pool
from splitter.core.twins.move_limit import keeps_turn


class TestTurns:
    """At most `max_concurrent_moves` workloads at a time do what could as well be done later."""

    FULL = Rules(defaults=Policy(on_demand_base=5), max_concurrent_moves=3)

    def planned(self, observed: Observation, **rules: object) -> Plan:
        """Return the plan of a reconcile in which the policy asks for a base of 5."""
        asked = replace(self.FULL, **rules)  # type: ignore[arg-type]
        return plan(observed, policy_in_force(observed, asked.defaults), rendered("v1"), asked)

    def test_another_division_waits(self) -> None:
        """The same N, divided otherwise: with three others at it nothing is written; the wish is shown."""
        result = self.planned(at_rest(others_moving=3))
        assert (result.actions, result.state, result.voluntary) == ((), State.HELD, False)
        assert result.verdict.reason is Reason.WAITING_FOR_TURN
        assert (result.wanted_on_demand, result.wanted_spot) == (5, 5)
        assert result.requeue_after_s is None

    def test_what_is_due_by_time_stays_due(self) -> None:
        """It is woken for its turn, and before that for its own clocks."""
        more_spot = Policy(on_demand_base=0, spot_percent=100)
        waits = self.planned(at_rest(others_moving=3), defaults=more_spot)
        assert waits.verdict.reason is Reason.WAITING_FOR_TURN
        assert waits.requeue_after_s == more_spot.grace_s

    def test_begins_when_others_are_done(self) -> None:
        """It is its turn, or there is no limit."""
        for one in (
            self.planned(at_rest(others_moving=2)),
            self.planned(at_rest(others_moving=99), max_concurrent_moves=0),
        ):
            assert kinds(one) == [Scale]
            assert one.voluntary

    def test_nothing_else_waits(self) -> None:
        """A loss, a notice, another N: written at once, whoever moves."""
        doomed = at_rest(others_moving=9, spot=twin(Pool.SPOT, pods(4, doomed=2)))
        scaled = at_rest(others_moving=9, source=source(12))
        for observed in (doomed, scaled):
            result = self.planned(observed)
            assert any(isinstance(action, Scale) for action in result.actions)
            assert not result.voluntary

    @pytest.mark.parametrize("base", [3, 4, 5])
    def test_nor_what_replaces_pods_of_a_drained_node(self, base: int) -> None:
        """Somebody empties spot nodes by choice: their replicas are made anew before they go."""
        leaving = tuple(replace(one, voluntary=one.going) for one in pods(4, doomed=2))
        observed = at_rest(others_moving=9, spot=twin(Pool.SPOT, leaving), fit_spot=9)
        result = self.planned(observed, defaults=Policy(on_demand_base=base))
        assert sum(one.replicas - one.was for one in result.raises) >= 2

    @pytest.mark.parametrize(
        ("state", "cause", "had", "keeps"),
        [
            (State.TAKING_OVER, None, False, True),
            (State.HELD, VerdictCause.ON_THE_WAY, True, True),
            (State.MOVING, VerdictCause.ON_THE_WAY, True, True),
            (State.MOVING, VerdictCause.ON_THE_WAY, False, False),
            (State.HELD, None, True, False),
            (State.MOVING, None, True, False),
            (State.STEADY, VerdictCause.ON_THE_WAY, True, False),
        ],
    )
    def test_keeps_its_turn(self, state: State, cause: VerdictCause | None, had: bool, keeps: bool) -> None:
        """While it is on the way; not for the time of a soak, and not when something happens to it."""
        verdict = Note(Reason.WAITING_FOR_REPLICAS, "", cause=cause)
        assert keeps_turn(Plan(Step.RUN, state, verdict), had=had) is keeps

    def test_keeps_it_while_a_set_is_placed(self) -> None:
        """Its members move one after the other, and the next set waits for that."""
        waits = waiting("4 of 5 are ready on nodes that stay; waiting for db-3")
        assert keeps_turn(Plan(Step.PLACE, State.MOVING, waits), had=True)

    def test_gives_it_back_when_its_own_fault_stops_it(self) -> None:
        """A bad image, a full quota: for hours. A write goes on, so it still moves."""
        bad = Note(Reason.IMAGE_PULL_FAILED, "")
        result = Plan(Step.RUN, State.TAKING_OVER, bad, troubles=(bad,))
        assert not keeps_turn(result, had=True)
        assert keeps_turn(replace(result, actions=(SetPaused(paused=True, resource_version="7"),)), had=True)

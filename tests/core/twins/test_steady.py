"""Steady: every pod has the current template and is available."""

from dataclasses import replace

import pytest

from builders import NOW, observation, pods, rendered, replica_set, twin, twin_of
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, TwinView
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool, Replica

DEFAULTS = Policy(on_demand_base=2, spot_percent=80)


def planned(spot: TwinView) -> Plan:
    """Return the plan of a workload whose counts are 4 and 6, as wanted."""
    made = observation(sets=[replica_set(spec=0)], on_demand=twin(Pool.ON_DEMAND, pods(4)), spot=spot)
    return plan(made, policy_in_force(made, DEFAULTS), rendered(), Rules(defaults=DEFAULTS))


@pytest.mark.parametrize(
    ("spot", "state", "reason"),
    [
        (pods(6), State.STEADY, Reason.BALANCED),
        (pods(5, starting=1), State.HELD, Reason.WAITING_FOR_REPLICAS),
        (pods(5), State.HELD, Reason.WAITING_FOR_REPLICAS),
        (pods(6, starting=1), State.HELD, Reason.WAITING_FOR_REPLICAS),
        (pods(7), State.HELD, Reason.WAITING_FOR_REPLICAS),
    ],
)
def test_every_pod_is_available(spot: tuple[Replica, ...], state: State, reason: Reason) -> None:
    """One that starts or that nobody has made yet is missing, and one too many has to go first."""
    result = planned(twin(Pool.SPOT, spot, spec=6))
    assert (result.actions, result.state, result.verdict.reason) == ((), state, reason)


def test_what_keeps_a_pod_away_is_said() -> None:
    """One that finds no node is a shortage of spot, and no more steady than another."""
    waiting = replace(pods(stuck=1)[0], unschedulable_since=NOW)
    result = planned(twin(Pool.SPOT, [*pods(5), waiting]))
    assert (result.state, result.verdict.reason) == (State.HELD, Reason.SPOT_SHORT)


def test_the_status_of_a_twin_counts_too() -> None:
    """A pod is ready, and not available before minReadySeconds have passed."""
    assert planned(twin(Pool.SPOT, pods(6), available_replicas=5)).state is State.HELD


def test_old_pods_are_a_rollout() -> None:
    """The last twin has its template, its last pods have not."""
    old = replica_set("web-spot-1", of=pods(1), attachment=Attachment.ATTACHED, template="v0")
    new = replica_set("web-spot-2", of=pods(5), attachment=Attachment.ATTACHED)
    result = planned(twin_of(Pool.SPOT, [old, new], updated=5))
    assert (result.actions, result.state, result.verdict.reason) == ((), State.ROLLING, Reason.ROLLING)
    assert result.verdict.message == "5 of 6 replicas of web-spot have its new template"

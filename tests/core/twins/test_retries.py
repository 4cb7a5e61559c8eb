"""When a refused ReplicaSet is had try again: soon after a refusal or a loss, seldom later."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from builders import NOW, ago, observation, pods, rendered, split, twin
from splitter.core.actions import RetryPods
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation
from splitter.core.plan import Plan, Rules, held_back, unseen
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.core.replica import Pool, Trouble
from splitter.core.split_status import RebalanceState
from splitter.core.twins.move_limit import keeps_turn

DEFAULTS = Policy(on_demand_base=4, spot_percent=100)
QUOTA = Trouble(Reason.QUOTA_EXCEEDED, "exceeded quota: small")


def refused(
    since_s: float, retried: datetime | None = None, loss_s: float | None = None, now: datetime = NOW
) -> Observation:
    """Return 10 replicas of which one on on-demand is refused."""
    on_demand = twin(Pool.ON_DEMAND, pods(3), spec=4)
    only = replace(on_demand.replica_sets[0], refusal=QUOTA, refused_since=ago(since_s), retried=retried)
    state = RebalanceState(proven=True, last_loss=ago(loss_s) if loss_s is not None else None)
    return replace(
        observation(
            on_demand=replace(on_demand, replica_sets=(only,)),
            spot=twin(Pool.SPOT, pods(6)),
            split=split(state="Steady", rebalance=state.to_json()),
        ),
        now=now,
    )


def planned(observed: Observation) -> Plan:
    """Return the plan for an observation."""
    return plan(observed, policy_in_force(observed, DEFAULTS), rendered("v1"), Rules(defaults=DEFAULTS))


def tries(observed: Observation) -> list[str]:
    """Return which ReplicaSets are had try again."""
    return [one.name for one in planned(observed).retries if isinstance(one, RetryPods)]


@pytest.mark.parametrize(
    ("since_s", "retried_s", "due"),
    [
        (4, None, False),
        (5, None, True),
        (20, 4, False),
        (20, 5, True),
        (120, 23, False),
        (120, 24, True),
        (86400, 119, False),
        (86400, 120, True),
    ],
)
def test_how_often(since_s: float, retried_s: float | None, due: bool) -> None:
    """Every 5 s at first, then after a quarter of the time that has passed, every two minutes at last."""
    retried = ago(retried_s) if retried_s is not None else None
    assert tries(refused(since_s, retried)) == (["web-on-demand-1"] if due else [])


def test_a_loss_begins_anew() -> None:
    """A quota that was full for a day has room in seconds, when what was lost is taken away."""
    assert tries(refused(86400, ago(60))) == []
    assert tries(refused(86400, ago(60), loss_s=30)) == ["web-on-demand-1"]
    assert tries(refused(86400, ago(4), loss_s=30)) == []


@pytest.mark.parametrize("retried", [ago(-3600), ago(90000)])
def test_an_odd_time_counts_as_none(retried: datetime) -> None:
    """Anybody may write the annotation: neither the future nor a time before the refusal holds a try up."""
    assert tries(refused(600, retried)) == ["web-on-demand-1"]


def test_looked_at_again_when_the_next_is_due() -> None:
    """No event tells that there is room."""
    waits = planned(refused(20, ago(3)))
    assert not waits.retries
    assert waits.requeue_after_s == pytest.approx(2)
    tried = planned(refused(20, ago(10)))
    assert tried.requeue_after_s == pytest.approx(5)
    assert tried.retries == (RetryPods("web-on-demand-1", "uid-web-on-demand-1", NOW),)


def test_the_sentence_stays() -> None:
    """What is said of the refusal does not change with a try: one Event, whatever is tried."""
    said = {due: planned(refused(20, ago(9 if due else 1))) for due in (True, False)}
    assert said[True].verdict == said[False].verdict
    assert said[True].state == said[False].state
    assert said[True].verdict.reason is Reason.QUOTA_EXCEEDED


def test_nothing_is_tried_where_nothing_is_refused() -> None:
    """Without a refusal, or with all pods there; nor in a dry run."""
    observed = refused(600)
    assert observed.on_demand is not None
    for spec, of in ((3, pods(3)), (4, pods(4))):
        (only,) = observed.on_demand.replica_sets
        there = replace(only, spec_replicas=spec, pods=tuple(of))
        assert tries(replace(observed, on_demand=replace(observed.on_demand, replica_sets=(there,)))) == []
    dry = policy_in_force(observed, replace(DEFAULTS, dry_run=True))
    made = plan(observed, dry, rendered("v1"), Rules(defaults=DEFAULTS))
    assert not made.retries


def test_it_is_no_move() -> None:
    """Who is tried again keeps no turn of others, and nothing of a plan that is held holds it up."""
    tried = planned(refused(20, ago(10)))
    assert not tried.actions
    assert not keeps_turn(tried, had=True)
    assert held_back(tried, Note(Reason.WRITE_DENIED, "no"), 60).retries == tried.retries
    assert unseen(tried, refused(20, ago(10)), "away").retries == tried.retries


def test_a_full_quota_costs_little() -> None:
    """The first hour of a full quota costs 44 writes, each later one 30."""
    retried, tried = None, []
    at_s = 0.0
    while at_s < 2 * 3600:
        made = planned(refused(0, retried, now=NOW + timedelta(seconds=at_s)))
        if made.retries:
            retried = NOW + timedelta(seconds=at_s)
            tried.append(at_s)
        assert made.requeue_after_s is not None
        at_s += made.requeue_after_s
    assert sum(at < 3600 for at in tried) == 44
    assert sum(at >= 3600 for at in tried) == 30

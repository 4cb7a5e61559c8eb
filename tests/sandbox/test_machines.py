"""What a cloud and its kubelets write on Nodes, in the forms that splitter has to read."""

import pytest

from lab.sandbox.instants import Instant
from lab.sandbox.machines import (
    CONDITION,
    Pool,
    node,
    preemption_condition,
    readiness_condition,
    unknown_conditions,
)
from splitter.core.nodes.facts import CapacityClass, Health
from splitter.core.nodes.signals import assess
from splitter.kube import parse

# 2026-01-05 12:00:00 UTC
NOON = Instant(5.0, 1_767_614_400.9)


def machine(pool: Pool = "spot", **labels: str) -> dict[str, object]:
    """Return a Node as the API server would show it."""
    made = node(
        "n-1", pool, address="10.0.0.1", cpu="4", memory="8Gi", pods=32, zone="a", labels=labels, taints=[]
    )
    made["metadata"] |= {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-05T12:00:00Z"}
    return dict(made)


@pytest.mark.parametrize(
    ("pool", "capacity"), [("spot", CapacityClass.SPOT), ("on-demand", CapacityClass.ON_DEMAND)]
)
def test_a_node_is_of_its_pool(pool: Pool, capacity: CapacityClass) -> None:
    """As splitter reads it; a label of one's own stands beside it."""
    raw = machine(pool, team="a")
    state = parse.node(assess, raw).state
    assert state.capacity is capacity
    assert (state.labels["topology.kubernetes.io/zone"], state.labels["team"]) == ("a", "a")
    assert state.allocatable["cpu"] == 4000


def test_a_node_is_not_ready_before_its_kubelet_says_so() -> None:
    """Else pods would be bound before the machine is up."""
    status = machine()["status"]
    assert isinstance(status, dict)
    assert [(one["type"], one["status"]) for one in status["conditions"]] == [("Ready", "False")]
    assert machine()["spec"] == {}


def test_a_preemption_tells_its_deadline() -> None:
    """In the form of AKS: splitter takes the node for doomed until then."""
    condition = preemption_condition(NOON, 30.0)
    assert condition["lastTransitionTime"] == "2026-01-05T12:00:00Z"
    assert condition["message"] == "Preempt Scheduled: NotBefore: 2026-01-05T12:00:30Z"
    raw = machine()
    status = raw["status"]
    assert isinstance(status, dict)
    status["conditions"] = [condition, readiness_condition(NOON, ready=True)]
    state = parse.node(assess, raw).state
    assert (state.health, CONDITION in state.signal) == (Health.DOOMED, True)
    assert state.deadline is not None
    assert state.deadline.isoformat() == "2026-01-05T12:00:30+00:00"


def test_a_machine_that_fell_silent_is_gone() -> None:
    """All that it said of itself is unknown from then on."""
    raw = machine()
    status = raw["status"]
    assert isinstance(status, dict)
    status["conditions"] = unknown_conditions(NOON)
    assert {one["status"] for one in status["conditions"]} == {"Unknown"}
    assert parse.node(assess, raw).state.health is Health.GONE
    status["conditions"] = [readiness_condition(NOON, ready=True)]
    assert parse.node(assess, raw).state.health is Health.HEALTHY

"""A Node as the rest of the core sees it."""

import pytest

from splitter.core.nodes.facts import CapacityClass, Condition, NodeFacts, NodeState, Taint


@pytest.mark.parametrize(("capacity", "spot"), [("spot", True), ("on-demand", False), ("unknown", False)])
def test_what_nobody_knows_counts_as_on_demand(capacity: str, *, spot: bool) -> None:
    """Nothing of spot's is expected of it."""
    assert NodeState("n", "n", CapacityClass(capacity)).is_spot is spot


@pytest.mark.parametrize(
    ("taint", "text"),
    [
        (Taint("a"), "a:NoSchedule"),
        (Taint("a", "b", "NoExecute"), "a=b:NoExecute"),
        (Taint("a", effect=""), "a:"),
    ],
)
def test_a_taint_is_written_as_kubectl_does(taint: Taint, text: str) -> None:
    """People look for it with the same words."""
    assert str(taint) == text


def test_a_condition_by_its_type() -> None:
    """The first one; none where it is not there."""
    facts = NodeFacts("n", "n", conditions=(Condition("Ready", "True"), Condition("Ready", "False")))
    assert facts.condition("Ready") == Condition("Ready", "True")
    assert facts.condition("MemoryPressure") is None

"""The table of Events that are believed: what means something is in it, and nothing else."""

from datetime import UTC, datetime

import pytest

from splitter.core.nodes.believed_events import BELIEVED, BelievedEvents
from splitter.core.nodes.facts import NodeEvent
from splitter.core.nodes.signals import stale_at
from splitter.core.nodes.spot_supply import INSUFFICIENT_CAPACITY

NODES, CLAIMS = BELIEVED
NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


def test_each_row_is_of_a_kind_of_its_own() -> None:
    """One watch of Events is made of each row, and the right to patch that kind is asked for."""
    rows = {(row.kind, row.group, row.resource) for row in BELIEVED}
    assert rows == {("Node", "", "nodes"), ("NodeClaim", "karpenter.sh", "nodeclaims")}


@pytest.mark.parametrize("reason", sorted(NODES.reasons))
def test_each_reason_about_a_node_means_something(reason: str) -> None:
    """A notice or a hint, which grows stale; a reason that the table has not is never heard."""
    assert stale_at(NodeEvent(reason, NOW)) is not None


def test_each_reason_about_a_claim_means_something() -> None:
    """Karpenter got no machine."""
    assert CLAIMS.reasons == INSUFFICIENT_CAPACITY


@pytest.mark.parametrize(
    ("row", "kind", "reason", "expected"),
    [
        (NODES, "Node", "SpotInterrupted", True),
        (NODES, "Node", "InsufficientCapacityError", False),
        (NODES, "Node", "", False),
        (NODES, "NodeClaim", "SpotInterrupted", False),
        (CLAIMS, "NodeClaim", "InsufficientCapacityError", True),
        (CLAIMS, "NodeClaim", "SpotInterrupted", False),
        (CLAIMS, "Node", "InsufficientCapacityError", False),
    ],
    ids=lambda value: value.kind if isinstance(value, BelievedEvents) else str(value),
)
def test_a_row_is_a_kind_with_its_reasons(
    row: BelievedEvents, kind: str, reason: str, expected: bool
) -> None:
    """A reason of another kind's says nothing."""
    assert row.says(kind, reason) is expected


def test_kubelets_speak_of_nodes_alone() -> None:
    """Each of its own: no kubelet has a say in what machines there are."""
    assert [row.kind for row in BELIEVED if row.of_kubelets] == ["Node"]

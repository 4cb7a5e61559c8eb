"""Which nodes a new replica is to be kept off: those that might draw it, and none in anybody's way."""

from dataclasses import replace

import pytest

from builders import NOW
from splitter.core.relief.model import Amounts
from splitter.core.replica import Pool
from splitter.relief.hint import HINTS_MAX, drawing
from splitter.relief.loads import Cluster, NodeLoad, ReplicaLoad

GIB = 1024.0**3
NODE = NodeLoad("hot", "uid-hot", Pool.SPOT, Amounts(8000, 32 * GIB), Amounts(800, 3 * GIB), free_pods=50)
REPLICA = ReplicaLoad(
    "web", "uid-web", "hot", Pool.SPOT, Amounts(500, GIB), NOW, may_run_on=frozenset({"hot"})
)


def drawn(node: NodeLoad = NODE, replica: ReplicaLoad = REPLICA, *waiting: Amounts) -> bool:
    """Whether the node is to avoid and might draw the replica."""
    return bool(drawing(Cluster(NOW, (node,), waiting=waiting), {"hot"}, replica))


def test_has_room_by_requests() -> None:
    """Only then the scheduler would take it."""
    assert drawn()
    assert not drawn(replace(NODE, requested=Amounts(7500, GIB)))
    assert not drawn(replace(NODE, requested=Amounts(800, 31.5 * GIB)))
    assert not drawn(replace(NODE, free_pods=1))


def test_is_one_that_the_twin_may_stand_on() -> None:
    """By its own rules, and the node takes pods."""
    assert not drawn(replica=replace(REPLICA, may_run_on=frozenset({"cool"})))
    assert not drawn(replace(NODE, sound=False))


@pytest.mark.parametrize(("cpu", "kept"), [(7000.0, False), (7200.0, False), (7201.0, True)])
def test_is_wanted_by_nobody_else(cpu: float, kept: bool) -> None:
    """A pod that waits for a node and would fit there may be about to get it."""
    assert drawn(NODE, REPLICA, Amounts(cpu, GIB)) is kept


def test_the_emptiest_come_first_and_few() -> None:
    """Those draw most; and no more placeholders than that are made for one move."""
    nodes = tuple(replace(NODE, name=f"n-{n:02}", requested=Amounts(1000.0 - n, GIB)) for n in range(20))
    names = {node.name for node in nodes}
    replica = replace(REPLICA, may_run_on=frozenset(names))
    kept = drawing(Cluster(NOW, nodes), names, replica)
    assert kept == tuple(f"n-{n:02}" for n in range(19, 19 - HINTS_MAX, -1))
    assert drawing(Cluster(NOW, nodes), {"n-03"}, replica) == ("n-03",)
    assert drawing(Cluster(NOW, nodes), {"gone"}, replica) == ()


def test_a_node_that_can_hold_nothing_draws_nothing() -> None:
    """Whatever it says of itself."""
    assert not drawn(replace(NODE, allocatable=Amounts()))

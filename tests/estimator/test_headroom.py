"""Room on the nodes of both pools: node by node, with each twin's tolerations, without nodes that go."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.nodes.facts import CapacityClass, Health, NodeState, Taint
from splitter.core.nodes.fit import NodeHeadroom, PodRequest, Toleration
from splitter.estimator.headroom import ANYWHERE, Headroom, ReplicaRequest, count_sets

ONE = ReplicaRequest.of(PodRequest({"cpu": 1000}))
TAINT = Taint("spot", "true")


def node(
    name: str, cpu: int, *, spot: bool = False, health: Health = Health.HEALTHY, tainted: bool = False
) -> NodeHeadroom:
    """Return an empty node."""
    capacity = CapacityClass.SPOT if spot else CapacityClass.ON_DEMAND
    taints = (TAINT,) if tainted else ()
    allocatable = {"cpu": cpu, "pods": 110}
    return NodeHeadroom(
        NodeState(name, name, capacity=capacity, health=health, taints=taints, allocatable=allocatable)
    )


def test_counts_node_by_node() -> None:
    """Two halves of a replica are none."""
    assert Headroom([node("a", 1500), node("b", 1500)]).count(ONE) == 2
    assert Headroom([node("a", 900), node("b", 900)]).count(ONE) == 0


@pytest.mark.parametrize("health", [Health.DOOMED, Health.GONE, Health.HINTED])
def test_leaves_out_what_goes(health: Health) -> None:
    """Announced, gone or hinted at, of either pool."""
    nodes = [node("a", 4000), node("b", 4000, health=health), node("c", 4000, spot=True, health=health)]
    assert Headroom(nodes).count(ONE) == 4


def test_asks_a_spot_node_as_the_spot_twin() -> None:
    """Its taint is tolerated there, and on no other node."""
    spot, other = node("s", 4000, spot=True, tainted=True), node("o", 2000, tainted=True)
    replica = ReplicaRequest.of(PodRequest({"cpu": 1000}), (Toleration("spot", "Exists"),))
    assert Headroom([spot, other]).count(ONE) == 0
    assert Headroom([spot, other]).count(replica) == 4
    assert replica.comparisons == ONE.comparisons + 1
    assert len(Headroom([spot, other]).admitting([replica])) == 1


def test_asks_with_the_labels_that_the_user_asks_for() -> None:
    """On nodes of both pools."""
    with_disk = replace(node("a", 2000).node, labels={"disk": "ssd"})
    replica = ReplicaRequest.of(PodRequest({"cpu": 1000}, node_selector={"disk": "ssd"}))
    assert Headroom([NodeHeadroom(with_disk), node("b", 8000)]).count(replica) == 2


def test_takes_what_is_placed() -> None:
    """As many as fit, and their room is gone, pod slots too."""
    headroom = Headroom([node("a", 2500), node("b", 1000)])
    assert headroom.place(ONE, 2) == 2
    assert headroom.count(ONE) == 1
    assert headroom.place(ONE, 2**31) == 1
    few = replace(node("c", 64000).node, allocatable={"cpu": 64000, "pods": 3})
    slots = Headroom([NodeHeadroom(few)])
    assert slots.place(ReplicaRequest.of(PodRequest(tolerations=(ANYWHERE,))), 2) == 2
    assert slots.count(ONE) == 1


def test_counts_sets_that_compete() -> None:
    """A set of one small and three large replicas: the last node has room for one of a second set."""
    large = ReplicaRequest.of(PodRequest({"cpu": 2000}))
    headroom = Headroom([node("a", 7000), node("b", 5000)])
    assert count_sets(headroom, [(ONE, 1), (large, 3)]) == 1
    assert count_sets(headroom, [(ONE, 2)]) == 6
    assert count_sets(headroom, [(ONE, 0)]) == 0
    assert count_sets(headroom, [(ONE, 1), (large, 6)]) == 0
    assert headroom.count(ONE) == 12, "nothing is taken"


@given(
    st.lists(st.integers(0, 9000), max_size=5), st.integers(1, 4), st.integers(1, 3), st.integers(100, 3000)
)
def test_a_set_that_is_counted_fits(cpus: list[int], small: int, large: int, size: int) -> None:
    """Never more sets than each component alone has room for, nor than their sum of CPU allows."""
    other = ReplicaRequest.of(PodRequest({"cpu": size}))
    headroom = Headroom([node(str(at), cpu) for at, cpu in enumerate(cpus)])
    sets = count_sets(headroom, [(ONE, small), (other, large)])
    assert 0 <= sets <= min(headroom.count(ONE) // small, headroom.count(other) // large)
    assert sets * (small * 1000 + large * size) <= sum(cpus)

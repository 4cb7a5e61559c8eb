"""A bill is what pods on nodes cost, of recordings made by hand."""

import pytest

from lab.fixtures.shop import CAPACITY
from lab.sandbox import Instant
from lab.sandbox.recording import NodeChange, NodeSeen, PodChange, PodSeen, Recording
from lab.sandbox.timeline import Between
from lab.soak.bill import Billed, beside, bill
from lab.splits import ON_DEMAND, SPOT


def at(second: float) -> Instant:
    """Return a moment."""
    return Instant(second, 1_000_000 + second)


def node(name: str, pool: str, uid: str = "") -> NodeSeen:
    """Return a node of a pool."""
    return NodeSeen(name, uid or name, {CAPACITY: pool})


def pod(name: str, on: str = "", *, namespace: str = "shop", phase: str = "Running") -> PodSeen:
    """Return a pod on a node."""
    return PodSeen(namespace, name, name, node=on, phase=phase)


def recording(*changes: PodChange | NodeChange) -> Recording:
    """Return a recording of a minute in which two nodes are there from the beginning."""
    nodes = (NodeChange(at(0), node("a", "spot")), NodeChange(at(0), node("b", "on-demand")))
    return Recording(at(0), at(60), (*nodes, *changes))


def of(*changes: PodChange | NodeChange, begin: float = 0, end: float = 60) -> tuple[float, float]:
    """Return the seconds on on-demand and on spot."""
    billed = bill(recording(*changes), "shop", Between(at(begin), at(end)))
    return billed[ON_DEMAND], billed[SPOT]


class TestBill:
    def test_from_bound_to_gone(self) -> None:
        """Waiting for a node costs nothing."""
        waits, runs = PodChange(at(5), pod("x")), PodChange(at(10), pod("x", "a"))
        gone = PodChange(at(40), pod("x", "a"), deleted=True)
        assert of(waits, runs, gone) == (0, 30)

    def test_by_pool(self) -> None:
        """Each pool counts its own, other namespaces none."""
        others = PodChange(at(10), pod("z", "a", namespace="other"))
        assert of(PodChange(at(10), pod("x", "a")), PodChange(at(30), pod("y", "b")), others) == (30, 50)

    def test_a_node_that_goes(self) -> None:
        """Its pods stay for a while and cost nothing."""
        runs = PodChange(at(10), pod("x", "a"))
        assert of(runs, NodeChange(at(25), node("a", "spot"), deleted=True)) == (0, 15)

    def test_a_name_that_comes_back(self) -> None:
        """The late news of an older node's end ends nothing on the new one."""
        runs = PodChange(at(10), pod("x", "a"))
        again = NodeChange(at(20), node("a", "spot", "new"))
        assert of(runs, again, NodeChange(at(25), node("a", "spot"), deleted=True)) == (0, 50)

    def test_one_that_ended(self) -> None:
        """A pod that has failed costs nothing."""
        runs, failed = PodChange(at(10), pod("x", "a")), PodChange(at(20), pod("x", "a", phase="Failed"))
        assert of(runs, failed) == (0, 10)

    def test_a_part(self) -> None:
        """Only what lies between the two moments counts."""
        runs = PodChange(at(10), pod("x", "a"))
        assert of(runs, PodChange(at(50), pod("x", "a"), deleted=True), begin=20, end=30) == (0, 10)
        assert of(runs, begin=20, end=45) == (0, 25)


def test_beside() -> None:
    """What was counted grew by as much as was billed, or did not."""
    before = {ON_DEMAND: 100.0, SPOT: 50.0}
    after = {ON_DEMAND: 200.0, SPOT: 153.0}
    first, second = beside("shop", {ON_DEMAND: 101.0, SPOT: 100.0}, before, after)
    assert (first.counted_s, first.near) == (100, True)
    assert second.off == pytest.approx(0.03)
    assert not second.near


def test_of_nothing() -> None:
    """Where nothing was billed nothing may be counted."""
    assert Billed("shop", SPOT, 0, 0).near
    assert not Billed("shop", SPOT, 0, 1).near

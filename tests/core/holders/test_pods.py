"""The floor, and which pods a status admits."""

import pytest

from builders import ago, pod, pods, replica_set
from splitter.core.holders.pods import available_of, floor_of, stuck
from splitter.core.model import Attachment, NodeStatus, ReplicaSetView

ATTACHED, DOOMED = Attachment.ATTACHED, NodeStatus.DOOMED


def older(spec: int, ready: int) -> ReplicaSetView:
    """Return a ReplicaSet of an earlier template."""
    return replica_set("web-spot-0", spec, pods(ready), attachment=ATTACHED, template="h0")


def newest(spec: int, ready: int = 0, starting: int = 0) -> ReplicaSetView:
    """Return the ReplicaSet of the template that the twin has."""
    return replica_set("web-spot-1", spec, pods(ready, starting=starting), attachment=ATTACHED)


@pytest.mark.parametrize(("surge", "unavailable", "floor"), [(1, 2, 8), (0, 2, 6), (0, 9, 0)])
def test_the_floor(surge: int, unavailable: int, floor: int) -> None:
    """All of 8 where a surge is allowed; else less what may be unavailable."""
    assert floor_of(8, surge, unavailable) == floor


@pytest.mark.parametrize(("admitted", "count"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_a_status_admits_the_oldest(admitted: int, count: int) -> None:
    """One that is doomed and ready for longer takes the place of the available one."""
    both = (pod("a", DOOMED, ready_since=ago(900)), pod("b", ready_since=ago(9)))
    assert available_of(both, admitted) == count


def test_stuck() -> None:
    """Those that have no node and are not asked to end."""
    ending = pod("e", NodeStatus.UNBOUND, unschedulable_since=ago(1), terminating=True)
    assert stuck((*pods(1, stuck=2), ending)) == 2

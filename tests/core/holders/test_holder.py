"""What surely stays available after a write: counted for each ReplicaSet, never over their sums (ADR 33)."""

from dataclasses import replace

import pytest

from builders import ago, pod, pods, replica_set, twin, twin_of
from holding import kept_by
from splitter.core.holders.holder import available_of, floor_of, is_rolling, serves, stuck
from splitter.core.model import Attachment, ReplicaSetView
from splitter.core.replica import NodeStatus, Pool

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


class TestReplicaSet:
    def test_keeps_no_more_than_it_asks_for(self) -> None:
        """The fourth pod is still there, and goes."""
        assert kept_by(older(3, ready=4), 3) == 3

    def test_may_keep_the_doomed_in_the_place_of_others(self) -> None:
        """They are as ready as the others for whoever scales down."""
        both = replica_set("web-spot-0", 4, pods(2, doomed=2), attachment=ATTACHED)
        assert kept_by(both, 3) == 1

    def test_takes_the_doomed_for_no_other(self) -> None:
        """The status admits two of three that are ready: the third is younger than `minReadySeconds`."""
        both = replica_set("web-spot-0", 3, pods(1, doomed=1), attachment=ATTACHED)
        young = pod("young", ready_since=ago(1))
        assert kept_by(replace(both, pods=(young, *both.pods)), 4) == 1

    def test_what_its_controller_has_not_seen_ready_may_go_first(self) -> None:
        """Its status shows neither of two as ready: to its controller they are as the third, which is not."""
        behind = replace(newest(3, ready=2, starting=1), available_replicas=0)
        assert kept_by(behind, 3, serves) == 2
        assert kept_by(behind, 2, serves) == 1
        assert kept_by(replace(behind, available_replicas=2), 2, serves) == 2


class TestTwin:
    def test_what_one_has_above_its_count_makes_up_for_no_other(self) -> None:
        """Cut from 4 to 3 in a roll whose new pod is not there: three stay, though four run."""
        rolling = twin_of(Pool.SPOT, [older(3, ready=4), newest(1)], updated=0, max_unavailable=0)
        assert is_rolling(rolling)
        assert kept_by(rolling, 4) == 3

    def test_nor_does_what_waits_to_go(self) -> None:
        """Scaled 4 -> 2, its fourth and third pods still answer; what was asked for is what stays."""
        assert kept_by(twin(Pool.SPOT, pods(4), spec=2), 4) == 2

    def test_what_is_above_the_surge_is_taken_anywhere(self) -> None:
        """Of 4 that serve and 2 that never come up at least one goes when 4 are asked for, with no surge."""
        rolling = twin_of(Pool.SPOT, [older(4, ready=4), newest(2, starting=2)], updated=2, max_surge=0)
        assert kept_by(rolling, 4) == 2

    def test_what_a_lowering_takes_is_taken_twice(self) -> None:
        """Of 4 + 2 with a surge of 2 that are to be 2 it may cut two, and then two of what statuses show."""
        rolling = twin_of(Pool.SPOT, [older(4, ready=4), newest(2, ready=2)], updated=2, max_surge=2)
        assert kept_by(replace(rolling, spec_replicas=4), 2) == 0
        assert kept_by(replace(rolling, spec_replicas=4), 3) == 2

    def test_nor_while_surge_replicas_enough_are_starting(self) -> None:
        """With one that is not ready beside a surge of one nothing of the older ones goes by a status."""
        rolling = twin_of(Pool.SPOT, [older(4, ready=4), newest(1, starting=1)], updated=1, max_surge=1)
        assert kept_by(replace(rolling, spec_replicas=4), 3) == 3
        assert kept_by(replace(rolling, spec_replicas=4), 2) == 1


@pytest.mark.parametrize(("admitted", "count"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_a_status_admits_the_oldest(admitted: int, count: int) -> None:
    """One that is doomed and ready for longer takes the place of the available one."""
    both = (pod("a", DOOMED, ready_since=ago(900)), pod("b", ready_since=ago(9)))
    assert available_of(both, admitted) == count


def test_stuck() -> None:
    """Those that have no node and are not asked to end."""
    ending = pod("e", NodeStatus.UNBOUND, unschedulable_since=ago(1), terminating=True)
    assert stuck((*pods(1, stuck=2), ending)) == 2

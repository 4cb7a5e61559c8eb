"""What surely stays available of a ReplicaSet after a write."""

from dataclasses import replace

from builders import ago, pod, pods, replica_set
from holding import kept_by
from splitter.core.holders.pods import serves
from splitter.core.model import Attachment, NodeStatus, ReplicaSetView

ATTACHED, DOOMED = Attachment.ATTACHED, NodeStatus.DOOMED


def older(spec: int, ready: int) -> ReplicaSetView:
    """Return a ReplicaSet of an earlier template."""
    return replica_set("web-spot-0", spec, pods(ready), attachment=ATTACHED, template="h0")


def newest(spec: int, ready: int = 0, starting: int = 0) -> ReplicaSetView:
    """Return the ReplicaSet of the template that the twin has."""
    return replica_set("web-spot-1", spec, pods(ready, starting=starting), attachment=ATTACHED)


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

"""What surely stays available of a twin: counted for each ReplicaSet, never over their sums (ADR 33)."""

from dataclasses import replace

from builders import pods, replica_set, twin, twin_of
from holding import kept_by
from splitter.core.holders.holder import is_rolling
from splitter.core.model import Attachment, NodeStatus, Pool, ReplicaSetView

ATTACHED, DOOMED = Attachment.ATTACHED, NodeStatus.DOOMED


def older(spec: int, ready: int) -> ReplicaSetView:
    """Return a ReplicaSet of an earlier template."""
    return replica_set("web-spot-0", spec, pods(ready), attachment=ATTACHED, template="h0")


def newest(spec: int, ready: int = 0, starting: int = 0) -> ReplicaSetView:
    """Return the ReplicaSet of the template that the twin has."""
    return replica_set("web-spot-1", spec, pods(ready, starting=starting), attachment=ATTACHED)


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

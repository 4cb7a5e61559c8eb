"""What is seen of a workload: who holds its replicas, and what is missing."""

import pytest

from builders import NOW, ago, observation, pod, pods, replica_set, source, split, twin
from splitter.core.model import Attachment, Move, seconds_between
from splitter.core.reasons import Reason
from splitter.core.replica import Pool, Trouble
from splitter.core.split_status import UNREPORTED, RebalanceState


class TestRefused:
    @pytest.mark.parametrize(("spec", "refused"), [(5, 2), (3, 0), (1, 0)])
    def test_is_what_is_missing(self, spec: int, refused: int) -> None:
        """Where the API server says no; else it is on its way."""
        why = Trouble(Reason.QUOTA_EXCEEDED, "pods: 3")
        ends = pod("ending", terminating=True)
        assert replica_set(spec=spec, of=(*pods(3), ends), refusal=why).refused == refused
        assert replica_set(spec=spec, of=pods(3)).refused == 0


class TestObservation:
    def test_who_holds_pods(self) -> None:
        """The source's ReplicaSets first, then the twins', on-demand's before spot's."""
        parked, attached = replica_set("web-1"), replica_set("web-2", attachment=Attachment.ATTACHED)
        seen = observation(
            source(),
            [parked, attached],
            on_demand=twin(Pool.ON_DEMAND, pods(1)),
            spot=twin(Pool.SPOT, pods(doomed=1)),
        )
        assert [rs.name for rs in seen.holders] == ["web-1", "web-2", "web-on-demand-1", "web-spot-1"]
        assert seen.attached_as(Attachment.PARKED) == (parked,)
        assert seen.attached_as(Attachment.RETURNING) == ()
        assert [one.is_losing for one in seen.twins] == [False, True]

    def test_of_twins_those_that_exist(self) -> None:
        """Either may be missing."""
        only = observation(spot=twin(Pool.SPOT))
        assert (only.twin(Pool.ON_DEMAND), only.twin(Pool.SPOT)) == (None, only.spot)
        assert [one.pool for one in only.twins] == [Pool.SPOT]

    def test_without_a_split_nothing_is_remembered(self) -> None:
        """With one, what it says."""
        assert observation(split=None).reported is UNREPORTED
        assert observation(split=None).rebalance == RebalanceState()
        assert observation(split=split(rebalance={"lost": True})).rebalance.lost


def test_a_move_is_said_with_its_difference() -> None:
    """As a sentence begins: who reads the decisions of a Split goes by it."""
    assert str(Move(Pool.SPOT, 8, 5)) == "scale spot 8 -> 5 (-3)"
    assert str(Move(Pool.ON_DEMAND, 0, 5)) == "scale on-demand 0 -> 5 (+5)"


def test_seconds_have_a_direction() -> None:
    """Clocks of two machines differ."""
    assert (seconds_between(ago(5), NOW), seconds_between(NOW, ago(5))) == (5.0, -5.0)

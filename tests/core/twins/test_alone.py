"""What one twin does while the other is being deleted, or is gone."""

from dataclasses import replace

import pytest

from builders import ago, pods, rendered, source, split, twin
from core.one_reconcile import DEFAULTS, at_rest
from splitter.core.actions import ApplyTwin
from splitter.core.model import Note, Observation
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool
from splitter.core.split_status import Condition

BROKEN = Note(Reason.TEMPLATE_INVALID, "line 3: no", warning=True)


def planned(observed: Observation, made: Note | None = None) -> Plan:
    """Plan a reconcile, of templates that may not render."""
    return plan(observed, policy_in_force(observed, DEFAULTS), made or rendered(), Rules(defaults=DEFAULTS))


class TestATwinThatIsDeleted:
    """It may stay for ever for a finalizer; the garbage collector ends its pods meanwhile."""

    @pytest.mark.parametrize(("left", "wanted"), [(6, 4), (2, 8), (0, 10)])
    def test_spot(self, left: int, wanted: int) -> None:
        """On-demand takes the place of what has gone, and the twin is named."""
        going = replace(twin(Pool.SPOT, pods(left)), spec_replicas=6, deleting=True)
        result = planned(at_rest(spot=going))
        assert [one.replicas for one in result.raises] == ([wanted] if wanted > 4 else [])
        assert result.verdict.message.startswith("waiting for a deleted twin to go: web-spot. ")
        assert "metadata.finalizers" in result.verdict.message

    @pytest.mark.parametrize(("since_s", "raised"), [(4, []), (5, [10])])
    def test_without_its_replica_sets(self, since_s: float, raised: list[int]) -> None:
        """Deleted with --cascade=orphan it goes in a moment, and its pods run on; one that stays has none."""
        going = replace(twin(Pool.SPOT), spec_replicas=6, deleting=True, replica_sets=())
        moving = Condition("Progressing", "True", "WaitingForController", "", ago(since_s))
        result = planned(at_rest(spot=going, split=split(conditions=(moving,))))
        assert [one.replicas for one in result.raises] == raised

    def test_on_demand(self) -> None:
        """Spot takes its place."""
        going = replace(twin(Pool.ON_DEMAND), spec_replicas=4, deleting=True)
        result = planned(at_rest(on_demand=going))
        assert [(one.name, one.replicas) for one in result.raises] == [("web-spot", 10)]

    def test_both(self) -> None:
        """Nothing is left to raise."""
        gone = [replace(twin(pool), spec_replicas=5, deleting=True) for pool in Pool]
        result = planned(at_rest(on_demand=gone[0], spot=gone[1]))
        assert not result.actions
        assert "web-on-demand and web-spot" in result.verdict.message

    @pytest.mark.parametrize(("most", "wanted"), [("6", [6]), ("3", [])])
    def test_no_more_than_the_user_allows(self, most: str, wanted: list[int]) -> None:
        """By on-demand-max."""
        going = replace(twin(Pool.SPOT), spec_replicas=6, deleting=True)
        asked = source(annotations={"splitter.io/on-demand-max": most})
        assert [one.replicas for one in planned(at_rest(spot=going, source=asked)).raises] == wanted

    def test_frozen(self) -> None:
        """Counts stay as they are."""
        going = replace(twin(Pool.SPOT), spec_replicas=6, deleting=True)
        asked = source(annotations={"splitter.io/freeze": "true"})
        assert not planned(at_rest(spot=going, source=asked)).actions

    def test_while_no_template_renders(self) -> None:
        """It is gone, and cannot be made again."""
        result = planned(at_rest(spot=None), BROKEN)
        assert [(one.name, one.replicas) for one in result.raises] == [("web-on-demand", 10)]
        assert (result.state, result.verdict) == (State.HELD, BROKEN)

    @pytest.mark.parametrize(("last", "wanted"), [(Reason.WRITE_DENIED, [10]), (Reason.HANDING_OVER, [])])
    def test_while_a_policy_refuses_to_make_it_again(self, last: Reason, wanted: list[int]) -> None:
        """The other one takes its place once that was answered; the next try goes out beside it."""
        seen = at_rest(spot=None)
        assert seen.split is not None
        seen = replace(seen, split=replace(seen.split, status=replace(seen.reported, reason=last)))
        result = planned(seen)
        assert [one.replicas for one in result.raises] == wanted
        assert [one.pool for one in result.actions if isinstance(one, ApplyTwin)] == [Pool.SPOT]

    def test_on_the_way_back(self) -> None:
        """The label is removed while a deleted twin hangs: it is named, and its pods are made good."""
        going = replace(twin(Pool.SPOT, pods(2)), spec_replicas=6, deleting=True)
        result = planned(at_rest(spot=going, source=source(labelled=False)))
        assert result.state is State.GIVING_BACK
        assert [(one.name, one.replicas) for one in result.raises] == [("web-on-demand", 8)]
        assert "metadata.finalizers" in result.verdict.message

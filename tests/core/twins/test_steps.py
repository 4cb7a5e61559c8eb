"""A hand-over in which spot was lost: its cover stays, also when no pod tells of the loss any more."""

from collections.abc import Sequence

from builders import ago, observation, pods, rendered, replica_set, split, twin
from splitter.core.actions import Scale
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment
from splitter.core.plan import Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.replica import Pool, Replica
from splitter.core.split_status import RebalanceState

DEFAULTS = Policy(on_demand_base=2, spot_percent=100)


def scales(
    state: RebalanceState, parked: int, on_demand: Sequence[Replica], spot: Sequence[Replica]
) -> dict[str, int]:
    """Return the counts that are written where 10 are wanted and so many are parked still."""
    observed = observation(
        sets=[replica_set(of=pods(parked), attachment=Attachment.PARKED)],
        on_demand=twin(Pool.ON_DEMAND, on_demand),
        spot=twin(Pool.SPOT, spot),
        split=split(state="TakingOver", rebalance=state.to_json()),
    )
    made = plan(observed, policy_in_force(observed, DEFAULTS), rendered("v1"), Rules(defaults=DEFAULTS))
    return {one.name: one.replicas for one in made.actions if isinstance(one, Scale)}


def test_a_loss_that_nobody_sees_any_more_is_covered() -> None:
    """The pods of the lost nodes are gone. What there is room for goes to on-demand, not to spot."""
    lost = RebalanceState(lost=True, last_loss=ago(60))
    assert scales(lost, 4, pods(2), ()) == {"web-on-demand": 9}
    assert scales(RebalanceState(), 4, pods(2), ()) == {"web-spot": 7}


def test_cover_stays_until_spot_has_proven_itself() -> None:
    """Spot is back since a moment. One of its cover is not ready, and is not given back for that."""
    back = RebalanceState(last_loss=ago(60))
    assert scales(back, 2, pods(7, starting=1), pods(starting=3)) == {}
    proven = RebalanceState(last_loss=ago(3600), proven=True)
    assert scales(proven, 2, pods(7, starting=1), pods(starting=3)) == {"web-on-demand": 7}

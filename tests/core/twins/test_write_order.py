"""The order of the writes of a reconcile: whom a ReplicaSet deletes is settled before it is lowered."""

from dataclasses import replace

import pytest

from builders import ago, observation, pod, pods, replica_set, split, twin
from core.one_reconcile import at_rest, kinds, planned
from splitter.core.actions import DeleteVanishedPod, Scale, SetDeletionCost
from splitter.core.replica import NodeStatus, Pool
from splitter.core.split_status import RebalanceState
from splitter.core.twins.write_order import COST_SEEN_S, is_low, restored_costs


class TestOrder:
    def test_no_holder_is_lowered_before_its_doomed_carry_the_cost(self) -> None:
        """A ReplicaSet would delete a live one instead."""
        parked = replica_set(of=pods(9, doomed=1))
        on_demand = twin(Pool.ON_DEMAND, pods(7))
        result = planned(observation(sets=[parked], on_demand=on_demand, spot=twin(Pool.SPOT)))
        assert SetDeletionCost in kinds(result)
        assert not [one for one in result.actions if isinstance(one, Scale) and one.replicas < one.was]

    def test_no_holder_is_lowered_beside_a_pod_of_a_vanished_node(self) -> None:
        """Its ReplicaSet takes that pod for ready, and would delete a live one (found by a random life)."""
        vanished = replace(pods(lost=1)[0], vanished=True)
        parked = replica_set(of=(*pods(9), vanished))
        on_demand = twin(Pool.ON_DEMAND, pods(4))
        result = planned(observation(sets=[parked], on_demand=on_demand, spot=twin(Pool.SPOT)))
        assert DeleteVanishedPod in kinds(result)
        assert not [one for one in result.actions if isinstance(one, Scale) and one.replicas < one.was]

    @pytest.mark.parametrize(("starting", "lowered"), [(0, True), (1, False)])
    def test_nor_while_another_pod_may_become_ready(self, starting: int, lowered: bool) -> None:
        """It was ready by the time that the scale-down arrived, and went (found by `make soak`)."""
        vanished = replace(pods(lost=1)[0], vanished=True)
        parked = replica_set(of=(*pods(starting=starting), vanished))
        result = planned(at_rest(replica_sets=(parked,)))
        assert DeleteVanishedPod in kinds(result)
        assert lowered == any(isinstance(one, Scale) and one.replicas < one.was for one in result.actions)

    def test_a_lost_pod_goes_before_a_doomed_one(self) -> None:
        """It may look ready for a minute still."""
        spot = twin(Pool.SPOT, pods(4, doomed=1, lost=1))
        result = planned(at_rest(spot=spot, on_demand=twin(Pool.ON_DEMAND, pods(10))))
        costs = {one.pod: one.cost for one in result.actions if isinstance(one, SetDeletionCost)}
        assert costs == {"doomed-0": "-1000", "lost-0": "-1001"}

    @pytest.mark.parametrize(
        ("age_s", "lowered"), [(0, False), (5, False), (7, True), (-2, False), (-900, True)]
    )
    def test_a_cost_has_time_to_be_seen(self, age_s: float, lowered: bool) -> None:
        """Else its controller takes a sound pod as readily; a clock far ahead keeps nothing waiting."""
        [doomed] = pods(doomed=1)
        written = replace(doomed, deletion_cost="-1000", cost_before="", cost_at=ago(age_s))
        parked = replica_set(of=(*pods(9), written))
        on_demand = twin(Pool.ON_DEMAND, pods(7))
        result = planned(observation(sets=[parked], on_demand=on_demand, spot=twin(Pool.SPOT)))
        assert lowered == any(isinstance(one, Scale) and one.replicas < one.was for one in result.actions)
        if not lowered:
            assert result.requeue_after_s is not None
            assert result.requeue_after_s <= COST_SEEN_S - age_s

    @pytest.mark.parametrize(
        ("ready", "since_s", "written"), [(True, 1, False), (True, 11, True), (False, 1, True)]
    )
    def test_nobody_writes_on_a_pod_that_kubernetes_is_about_to_mark(
        self, ready: bool, since_s: float, written: bool
    ) -> None:
        """Ours would make that write fail, and requests would go there for 5 s more (`make traffic`)."""
        lost = pod("lost", NodeStatus.LOST, ready=ready, on_spot=True)
        remembered = RebalanceState(lost=True, last_loss=ago(since_s), charged=("uid-node-1",)).to_json()
        spot = twin(Pool.SPOT, (*pods(5), lost))
        known = split(rebalance=remembered)
        result = planned(at_rest(spot=spot, on_demand=twin(Pool.ON_DEMAND, pods(10)), split=known))
        assert (SetDeletionCost in kinds(result)) is written
        assert not [one for one in result.actions if isinstance(one, Scale) and one.name == "web-spot"]

    def test_the_users_own_cost_is_remembered(self) -> None:
        """Through doomed and lost, and given back when the node recovers."""
        doomed, lost = (replace(one, deletion_cost="7") for one in pods(doomed=1, lost=1))
        worse = replace(lost, name="worse", deletion_cost="-1000", cost_before="9")
        well = replace(pods(1)[0], name="well", deletion_cost="-1000", cost_before="8")
        spot = twin(Pool.SPOT, (*pods(2), doomed, lost, worse, well))
        result = planned(at_rest(spot=spot, on_demand=twin(Pool.ON_DEMAND, pods(10))))
        costs = {
            one.pod: (one.cost, one.remember) for one in result.actions if isinstance(one, SetDeletionCost)
        }
        assert costs == {
            "doomed-0": ("-1000", "7"),
            "lost-0": ("-1001", "7"),
            "worse": ("-1001", "9"),
            "well": ("8", None),
        }


class TestCosts:
    @pytest.mark.parametrize(
        ("cost", "low"),
        [
            ("-1000", True),
            ("-1001", True),
            ("-999", False),
            ("0", False),
            ("", False),
            (None, False),
            ("x", False),
        ],
    )
    def test_as_low_as_ours(self, cost: str | None, *, low: bool) -> None:
        """What is no number counts as 0, as for Kubernetes."""
        assert is_low(cost) is low

    def test_are_given_back_when_nothing_is_left_to_delete(self) -> None:
        """Before that a ReplicaSet would take others; what was never ours stays."""
        own = [
            replace(pod("a"), deletion_cost="-1000", cost_before="7"),
            replace(pod("b"), deletion_cost="-1000", cost_before=""),
            replace(pod("c"), deletion_cost="5"),
        ]
        assert restored_costs([replica_set(spec=2, of=own)], 3) is None
        assert restored_costs([replica_set(spec=3, of=own)], 2) is None, "its controller has not seen N yet"
        assert restored_costs([replica_set(spec=3, of=own)], 3) == [
            SetDeletionCost("a", "uid-a", "7"),
            SetDeletionCost("b", "uid-b", None),
        ]
        others = [replica_set("web-2", 0, pods(3)), replica_set(spec=3, of=own)]
        assert restored_costs(others, 3) == restored_costs(others[1:], 3), (
            "of those without any nothing is asked"
        )

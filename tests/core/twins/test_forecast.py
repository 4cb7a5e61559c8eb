"""What a label would do to the pods that run."""

import pytest

from builders import observation, pod
from core.deployment.owners import home, labelled, running
from splitter.core.labels_annotations.policy import Policy
from splitter.core.nodes.pools import PoolFit
from splitter.core.rebalance import Tuning
from splitter.core.replica import NodeStatus
from splitter.core.twins.forecast import forecast


class TestForecast:
    """What is said before anything happens."""

    @pytest.mark.parametrize(
        ("base", "on_demand", "spot", "reported"),
        [
            (2, 2, 3, "5 of 5 running pods stay where they are"),
            (
                0,
                5,
                0,
                "0 of 5 running pods stay where they are; moved to spot afterwards: 5, in about 3 min",
            ),
            (
                4,
                2,
                3,
                ("3 of 5 running pods stay where they are; moved to on-demand afterwards: 2, in about 60 s"),
            ),
        ],
    )
    def test_who_stays_and_who_moves(self, base: int, on_demand: int, spot: int, reported: str) -> None:
        """By the nodes that they are on."""
        observed = observation(labelled(), [home(running(on_demand, spot))])
        assert forecast(observed, labelled(), Policy(on_demand_base=base), Tuning()) == reported

    def test_no_spot_node(self) -> None:
        """No move is promised that cannot come."""
        unseen = PoolFit(no_spot_node="no node has a label that looks like it")
        observed = observation(labelled(), [home(running(5, 0))], pools=unseen)
        assert forecast(observed, labelled(), Policy(), Tuning()) == (
            "all 5 running pods stay where they are; 5 are wanted on spot, none can go yet"
        )

    def test_pods_without_a_node(self) -> None:
        """Are none that run."""
        pending = pod("pending", NodeStatus.UNBOUND, revision="h1")
        observed = observation(labelled(), [home((*running(2, 2), pending))])
        said = forecast(observed, labelled(), Policy(on_demand_base=3), Tuning())
        assert said == "4 of 4 running pods stay where they are"

    def test_frozen(self) -> None:
        """Nothing moves."""
        observed = observation(labelled(), [home(running(5, 0))])
        assert (
            forecast(observed, labelled(), Policy(freeze=True), Tuning())
            == "5 of 5 running pods stay where they are"
        )

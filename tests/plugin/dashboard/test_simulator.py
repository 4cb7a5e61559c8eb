"""A policy by hand beside the one in force."""

import pytest

from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import Tuning
from splitter.core.split_status import SplitStatus
from splitter.plugin.dashboard.simulator import Simulator
from splitter.plugin.simulate.trace import Change, Trace


class TestSimulator:
    """A policy by hand beside the one in force."""

    @pytest.fixture
    def simulator(self) -> Simulator:
        """Return a simulator with a trace of a file."""
        trace = Trace("lab", (Change(0.0, "a", added=True), Change(3600.0, "a", added=False)), 7200.0)
        return Simulator(Policy(), Tuning(), trace)

    async def test_more_on_on_demand_saves_less(self, simulator: Simulator) -> None:
        """Both are played on the same trace, and drawn."""
        in_force = SplitStatus(desired=8, policy={"onDemandBase": 1, "grace": "180s"})
        result = await simulator.replay(in_force, {"replicas": "8", "on-demand-base": "4"})
        assert result["problem"] == ""
        first, second = result["results"]
        assert (first["name"], second["name"]) == ("in force", "by hand")
        assert int(first["saved"].split()[0]) > int(second["saved"].split()[0])
        assert str(result["drawn"]).startswith("<svg")

    async def test_without_a_workload_it_is_the_default(self, simulator: Simulator) -> None:
        """Nothing is changed, nothing is different."""
        result = await simulator.replay(None, {})
        first, second = result["results"]
        assert first["name"] == "default"
        assert {**first, "name": ""} == {**second, "name": ""}

    async def test_a_trace_of_a_file(self, simulator: Simulator) -> None:
        """The one that was named when the command was started."""
        result = await simulator.replay(None, {"trace": "file", "replicas": "1"})
        assert "trace lab" in str(result["drawn"])

    @pytest.mark.parametrize(
        ("query", "problem"),
        [
            ({"replicas": "0"}, "replicas is a whole number from 1 to 200"),
            ({"replicas": "1e3"}, "replicas is a whole number"),
            ({"replicas": "٣"}, "replicas is a whole number"),
            ({"days": "9999999999"}, "days is a whole number from 1 to 31"),
            ({"every": "soon"}, "every is a time such as 90s, 20m or 12h"),
            ({"every": "10m", "last": "10m"}, "an outage is shorter than the time to the next"),
            ({"every": "10m", "last": "1m", "days": "31", "replicas": "200"}, "more than 5000 changes"),
            ({"on-demand-base": "-1"}, "on-demand-base"),
            ({"on-demand-max": "1", "spot-max": "1"}, "hold fewer than the replicas"),
        ],
    )
    async def test_what_cannot_be_played_is_said(
        self, simulator: Simulator, query: dict[str, str], problem: str
    ) -> None:
        """In a sentence, in the place of the picture; nothing is played."""
        result = await simulator.replay(None, query)
        assert problem in result["problem"]
        assert "last good policy" not in result["problem"]
        assert result["results"] == []

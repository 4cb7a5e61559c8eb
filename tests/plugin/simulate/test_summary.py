"""The figures of a replay, as a table and as values."""

from dataclasses import replace

import pytest

from plugin.simulate.results import GIVEN, replayed
from splitter.plugin.simulate.contenders import Rebalancing
from splitter.plugin.simulate.outage import outage_trace
from splitter.plugin.simulate.replay import SimulationResult, simulate
from splitter.plugin.simulate.summary import as_json, compared


class TestWhatPeopleSee:
    """The table, the values and the picture."""

    TRACE = outage_trace(7200, 600, 8, 1)

    def results(self, *names: str) -> list[SimulationResult]:
        """Replay one policy under some names."""
        return [simulate(self.TRACE, Rebalancing(name), GIVEN) for name in names]

    def test_the_table_says_what_was_played_and_fits(self) -> None:
        """Trace, assumptions, a line for each policy; 80 columns."""
        lines = compared(self.TRACE, GIVEN, self.results("defaults", "other")).splitlines()
        assert lines[:6] == [
            "trace outage: 24.0 h, at most 8 spot nodes, 1 replica on each",
            "8 replicas; spot costs 0.3 of on-demand; no notice;",
            "ready after 120 s on on-demand, 90 s on spot",
            "",
            "policy    available   cost  on spot  moves/day  worst minute  short/day",
            "defaults   98.333 %  0.459     81 %       60.0         0.0/8   24.0 min",
        ]
        assert max(map(len, lines)) <= 80

    @pytest.mark.parametrize(("availability", "shown"), [(0.9999996, "99.999 %"), (1.0, "100 %")])
    def test_what_is_nearly_all_is_not_shown_as_all(self, availability: float, shown: str) -> None:
        """Never rounded up to a promise."""
        result = replace(replayed((0, 4, 4)), availability=availability)
        assert f" {shown} " in compared(self.TRACE, GIVEN, [result])

    def test_the_values_name_their_units(self) -> None:
        """The same figures for programs, with the annotations of each policy."""
        [result] = self.results("mine")
        outcome = as_json(self.TRACE, GIVEN, [(result, {"splitter.io/soak": "10m"})])
        assert outcome["policies"] == [
            {
                "name": "mine",
                "annotations": {"splitter.io/soak": "10m"},
                "availability": 0.983333,
                "cost": 0.4592,
                "spotShare": 0.8082,
                "movesPerDay": 60.0,
                "worstMinute": {"readyReplicas": 0.0, "atSeconds": 6600.0},
                "shortSecondsPerDay": 1440.0,
                "leastReadyReplicas": 0,
                "mostReadyReplicas": 10,
            }
        ]

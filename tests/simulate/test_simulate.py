"""The figures of a replay, checked by hand, and how they are shown."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from splitter.core.labels_annotations.policy import Policy
from splitter.simulate.contenders import Rebalancing
from splitter.simulate.measures import slices, spot_share, worst_minute
from splitter.simulate.outage import outage_trace
from splitter.simulate.picture import svg
from splitter.simulate.replay import Assumptions, Sample, SimulationResult, simulate
from splitter.simulate.summary import as_json, compared

GIVEN = Assumptions(desired=8, max_surge=2)


def replayed(*samples: tuple[float, int, int], until_s: float = 600.0, desired: int = 4) -> SimulationResult:
    """Make a result of samples: from when, ready on spot, ready at all."""
    return SimulationResult(
        contender="mine",
        trace="trace",
        desired=desired,
        duration_s=until_s,
        cost=1.0,
        availability=1.0,
        on_demand_changes_per_day=0.0,
        most_ready=desired,
        least_ready=0,
        seconds_short=0.0,
        samples=tuple(Sample(at_s, 4, serving - spot, spot, serving) for at_s, spot, serving in samples),
    )


class TestTheWorstMinute:
    """The least average of ready replicas over any sixty seconds."""

    def test_is_what_is_wanted_while_nothing_is_missing(self) -> None:
        """More ready than wanted counts as wanted."""
        assert worst_minute(replayed((0, 4, 8))).ready == 4

    def test_holds_a_short_gap_whole(self) -> None:
        """15 s without any replica: a quarter of the minute."""
        worst = worst_minute(replayed((0, 4, 4), (100, 0, 0), (115, 0, 4)))
        assert worst.ready == pytest.approx(3)
        assert 55 <= worst.at_s <= 100

    def test_lies_within_a_long_gap(self) -> None:
        """Five minutes with one replica: one."""
        worst = worst_minute(replayed((0, 4, 4), (100, 1, 1), (400, 0, 4)))
        assert (worst.at_s, worst.ready) == (100, 1)

    def test_adds_up_gaps_that_are_close(self) -> None:
        """Two gaps of 10 s within one minute count together; joined samples change nothing."""
        worst = worst_minute(
            replayed((0, 4, 4), (50, 2, 4), (100, 0, 0), (110, 4, 4), (140, 0, 0), (150, 4, 4))
        )
        assert worst.ready == pytest.approx(4 * 40 / 60)

    def test_of_less_than_a_minute_is_all_of_it(self) -> None:
        """30 s, of which 15 without any replica."""
        assert worst_minute(replayed((0, 4, 4), (15, 0, 0), until_s=30)).ready == pytest.approx(2)

    def test_is_the_least_of_all_minutes_tried(self) -> None:
        """On a replay with outages no other minute is worse."""
        result = simulate(outage_trace(7200, 600, 8, 1), Rebalancing("mine", Policy(on_demand_base=2)), GIVEN)
        assert worst_minute(result).ready == 2


class TestTheShareOnSpot:
    """In time's average."""

    def test_is_weighed_by_time(self) -> None:
        """Half the time all, half the time none."""
        assert spot_share(replayed((0, 4, 4), (300, 0, 4))) == pytest.approx(0.5)

    def test_of_nothing_is_nothing(self) -> None:
        """No replica was ever ready: no share, no division by zero."""
        assert spot_share(replayed((0, 0, 0))) == 0


class TestSlices:
    """The worst moment of each slice of time."""

    def test_show_a_short_gap_in_a_long_slice(self) -> None:
        """One second is seen in ten minutes; what held before belongs to the slice."""
        samples = slices(replayed((0, 4, 4), (450, 0, 1), (451, 0, 4)), 2)
        assert [sample.serving for sample in samples] == [4, 1]

    @pytest.mark.parametrize("number", [1, 7, 600, 1000])
    def test_are_as_many_as_asked_for(self, number: int) -> None:
        """Whatever the width, no slice is left out."""
        assert len(slices(replayed((0, 4, 4), (100, 1, 1), (400, 0, 4)), number)) == number


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

    def test_the_picture_is_one_of_xml(self) -> None:
        """A panel for each policy; axes say what they show; names cannot break out of it."""
        text = svg(self.results("one", '<script>"&'))
        root = ET.fromstring(text)  # noqa: S314 - our own text
        space = "{http://www.w3.org/2000/svg}"
        assert len(root.findall(f"{space}g")) == 2
        labels = {element.text for element in root.iter(f"{space}text")}
        assert {"replicas", "time since the start of the trace", "0 h", "24 h", "wanted", "8"} <= labels

    def test_the_picture_stays_small(self) -> None:
        """A year of outages is a file that a browser opens at once."""
        result = simulate(outage_trace(7200, 600, 2, 365), Rebalancing("mine"), Assumptions(desired=2))
        assert len(svg([result])) < 100_000

    def test_there_is_no_picture_of_nothing(self) -> None:
        """No result: a sentence."""
        with pytest.raises(ValueError, match="no replay to draw"):
            svg([])

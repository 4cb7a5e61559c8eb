"""The figures of a replay, checked by hand."""

import pytest

from plugin.simulate.results import GIVEN, replayed
from splitter.core.labels_annotations.policy import Policy
from splitter.plugin.simulate.contenders import Rebalancing
from splitter.plugin.simulate.measures import slices, spot_share, worst_minute
from splitter.plugin.simulate.outage import outage_trace
from splitter.plugin.simulate.replay import simulate


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

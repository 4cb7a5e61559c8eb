"""What an estimate is played on, and which of the sources is believed."""

import pytest

from splitter.plugin.simulate.outage import outage_trace
from splitter.plugin.simulate.spot_history import (
    DAYS,
    EVERY_S,
    LAST_S,
    NO_HISTORY,
    YOUNG_S,
    HistorySource,
    history_of,
    lives_trace,
)
from splitter.plugin.simulate.trace import LENGTH_MAX_S, Change, Trace, from_counts

HOUR_S = 3600.0


class TestTheSource:
    """A file before the nodes, the nodes before what is invented."""

    def test_is_the_file_that_is_given(self) -> None:
        """Whatever the nodes say; a node of it holds as many replicas as are needed."""
        trace = from_counts([4, 0, 4], HOUR_S, "mine")
        history = history_of(trace, [50 * HOUR_S])
        assert (history.source, history.name) == (HistorySource.FILE, "mine")
        assert history.of(4) == (trace, 1)
        assert history.of(10) == (trace, 3)

    def test_is_the_nodes_once_they_are_old_enough(self) -> None:
        """On average: one that has just come says nothing against the others."""
        assert history_of(None, [2 * HOUR_S, 60.0]).source is HistorySource.NODES
        assert history_of(None, [YOUNG_S - 1]).source is HistorySource.ASSUMED
        assert history_of(None, []) == NO_HISTORY

    def test_is_no_clock_that_goes_wrong(self) -> None:
        """A node of the future, or of another century."""
        assert history_of(None, [-60.0, 0.0, 2 * LENGTH_MAX_S]) == NO_HISTORY

    def test_is_the_outage_where_nothing_is_known(self) -> None:
        """That of `splitter simulate --outage`."""
        assert NO_HISTORY.of(6) == (outage_trace(EVERY_S, LAST_S, 6, DAYS), 1)

    @pytest.mark.parametrize(
        "trace", [from_counts([0, 0], HOUR_S), Trace("t", (Change(0.0, "a", added=True),), 0)]
    )
    def test_is_no_trace_on_which_nothing_can_be_played(self, trace: Trace) -> None:
        """It is said which."""
        with pytest.raises(ValueError, match="nothing can be played on it"):
            history_of(trace, [])


class TestLives:
    """The ages of nodes as lives, one after the other."""

    @pytest.mark.parametrize(
        "ages_s", [[2 * HOUR_S], [HOUR_S, 5 * HOUR_S, 9 * HOUR_S], list(range(100, 9999, 99))]
    )
    @pytest.mark.parametrize("nodes", [1, 3, 50])
    def test_no_node_comes_or_goes_twice(self, ages_s: list[float], nodes: int) -> None:
        """In order, within the trace, and all of them are there at both ends."""
        trace = lives_trace(ages_s, nodes)
        here = set[str]()
        for change in trace.changes:
            assert 0 <= change.at_s <= trace.duration_s
            assert (change.node in here) is not change.added
            (here.add if change.added else here.remove)(change.node)
        assert len(here) == nodes
        assert sorted(trace.changes, key=lambda change: change.at_s) == list(trace.changes)

    def test_last_as_long_as_they_are_old(self) -> None:
        """Half at each end, and a gap after each."""
        trace = lives_trace([HOUR_S, 3 * HOUR_S], 2)
        assert [(change.at_s, change.node) for change in trace.changes if not change.added] == [
            (HOUR_S / 2, "node-1"),
            (1.5 * HOUR_S, "node-2"),
            (1.5 * HOUR_S + LAST_S + HOUR_S, "node-2"),
            (HOUR_S / 2 + LAST_S + 3 * HOUR_S, "node-1"),
        ]

    def test_of_very_many_nodes_are_few(self) -> None:
        """So that an estimate takes as long as that of a few; from the youngest to the oldest."""
        many = lives_trace([float(age) for age in range(3600, 3_600_000, 3600)], 1)
        assert sum(not change.added for change in many.changes) == 6

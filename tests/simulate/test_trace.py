"""Traces: what is read, and what is refused."""

from pathlib import Path

import pytest

from splitter.simulate import Change, Trace, from_counts, parse_trace, read_trace

TRACES = Path(__file__).parent / "traces"


class TestParsing:
    """Lines of `milliseconds,add|remove,node`."""

    def test_reads_changes_in_order_of_time(self) -> None:
        """Comments and empty lines are left out; a trace ends with its last change."""
        lines = ["# a comment", "60000,remove,a", "", "0,add,a", " 30500, add, b "]
        assert parse_trace(lines, "mine") == Trace(
            "mine",
            (Change(0, "a", added=True), Change(30.5, "b", added=True), Change(60, "a", added=False)),
            60,
        )

    @pytest.mark.parametrize(
        ("line", "sentence"),
        [
            ("0,join,a", "mine, line 1: '0,join,a' is no change"),
            ("0,add", "write milliseconds,add|remove,node"),
            ("-1,add,a", "is no change"),
            ("0,add,", "is no change"),
            ("0,remove,a", "a is removed while it was not there at 0 s"),
            ("0,add,a\n7000,add,a", "a is added twice at 7 s"),
            ("", "mine has no changes; it needs lines such as 60000,add,node1"),
        ],
    )
    def test_refuses_with_what_is_wrong_and_where(self, line: str, sentence: str) -> None:
        """The sentence names the trace, the line and what to write."""
        with pytest.raises(ValueError, match="mine") as refused:
            parse_trace(line.split("\n"), "mine")
        assert sentence in str(refused.value)

    @pytest.mark.parametrize(
        ("name", "changes", "hours"), [("bamboo-p3", 344, 11.4), ("bamboo-g4dn", 153, 10.8)]
    )
    def test_reads_the_public_traces(self, name: str, changes: int, hours: float) -> None:
        """The bamboo traces, as published (uclasystem/bamboo, MIT: LICENSE.bamboo beside them)."""
        trace = read_trace(TRACES / f"{name}.csv")
        assert (trace.name, len(trace.changes)) == (name, changes)
        assert trace.duration_s / 3600 == pytest.approx(hours, abs=0.05)


class TestCounting:
    """Traces that only say how many nodes could be had."""

    def test_makes_nodes_of_counts(self) -> None:
        """The newest node goes first; a node that comes back is another one."""
        trace = from_counts([0, 2, 1, 2], 300, "zone")
        assert [(change.at_s, change.node, change.added) for change in trace.changes] == [
            (300, "node-1", True),
            (300, "node-2", True),
            (600, "node-2", False),
            (900, "node-3", True),
        ]
        assert trace.duration_s == 1200

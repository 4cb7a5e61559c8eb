"""Traces: what is read, and what is refused."""

from pathlib import Path

import pytest

from splitter.plugin.simulate.trace import Change, Trace, from_counts, parse_counts, parse_trace, read_trace

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
            ("99999999999999,add,a", "99999999999999' ms is more than ten years"),
            ("9" * 5000 + ",add,a", "ms is more than ten years"),
            ("²,add,a", "is no change"),
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

    def test_reads_counts_in_json(self) -> None:
        """The form of the SkyPilot traces: nodes at regular times."""
        text = '{"metadata": {"gap_seconds": 300}, "data": [0, 2, 1]}'
        assert parse_counts(text, "zone") == from_counts([0, 2, 1], 300, "zone")

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("{", "zone, line 1: this is no JSON"),
            ('{"metadata":\n {"gap_seconds": }}', "zone, line 2: this is no JSON"),
            ("[1, 2]", 'zone must be {"metadata"'),
            ('{"data": [1]}', "field metadata.gap_seconds is None; it must be a number of seconds"),
            ('{"metadata": {"gap_seconds": 0}, "data": [1]}', "field metadata.gap_seconds is 0"),
            ('{"metadata": {"gap_seconds": NaN}, "data": [1]}', "field metadata.gap_seconds is nan"),
            ('{"metadata": {"gap_seconds": true}, "data": [1]}', "field metadata.gap_seconds is True"),
            ('{"metadata": {"gap_seconds": 60}, "data": []}', "field data is []; it must be a list"),
            ('{"metadata": {"gap_seconds": 60}, "data": [1, -1]}', "field data[1] is -1; it must be a whole"),
            ('{"metadata": {"gap_seconds": 60}, "data": [1, "2"]}', "field data[1] is '2'"),
            ('{"metadata": {"gap_seconds": 60}, "data": [1e3]}', "field data[0] is 1000.0"),
            ('{"metadata": {"gap_seconds": 300000000}, "data": [1, 2]}', "zone is longer than ten years"),
        ],
    )
    def test_refuses_counts_with_the_field(self, text: str, sentence: str) -> None:
        """The sentence names the line or the field, and what it must be."""
        with pytest.raises(ValueError, match="zone") as refused:
            parse_counts(text, "zone")
        assert sentence in str(refused.value)

    def test_reads_either_format_from_a_file(self, tmp_path: Path) -> None:
        """A byte order mark and empty lines do no harm; what is no text is refused."""
        counts, lines, binary = (tmp_path / name for name in ("a.json", "b.csv", "c.bin"))
        counts.write_text('\ufeff\n{"metadata": {"gap_seconds": 1}, "data": [1]}', encoding="utf-8")
        lines.write_text("0,add,x\r\n1000,remove,x\r\n", encoding="utf-8")
        binary.write_bytes(b"\xff\xfe\x00")
        assert read_trace(counts) == from_counts([1], 1, "a")
        assert read_trace(lines).duration_s == 1
        with pytest.raises(ValueError, match=r"c\.bin is no text"):
            read_trace(binary)

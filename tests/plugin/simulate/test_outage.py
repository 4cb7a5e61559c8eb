"""Generated traces: what is asked for, and what is refused."""

import pytest

from splitter.plugin.simulate.outage import outage_trace, parse_outage


class TestOutages:
    """All nodes go at once, again and again."""

    def test_end_where_the_next_round_begins(self) -> None:
        """every=2h,last=10m: nodes are there for 110 minutes, and away for ten."""
        trace = outage_trace(7200, 600, 2, 1)
        assert [(change.at_s, change.added) for change in trace.changes[:6]] == [
            (0, True),
            (0, True),
            (6600, False),
            (6600, False),
            (7200, True),
            (7200, True),
        ]
        assert (trace.duration_s, trace.most_nodes) == (86_400, 2)

    def test_are_written_in_words(self) -> None:
        """Fields come in any order; a week where no days are named."""
        assert parse_outage(" nodes=8, last=10m,every=2h ") == outage_trace(7200, 600, 8, 7)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("", "every is ''; it must be a duration such as 90s, 10m or 2h"),
            ("every=2h,last=10m", "nodes is ''; it must be a whole number 1..10000"),
            ("every=2h,last=10,nodes=8", "last is '10'; it must be a duration"),
            ("every=10m,last=2h,nodes=8", "last=2h is not shorter than every=10m"),
            ("evry=2h", "'evry=2h' is no field; did you mean every?"),
            ("2h", "'2h' is no field; write for example every=2h"),
            ("every=2h,last=10m,nodes=-1", "nodes is '-1'"),
            ("every=2h,last=10m,nodes=8,days=99999999", "days is '99999999'"),
            ("every=2s,last=1s,nodes=10000,days=3650", "more than 5000000 changes"),
            ("every=²h,last=1s,nodes=1", "every is '²h'"),
        ],
    )
    def test_are_refused_with_the_field(self, text: str, sentence: str) -> None:
        """The sentence names the field and what to write."""
        with pytest.raises(ValueError, match="outage") as refused:
            parse_outage(text)
        assert sentence in str(refused.value)

"""What the table of the comparison says, checked on cells made by hand."""

import json

import pytest

from lab.bench.compare.columns import COLUMNS, Figure
from lab.bench.compare.report import markdown, misses, raw
from lab.bench.compare.rounds import ROUNDS, Cell
from lab.bench.compare.systems import PREFERRED, Splitter

SYSTEMS = (PREFERRED, Splitter())


def cell(system: str, lost: float, back_after: float | None) -> Cell:
    """Return a cell of column c."""
    return Cell("c", system, {"lost": lost, "back after": back_after, "max": 20}, ((0.0, 20, 20),))


CELLS = [cell("affinity", 100.02, None), cell("splitter", 91.3, 5.72)]


class TestFigure:
    """A figure is written so that it flatters nobody, and is reached or not."""

    @pytest.mark.parametrize(
        ("value", "written"),
        [(0.0, "0"), (20, "20"), (91.3, "91.3"), (91.31, "91.4"), (0.001, "0.1"), (None, "never")],
    )
    def test_fractions_are_rounded_up(self, value: float | None, written: str) -> None:
        """A loss of a millisecond is not shown as none."""
        assert Figure("lost").written(value) == written

    @pytest.mark.parametrize(
        ("figure", "value", "reached"),
        [
            (Figure("lost", at_most=0), 0.0, True),
            (Figure("lost", at_most=0), 0.001, False),
            (Figure("min", at_least=20), 19, False),
            (Figure("complete after", at_least=60), None, False),
            (Figure("max"), 99, True),
            (Figure("max"), None, True),
        ],
    )
    def test_is_reached_or_not(self, figure: Figure, value: float | None, *, reached: bool) -> None:
        """The value counts, not what is written; what never happened is a miss, where something is asked."""
        assert figure.reached(value) is reached


class TestTable:
    """One row a system, one column an event, and the targets."""

    def test_has_only_what_was_measured(self) -> None:
        """The columns that nobody asked for are left out."""
        assert markdown(CELLS, SYSTEMS).splitlines() == [
            "| system | c: gone at once: lost; back after |",
            "| --- | --- |",
            "| plain Deployment, preferred spot affinity | 100.1; never |",
            "| **splitter** | 91.3; 5.8 s |",
            "| *to reach* | *<= 96; <= 7 s* |",
        ]

    def test_has_no_targets_without_splitter(self) -> None:
        """The other systems have nothing to reach."""
        assert "to reach" not in markdown(CELLS[:1], SYSTEMS[:1])


class TestMisses:
    """Each target that splitter misses is a sentence."""

    def test_are_splitters_only(self) -> None:
        """What others miss is in the table."""
        assert misses(CELLS) == []

    def test_name_figure_and_target(self) -> None:
        """The sentence has both numbers."""
        assert misses([cell("splitter", 91.3, 7.1)]) == [
            "c: gone at once: back after is 7.1 s, to reach <= 7 s"
        ]


class TestRaw:
    """The JSON file has everything that the table was made from."""

    def test_has_figures_and_steps(self) -> None:
        """Also those figures that the column does not show."""
        content = json.loads(json.dumps(raw(CELLS, {"cpus": 2})))
        assert content["columns"]["c"]["affinity"]["figures"] == {
            "lost": 100.02,
            "back after": None,
            "max": 20,
        }
        assert content["columns"]["c"]["splitter"]["steps"] == ["0.00 20 20"]
        assert content["machine"] == {"cpus": 2}


class TestColumns:
    """Every column is filled by a round."""

    def test_have_exactly_one_round(self) -> None:
        """None is left out, none is played twice."""
        played = [key for each in ROUNDS for key in each.columns]
        assert sorted(played) == sorted(column.key for column in COLUMNS)

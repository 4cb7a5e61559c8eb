"""What many workloads need: the fit, and the page that has it.

To write the tables anew: SPLITTER_REGENERATE=1 pytest tests/bench/scale/test_capacity.py
"""

from pathlib import Path

import pytest

from bench.scale.capacity import (
    Measured,
    computed_table,
    grown,
    growth_lines,
    measured_table,
    read,
    solved,
)
from written import in_step

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "capacity.md"


def run(workloads: int, replicas: int, resident: float) -> Measured:
    """Return a run of which one figure is known."""
    return Measured(workloads, replicas, still=True, figures={"memory": {"resident": resident}})


class TestGrowth:
    """A base, a share of each workload and one of each pod."""

    def test_is_found(self) -> None:
        """90 MB, 50 KB a workload and 2 KB a pod."""
        sizes = ((30, 10), (100, 10), (1000, 10), (3000, 2))
        runs = [run(count, of, 90 + 0.05 * count + 0.002 * count * of) for count, of in sizes]
        result = grown(runs, "memory", "resident")
        assert (result.base, result.per_workload, result.per_pod) == pytest.approx((90, 0.05, 0.002))
        assert result.off == pytest.approx(0)
        assert result.of(10_000, 10) == pytest.approx(90 + 500 + 200)

    def test_says_how_far_it_is_off(self) -> None:
        """Of four runs that do not fit, the farthest counts."""
        runs = [run(30, 10, 90), run(100, 10, 95), run(1000, 10, 200), run(1000, 10, 220), run(3000, 2, 300)]
        assert grown(runs, "memory", "resident").off > 0.03

    def test_needs_three_runs(self) -> None:
        """Two runs tell nothing about three unknowns."""
        with pytest.raises(ValueError, match=r"three runs with memory\.resident"):
            grown([run(30, 10, 90), run(100, 10, 95)], "memory", "resident")

    def test_needs_different_runs(self) -> None:
        """With always as many replicas nobody can tell a workload from its pods."""
        runs = [run(30, 10, 90), run(100, 10, 95), run(1000, 10, 200)]
        with pytest.raises(ValueError, match="do not differ enough"):
            grown(runs, "memory", "resident")

    def test_solves_what_needs_other_rows_first(self) -> None:
        """A zero in the corner is no obstacle."""
        assert solved([[0, 1], [2, 0]], [3, 4]) == [2, 3]


def test_the_page_is_in_step() -> None:
    """Its tables are what the benchmarks' files say."""
    runs = read(ROOT / "benchmarks")
    tables = [measured_table(runs), growth_lines(runs), computed_table(runs)]
    in_step(PAGE, "bench.scale.capacity", "tests/bench/scale", tables)

"""The bench of many workloads, with few: so that it still runs when somebody needs its figures."""

from pathlib import Path
from typing import Any

import pytest

from bench.scale.__main__ import Results
from bench.scale.rounds import Pace, measure, size_of
from bench.scale.still import measure_still
from bench.scale.tables import ROWS

pytestmark = pytest.mark.campaign

WORKLOADS = 5
# Looked at for as long as it takes to see that something is looked at.
PACE = Pace(idle_s=2.0, notices=1, quiet_s=0.5, calm_s=1.5)
STAGES = ("plain-roll", "on-boarding", "there-and-back", "floors", "notices", "idle", "roll", "roll-floor")
_MEASURES = {
    "on_boarding",
    "on_boarding_in_place",
    "on_boarding_in_place_pods",
    "giving_back",
    "giving_back_pods",
    "start",
    "one_node",
    "all_nodes",
    "event",
    "events_at_once",
    "idle",
    "roll",
    "memory_of_a_new_process",
}


class TestBenchScale:
    """`make scale`."""

    def test_measures_and_writes_both_files(self, tmp_path: Path) -> None:
        """Each measure has a figure, beside its floor where it has one, and both files are written."""
        results = Results(tmp_path / "scale.json", "make scale", keep=False)
        values: dict[str, Any] = {}

        def save(figures: dict[str, Any]) -> None:
            values.update(figures)
            results.save(WORKLOADS, figures)

        measure(size_of(WORKLOADS), PACE, save, STAGES)
        assert "failed" not in values
        rows = [row for row in ROWS if row.measure in _MEASURES]
        assert {row.measure for row in rows} == _MEASURES
        for row in rows:
            assert row.figure(values) is not None, row.title
            assert not row.floor or row.floor_of(values), row.title
        assert "| (c) last write |" in (tmp_path / "scale.md").read_text(encoding="utf-8")

    def test_a_still_life_is_still(self) -> None:
        """Whatever its size is, splitter finds nothing to move in it."""
        values: dict[str, Any] = {}
        measure_still(size_of(WORKLOADS, replicas=2), PACE, values.update, ("start",))
        assert "failed" not in values
        assert values["start"]["first_s"] > 0

"""The demo judges from what was recorded."""

import pytest

from demo.a_run import JsonObject, at, cell, judged, step, timeline, workload
from lab.demo.promises import Cell, Expected, ReplicasWritten


class TestJudge:
    """Promises are judged from the recorded pods, within the step only."""

    def test_kept(self) -> None:
        """At the floor and at the bound is kept; a pod that came before the old one went is not asked for."""
        result = judged(
            step(Expected(4, 4)), timeline({0: 4}, {0: 4, 12: 6, 15: 4}), replicas={0: 4, 12: 5, 15: 4}
        )
        assert cell(result) == Cell(lowest=4, floor=4, highest=6, asked=5, bound=5)
        assert result.kept
        assert result.took_s == 10

    def test_a_dip_breaks_the_floor(self) -> None:
        """One replica less for a moment is enough."""
        result = judged(step(Expected(4, 4)), timeline({0: 4, 12: 3, 12.1: 4}))
        assert not cell(result).floor_kept
        assert not result.kept

    def test_what_happened_outside_the_step_is_not_its_fault(self) -> None:
        """A dip before or after is judged elsewhere."""
        result = judged(step(Expected(4, 4)), timeline({0: 0, 5: 4, 21: 0}))
        assert result.kept

    def test_too_many_pods_break_the_bound(self) -> None:
        """N + S is the most."""
        result = judged(step(Expected(4, 4)), timeline({0: 4}), replicas={0: 4, 12: 6})
        assert cell(result).floor_kept
        assert not cell(result).bound_kept
        assert not result.kept

    def test_a_broken_promise_is_told_with_its_numbers(self) -> None:
        """How far off it was, and for how long."""
        counts = timeline({0: 4, 12: 3, 12.5: 4}, {0: 4, 12: 7, 13: 4})
        result = judged(step(Expected(4, 4)), counts, replicas={0: 4, 12: 7, 13: 4})
        assert result.faults() == [
            "a step: web had 3 available, the floor is 4; below it for 0.50 s",
            "a step: web was asked for 7 pods, the bound is 5",
        ]

    def test_a_scale_up_has_the_old_floor_and_the_new_bound(self) -> None:
        """The new replicas cannot be there at once."""
        result = judged(
            step(Expected(4, 8)), timeline({0: 4, 15: 8}, {0: 4, 11: 8}), web=workload(surge="25%")
        )
        assert (cell(result).floor, cell(result).bound) == (4, 10)

    @pytest.mark.parametrize(("surge", "bound"), [("0", 5), ("1", 5), ("2", 6)])
    def test_the_probe_is_one_more_where_there_is_no_surge(self, surge: str, bound: int) -> None:
        """A workload that may not surge is allowed one replica that asks whether spot is back."""
        result = judged(
            step(Expected(4, 4), capacity_probe=True), timeline({0: 4}), web=workload(surge=surge)
        )
        assert cell(result).bound == bound

    def test_the_doomed_do_not_count_against_the_bound(self) -> None:
        """In an outage their replacements run beside them."""
        result = judged(step(Expected(4, 4, doomed=3), noticed=at(11)), timeline({0: 4}))
        assert cell(result).bound == 8

    def test_nothing_is_promised_when_the_notice_is_too_short(self) -> None:
        """Replicas that are taken without a notice are missing until others have started."""
        short = step(Expected(4, 4, doomed=3), noticed=at(11), floor_is_promised=False)
        result = judged(short, timeline({0: 4, 12: 1, 15: 4}))
        assert cell(result).floor is None
        assert result.kept

    def test_the_write_is_timed_from_the_taint(self) -> None:
        """The first raise of the on-demand twin counts, and the one that asks for all replicas."""
        writes = (
            ReplicasWritten(at(10.5), "web-on-demand", 0, 1),  # before the notice
            ReplicasWritten(at(11.05), "web-spot", 3, 4),
            ReplicasWritten(at(11.1), "web-on-demand", 1, 2),
            ReplicasWritten(at(11.25), "web-on-demand", 2, 4),
            ReplicasWritten(at(15), "web-on-demand", 4, 1),
        )
        outage = step(Expected(4, 4, doomed=3), noticed=at(11))
        result = judged(outage, timeline({0: 4}), *writes)
        assert cell(result).write_s == pytest.approx(0.1)
        assert cell(result).cover_s == pytest.approx(0.25)

    def test_no_write_is_no_number(self) -> None:
        """A workload without doomed replicas, or one that was not covered, has none."""
        unhurt = judged(step(Expected(4, 4), noticed=at(11)), timeline({0: 4}))
        forgotten = judged(step(Expected(4, 4, doomed=2), noticed=at(11)), timeline({0: 4}))
        assert cell(unhurt).write_s is None
        assert cell(forgotten).write_s is None

    @pytest.mark.parametrize("changed", [{"stopped": True}, {"restored": {"web": False}}])
    def test_a_step_that_ends_badly_is_a_broken_promise(self, changed: JsonObject) -> None:
        """One that did not settle in time, or that did not restore."""
        result = judged(step(Expected(4, 4), **changed), timeline({0: 4}))
        assert not result.kept

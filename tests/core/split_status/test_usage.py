"""What a workload has used: counted while it is held, kept in a Split, believed from nobody."""

from datetime import UTC, datetime, timedelta

import pytest

from splitter.core.split_status.usage import Amount, Usage, UsagePoint, Use, begun
from splitter.kube.packed import packed

NOON = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
THREE = {Use.SPOT: Amount(3, 300, 96), Use.DESIRED: Amount(3, 300, 96)}
TWO = {Use.SPOT: Amount(2, 200, 64), Use.DESIRED: Amount(3, 300, 96)}


def later(**fields: float) -> datetime:
    """Return a moment after noon."""
    return NOON + timedelta(**fields)


class TestHolding:
    def test_counts_what_was_held(self) -> None:
        """Each change counts what was held before it."""
        usage = begun(NOON).holding(THREE, NOON).holding(TWO, later(seconds=10))
        assert usage.at(later(seconds=15))[Use.SPOT] == Amount(40, 4000, 1280)
        assert usage.at(later(seconds=15))[Use.DESIRED].replicas == 45

    def test_the_same_is_no_change(self) -> None:
        """What a Split keeps stays as it is while nothing changes."""
        usage = begun(NOON).holding(THREE, NOON)
        assert usage.holding(THREE, later(hours=5)) is usage
        assert usage.at(later(hours=5))[Use.SPOT].replicas == 3 * 5 * 3600

    def test_a_clock_set_back_counts_nothing(self) -> None:
        """What was counted stays, and counting goes on from the clock's new time."""
        usage = begun(NOON).holding(THREE, NOON).holding(TWO, later(hours=1)).holding(THREE, later(minutes=1))
        assert usage.until == later(minutes=1)
        assert usage.at(later(minutes=2))[Use.SPOT].replicas == 3 * 3600 + 3 * 60
        assert Usage.from_json(usage.to_json()) == usage

    def test_a_clock_before_the_beginning(self) -> None:
        """Even the beginning is in the future: nothing is lost, and nothing is negative."""
        usage = begun(NOON).holding(THREE, NOON).holding(TWO, NOON - timedelta(days=9))
        assert usage.since == usage.until == NOON - timedelta(days=9)
        assert set(usage.at(NOON - timedelta(days=10)).values()) == {Amount()}


class TestWindow:
    def test_between_is_what_was_held_then(self) -> None:
        """Since the last change it is exact."""
        usage = begun(NOON).holding(THREE, NOON).holding(TWO, later(days=1))
        assert usage.between(later(days=2), later(days=3))[Use.SPOT].replicas == 2 * 24 * 3600

    def test_marks_tell_the_days_before(self) -> None:
        """A year of daily changes: any window is told within a tenth, by a few marks."""
        usage, exact = begun(NOON), {0: 0}
        for day in range(365):
            usage = usage.holding({Use.SPOT: Amount(5 + day // 10 + day % 2)}, later(days=day))
            exact[day + 1] = exact[day] + (5 + day // 10 + day % 2) * 24 * 3600
        assert len(usage.marks) <= 8
        end = later(days=365)
        for days in (1, 2, 7, 30, 90, 365):
            reported = usage.between(later(days=365 - days), end)[Use.SPOT].replicas
            assert reported == pytest.approx(exact[365] - exact[365 - days], rel=0.1)

    def test_before_the_beginning_is_nothing(self) -> None:
        """A window that begins earlier tells all."""
        usage = begun(NOON).holding(THREE, NOON)
        assert usage.between(NOON - timedelta(days=30), later(seconds=2)) == usage.at(later(seconds=2))


class TestSplit:
    def test_comes_back_as_it_was(self) -> None:
        """Totals, what is held, and the marks."""
        usage = begun(NOON).holding(THREE, NOON).holding(TWO, later(days=2)).holding(THREE, later(days=4))
        assert usage.marks
        assert Usage.from_json(usage.to_json()) == usage

    @pytest.mark.parametrize(
        "forged",
        [
            None,
            "much",
            {},
            {"since": "yesterday", "until": "2026-11-24T12:00:00Z"},
            {"since": "2026-11-24T12:00:01Z", "until": "2026-11-24T12:00:00Z"},
            {
                "since": "2026-11-24T12:00:00Z",
                "until": "2026-11-24T12:00:00Z",
                "held": {"spot": {"replicas": -1}},
            },
            {
                "since": "2026-11-24T12:00:00Z",
                "until": "2026-11-24T12:00:00Z",
                "held": {"spot": {"cpu": 1e9}},
            },
            {
                "since": "2026-11-24T12:00:00Z",
                "until": "2026-11-24T12:00:00Z",
                "held": {"spot": {"cpu": 2**80}},
            },
            {"since": "2026-11-24T12:00:00Z", "until": "2026-11-24T12:00:00Z", "held": {"spot": {"gpu": 1}}},
            {"since": "2026-11-24T12:00:00Z", "until": "2026-11-24T12:00:00Z", "marks": [1]},
            {
                "since": "2026-11-24T12:00:00Z",
                "until": "2026-11-24T12:00:00Z",
                "held": {"spot": {"cpu": True}},
            },
        ],
    )
    def test_what_cannot_be_read_is_nothing(self, forged: object) -> None:
        """Counting begins anew."""
        assert Usage.from_json(forged) is None

    def test_no_number_is_more_than_a_split_holds(self) -> None:
        """Whatever pods ask for, and for however long."""
        usage = begun(NOON).holding({Use.SPOT: Amount(1, 10**18, 10**18)}, NOON)
        total = usage.holding(TWO, later(days=3650)).total[Use.SPOT]
        assert total.cpu == total.memory == 2**62

    def test_the_most_can_be_read_again(self) -> None:
        """Else each reconcile would begin anew, and write that."""
        usage = begun(NOON).holding({Use.SPOT: Amount(1, 2**70, 2**70)}, NOON).holding(TWO, later(days=2))
        assert usage.total[Use.SPOT].cpu == usage.marks[0].total[Use.SPOT].cpu == 2**62
        assert Usage.from_json(usage.to_json()) == usage

    def test_years_have_four_digits(self) -> None:
        """Somebody has written an early year into the Split: the API server takes it back."""
        early = {"since": "0001-01-01T00:00:00Z", "until": "0099-12-31T23:59:59Z"}
        usage = Usage.from_json(early)
        assert usage is not None
        assert usage.to_json() == early
        assert usage.holding(THREE, NOON).to_json()["since"] == "0001-01-01T00:00:00Z"

    def test_a_mark_of_nothing(self) -> None:
        """No map is empty: nothing had been used by then."""
        usage = begun(NOON).holding(THREE, later(days=2))
        assert usage.to_json()["marks"] == [{"at": "2026-11-26T12:00:00Z"}]
        assert Usage.from_json(usage.to_json()) == usage

    def test_a_use_that_is_not_known(self) -> None:
        """A later version counted more, or somebody added it: the rest counts."""
        usage = begun(NOON).holding(THREE, NOON).holding(TWO, later(hours=1))
        written = usage.to_json()
        written["total"]["idle"] = {"replicas": 1, "cpu": 0, "memory": 0}
        assert Usage.from_json(written) == usage

    def test_a_year_is_small(self) -> None:
        """A Split is kept in memory for each workload, packed."""
        usage = begun(NOON)
        for day in range(400):
            usage = usage.holding({use: Amount(1000 + day, 10**6, 10**7) for use in Use}, later(days=day))
        assert len(packed(usage.to_json())) < 1024
        assert usage.marks[-1] == UsagePoint(usage.until, usage.total)

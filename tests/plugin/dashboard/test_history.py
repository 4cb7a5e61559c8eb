"""What the page remembers of a workload."""

from datetime import UTC, datetime, timedelta

from splitter.plugin.dashboard.history import KEPT, Moment, Series

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


class TestSeries:
    """Changes since the page was opened."""

    def test_keeps_changes_only(self) -> None:
        """The same counts again are no news."""
        series = Series()
        for minute, spot in enumerate((3, 3, 2, 2, 3)):
            series.saw(Moment(NOW + timedelta(minutes=minute), 4, 1, spot))
        assert [one.spot for one in series] == [3, 2, 3]

    def test_forgets_what_is_old(self) -> None:
        """The newest of the too old says how it stood when the kept time begins."""
        series = Series()
        for hour in range(10):
            series.saw(Moment(NOW + timedelta(hours=hour), 4, 1, hour))
        kept = list(series)
        assert kept[1].at > kept[-1].at - KEPT >= kept[0].at

    def test_is_bounded(self) -> None:
        """However much changes, so much is kept."""
        series = Series(5)
        for second in range(99):
            series.saw(Moment(NOW + timedelta(seconds=second), 4, 1, second))
        assert len(list(series)) == 5

    def test_a_clock_that_is_set_back(self) -> None:
        """Times never go back, so that a picture can be drawn."""
        series = Series()
        series.saw(Moment(NOW, 4, 1, 3))
        series.saw(Moment(NOW - timedelta(hours=2), 4, 1, 2))
        assert [one.at for one in series] == [NOW, NOW]

"""How long how many replicas have had no place."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from splitter.estimator.shortages import Shortages

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Return an instant."""
    return START + timedelta(seconds=seconds)


def test_lasts_from_its_beginning() -> None:
    """What comes later lasts less; what ends and begins again begins again."""
    shortages = Shortages()
    shortages.note("web", 2, at(0))
    shortages.note("web", 5, at(20))
    assert [shortages.lasting("web", 30, at(now)) for now in (29, 30, 49, 50)] == [0, 2, 2, 5]
    shortages.note("web", 1, at(60))
    assert shortages.lasting("web", 30, at(60)) == 1
    shortages.note("web", 3, at(61))
    assert [shortages.lasting("web", 30, at(now)) for now in (90, 91)] == [1, 3]
    shortages.note("web", 0, at(92))
    shortages.note("web", 3, at(93))
    assert [shortages.lasting("web", 30, at(now)) for now in (122, 123)] == [0, 3]
    assert shortages.lasting("other", 0, at(123)) == 0


def test_takes_any_threshold() -> None:
    """None is at once; one of centuries is never over."""
    shortages = Shortages()
    shortages.note("web", 2, at(0))
    assert shortages.lasting("web", 0, at(0)) == 2
    assert shortages.lasting("web", 2**63 / 1e9, at(10)) == 0


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 20)), min_size=1, max_size=12), st.integers(0, 40)
)
def test_is_the_least_of_what_was_missing(noted: list[tuple[int, int]], threshold_s: int) -> None:
    """Over all of the threshold: never what a moment only had."""
    shortages, now, history = Shortages(), 0, []
    for missing, after in noted:
        now += after
        shortages.note("web", missing, at(now))
        history.append((now, missing))
    since = now - threshold_s
    before = [missing for when, missing in history if when <= since][-1:] or [0]
    least = min([*before, *(missing for when, missing in history if when > since)])
    assert shortages.lasting("web", threshold_s, at(now)) == least

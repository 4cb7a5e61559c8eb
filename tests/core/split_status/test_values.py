"""How a field of a status is read: what is none is nothing, everything is bounded, nothing raises."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest

from splitter.core.split_status import values
from splitter.core.split_status.values import Kept, instant, items, kept, listed, mapped, whole_seconds

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Inner(Kept):
    """A field within a field."""

    name: str = kept("name", values.text, always=True)
    number: int = kept("number", values.number)


@dataclass(frozen=True, slots=True)
class Outer(Kept):
    """Everything that a field may be."""

    at: datetime | None = kept("at", instant)
    inner: Inner = kept("inner", Inner.from_json)
    many: tuple[Inner, ...] = kept("many", items(Inner, "name", 2))
    texts: dict[str, str] = kept("texts", mapped(values.maybe_word, 2))
    now: str = kept("now", values.word)


class TestOneValue:
    @pytest.mark.parametrize(
        ("read", "value", "result"),
        [
            (values.seconds, 5, 5.0),
            (values.seconds, 0, None),
            (values.seconds, True, None),
            (values.seconds, 10**400, None),
            (values.seconds, float("nan"), None),
            (values.ordinal, 0, 0),
            (values.ordinal, -1, None),
            (values.ordinal, False, None),
            (values.ordinal, 1.0, None),
            (values.count, 0, None),
            (values.count, 3, 3),
            (values.number, "3", 0),
            (values.replicas, 10**12, 2**31 - 1),
            (values.is_true, 1, False),
            (values.is_true, True, True),
            (values.word, 5, ""),
            (values.maybe_word, None, None),
            (values.text, "x" * 2_000, "x" * 1_024),
            (values.scalar, ["x"], None),
            (values.scalar, 1.5, 1.5),
            (values.moment, "never", values.NEVER),
        ],
    )
    def test_is_what_it_is_meant_for_or_nothing(
        self, read: Callable[[object], object], value: object, result: object
    ) -> None:
        """A flag is no number, a number no flag."""
        assert read(value) == result
        assert type(read(value)) is type(result)

    @pytest.mark.parametrize(
        ("text", "at"),
        [
            ("2026-01-05T12:00:00Z", NOON),
            ("2026-01-05T14:00:00+02:00", NOON),
            ("2026-01-05T12:00:00.5Z", NOON + timedelta(seconds=0.5)),
            ("2026-01-05T12:00:00", None),
            ("0001-01-01T00:00:00+14:00", None),
            ("12:00", None),
            (5, None),
        ],
    )
    def test_of_a_time_has_a_zone(self, text: object, at: datetime | None) -> None:
        """What is outside of the calendar in UTC is none."""
        assert instant(text) == at

    def test_of_a_time_is_written_as_the_api_server_writes_it(self) -> None:
        """Whole seconds, and four digits of any year."""
        assert whole_seconds(NOON.replace(microsecond=999_999)) == "2026-01-05T12:00:00Z"
        assert whole_seconds(NOON.replace(year=7)) == "0007-01-05T12:00:00Z"
        assert whole_seconds(None) is None


class TestManyValues:
    def test_of_a_list_the_last_count(self) -> None:
        """Those that make no sense are left out of them."""
        assert listed(values.ordinal, 3)([1, 2, "x", 3, -1]) == (3,)
        assert listed(values.ordinal)([1, "x", 3]) == (1, 3)
        assert listed(values.ordinal)("123") == ()

    def test_of_a_map_the_first_count(self) -> None:
        """Names are texts."""
        assert mapped(values.ordinal, 2)({1: 1, "b": "x", "c": 3}) == {"1": 1}
        assert mapped(values.ordinal)([1]) == {}

    def test_of_objects_need_their_name(self) -> None:
        """One without is none, at most so many are read."""
        raw = [{"name": "a"}, {"name": "b"}, {"number": 1}, {"name": "c"}]
        assert items(Inner, "name", 3)(raw) == (Inner("b"), Inner("c"))


class TestKept:
    def test_comes_back_as_it_was(self) -> None:
        """And a map of no type of ours is written as such."""
        full = Outer(NOON, Inner("a", 2), (Inner("b"), Inner("c", 1)), {"x": "y"}, "z")
        raw = full.to_json()
        assert raw == {
            "at": "2026-01-05T12:00:00Z",
            "inner": {"name": "a", "number": 2},
            "many": [{"name": "b"}, {"name": "c", "number": 1}],
            "texts": {"x": "y"},
            "now": "z",
        }
        assert Outer.from_json(raw) == full

    def test_writes_what_differs_and_what_is_always_there(self) -> None:
        """Nothing of what is as ever."""
        assert Outer().to_json() == {}
        assert Inner().to_json() == {"name": ""}

    def test_a_default_that_can_change_is_nobody_elses(self) -> None:
        """Each has a map of its own."""
        assert Outer().texts is not Outer().texts

    def test_times_elsewhere_are_written_in_utc(self) -> None:
        """The instant is the same."""
        there = NOON.astimezone(timezone(timedelta(hours=2)))
        assert Outer(there).to_json()["at"] == "2026-01-05T12:00:00Z"

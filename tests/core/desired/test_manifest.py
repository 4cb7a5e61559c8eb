"""A patch is merged into a manifest by names."""

import copy

from hypothesis import given

from core.desired.documents import MAPPINGS
from splitter.core.desired.manifest import merge


class TestMerge:
    @given(MAPPINGS)
    def test_nothing(self, base: dict[str, object]) -> None:
        """An empty change is no change."""
        assert merge(base, {}) == base

    @given(MAPPINGS, MAPPINGS)
    def test_twice(self, base: dict[str, object], change: dict[str, object]) -> None:
        """A change made twice is a change made once, and neither argument is touched."""
        before = copy.deepcopy((base, change))
        once = merge(base, change)
        assert merge(once, change) == once
        assert (base, change) == before

    def test_named_lists(self) -> None:
        """Containers are merged by their names; what the change does not speak of stays."""
        base = {"containers": [{"name": "a", "image": "a:1", "future": 1}, {"name": "b"}], "args": [1, 2]}
        change = {"containers": [{"name": "c"}, {"name": "a", "image": "a:2"}], "args": [3]}
        assert merge(base, change) == {
            "containers": [{"name": "a", "image": "a:2", "future": 1}, {"name": "b"}, {"name": "c"}],
            "args": [3],
        }

    def test_null_removes(self) -> None:
        """Null in a change takes a key away, at any depth, and is otherwise left alone."""
        assert merge({"a": {"b": 1, "c": None}}, {"a": {"b": None}, "d": {"e": None}}) == {
            "a": {"c": None},
            "d": {},
        }

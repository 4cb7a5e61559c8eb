"""Thresholds as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.relief.model import Resource, Thresholds
from splitter.core.relief.thresholds import read_thresholds


class TestThresholds:
    """Percent of a node, each resource once."""

    def test_are_read(self) -> None:
        """Both, one of them, and with spaces."""
        both = {Resource.CPU: 85.0, Resource.MEMORY: 90.0}
        assert read_thresholds("cpu=85,memory=90") == Thresholds(both)
        assert read_thresholds(" memory = 90 , cpu = 85 ") == Thresholds(both)
        assert read_thresholds("cpu=100") == Thresholds({Resource.CPU: 100.0})

    @pytest.mark.parametrize(
        ("text", "wrong"),
        [
            ("", "names neither cpu nor memory"),
            ("disk=90", "'disk=90' names neither cpu nor memory"),
            ("cpu=high", "cpu must be a whole number of 50 to 100 percent"),
            ("cpu=85%", "cpu must be a whole number"),
            ("cpu=", "cpu must be a whole number"),
            ("cpu=-85", "cpu must be a whole number"),
            ("cpu=٨٥", "cpu must be a whole number"),
            ("cpu=49", "of 50 to 100 percent"),
            ("cpu=101", "of 50 to 100 percent"),
            ("cpu=nan", "cpu must be a whole number"),
            ("cpu=85,cpu=90", "cpu stands there twice"),
            ("cpu=85,", "names neither cpu nor memory"),
            ("cpu=85" + "," * 80, "longer than 64 characters"),
        ],
    )
    def test_that_cannot_be_meant_say_what_to_write(self, text: str, wrong: str) -> None:
        """What is no number, out of bounds, unknown or contradicts itself is a sentence with an example."""
        answer = read_thresholds(text)
        assert isinstance(answer, str)
        assert wrong in answer
        assert "cpu=85,memory=90" in answer

    @given(st.text(max_size=100))
    def test_any_text_is_answered(self, text: str) -> None:
        """Nothing that a tenant writes raises, or is repeated at length."""
        answer = read_thresholds(text)
        assert isinstance(answer, Thresholds) or len(answer) < 200

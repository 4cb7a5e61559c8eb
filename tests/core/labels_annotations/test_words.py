"""How durations are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.labels_annotations.words import parse_duration


class TestDuration:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("90s", 90),
            ("10m", 600),
            ("1h30m", 5400),
            ("2h", 7200),
            ("1h0m5s", 3605),
            ("0s", 0),
            ("90m", 5400),
        ],
    )
    def test_accepted(self, text: str, seconds: int) -> None:
        """Hours, minutes and seconds, each at most once, the larger first."""
        assert parse_duration(text) == seconds

    @pytest.mark.parametrize(
        "text",
        ["", "600", "1.5h", "30m1h", "10M", " 10m", "-5m", "10m\n", "1d", "s", "9999999s", "\u0661\u0660m"],
    )
    def test_refused(self, text: str) -> None:
        """Everything else, a number without its unit first of all."""
        assert parse_duration(text) is None

    @given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
    def test_sum(self, hours: int, minutes: int, seconds: int) -> None:
        """The parts add up."""
        assert parse_duration(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds

"""`python -m splitter.sandbox` understands what a person asks for."""

import argparse

import pytest

from splitter.sandbox.__main__ import parse_nodes


class TestNodes:
    """--nodes POOL=COUNT,..."""

    def test_pools_and_counts(self) -> None:
        """Both pools, one, or none."""
        assert parse_nodes("on-demand=4,spot=8") == {"on-demand": 4, "spot": 8}
        assert parse_nodes("spot=1") == {"spot": 1}
        assert parse_nodes("") == {}

    @pytest.mark.parametrize("text", ["spots=3", "spot", "spot=many", "spot=-1"])
    def test_what_is_wrong_is_shown(self, text: str) -> None:
        """The error repeats the part that is wrong and shows the right form."""
        with pytest.raises(
            argparse.ArgumentTypeError, match=f"'{text}' is not POOL=COUNT; write for instance"
        ):
            parse_nodes(text)

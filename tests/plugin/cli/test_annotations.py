"""A policy that the command line is given."""

import pytest

from splitter.core.labels_annotations.policy import Policy
from splitter.plugin.cli.annotations import policy_of, read_annotations, read_named


class TestPolicies:
    """How policies are written on a command line."""

    def test_leave_the_prefix_out(self) -> None:
        """`soak` is `splitter.io/soak`; another prefix stays."""
        assert read_annotations(["soak = 5m", "splitter.io/grace=1m", "other.io/a=b=c"]) == {
            "splitter.io/soak": "5m",
            "splitter.io/grace": "1m",
            "other.io/a": "b=c",
        }

    def test_win_over_what_is_common(self) -> None:
        """Like a workload over its namespace."""
        [policy] = read_named(["mine:soak=5m"], {"splitter.io/soak": "1m", "splitter.io/grace": "1m"})
        assert policy.annotations == {"splitter.io/soak": "5m", "splitter.io/grace": "1m"}

    def test_are_refused_without_speaking_of_a_last_good_one(self) -> None:
        """There is none here; every fault is named."""
        with pytest.raises(ValueError, match=r"soak.*grace|grace.*soak") as refused:
            policy_of({"splitter.io/soak": "x", "splitter.io/grace": "y"}, Policy(), 4)
        assert "last good" not in str(refused.value)

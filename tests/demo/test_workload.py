"""The workload that is demonstrated."""

import pytest

from demo.a_run import workload
from lab.demo.workload import Workload, policy_of, read_workload


class TestWorkload:
    """N, S, U and F are what Kubernetes makes of the strategy."""

    @pytest.mark.parametrize(
        ("surge", "unavailable", "replicas", "expected"),
        [
            ("25%", "25%", 10, (3, 2, 10)),
            ("2", "0", 8, (2, 0, 8)),
            ("0", "1", 4, (0, 1, 3)),
            ("0%", "25%", 3, (0, 1, 2)),  # both rounded to 0: Kubernetes takes one away
            ("1", "1", 0, (1, 1, 0)),
        ],
    )
    def test_counts(
        self, surge: str, unavailable: str, replicas: int, expected: tuple[int, int, int]
    ) -> None:
        """Shares are rounded up for the surge, down for the unavailable; F is N where surge is allowed."""
        result = workload(surge=surge, unavailable=unavailable)
        assert (result.surge(replicas), result.unavailable(replicas), result.floor(replicas)) == expected

    def test_is_read_off_a_deployment(self) -> None:
        """What the manifest leaves out has Kubernetes' default."""
        raw = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
        assert read_workload(raw) == Workload("web", 1, "25%", "25%", {"app": "web"})

    def test_policy_stands_in_a_comment(self) -> None:
        """The manifest itself says how the demo annotates it."""
        text = "# Policy in the demo: splitter.io/on-demand-base=2 splitter.io/spot-percent=80"
        assert policy_of(f"# The front page.\n{text}\nkind: Deployment\n") == {
            "splitter.io/on-demand-base": "2",
            "splitter.io/spot-percent": "80",
        }
        assert policy_of("# Policy in the demo: none, all of it on spot\n") == {}
        assert policy_of("kind: Deployment\n") == {}

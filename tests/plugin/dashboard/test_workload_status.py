"""A Split's status, as the page shows it."""

import pytest

from splitter.core.split_status import PastDecision, PoolCounts, SplitStatus
from splitter.core.split_status.values import NEVER
from splitter.plugin.dashboard.workload_status import counts_of, move_of, shown


def status(**fields: object) -> SplitStatus:
    """Return what is read of a status."""
    return shown(SplitStatus.from_json(fields))


class TestStatus:
    """Whoever wrote it: numbers are numbers, and lists are bounded."""

    @pytest.mark.parametrize("odd", [None, "7", -1, True, [], {}, 1.5])
    def test_an_odd_number_is_none(self, odd: object) -> None:
        """It counts as 0; it is never negative."""
        result = status(desired=odd, ready=odd, onDemand={"ready": odd}, spot=odd)
        assert (result.desired, result.ready, result.on_demand.ready, result.spot.ready) == (0, 0, 0, 0)

    def test_a_huge_number_is_bounded(self) -> None:
        """More than an int32 of replicas there are not."""
        assert status(desired=10**30).desired == 2**31 - 1

    @pytest.mark.parametrize("odd", [None, "x", 3, {"a": 1}, [1, "x", None, {"time": 3}, {"time": "then"}]])
    def test_odd_lists_are_empty(self, odd: object) -> None:
        """What is no list of objects says nothing."""
        result = status(decisions=odd, nodes=odd, policy=odd, policyFrom=odd)
        assert (result.decisions, result.nodes) == ((), ())

    def test_lists_are_bounded(self) -> None:
        """The last 20 decisions and 10 nodes, each text at most 1,024 characters."""
        said = [
            {"time": "2026-01-05T10:00:00Z", "reason": str(number), "message": "x" * 5000}
            for number in range(99)
        ]
        result = status(decisions=said, nodes=[{"name": f"n{number}"} for number in range(99)])
        assert [one.reason for one in result.decisions] == [str(number) for number in range(79, 99)]
        assert len(result.decisions[0].message) == 1024
        assert len(result.nodes) == 10

    def test_nothing_is_reported_yet(self) -> None:
        """A Split without a status is shown, and without counters nothing is counted."""
        result = status()
        assert result.state == "Unreported"
        assert result.usage is None
        assert "is the controller running?" in result.message

    @pytest.mark.parametrize(
        ("message", "move"),
        [
            ("scale on-demand 4 -> 10 (+6): why", ("on-demand", 4, 10)),
            ("hold spot at 6, 12 wanted: why", None),
            ("scale other 4 -> 10 (+6): why", None),
            (f"scale spot 1 -> {'9' * 99} (+1): why", None),
        ],
    )
    def test_a_decision_says_what_it_scales(self, message: str, move: tuple[str, int, int] | None) -> None:
        """Its sentence begins with the move, if there is one."""
        assert move_of(PastDecision(NEVER, "Scaled", message)) == move

    def test_counts(self) -> None:
        """What is wanted, what is ready on each pool, and what is on nodes that go."""
        result = SplitStatus(
            desired=10, on_demand=PoolCounts(ready=4, doomed=1), spot=PoolCounts(ready=3, doomed=2)
        )
        assert counts_of(result) == (10, 4, 3, 3)

"""How losses are counted, from recorded looks."""

from typing import Any

import pytest

from federation.pods import pod
from lab.federation.ledger import Ledger, Sample, serving


class TestLedger:
    """What was missing at a look is missing until the next one."""

    def test_of_a_recorded_loss(self) -> None:
        """20 wanted; 16 serve for 10 s, then 19 for 2 s: 42 replica-seconds."""
        ledger = Ledger([Sample(0, 20, 20), Sample(5, 20, 16), Sample(15, 20, 19), Sample(17, 20, 20)])
        assert (ledger.lost(), ledger.lowest()) == (42, 16)
        assert (ledger.lost(15), ledger.lowest(15)) == (2, 19)

    def test_of_more_than_is_wanted(self) -> None:
        """Replicas that linger make up for nothing."""
        ledger = Ledger([Sample(0, 20, 28), Sample(10, 20, 18), Sample(20, 18, 18), Sample(30, 18, 30)])
        assert ledger.lost() == 20

    def test_of_a_count_that_rises(self) -> None:
        """What a person asks for is missing until it serves."""
        assert Ledger([Sample(0, 6, 6), Sample(1, 10, 6), Sample(3, 10, 10)]).lost() == 8

    def test_of_nothing(self) -> None:
        """Nothing is lost, and nothing can be said of the fewest."""
        assert Ledger().lost() == 0
        with pytest.raises(ValueError, match="empty"):
            Ledger([Sample(0, 1, 1)]).lowest(1)


class TestServing:
    """Which pods serve."""

    @pytest.mark.parametrize(
        ("one", "serves"),
        [
            (pod(), True),
            (pod(ready=False), False),
            (pod(None), False),
            (pod("spot-9"), False),
            (pod(deletionTimestamp="2026-01-05T12:00:00Z"), False),
            ({"metadata": {}, "spec": {"nodeName": "spot-0"}}, False),
        ],
        ids=["ready", "not ready", "no node", "a node that is gone", "leaving", "no status"],
    )
    def test_one(self, one: dict[str, Any], serves: bool) -> None:
        """Ready, staying, and on a node that is there."""
        assert bool(serving([one], ["spot-0"])) is serves

    def test_many(self) -> None:
        """They are counted."""
        assert serving([pod(), pod("spot-1"), pod("spot-2")], ["spot-0", "spot-1"]) == 2

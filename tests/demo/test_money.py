"""What the demo's workload costs."""

from datetime import UTC, datetime, timedelta
from typing import Any

from splitter.core.split_status.usage import Amount, Usage, Use
from lab.demo.money import has_saved, would_save

JsonObject = dict[str, Any]


class TestMoney:
    def test_what_the_labels_would_save(self) -> None:
        """4 of 10 stay on on-demand by the policy, one of one goes to spot by default."""
        policies = {"web": {"splitter.io/on-demand-base": "2", "splitter.io/spot-percent": "80"}}
        assert would_save({"web": 10, "api": 1}, policies) == (
            "the labels would put 7 of 11 replicas on spot, and save 45%"
            " (a replica on spot taken to cost 0.3 of one on on-demand)"
        )

    def test_what_was_saved(self) -> None:
        """The sum of all Splits, and those that tell nothing left out."""
        noon = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
        held = {Use.SPOT: Amount(6), Use.ON_DEMAND: Amount(5), Use.DESIRED: Amount(10)}
        usage = Usage(noon, noon, {}, held).to_json()
        splits: list[JsonObject] = [{"status": {"usage": usage}}, {}, {"status": {"usage": 7}}]
        reported = has_saved(splits, noon + timedelta(minutes=3))
        assert reported.startswith("so far 55% of the replicas' time was on spot and 32% was saved")

    def test_nothing_was_counted(self) -> None:
        """No share of nothing."""
        assert has_saved([], datetime.now(UTC)).startswith("nothing was counted")

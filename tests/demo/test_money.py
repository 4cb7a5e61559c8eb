"""What the demo's workload costs."""

from datetime import UTC, datetime, timedelta
from typing import Any

from lab.demo.money import has_saved, saves
from splitter.core.split_status import PoolCounts, SplitStatus
from splitter.core.split_status.usage import Amount, Usage, Use
from splitter.plugin.core.savings import ASSUMED_SPOT_PRICE

JsonObject = dict[str, Any]


class TestMoney:
    def test_what_the_labels_save(self) -> None:
        """Of each workload that is split, what is to be on spot."""
        web = SplitStatus(desired=10, spot=PoolCounts(spec=6)).to_json()
        api = SplitStatus(desired=1, spot=PoolCounts(spec=1)).to_json()
        assert saves([web, api]) == (
            "the labels put 7 of 11 replicas on spot, and save 45%"
            f" (a replica on spot taken to cost {ASSUMED_SPOT_PRICE} of one on on-demand)"
        )

    def test_what_was_saved(self) -> None:
        """The sum of all Splits, and those that tell nothing left out."""
        noon = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
        held = {Use.SPOT: Amount(6), Use.ON_DEMAND: Amount(5), Use.DESIRED: Amount(10)}
        usage = Usage(noon, noon, {}, held).to_json()
        statuses: list[JsonObject] = [{"usage": usage}, {}, {"usage": 7}]
        reported = has_saved(statuses, noon + timedelta(minutes=3))
        assert reported.startswith("so far 55% of the replicas' time was on spot and 32% was saved")

    def test_nothing_was_counted(self) -> None:
        """No share of nothing."""
        assert has_saved([], datetime.now(UTC)).startswith("no Split has counted anything")

"""What is added up, and how it is shown."""

import csv
import io
from datetime import timedelta

import pytest

from plugin.cli.bills import HOUR, NOW, split
from splitter.core.split_status.usage import Amount, Usage, UsagePoint, Use
from splitter.plugin.cli.bill import as_csv, counted, table


class TestTheBill:
    def test_sums_of_namespaces_and_of_all(self) -> None:
        """Two of shop, one of bank."""
        rows, uncounted = counted(
            [split("bank", "api"), split("shop", "cart"), split("shop", "web")], NOW, None
        )
        assert not uncounted
        lines = table(rows, None, namespaced=True).splitlines()
        assert lines[0].split() == [
            *("WORKLOAD", "SINCE", "ON-DEMAND", "h", "SPOT", "h", "COVER", "h", "SURGE", "h"),
            *("ON", "SPOT", "SAVED"),
        ]
        assert lines[1].split() == [
            *("bank/api", "2026-11-24", "02:00", "20.0", "80.0", "0.0", "0.0", "80.0%", "56.0%"),
        ]
        assert [line.split("  ")[0] for line in lines[4:7]] == ["all of bank", "all of shop", "all"]
        assert lines[6].split()[3:5] == ["60.0", "240.0"]
        assert lines[-1].startswith("assumed: a replica on spot costs 0.3")

    def test_a_window(self) -> None:
        """Only its hours, and the beginning that it really has."""
        [row], _ = counted([split("shop", "web")], NOW, 2 * HOUR)
        assert row.saving.replicas(Use.SPOT) == 16
        assert row.since == NOW - timedelta(hours=2)
        [row], _ = counted([split("shop", "web")], NOW, 99 * HOUR)
        assert row.since == NOW - timedelta(hours=10)

    def test_a_window_before_the_last_change(self) -> None:
        """Between two marks it is told as if it had been used evenly."""
        day = timedelta(days=1)
        total = {Use.SPOT: Amount(48 * HOUR)}
        usage = Usage(NOW - 2 * day, NOW, total, {}, (UsagePoint(NOW - day, {Use.SPOT: Amount(40 * HOUR)}),))
        [row], _ = counted([split("shop", "web", usage.to_json())], NOW, 12 * HOUR)
        assert row.saving.replicas(Use.SPOT) == 4

    @pytest.mark.parametrize("broken", ["x", {"since": 1}, {"since": "2026-11-24T12:00:00Z"}, []])
    def test_what_cannot_be_read_is_named(self, broken: object) -> None:
        """Of an older splitter, or edited by somebody."""
        rows, uncounted = counted([split("shop", "web", broken)], NOW, None)
        assert not rows
        assert [str(key) for key in uncounted] == ["shop/web"]
        assert "nothing is counted yet" in table(rows, None, namespaced=False)

    def test_csv(self) -> None:
        """One line a workload, with every figure."""
        rows, _ = counted([split("shop", "web")], NOW, None)
        [line] = csv.DictReader(io.StringIO(as_csv(rows, None, NOW)))
        assert line["name"] == "web"
        assert float(line["spotReplicaHours"]) == 80
        assert float(line["spotVcpuHours"]) == 20
        assert float(line["desiredGibHours"]) == 25
        assert float(line["savedShare"]) == pytest.approx(0.56)

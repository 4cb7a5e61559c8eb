"""Quantities and instants, as Kubernetes writes them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kube.raw import READY
from splitter.kube.parse.fields import instant, quantity


class TestQuantities:
    @pytest.mark.parametrize(
        ("written", "millicores"),
        [("250m", 250), ("1.5", 1500), ("2", 2000), (2, 2000), (0.1, 100), ("1500u", 2), ("1n", 1), ("0", 0)],
    )
    def test_cpu(self, written: str | float, millicores: int) -> None:
        """CPU becomes millicores, a part of one rounded up."""
        assert quantity("cpu", written) == millicores

    @pytest.mark.parametrize(
        ("written", "number"),
        [
            ("64Mi", 64 * 2**20),
            ("1Gi", 2**30),
            ("1.5Ki", 1536),
            ("1k", 1000),
            ("2G", 2_000_000_000),
            ("1E", 10**18),
            ("1Ei", 2**60),
            ("1e3", 1000),
            ("1E3", 1000),
            ("100m", 1),
            ("123456789", 123456789),
        ],
    )
    def test_others(self, written: str, number: int) -> None:
        """Everything else becomes bytes or pieces: decimal, binary and exponent suffixes."""
        assert quantity("memory", written) == number

    @pytest.mark.parametrize(
        "written",
        ["", "lots", "1Zi", "5i", "--1", "NaN", "Infinity", "1e999999999", "1e999999999999999999", "1e31"],
    )
    def test_unreadable_is_nothing(self, written: str) -> None:
        """What no API server accepts counts 0: fit is an estimate."""
        assert quantity("memory", written) == 0


class TestInstants:
    @pytest.mark.parametrize("written", ["2026-01-05T09:30:00Z", "2026-01-05T10:30:00+01:00"])
    def test_are_aware(self, written: str) -> None:
        """An instant knows its zone, so that it compares with `now`."""
        assert instant(written) == datetime(2026, 1, 5, 9, 30, tzinfo=UTC)

    def test_without_a_zone(self) -> None:
        """A hand may have left the zone out: an instant of UTC, which compares with all others."""
        assert instant("2026-01-05T09:30:00") == datetime(2026, 1, 5, 9, 30, tzinfo=UTC)

    @pytest.mark.parametrize("written", ["0001-01-01T00:00:01Z", "9999-12-31T23:59:59Z"])
    def test_at_the_ends_of_the_calendar(self, written: str) -> None:
        """Whatever was written into an Event, hours before and after it are instants."""
        assert (
            instant(written) - timedelta(hours=1) < instant(written) < instant(written) + timedelta(hours=1)
        )

    def test_microseconds(self) -> None:
        """A MicroTime, as Leases and Events have it, is read too."""
        half = instant("2026-01-05T09:30:00.500000Z") - instant(READY)
        assert half == timedelta(milliseconds=500)

    def test_zone_is_kept(self) -> None:
        """No zone is dropped on the way."""
        zone = timezone(timedelta(hours=1))
        assert instant("2026-01-05T10:30:00+01:00").utcoffset() == zone.utcoffset(None)

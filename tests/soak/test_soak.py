"""Three short hours as a test, so that the soak does not rot; the day is `make soak`."""

import sys
from pathlib import Path

import pytest

from lab.soak.__main__ import TRACE
from lab.soak.flat import Gauge
from lab.soak.report import line_of, table
from lab.soak.suite import Soak
from lab.traces import read_trace

pytestmark = pytest.mark.campaign

SEED, HOURS, HOUR_S = 2026, 3, 20.0
EVERY_S = 0.5


def test_three_hours(tmp_path: Path) -> None:
    """Every promise is kept, everything is sampled, and what is counted stays flat.

    A minute is all warm-up for the memory.
    """
    with Soak.open(tmp_path, read_trace(TRACE), SEED, print, every_s=EVERY_S) as soak:
        hours = [soak.play(number, HOUR_S) for number in range(HOURS)]
        findings, billed = soak.findings(), soak.billed()
        said = "".join(soak.logs())
    sys.stdout.write(table(SEED, hours, findings, soak.missed, billed))
    for hour in hours:
        assert not hour.faults, line_of(hour)
        assert hour.undone == 0
    assert set(findings) == {(name, gauge) for name in ("one", "two") for gauge in Gauge}
    assert all(one.second > 0 for one in findings.values())
    assert all(one.flat for (_, gauge), one in findings.items() if gauge is not Gauge.MEMORY)
    assert min(one.bill_s for one in billed) > 0
    assert min(one.counted_s for one in billed) > 0  # how near it is takes more than a minute to say
    assert "Traceback" not in said

"""What a scrape costs with 1,000 workloads: shown, not asserted; the number of series is."""

import time

import pytest
from prometheus_client import generate_latest

from lab.bench.figures import show
from report.shown import figures
from splitter.core.names import Key
from splitter.report import metrics

pytestmark = pytest.mark.bench

WORKLOADS, ROUNDS = 1_000, 7
LIVED = ("SpotLost", "Returning", "Covered", "Scaled", "HandingOver", "TakenOver")


def test_a_thousand_workloads() -> None:
    """Measure the CPU and the size of one scrape, and what a reconcile spends on its figures."""
    keys = [Key("Deployment", f"team-{number % 50}", f"web-{number}") for number in range(WORKLOADS)]
    for key in keys:
        metrics.workloads.show(key, figures())
        for reason in LIVED:
            metrics.workloads.decided(key, reason)
    scrapes = [_scrape() for _ in range(ROUNDS)]
    began_s = time.process_time()
    for key in keys:
        metrics.workloads.show(key, figures())
    pass_us = (time.process_time() - began_s) / WORKLOADS * 1e6
    metrics.workloads.clear()
    cpu_s, text = min(scrapes)
    series = [line for line in text.splitlines() if not line.startswith("#")]
    show(
        f"a scrape of {WORKLOADS} workloads",
        [
            ("CPU", f"{cpu_s * 1000:.0f} ms", ""),
            ("size", f"{len(text) / 1e6:.1f} MB", ""),
            ("series", f"{len(series)}", "< 30 a workload"),
            ("a reconcile, for its figures", f"{pass_us:.0f} µs", ""),
        ],
    )
    assert len(series) < 30 * WORKLOADS


def _scrape() -> tuple[float, str]:
    began_s = time.process_time()
    text = generate_latest().decode()
    return time.process_time() - began_s, text

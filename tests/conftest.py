"""What tests of every folder share: one real control plane for the session; properties without a clock."""

import os
import statistics
from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import settings

from splitter.sandbox import Sandbox

# How long one example takes says how busy the machine is, and nothing about the property. And the same code
# is judged the same each time: random examples are for those who look for faults, not for the next change.
_LOOKS = bool({"FUZZ_EXAMPLES", "SPLITTER_EXPLORE"} & os.environ.keys())
settings.register_profile("untimed", deadline=None, derandomize=not _LOOKS)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """Yield a running control plane; its logs are kept when starting or ending it fails."""
    with Sandbox.start(progress=print) as running:
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures that tests noted with `record_property`: a test measures them, and claims none."""
    figures = defaultdict(list)
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            figures[name].append(float(value))
    if figures:
        terminalreporter.section("figures (median, from least to most, of how many)")
    for name, values in sorted(figures.items()):
        least, most = min(values), max(values)
        middle = statistics.median(values)
        terminalreporter.line(f"{name}: {middle:.2f} ({least:.2f} to {most:.2f}, {len(values)})")

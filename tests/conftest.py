"""What tests of every folder share: one real control plane for the session; properties without a clock."""

import os
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from lab.sandbox import Sandbox

# Several control planes on two cores: threads that wait for one another, and memory that is collected as if
# it were scarce, are a quarter of what they cost. What a user has set stays.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("GOMAXPROCS", "1")
    os.environ.setdefault("GOGC", "400")

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


# What takes longest begins first, so that no process is left with it when the others have ended.
LONG = (
    "test_conformance",
    "test_placed",
    "test_demo",
    "test_sandbox",
    "test_chart",
    "test_installs",
    "test_fleet",
    "test_rights",
    "test_annotation_policies",
    "test_placement_policy",
    "test_own_account",
    "test_dockerfile",
    "test_autoscaler",
    "test_high_availability",
    "test_relief",
    "test_dashboard",
    "test_provisioner",
    "test_related_objects",
    "test_causes",
    "test_metrics",
    "test_tutorial",
    "test_appliers",
    "test_statefulset",
    "test_real_nodes",
    "test_traffic",
    "test_life",  # beside the unit tests of `make test-quick`
)
# Files whose tests share what is expensive to make: a cluster, a crowd of workloads, a policy in force.
TOGETHER = (
    "test_conformance",
    "test_placed",
    "test_installs",
    "test_chart",
    "test_annotation_policies",
    "test_placement_policy",
    "test_own_account",
    "test_dockerfile",
    "test_sandbox",
    "test_fleet",
    "test_provisioner",
    "test_real_nodes",
    "test_traffic",
)


class _OneByOne(LoadScopeScheduling):  # type: ignore[misc] # pytest-xdist has no types
    """Gives each process one test after the other, and all tests of some files to the same process.

    As `--dist loadgroup` does, which finds no groups with pytest 9 (pytest-xdist 3.8.0 writes their names
    into an attribute that is not read any more).
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if Path(file).stem in TOGETHER else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Answer `--dist loadscope`, which the end-to-end tests are started with."""
    return _OneByOne(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort what is spread over processes by how long it takes."""
    ranks = {name: rank for rank, name in enumerate(LONG)}
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))


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

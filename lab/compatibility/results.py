"""What was tried with which Kubernetes and Python, and the page that tells it."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.checkout import ROOT
from lab.sandbox.versions import PINNED

FILE = ROOT / "benchmarks" / "compatibility.json"
PAGE = ROOT / "docs" / "reference" / "compatibility.md"
# The last versions of the minors that are promised, as far as they are published as Go modules.
KUBERNETES = ("1.33.13", "1.34.4", "1.35.4", PINNED)
PYTHON = ("3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of tests with one version; `version` is empty where it is not to be had."""

    version: str = ""
    tests: str = ""
    date: str = ""
    passed: int = 0
    skipped: int = 0
    failed: int = 0

    def row(self, what: str) -> str:
        """Return its row of the table."""
        if not self.version:
            return f"| {what} | not tried: it could not be had | | | | | |"
        cells = (self.version, self.tests, self.passed, self.skipped, self.failed, self.date)
        return f"| {what} | {' | '.join(map(str, cells))} |"


def load(file: Path = FILE) -> dict[str, Run]:
    """Return the last runs, by what was tried, such as `Python 3.11`. Raises ValueError for a broken file."""
    raw = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {what: Run(**fields) for what, fields in raw.items()}


def save(runs: dict[str, Run], file: Path = FILE) -> None:
    """Write the last runs, in the order of the table."""
    text = json.dumps({what: asdict(runs[what]) for what in wanted() if what in runs}, indent=2)
    file.write_text(text + "\n", encoding="utf-8")


def wanted() -> list[str]:
    """Return what is promised, in the order of the table."""
    minors = (version.rpartition(".")[0] for version in KUBERNETES)
    return [f"Kubernetes {minor}" for minor in minors] + [f"Python {minor}" for minor in PYTHON]


def page(runs: dict[str, Run]) -> str:
    """Return docs/reference/compatibility.md."""
    rows = [
        runs[what].row(what) if what in runs else f"| {what} | not tried yet | | | | | |" for what in wanted()
    ]
    return "\n".join((_HEAD, *rows, ""))


_HEAD = """\
# Compatibility

<!-- Written by lab/compatibility/results.py, of benchmarks/compatibility.json. To write it anew:
     SPLITTER_REGENERATE=1 pytest tests/compatibility -->

splitter is made for Kubernetes 1.33 to 1.36, and its package for Python 3.11 to 3.14; the image brings a
Python of its own. Every commit is tested with Kubernetes 1.36 and Python 3.11. The others are tried by one
command, `make compatibility`: it builds each Kubernetes from its Go modules and plays end-to-end tests
there, and runs the unit tests with each Python that it finds. `selected` are the lives of Deployments and
StatefulSets, notices, losses, placement where the version has it, policies and rights; with Python, the
tests of what decides, of the API client and of the start. `all` is the whole suite (`make compatibility
ALL=1`).

[What an older Kubernetes lacks](../limits.md#kubernetes-versions). The last runs of this command:

| | version | tests | passed | skipped | failed | on |
|---|---|---|---|---|---|---|"""

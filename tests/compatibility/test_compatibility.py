"""What is said about versions of Kubernetes and Python is what was last tried."""

import os
import tomllib
from pathlib import Path

import pytest

from lab.checkout import ROOT
from lab.compatibility.__main__ import E2E, UNIT, counted
from lab.compatibility.results import KUBERNETES, PAGE, PYTHON, Run, load, page, save, wanted

REPORT = (
    """<testsuites><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10"/></testsuites>"""
)


def test_the_page_is_in_step() -> None:
    """The table is made of the results; whoever runs the tests anew writes it anew."""
    written = page(load())
    if os.environ.get("SPLITTER_REGENERATE"):
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written, (
        "write it anew: SPLITTER_REGENERATE=1 pytest tests/compatibility"
    )


def test_nothing_is_promised_that_fails() -> None:
    """No version on the page has a test that fails, and none is there that the page does not name."""
    runs = load()
    assert set(runs) <= set(wanted())
    assert {what for what, run in runs.items() if run.failed} == set()


def test_the_package_says_so_too() -> None:
    """What the package may be installed on is the oldest Python of the table."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={PYTHON[0]}"


def test_one_of_each_minor() -> None:
    """Every minor version between the first and the last is there, once."""
    for versions in (KUBERNETES, PYTHON):
        minors = [int(version.split(".")[1]) for version in versions]
        assert minors == list(range(minors[0], minors[-1] + 1))


@pytest.mark.parametrize("test", [*E2E, *UNIT])
def test_what_is_selected_exists(test: str) -> None:
    """A test that was renamed is not left out in silence."""
    path, _, names = test.partition("::")
    assert (ROOT / path).exists()
    text = (ROOT / path).read_text(encoding="utf-8") if names else ""
    assert all(f"def {name}(" in text or f"class {name}:" in text for name in names.split("::") if name)


def test_a_report_is_counted() -> None:
    """Errors are failures, and what is skipped has not passed."""
    result = counted(REPORT, "3.12.1", "all")
    assert (result.passed, result.skipped, result.failed) == (4, 3, 3)


def test_a_run_without_tests_is_none() -> None:
    """Nothing is claimed of a run that has run nothing."""
    with pytest.raises(SystemExit, match=r"no test ran with 3\.12\.1"):
        counted('<testsuites><testsuite tests="3" skipped="3"/></testsuites>', "3.12.1", "all")


def test_results_are_kept(tmp_path: Path) -> None:
    """What was written is read again, and what could not be had is told as that."""
    runs = {"Python 3.11": Run("3.11.7", "all", "2026-11-25", 10, 1), "Python 3.14": Run()}
    save(runs, tmp_path / "kept.json")
    assert load(tmp_path / "kept.json") == runs
    assert "| Python 3.11 | 3.11.7 | all | 10 | 1 | 0 | 2026-11-25 |" in page(runs)
    assert "| Python 3.14 | not tried: it could not be had |" in page(runs)
    assert "| Python 3.12 | not tried yet |" in page(runs)

"""`python -m lab`: one name for each thing that `make` runs."""

import subprocess
import sys
from importlib.util import find_spec

from lab.__main__ import WHAT
from lab.checkout import ROOT


def _lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lab", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_each_name_leads_to_a_program() -> None:
    """A package with a `__main__`."""
    assert [name for name, (module, _) in WHAT.items() if find_spec(f"{module}.__main__") is None] == []


def test_the_list() -> None:
    """Asked for, or after a name that is none: then wrong usage."""
    asked, wrong = _lab("--help"), _lab("sandbux")
    assert (asked.returncode, wrong.returncode) == (0, 2)
    assert all(name in asked.stderr for name in WHAT)
    assert wrong.stderr == asked.stderr


def test_options_reach_it() -> None:
    """The rest of the arguments, with a usage that says what was typed."""
    answer = _lab("demo", "--help")
    assert answer.returncode == 0
    assert "Usage: python -m lab demo [OPTIONS]" in answer.stdout

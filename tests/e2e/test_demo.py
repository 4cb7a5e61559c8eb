"""`make demo`, as the README has people type it first: a control plane of its own, and its verdict."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.checkout import ROOT
from lab.sandbox.build import cache_directory

pytestmark = pytest.mark.e2e

# It takes 3 minutes on an idle machine. It ends with its verdict, or with a step that has not settled.
DEADLINE_S = 900.0


def test_keeps_every_promise(tmp_path: Path) -> None:
    """It judges itself from the recorded pods: exit code 0, every promise was kept; the page was shown."""
    names = ("PATH", "LANG", "VIRTUAL_ENV", "GOMAXPROCS", "GOGC")  # Go's as in tests/conftest.py
    kept = {name: os.environ[name] for name in names if name in os.environ}
    cache = str(cache_directory().parents[1])  # where the control plane has been built already
    demo = subprocess.run(
        [sys.executable, "-m", "lab", "demo", "--dashboard"],
        env={**kept, "HOME": str(tmp_path), "XDG_CACHE_HOME": cache, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    said = demo.stdout + demo.stderr
    assert demo.returncode == 0, said
    assert re.search(r"open\s+http://127\.0\.0\.1:[0-9]+/", demo.stdout), said
    assert "every promise was kept, in " in demo.stdout, said
    assert "BROKEN" not in said
    assert "Traceback" not in said

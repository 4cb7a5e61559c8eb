"""The tutorial's second part, played as it is printed: each command works, and shows what the page shows.

Names of nodes and volumes, times and ages differ from run to run and are not compared; nor is what the page
itself marks as varying, or leaves out by "...".
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.checkout import ROOT
from lab.fixtures.controller import Controller, environment
from lab.fixtures.placed import needs_placement
from lab.sandbox import Sandbox
from lab.sandbox.fleet import Fleet
from lab.sandbox.provisioner import Provisioner

pytestmark = [pytest.mark.e2e, needs_placement]

PAGE = ROOT / "docs" / "tutorial-database.md"
_BLOCK = re.compile(r"(<!-- varies -->\n)?```\n(.*?)```", re.DOTALL)
_DIFFERS = (
    (re.compile(r"pvc-[0-9a-f-]{36}"), "pvc-UID"),
    (re.compile(r"\b(on-demand|spot)-\d+\b"), r"\1-N"),
    (re.compile(r"\b\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\b(\d+[dhms])+\b"), "AGE"),
    (re.compile(r"\b(created|configured|unchanged|serverside-applied)$"), "applied"),
    (re.compile(r"\s+"), " "),
)
_LONGEST_S = 330


@dataclass(frozen=True)
class Step:
    """One command, and what the page says that it prints; None where that varies."""

    command: str
    printed: list[str] | None


def steps(page: str) -> Iterator[Step]:
    """Yield the commands of a page, in order."""
    for varies, block in _BLOCK.findall(page):
        for part in f"\n{block}".split("\n$ ")[1:]:
            command, *printed = part.splitlines()
            yield Step(command, None if varies else [line for line in map(alike, printed) if line])


def alike(line: str) -> str:
    """Return a line without what differs from run to run."""
    for pattern, word in _DIFFERS:
        line = pattern.sub(word, line.strip())
    return line


def missing(printed: list[str], seen: list[str]) -> list[str]:
    """Return the lines of the page that were not seen, in this order."""
    rest = iter(seen)
    return [line for line in printed if line != "..." and not any(line == other for other in rest)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder that looks like a clone, where files may be written."""
    for folder in ("manifests", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    return tmp_path


def test_it_does_what_it_says(sandbox: Sandbox, controller: Controller, fleet: Fleet, place: Path) -> None:
    """From the first command to the last."""
    assert controller.running
    assert fleet.names("spot")
    shell = environment(place, sandbox.kubeconfig)
    shell["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    collected = list(steps(PAGE.read_text(encoding="utf-8")))
    assert len(collected) > 20
    try:
        with Provisioner(sandbox.api):
            for step in collected:
                answer = subprocess.run(
                    ["bash", "-o", "pipefail", "-c", step.command],
                    cwd=place,
                    env=shell,
                    text=True,
                    capture_output=True,
                    timeout=_LONGEST_S,
                    check=False,
                )
                print(f"$ {step.command}\n{answer.stdout}{answer.stderr}")  # noqa: T201 - what a reader sees
                assert answer.returncode == 0, step.command
                seen = [alike(line) for line in answer.stdout.splitlines()]
                assert missing(step.printed or [], seen) == [], step.command
    finally:
        sandbox.kubectl("delete", "namespace", "data", "--ignore-not-found", "--wait=false")
        sandbox.kubectl(
            "delete", "-f", str(ROOT / "manifests/admission/placement.yaml"), "--ignore-not-found"
        )

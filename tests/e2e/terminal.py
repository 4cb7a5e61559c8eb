"""A person's shell in which splitter's verbs are typed."""

import subprocess
import sys
from pathlib import Path

from e2e.controller import ROOT, environment
from e2e.shop import DEADLINE_S

Answer = subprocess.CompletedProcess[str]


class Terminal:
    """Somebody's shell, with somebody's credentials."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._environment = environment(home, kubeconfig)

    def splitter(self, *arguments: str) -> Answer:
        """Run a verb and return what it said."""
        command = [sys.executable, "-m", "splitter", *arguments]
        return subprocess.run(
            command,
            env=self._environment,
            cwd=ROOT,
            text=True,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )


def told(answer: Answer) -> str:
    """Return what a verb that went well said."""
    assert answer.returncode == 0, answer.stderr
    return answer.stdout

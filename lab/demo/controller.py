"""The `splitter run` that demo and benchmarks look at: a process of its own, with its own account.

`journey` starts it with the kubeconfig of the service account that `manifests/rbac.yaml` makes, and the
settings that the demo prints. Its output goes to a log file of its own. It dies with us, however we die.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from lab.sandbox.processes import Nursery

# It may be in the middle of a write; a crash is harmless too, so nobody waits longer for it.
_POLITE_S = 2.0


class Controller:
    """A running controller; ends with the `with` block."""

    def __init__(self, kubeconfig: Path, settings: Mapping[str, str], log: Path) -> None:
        self.log = log
        self._nursery = Nursery()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SPLITTER_")}
        self._child = self._nursery.start(
            "splitter run",
            [sys.executable, "-m", "splitter", "run"],
            log=log,
            environment={**inherited, "KUBECONFIG": str(kubeconfig), **settings},
        )

    @property
    def process_id(self) -> int:
        """Return the process id of the controller itself."""
        return self._child.process.pid

    def check(self) -> None:
        """Raise SandboxError with the end of its log when it has exited unexpectedly."""
        self._nursery.check()

    def __enter__(self) -> Self:
        """Return the running controller."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ask it to leave, as Kubernetes would; then make sure."""
        process = self._child.process
        process.terminate()
        try:
            process.wait(timeout=_POLITE_S)
        except subprocess.TimeoutExpired:
            pass  # the nursery kills it
        finally:
            self._nursery.end()

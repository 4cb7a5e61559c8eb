"""The page of `splitter dashboard` while the demo runs: a process of its own, as a user would start it."""

import os
import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from splitter.sandbox.processes import Nursery
from splitter.sandbox.waiting import wait_until

_ADDRESS = re.compile(r"http://127\.0\.0\.1:[0-9]+/\S+")
_START_S = 30.0


class Page:
    """A running page; ends with the `with` block."""

    def __init__(self, kubeconfig: Path, log: Path) -> None:
        self._log = log
        self._nursery = Nursery()
        command = [sys.executable, "-m", "splitter", "dashboard", "-A", "--kubeconfig", str(kubeconfig)]
        settings = {name: value for name, value in os.environ.items() if not name.startswith("SPLITTER_")}
        self._nursery.start("splitter dashboard", command, log=log, environment=settings)

    @property
    def address(self) -> str:
        """Where it is, once it is served. Raises SandboxError when it has ended, or does not come."""

        def written() -> str | None:
            self._nursery.check()
            address = _ADDRESS.search(self._log.read_text("utf-8"))
            return address[0] if address is not None else None

        return wait_until(written, what="the page of splitter dashboard", deadline_s=_START_S)

    def __enter__(self) -> Self:
        """Return the running page."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; it has nothing to save."""
        self._nursery.end()

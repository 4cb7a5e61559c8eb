"""The page of `splitter dashboard` while the demo runs: a process of its own, as a user would start it."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.sandbox.processes import Nursery
from lab.sandbox.waiting import wait_until

_ADDRESS = re.compile(r"http://127\.0\.0\.1:[0-9]+/\S+")
_START_S = 30.0


@contextmanager
def served_page(kubeconfig: Path, log: Path) -> Iterator[str]:
    """Serve the page to the end of the block; yields its address.

    Raises SandboxError when it has ended, or does not come.
    """
    nursery = Nursery()
    command = [sys.executable, "-m", "splitter", "dashboard", "-A", "--kubeconfig", str(kubeconfig)]
    settings = {name: value for name, value in os.environ.items() if not name.startswith("SPLITTER_")}

    def written() -> str | None:
        nursery.check()
        address = _ADDRESS.search(log.read_text("utf-8"))
        return address[0] if address is not None else None

    try:
        nursery.start("splitter dashboard", command, log=log, environment=settings)
        yield wait_until(written, what="the page of splitter dashboard", deadline_s=_START_S)
    finally:
        nursery.end()  # it has nothing to save

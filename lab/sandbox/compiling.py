"""Runs Go so that a build is whole or not there, one at a time, and tells what goes wrong.

`build` and `real.build` say what is built; here is how: with a Go that is looked for when it is needed, in a
temporary directory that is renamed, under a file lock, with the compiler's log kept beside the result.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lab.sandbox import toolchain
from lab.sandbox.errors import SandboxError
from lab.sandbox.processes import Nursery, last_lines

_REPORT_EVERY_S = 15.0


@dataclass(slots=True)
class GoOnDemand:
    """Go, looked for only when something really has to be built."""

    go_mod: str
    cache: Path
    progress: Callable[[str], None]
    go_program: toolchain.Go | None = None

    def command(self) -> str:
        """Return the path of Go. Raises SandboxError when there is none and none can be had."""
        if self.go_program is None:
            self.go_program = toolchain.find_go(
                toolchain.required_version(self.go_mod), self.cache, self.progress
            )
        return str(self.go_program.command)


def once(home: Path, progress: Callable[[str], None], build: Callable[[Path], None]) -> None:
    """Have `build` fill `home` unless it is there already."""
    if home.exists():
        return
    home.parent.mkdir(parents=True, exist_ok=True)
    with _lock(home.parent / "build.lock", progress):
        if home.exists():  # somebody else built it while we waited for the lock
            return
        partial = Path(tempfile.mkdtemp(prefix=f"{home.name}.partial-", dir=home.parent))
        try:
            build(partial)
            partial.rename(home)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _lock(path: Path, progress: Callable[[str], None]) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another process is building programs of the sandbox; waiting for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield  # closing the file releases the lock, also when we are killed


@contextmanager
def copied(sources: Mapping[str, bytes]) -> Iterator[Path]:
    """Yield a directory with a Go module: Go wants to write there, and the package may be read-only."""
    with tempfile.TemporaryDirectory(prefix="splitter-go-module-") as directory:
        for name, content in sources.items():
            Path(directory, name).write_bytes(content)
        yield Path(directory)


def install(
    go: GoOnDemand,
    what: str,
    packages: str | Sequence[str],
    into: Path,
    *,
    progress: Callable[[str], None],
    linker: str = "-s -w",
    flags: Sequence[str] = (),
) -> None:
    """Build published programs of one module, such as `sigs.k8s.io/kwok/cmd/kwok@v0.8.0`, into a folder."""
    named = (packages,) if isinstance(packages, str) else packages
    command = [go.command(), "install", "-trimpath", *flags, "-ldflags", linker, *named]
    run_go(what, command, progress, directory=into, logs=into.parent, extra={"GOBIN": str(into)})


def go_environment(extra: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the environment in which Go runs, with what is `extra`."""
    # GOWORK: a go.work above the temporary directory must not swallow the module.
    # CGO_ENABLED: a machine with a C compiler builds what one without builds.
    # GOGC: compilers are short-lived, and collect less often than by default (docs/tests.md).
    ours = {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
    return {"GOGC": "400", **os.environ, **ours, **extra}


def run_go(
    what: str,
    command: Sequence[str],
    progress: Callable[[str], None],
    *,
    directory: Path,
    logs: Path,
    extra: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Run Go, tell every 15 s that it still runs, and keep its log in `logs`.

    Raises SandboxError with the compiler's last lines when it fails.
    """
    log = logs / f"{what.lower().replace(' ', '-')}-build.log"
    log.unlink(missing_ok=True)
    environment = go_environment(extra)
    started_s = time.monotonic()
    nursery = Nursery()
    try:
        process = nursery.start("go", command, log=log, environment=environment, directory=directory).process
        while True:
            try:
                code = process.wait(timeout=_REPORT_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                progress(f"still building {what}: {time.monotonic() - started_s:.0f} s ...")
    finally:
        nursery.end()
        if log.exists():
            log.write_text(toolchain.hide_hosts(log.read_text(errors="replace")))
    if code != 0:
        raise SandboxError(
            f"building {what} failed: `go {command[1]}` ended with code {code} after "
            f"{time.monotonic() - started_s:.0f} s. Look for a full disk, no network or too little "
            f"memory; the whole log is {log}; it ends:\n{last_lines(log)}"
        )
    progress(f"built {what} in {time.monotonic() - started_s:.0f} s")

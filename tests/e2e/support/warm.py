"""Processes of splitter that begin with its imports done: each start saves a second of CPU.

The standard library's fork server imports splitter once; what it forks is a process like any other, with an
environment, an output, a session and signals of its own. A start from nothing is what a test of
`tests/test_start.py` and the demo see.
"""

import atexit
import ctypes
import importlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path

from splitter.cli import VERBS

_FORKS = multiprocessing.get_context("forkserver")
_IMPORTS = [
    "splitter.operator",
    "uvloop",
    *sorted({f"splitter.cli.{verb.module}" for verb in VERBS.values()}),
]
# Last, and as it is found from the root: the server does not know the paths of pytest.
_FORKS.set_forkserver_preload([*_IMPORTS, "tests.e2e.support.frozen"])
_PR_SET_PDEATHSIG = 1


class Warm:
    """`splitter VERB ...` as a process of its own; as much of subprocess.Popen as tests need.

    Output and complaints are appended to files, which may be one and the same.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        output: Path,
        complaints: Path,
    ) -> None:
        reported = (tuple(arguments), dict(environment), directory, output, complaints)
        self._process = _FORKS.Process(target=_begin, args=reported, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid or 0

    def poll(self) -> int | None:
        """Return its exit code, the negative number of a signal that ended it, None while it runs."""
        return self._process.exitcode

    def wait(self, timeout_s: float) -> int | None:
        """Return its exit code, None when it has not ended within so many seconds."""
        self._process.join(timeout_s)
        return self.poll()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal; whoever has ended hears none."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # the server has seen its end before us
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it and wait for its end."""
        self.send_signal(signal.SIGKILL)
        self._process.join()


def _begin(
    arguments: Sequence[str], environment: Mapping[str, str], directory: Path, output: Path, complaints: Path
) -> None:
    """Become what the kernel would have started; runs in the new process."""
    os.setsid()
    if sys.platform == "linux":  # as the sandbox's children: nobody outlives the tests
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # It keeps the server alive, and the server us: both would outlive tests that end without a word.
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined] # noqa: SLF001
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    for descriptor, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, output, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
        (2, complaints, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    # The streams that were inherited belong to whoever started the server.
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(descriptor, mode, buffering=1, encoding="utf-8", closefd=False)
        for descriptor, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    sys.argv = ["splitter", *arguments]
    # A forked process ends without the interpreter's last steps. In one of them the Kubernetes client removes
    # the files that it has written credentials to. What the server had registered is its own.
    atexit._clear()  # noqa: SLF001 (there is no other way)
    try:
        importlib.import_module("splitter.cli").main()
    finally:
        atexit._run_exitfuncs()  # noqa: SLF001 (the same)

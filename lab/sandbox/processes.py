"""The sandbox's child processes: started so that they cannot outlive us, watched, and ended.

`build` runs the compiler through it, `controlplane` the servers. Each child leads a process group of its
own (a Ctrl-C in the terminal reaches only us, and we end the children in order), and on Linux asks the
kernel to be killed when we die, however we die. Nothing here knows what the processes are for.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lab.sandbox.errors import SandboxError

# Runs between fork and the real program, in a fresh interpreter: code between fork and exec in our own
# (`preexec_fn`) may deadlock when other threads run. Option 1 is PR_SET_PDEATHSIG (prctl(2)); it survives
# exec. The parent may have died before the call, hence the second look.
_TETHER = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""
_LAST_LINES = 15
# `kubectl delete` waits a week for an object that stays.
_DEADLINE_S = 300.0


def last_lines(log: Path, count: int = _LAST_LINES) -> str:
    """Return the last `count` lines of a log, or a note that there are none."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return "(no log)"
    return "\n".join(lines[-count:]) or "(empty log)"


def output_of(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    what: str,
    stdin: str | None = None,
    deadline_s: float = _DEADLINE_S,
) -> str:
    """Run a command to its end and return what it prints. `what` names it in messages.

    Raises SandboxError with its own complaint when it fails, and when it has not ended after `deadline_s`.
    """
    try:
        answer = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env=dict(environment),
            timeout=deadline_s,
        )
    except subprocess.TimeoutExpired as expired:
        raise SandboxError(f"{what} has not ended after {deadline_s:g} s, and was ended.") from expired
    if answer.returncode != 0:
        raise SandboxError(f"{what} failed: {answer.stderr.strip() or answer.stdout.strip()}")
    return answer.stdout


@dataclass(frozen=True, slots=True)
class Child:
    """One running program and where its output goes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise SandboxError with the last lines of the log when the program has ended."""
        code = self.process.poll()
        if code is not None:
            raise SandboxError(
                f"{self.name} ended with code {code}. Its log, {self.log}, ends:\n{last_lines(self.log)}"
            )

    def end(self) -> None:
        """Kill the program and everything it started, and wait for its end."""
        # Nothing is worth saving (the data directory is thrown away), so no polite signal first.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Nursery:
    """Starts children and ends them all, last one first."""

    def __init__(self) -> None:
        # The kernel's parent-death signal is sent when the *thread* that forked ends (prctl(2)), so one
        # thread that lives as long as we do starts all children, whichever thread asks for them.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sandbox-starter")
        self._children: list[Child] = []

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str],
        directory: Path | None = None,
    ) -> Child:
        """Start `command` (its first word an absolute path), output to `log`, and return at once."""

        def fork() -> subprocess.Popen[bytes]:
            with log.open("ab") as output:
                return subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _TETHER, str(os.getpid()), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=dict(environment),
                    cwd=directory,
                    start_new_session=True,
                )

        child = Child(name, self._starter.submit(fork).result(), log)
        self._children.append(child)
        return child

    @property
    def children(self) -> tuple[Child, ...]:
        """Everything started so far, in the order of starting."""
        return tuple(self._children)

    def check(self) -> None:
        """Raise SandboxError when any child has exited unexpectedly."""
        for child in self.children:
            if child.process.poll() is not None and child in self._children:  # `end_one` takes it out first
                child.check()

    def end_one(self, child: Child) -> None:
        """End one child on purpose: `check` does not report it."""
        self._children.remove(child)
        child.end()

    def end(self) -> None:
        """End all children; safe to call twice."""
        while self._children:
            self._children.pop().end()
        self._starter.shutdown(wait=True)

"""A person's shell in which splitter's verbs are typed."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path

from lab.checkout import ROOT
from lab.fixtures.controller import environment
from lab.fixtures.shop import DEADLINE_S
from lab.fixtures.warm import Warm

# Whoever starts the tests in the background has Ctrl-C ignored for all that they start.
_ON_A_TERMINAL = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " from splitter.command import main; main()"
)

Answer = subprocess.CompletedProcess[str]


class Terminal:
    """Somebody's shell, with somebody's credentials."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._home = home
        self._environment = environment(home, kubeconfig)

    def splitter(self, *arguments: str) -> Answer:
        """Run a verb and return what it said."""
        with tempfile.TemporaryDirectory(dir=self._home) as folder:
            output, complaints = Path(folder, "output"), Path(folder, "complaints")
            running = Warm(arguments, self._environment, ROOT, output, complaints)
            code = running.wait(DEADLINE_S)
            if code is None:
                running.kill()
                raise subprocess.TimeoutExpired(["splitter", *arguments], DEADLINE_S)
            return Answer(["splitter", *arguments], code, output.read_text(), complaints.read_text())

    def kubectl(self, *arguments: str) -> Answer:
        """Run kubectl, which finds splitter's executables beside the Python that runs the tests."""
        path = f"{Path(sys.executable).parent}:{self._environment.get('PATH', '')}"
        return subprocess.run(
            ["kubectl", *arguments],
            env={**self._environment, "PATH": path},
            cwd=ROOT,
            text=True,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )

    def watched(self, *arguments: str, until: Callable[[str], bool]) -> tuple[str, int]:
        """Run a verb on a terminal of 80 columns and 24 rows, and press Ctrl-C when enough has been seen.

        Returns all that was written there, and the exit code.
        """
        command = [sys.executable, "-c", _ON_A_TERMINAL, *arguments]
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**self._environment, "TERM": "xterm-256color"}
        with subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=ROOT
        ) as child:
            os.close(theirs)
            seen, deadline, pressed = "", time.monotonic() + DEADLINE_S, False
            while part := _read(ours):
                seen += part
                late = time.monotonic() > deadline
                if pressed and late:
                    child.kill()
                elif not pressed and (until(seen) or late):
                    child.send_signal(signal.SIGINT)
                    pressed, deadline = True, time.monotonic() + DEADLINE_S
            os.close(ours)
            return seen, child.wait(DEADLINE_S)


def _read(descriptor: int) -> str:
    """Return what is there; nothing once the other side is closed, which Linux calls an error."""
    try:
        return os.read(descriptor, 65536).decode(errors="replace")
    except OSError:
        return ""


def reported(answer: Answer) -> str:
    """Return what a verb that went well said."""
    assert answer.returncode == 0, answer.stderr
    return answer.stdout

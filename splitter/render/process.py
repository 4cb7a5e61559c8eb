"""The parent's side of the child process: starts it, asks it, ends it.

`bounded` has one, and uses it from one thread only: the kernel ends a child with the thread that started it
(prctl(2)), and an answer is waited for there, never in the event loop. Nothing here knows what is asked.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

import splitter
from splitter.render.child import LENGTH, READY
from splitter.render.limits import Limit, Limits
from splitter.render.sandbox import MAX_BYTES

logger = logging.getLogger("splitter.templates")

# Isolated (-I), so that neither the environment nor the folder where we stand decides what is imported.
_MAIN: Final = (
    "import sys; sys.path.append(sys.argv[1]); from splitter.render.child import main;"
    " main(int(sys.argv[2]), int(sys.argv[3]))"
)
_PACKAGES: Final = str(Path(splitter.__file__).resolve().parent.parent)
# 0.1 s on an idle machine; none that is busy takes so long.
_START_S: Final = 30.0
_LAST_WORDS: Final = 65_536


class LimitReachedError(Exception):
    """A request exceeded a limit."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        self.limit = limit


class EndedError(Exception):
    """The child exited during a request, for whatever reason."""


class UnavailableError(Exception):
    """No child runs, and none can be started."""


class ChildProcess:
    """One child at a time. `ask` blocks; `close` may be called from anywhere."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._closed = threading.Event()

    @property
    def pid(self) -> int | None:
        """Which process it is, if there is one."""
        return None if self._process is None else self._process.pid

    def ask(self, request: bytes, time_s: float) -> bytes:
        """Return the answer, of at most MAX_BYTES, which may take so many seconds once there is a child.

        Raises LimitReachedError or EndedError, after which the next request starts another child, and
        UnavailableError.
        """
        self._ensure()
        try:
            return self._exchange(request, time_s)
        except TimeoutError as error:
            self.end()
            raise LimitReachedError(Limit.TIME) from error
        except OSError as error:
            code, words = self.end()
            if code == -signal.SIGXCPU:
                raise LimitReachedError(Limit.CPU) from error
            raise EndedError(f"{error}; {_said(code)}{f': {words}' if words else ''}") from error

    def end(self) -> tuple[int, str]:
        """Kill the child, if there is one; returns how it ended, and the last line that it wrote."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()  # one that has ended by itself keeps its own code
        if self._channel is not None:  # only now: it would end by itself when nobody hears it any more
            self._channel.close()
        if process is None:
            return 0, ""
        code = process.wait()
        with process:  # closes its pipe
            words = process.stderr.read(_LAST_WORDS) if process.stderr is not None else b""
        lines = words.decode(errors="replace").strip().splitlines()
        logger.info("the process that renders template sets has ended pid=%d code=%d", process.pid, code)
        return code, lines[-1] if lines else ""

    def close(self) -> None:
        """End the child and start no other; a running request fails."""
        self._closed.set()
        if (process := self._process) is not None:
            process.kill()

    def _ensure(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        began = time.monotonic()
        try:
            self._start()
            if self._receive(began + _START_S) != READY:
                raise ConnectionError("it does not say that it is ready")
        except OSError as error:
            _, words = self.end()
            raise UnavailableError(
                f"{str(error) or 'it took too long'}{f': {words}' if words else ''}"
            ) from error
        took_ms = (time.monotonic() - began) * 1000
        logger.info("a process that renders template sets has started pid=%s ms=%.0f", self.pid, took_ms)

    def _start(self) -> None:
        if self._closed.is_set():
            raise ConnectionError("splitter stops")
        ours, its = socket.socketpair()
        with its:
            self._channel = ours
            self._process = subprocess.Popen(  # noqa: S603 - ourselves, without a shell
                [
                    *(sys.executable, "-I", "-B", "-c", _MAIN, _PACKAGES),
                    *(str(os.getpid()), str(self._limits.memory_bytes)),
                ],
                stdin=its.fileno(),
                stdout=its.fileno(),
                stderr=subprocess.PIPE,
                env={},
                cwd="/",
                start_new_session=True,  # a Ctrl-C in the terminal reaches only us
            )
        if self._closed.is_set():
            self._process.kill()  # `close` has not seen it

    def _exchange(self, request: bytes, time_s: float) -> bytes:
        deadline = time.monotonic() + time_s
        channel = self._until(deadline)
        channel.sendall(len(request).to_bytes(LENGTH) + request)
        return self._receive(deadline)

    def _receive(self, deadline: float) -> bytes:
        size = int.from_bytes(self._read(LENGTH, deadline))
        if size > MAX_BYTES:
            raise ConnectionError(f"its answer has {size} bytes")
        return self._read(size, deadline)

    def _read(self, size: int, deadline: float) -> bytes:
        content = bytearray()
        while len(content) < size:
            piece = self._until(deadline).recv(size - len(content))
            if not piece:
                raise ConnectionError("no answer")
            content += piece
        return bytes(content)

    def _until(self, deadline: float) -> socket.socket:
        """Return the channel with this deadline set. Raises TimeoutError when it has passed."""
        left_s = deadline - time.monotonic()
        if left_s <= 0 or self._channel is None:
            raise TimeoutError
        self._channel.settimeout(left_s)
        return self._channel


def _said(code: int) -> str:
    """Return how a process ended, in words.

    >>> _said(-9)
    'killed by SIGKILL'
    """
    if code >= 0:
        return f"it ended with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"

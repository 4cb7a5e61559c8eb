"""The parent's side of the child: one answer a request, bounded in time and size; after a fault a new child.

The child is a small program of the test's own; `test_bounded` plays it with the real one.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from splitter.render import process
from splitter.render.limits import Limit, Limits
from splitter.render.process import ChildProcess, EndedError, LimitReachedError, UnavailableError
from splitter.render.sandbox import MAX_BYTES

DEADLINE_S = 60.0
HEAD = """
import os, signal, sys, time
def say(text, size=None):
    os.write(1, (len(text) if size is None else size).to_bytes(4) + text)
def heard():
    return os.read(0, int.from_bytes(os.read(0, 4)))
"""
READY = "say(b'{\"ready\":true}')\n"
ECHO = f"{READY}while request := heard(): say(request[::-1])\n"

Made = Callable[[str], ChildProcess]


@pytest.fixture
def child_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Yield what makes a child that runs a program."""
    made = []

    def child(program: str) -> ChildProcess:
        monkeypatch.setattr(process, "_MAIN", HEAD + program)
        made.append(ChildProcess(Limits()))
        return made[-1]

    yield child
    for one in made:
        one.end()


class TestAnswers:
    def test_come_one_after_the_other_from_one_child(self, child_of: Made) -> None:
        """It is started by the first request, and kept."""
        child = child_of(ECHO)
        assert child.pid is None
        assert child.ask(b"abc", DEADLINE_S) == b"cba"
        pid = child.pid
        assert child.ask(b"x" * 60_000 + b"y", DEADLINE_S) == b"y" + b"x" * 60_000
        assert child.pid == pid

    def test_may_come_in_pieces(self, child_of: Made) -> None:
        """A pipe says nothing of where a message ends."""
        pieces = "for byte in (3).to_bytes(4) + b'abc': os.write(1, bytes([byte]))\n"
        assert child_of(f"{READY}heard()\n{pieces}heard()").ask(b"?", DEADLINE_S) == b"abc"

    def test_are_bounded(self, child_of: Made) -> None:
        """Nobody makes room for one that says it has 4 GiB, or a byte more than is allowed."""
        for size in (2**32 - 1, MAX_BYTES + 1):
            child = child_of(f"{READY}heard(); say(b'', {size}); heard()")
            with pytest.raises(EndedError, match=f"its answer has {size} bytes"):
                child.ask(b"?", DEADLINE_S)
            assert child.pid is None

    def test_that_do_not_come_in_time_end_the_child(self, child_of: Made) -> None:
        """Half an answer is none, too; the next request has another child."""
        for half in ("", "say(b'half', 9)"):
            child = child_of(f"{READY}heard(); {half}\nwhile True: time.sleep(9)")
            with pytest.raises(LimitReachedError) as caught:
                child.ask(b"?", 0.2)
            assert caught.value.limit is Limit.TIME
            assert child.pid is None


class TestEnds:
    @pytest.mark.parametrize(
        ("end", "said"),
        [
            ("sys.exit('no room')", "no answer; it ended with code 1: no room"),
            ("print('a', 'b', sep=chr(10), file=sys.stderr); os._exit(3)", "it ended with code 3: b"),
            ("os.kill(os.getpid(), signal.SIGSEGV)", "no answer; killed by SIGSEGV"),
            ("os.kill(os.getpid(), 40)", "no answer; killed by signal 40"),
        ],
    )
    def test_of_the_child_are_told(self, child_of: Made, end: str, said: str) -> None:
        """How it ended, and its last words."""
        with pytest.raises(EndedError) as caught:
            child_of(f"{READY}heard(); {end}").ask(b"?", DEADLINE_S)
        assert str(caught.value).endswith(said)

    def test_by_the_limit_of_cpu(self, child_of: Made) -> None:
        """The kernel's signal for it says so."""
        with pytest.raises(LimitReachedError) as caught:
            child_of(f"{READY}heard(); os.kill(os.getpid(), signal.SIGXCPU)").ask(b"?", DEADLINE_S)
        assert caught.value.limit is Limit.CPU

    def test_between_two_requests_are_no_fault(self, child_of: Made) -> None:
        """The next request has a new child."""
        child = child_of(ECHO)
        child.ask(b"?", DEADLINE_S)
        pid = child.pid
        assert pid is not None
        handle = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOWAIT)
        os.close(handle)
        assert child.ask(b"ab", DEADLINE_S) == b"ba"
        assert child.pid not in {None, pid}

    def test_leave_no_process(self, child_of: Made) -> None:
        """`end` waits for it, and says how it ended; without one it is nothing."""
        child = child_of(ECHO)
        assert child.end() == (0, "")
        child.ask(b"?", DEADLINE_S)
        pid = child.pid
        assert pid is not None
        assert child.end() == (-signal.SIGKILL, "")
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


class TestStarts:
    @pytest.mark.parametrize(
        ("program", "said"),
        [
            ("sys.exit('no room on this device')", "no answer: no room on this device"),
            ("say(b'hello'); heard()", "it does not say that it is ready"),
        ],
    )
    def test_that_fail_are_told(self, child_of: Made, program: str, said: str) -> None:
        """It is no fault of the request."""
        child = child_of(program)
        with pytest.raises(UnavailableError) as caught:
            child.ask(b"?", DEADLINE_S)
        assert str(caught.value) == said
        assert child.pid is None

    def test_that_take_too_long(self, child_of: Made, monkeypatch: pytest.MonkeyPatch) -> None:
        """They have a limit of their own."""
        monkeypatch.setattr(process, "_START_S", 0.2)
        with pytest.raises(UnavailableError, match=r"timed out|it took too long"):
            child_of("time.sleep(600)").ask(b"?", DEADLINE_S)

    def test_are_no_more_once_it_is_closed(self, child_of: Made, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before the first request, or while one waits, from another thread."""
        closed = child_of(ECHO)
        closed.close()
        with pytest.raises(UnavailableError, match="splitter stops"):
            closed.ask(b"?", DEADLINE_S)
        child = child_of(f"{READY}heard()\nwhile True: time.sleep(9)")
        asked, exchange = threading.Event(), child._exchange  # noqa: SLF001 - when a child is about to be asked

        def noted(request: bytes, time_s: float) -> bytes:
            asked.set()
            return exchange(request, time_s)

        monkeypatch.setattr(child, "_exchange", noted)

        def close() -> None:
            asked.wait(DEADLINE_S)
            child.close()

        thread = threading.Thread(target=close)
        thread.start()
        with pytest.raises(EndedError):
            child.ask(b"?", DEADLINE_S)
        thread.join()
        with pytest.raises(UnavailableError, match="splitter stops"):
            child.ask(b"?", DEADLINE_S)

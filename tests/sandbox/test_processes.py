"""The sandbox's children: each ends when it is told to, and with everything that it has started."""

import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.sandbox.errors import SandboxError
from lab.sandbox.processes import Child, Nursery, last_lines, output_of
from lab.sandbox.waiting import wait_until

DEADLINE_S = 30.0


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    """Yield an empty one."""
    result = Nursery()
    yield result
    result.end()


def python(program: str) -> list[str]:
    """Return a command that runs a program of Python's."""
    return [sys.executable, "-c", program]


def started(nursery: Nursery, folder: Path, program: str, name: str = "it", **environment: str) -> Child:
    """Start a Python program."""
    return nursery.start(
        name, python(program), log=folder / f"{name}.log", environment=environment, directory=folder
    )


def printed(child: Child) -> str:
    """Return what a child has written, once it has."""
    return wait_until(lambda: child.log.read_text() or None, what="its log", deadline_s=DEADLINE_S)


class TestStart:
    def test_has_what_it_is_given(self, nursery: Nursery, tmp_path: Path) -> None:
        """Its folder, its variables and no others, its output in the log; nothing to read."""
        program = "import os, sys; print(os.getcwd(), sorted(os.environ), repr(sys.stdin.read()), flush=True)"
        child = started(nursery, tmp_path, program, LC_ALL="C")
        assert printed(child) == f"{tmp_path} ['LC_ALL'] ''\n"

    def test_leads_a_group_of_its_own(self, nursery: Nursery, tmp_path: Path) -> None:
        """A Ctrl-C in the terminal reaches us alone, and we end them in order."""
        child = started(
            nursery, tmp_path, "import os, time; print(os.getpgrp(), flush=True); time.sleep(600)"
        )
        assert int(printed(child)) == child.process.pid != os.getpgrp()


class TestEnd:
    def test_takes_what_it_has_started_along(self, nursery: Nursery, tmp_path: Path) -> None:
        """A program may have helpers."""
        program = (
            "import subprocess, sys, time\n"
            "one = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            "print(one.pid, flush=True)\ntime.sleep(600)"
        )
        helper = os.pidfd_open(int(printed(child := started(nursery, tmp_path, program))))
        child.end()
        poll = select.poll()
        poll.register(helper, select.POLLIN)
        assert poll.poll(DEADLINE_S * 1000)
        os.close(helper)
        child.end()

    def test_of_all_is_in_the_other_order(self, tmp_path: Path) -> None:
        """What was started last needs the others; twice is once."""
        nursery, ended = Nursery(), list[str]()

        class Noted(Child):
            def end(self) -> None:
                ended.append(self.name)
                super().end()

        for name in ("etcd", "server"):
            child = started(nursery, tmp_path, "import time; time.sleep(600)", name)
            nursery._children[-1] = Noted(child.name, child.process, child.log)  # noqa: SLF001
        nursery.end()
        nursery.end()
        assert ended == ["server", "etcd"]
        assert nursery.children == ()


class TestCheck:
    def test_of_one_that_has_ended_shows_its_last_words(self, nursery: Nursery, tmp_path: Path) -> None:
        """With its code and its log."""
        started(nursery, tmp_path, "import time; time.sleep(600)", "fine")
        nursery.check()
        child = started(nursery, tmp_path, "print('no port'); raise SystemExit(3)", "server")
        child.process.wait(DEADLINE_S)
        with pytest.raises(SandboxError, match=r"server ended with code 3\. Its log, .*, ends:\nno port"):
            nursery.check()

    def test_of_one_that_was_ended_says_nothing(self, nursery: Nursery, tmp_path: Path) -> None:
        """Somebody wanted it so."""
        child = started(nursery, tmp_path, "import time; time.sleep(600)")
        nursery.end_one(child)
        nursery.check()
        assert nursery.children == ()


class TestOutputOf:
    """What a command prints, or why there is none."""

    def test_is_what_it_prints(self) -> None:
        """What is given to it reaches it."""
        program = "import sys; print(sys.stdin.read().upper())"
        assert output_of(python(program), os.environ, what="echo", stdin="pod") == "POD\n"

    def test_a_command_that_fails(self) -> None:
        """Its own words are the error, from wherever it wrote them."""
        with pytest.raises(SandboxError, match=r"^kubectl get failed: no such pod$"):
            output_of(python("import sys; sys.exit('no such pod')"), os.environ, what="kubectl get")
        with pytest.raises(SandboxError, match=r"^kubectl get failed: on stdout$"):
            output_of(python("print('on stdout'); raise SystemExit(1)"), os.environ, what="kubectl get")

    def test_a_command_that_waits_for_ever(self) -> None:
        """It is ended, and named."""
        forever = python("import signal; signal.pause()")
        with pytest.raises(SandboxError, match=r"^kubectl delete split web has not ended after 0.2 s"):
            output_of(forever, os.environ, what="kubectl delete split web", deadline_s=0.2)


def test_the_last_lines_of_a_log(tmp_path: Path) -> None:
    """As many as are asked for; of none that is said."""
    log = tmp_path / "log"
    assert last_lines(log) == "(no log)"
    log.write_text("")
    assert last_lines(log) == "(empty log)"
    log.write_bytes(b"a\nb\n\xff\n")
    assert last_lines(log, 2) == "b\n\ufffd"

"""Commands that the sandbox waits for."""

import os
import sys
from pathlib import Path

import pytest

from splitter.sandbox.errors import SandboxError
from splitter.sandbox.processes import last_lines, output_of


def python(program: str) -> list[str]:
    """Return a command that runs a program of Python's."""
    return [sys.executable, "-c", program]


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


class TestLastLines:
    """The end of a log, for an error."""

    def test_of_a_log(self, tmp_path: Path) -> None:
        """So many as asked for; a log that is not there, or empty, is said."""
        log = tmp_path / "log"
        assert last_lines(log) == "(no log)"
        log.write_text("")
        assert last_lines(log) == "(empty log)"
        log.write_text("a\nb\nc\n")
        assert last_lines(log, 2) == "b\nc"

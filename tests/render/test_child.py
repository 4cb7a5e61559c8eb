"""The process that renders what others have written: what it answers, and what it cannot do."""

import json
import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from splitter.render.child import LENGTH, READY
from splitter.render.limits import MIB

HEAD = "apiVersion: apps/v1\nkind: Deployment\n"
PROGRAM = "import sys; from splitter.render.child import main; main(int(sys.argv[1]), int(sys.argv[2]))"


class Asked:
    """A child that is asked by its two ends, as `process` asks it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(os.getpid()), str(96 * MIB)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def answer(self) -> bytes:
        """Return the next thing that it says; nothing when it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.read(int.from_bytes(self.process.stdout.read(LENGTH)))

    def ask(self, text: str, **variables: object) -> Any:  # noqa: ANN401 - JSON
        """Return its answer about a template."""
        request = {"text": text, "where": "a.j2", "kind": "Deployment", "variables": variables, "cpu_s": 5}
        return self.send(json.dumps(request).encode())

    def send(self, request: bytes) -> Any:  # noqa: ANN401 - JSON
        """Return its answer to a request."""
        assert self.process.stdin is not None
        self.process.stdin.write(len(request).to_bytes(LENGTH) + request)
        self.process.stdin.flush()
        return json.loads(self.answer())


@pytest.fixture
def child() -> Iterator[Asked]:
    """Yield one that is ready."""
    result = Asked()
    with result.process:
        assert result.answer() == READY
        yield result
        result.process.kill()


class TestAnswers:
    def test_a_manifest(self, child: Asked) -> None:
        """One after the other, each with its own variables."""
        text = f"{HEAD}metadata: {{name: {{{{ source.name }}}}}}\n"
        for name in ("a", "\ud800", "b"):
            metadata = child.ask(text, source={"name": name})["manifest"]["metadata"]
            assert metadata == {"name": name}, "half of a surrogate pair too"

    def test_nothing_where_it_is_only_read(self, child: Asked) -> None:
        """Without variables nobody wants a manifest; a fault is one all the same."""
        for text, answer in ((HEAD, {"manifest": None}), ("{{", None)):
            request = {"text": text, "where": "a.j2", "kind": "Deployment", "variables": None, "cpu_s": 5}
            read = child.send(json.dumps(request).encode())
            assert read == answer or (answer is None and read["fault"][0] == 1)

    @pytest.mark.parametrize(
        ("text", "line", "what"),
        [
            (f"{HEAD}spec: {{{{ source.spec }}}}\n", 3, '"spec" is not there'),
            ("a: [", None, "the output is not YAML here"),
            ("apiVersion: v1\nkind: Secret\n", None, 'the output is of kind "v1/Secret"'),
            (f"{HEAD}spec: {{a: !!bool maybe}}\n", None, "the output is not YAML: 'maybe'"),
            (f"{HEAD}spec: {{a: !!float .inf}}\n", None, "Out of range float values"),
            (f"{{# {'x' * 9_000} #}}{{{{ a }}}}", 1, "'a' is undefined"),
        ],
    )
    def test_a_fault(self, child: Asked, text: str, line: int | None, what: str) -> None:
        """With the line where it is known; the child lives on."""
        at, why = child.ask(text, source={})["fault"]
        assert what in why
        assert at == line
        assert child.ask(HEAD, source={})["manifest"]["kind"] == "Deployment"

    def test_memory_that_is_not_there(self, child: Asked) -> None:
        """It is said with its line, by what was made before there was none."""
        assert child.ask(f"{HEAD}a: {{{{ '%1000000000d' % 1 }}}}\n", source={}) == {"memory": 3}


class TestEnds:
    def test_with_its_input(self, child: Asked) -> None:
        """Nobody asks any more."""
        assert child.process.stdin is not None
        child.process.stdin.close()
        assert child.process.wait(60) == 0

    def test_where_its_parent_is_another(self) -> None:
        """It has ended before this one has begun."""
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, "1", "0"], capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", "the parent is gone\n")

    def test_of_cpu_are_its_requests(self, child: Asked) -> None:
        """Each brings its limit, from what has been used by then."""
        child.ask(HEAD, source={})
        soft, hard = resource.prlimit(child.process.pid, resource.RLIMIT_CPU)
        assert 5 <= soft <= 15
        assert hard == resource.getrlimit(resource.RLIMIT_CPU)[1], "it can be raised for the next"


class TestWhatItHas:
    def test_gets_nothing(self) -> None:
        """Code that left the sandbox would open no file and no connection, and take no more memory."""
        program = textwrap.dedent(
            """
            import socket
            from splitter.render import child
            child._give_up(96 * 1024**2)

            def tried(what):
                try:
                    what()
                except (OSError, ValueError, MemoryError) as error:
                    return type(error).__name__
                return "done"

            print(tried(lambda: open("/etc/hostname")), tried(socket.socket), tried(lambda: bytes(2**28)))
            """
        )
        ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        assert ran.stdout.split() == ["OSError", "OSError", "MemoryError"]

    def test_knows_no_cluster(self) -> None:
        """What it imports speaks to nobody."""
        program = "import sys, splitter.render.child; print(*sys.modules)"
        ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        places = {name.partition(".")[0] for name in ran.stdout.split()}
        assert {"jinja2", "yaml", "splitter"} <= places
        assert not places & {
            "kubernetes",
            "kopf",
            "aiohttp",
            "http",
            "ssl",
            "socket",
            "asyncio",
            "subprocess",
        }

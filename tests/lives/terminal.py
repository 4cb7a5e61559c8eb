"""A person's shell in which splitter's verbs are typed, in this process and at the world's time."""

import asyncio
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from e2e.support.terminal import Answer
from splitter.command import main
from world.api import Api
from world.sandbox import InMemory


class Terminal:
    """The shell of an administrator."""

    def __init__(self, world: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
        self._world = world
        self._monkeypatch = monkeypatch

    def splitter(self, *arguments: str) -> Answer:
        """Run a verb and return what it said."""

        async def connect(*_: object, **__: object) -> Api:
            api = Api(self._world.cluster.objects, user="admin")
            api.missing = self._world.cluster.api.missing
            return api

        output, complaints = StringIO(), StringIO()
        with self._monkeypatch.context() as patched, redirect_stdout(output), redirect_stderr(complaints):
            patched.setattr(sys, "argv", ["splitter", *arguments])
            patched.setattr("splitter.connection.connect", connect)
            patched.setattr(asyncio, "run", self._world.run)
            code = _ended()
        return Answer(["splitter", *arguments], code, output.getvalue(), complaints.getvalue())


def _ended() -> int:
    """Run the command line to its end, and return its exit code."""
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0

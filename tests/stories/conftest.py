"""Every story has the one clock of its loop, and ends with its test."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from leaping import LeapingLoop
from stories.director import Story
from world import clock


@pytest.fixture(autouse=True)
def stories(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the story's loop answer what asks for the time; close at the end what a test has begun."""
    seconds = time.monotonic

    def monotonic(_: object = None) -> float:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # between two words of a story
            return seconds()
        return loop.time() if isinstance(loop, LeapingLoop) else seconds()

    monkeypatch.setattr(time, "monotonic", monotonic)
    monkeypatch.setattr(time, "clock_gettime", monotonic)
    clock.instants_of_the_loop(monkeypatch)
    yield
    while Story.open:
        Story.open[-1].close()

"""Every story has the one clock of its loop, ends with its test, and has each plan of splitter's judged."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from leaping import LeapingLoop
from splitter import reconciler
from splitter.core.model import Observation
from splitter.core.plan import Plan
from splitter.core.planner import plan
from stories.director import Story
from stories.reported import check_reported
from world import clock
from world.process import compiling_once


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

    def checked(observed: Observation, *asked: Any) -> Plan:  # noqa: ANN401 - as `plan`
        planned = plan(observed, *asked)
        check_reported(observed, planned)
        return planned

    monkeypatch.setattr(reconciler, "plan", checked)
    compiling_once(monkeypatch)
    yield
    while Story.open:
        Story.open[-1].close()

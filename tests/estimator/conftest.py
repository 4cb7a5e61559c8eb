"""Tests of the estimator over the world have a loop whose clock leaps (`leaping`), and no other clock."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from leaping import LeapingLoop
from world import clock


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give each of them such a loop."""
    return {"leaping": LeapingLoop}


@pytest.fixture
async def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the loop tell the time to all parts of splitter that ask."""
    clock.seconds_of_the_loop(monkeypatch)
    clock.instants_of_the_loop(monkeypatch)

"""Every test of the world has a loop whose clock leaps (`leaping`), and no other clock."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from leaping import LeapingLoop
from world import clock
from world.process import compiling_once


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001 - the hook's signature
    item: pytest.Item,  # noqa: ARG001
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give every test of the world such a loop."""
    return {"leaping": LeapingLoop}


@pytest.fixture(autouse=True)
async def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have whoever asks for the time be told the loop's."""
    clock.seconds_of_the_loop(monkeypatch)
    clock.instants_of_the_loop(monkeypatch)
    compiling_once(monkeypatch)

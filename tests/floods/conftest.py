"""Every test of this room has a loop whose clock leaps (`leaping`), and no other clock."""

import asyncio
import time
from collections.abc import Callable, Mapping

import pytest

from leaping import LeapingLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001 - the hook's signature
    item: pytest.Item,  # noqa: ARG001
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give every test of this room such a loop."""
    return {"leaping": LeapingLoop}


@pytest.fixture(autouse=True)
async def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have whoever asks for the time be told the loop's."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(time, "monotonic", loop.time)
    monkeypatch.setattr(time, "clock_gettime", lambda _: loop.time())

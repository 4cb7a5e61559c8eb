"""The watch waits by timers alone: its tests have a loop whose clock leaps (`leaping`)."""

import asyncio
from collections.abc import Callable, Mapping

from leaping import LeapingLoop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give each test such a loop."""
    return {"leaping": LeapingLoop}

"""Tests of what is all timers have a loop whose clock leaps (`leaping`)."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from leaping import LeapingLoop

# They wait for sockets and processes, which no clock of ours makes faster.
SERVED: Final = frozenset(
    {
        "test_events",
        "test_health_checks",
        "test_rendering",
        "test_status_writer",
        "test_template_validation",
    }
)


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001 - the hook's signature
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give the tests of the other modules such a loop."""
    if item.path.stem in SERVED:
        return {"real": asyncio.new_event_loop}
    return {"leaping": LeapingLoop}

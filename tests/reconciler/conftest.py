"""Every test of this room has a loop whose clock leaps (`leaping`)."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from leaping import LeapingLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001 - the hook's signature
    item: pytest.Item,  # noqa: ARG001
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give every test of this room such a loop."""
    return {"leaping": LeapingLoop}

"""The clock of the world is the only one of these stories."""

from world.conftest import one_clock, pytest_asyncio_loop_factories

__all__ = ["one_clock", "pytest_asyncio_loop_factories"]

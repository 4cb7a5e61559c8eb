"""The world does in each script what a real control plane did."""

from collections.abc import Iterator

import pytest

from world.conformance.memory import Memory
from world.conformance.recorded import recorded
from world.conformance.scene import play
from world.conformance.scripts import SCRIPTS


@pytest.fixture
def one_clock() -> None:
    """Leave the clock of the test alone: each world here has a loop of its own, and splitter is not there."""


@pytest.fixture
def ground() -> Iterator[Memory]:
    """Yield a world."""
    world = Memory()
    yield world
    world.close()


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_world_does_what_kubernetes_did(ground: Memory, name: str) -> None:
    """Notes, the lives of pods and the end are those that are recorded of a real control plane."""
    assert play(SCRIPTS[name], ground) == recorded()[name]


def test_all_scripts_are_recorded() -> None:
    """Each script has a record, and each record a script."""
    assert recorded().keys() == SCRIPTS.keys()

"""The world does in each script what a real control plane did."""

from collections.abc import Iterator

import pytest

from world.conformance.memory import Memory
from world.conformance.recorded import recorded
from world.conformance.scene import play
from world.conformance.scripts import SCRIPTS

# What the world does not do yet, and why. A script that passes has to leave this table.
NOT_YET: dict[str, str] = {
    "preemption": "the scheduler ends no pod for another",
    "daemonset_adopts_what_it_selects": "there is no DaemonSet controller",
}


@pytest.fixture
def one_clock() -> None:
    """Leave the clock of the test alone: each world here has a loop of its own, and splitter is not there."""


@pytest.fixture
def ground() -> Iterator[Memory]:
    """Yield a world."""
    world = Memory()
    yield world
    world.close()


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in NOT_YET])
def test_the_world_does_what_kubernetes_did(ground: Memory, name: str) -> None:
    """Notes, the lives of pods and the end are those that are recorded of a real control plane."""
    assert play(SCRIPTS[name], ground) == recorded()[name]


@pytest.mark.parametrize("name", NOT_YET)
def test_what_the_world_cannot_do_yet_is_listed_truly(ground: Memory, name: str) -> None:
    """A script in NOT_YET fails."""
    try:
        seen = play(SCRIPTS[name], ground)
    except Exception:  # noqa: BLE001 - it may fail in any way
        return
    assert seen != recorded()[name], f"{name} passes: take it out of NOT_YET"


def test_all_scripts_are_recorded() -> None:
    """Each script has a record, and each record a script."""
    assert recorded().keys() == SCRIPTS.keys()
    assert NOT_YET.keys() <= SCRIPTS.keys()

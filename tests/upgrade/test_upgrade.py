"""What a newer version has written down is left alone.

`make upgrade FROM=CHECKOUT` plays the way from another version to this one and back, with its own code.
"""

from contextlib import contextmanager

import pytest

from lab.fixtures.namespaces import open_shop
from lab.sandbox import Sandbox
from lab.upgrade.versions import NOW, Installation
from lab.upgrade.world import World

pytestmark = pytest.mark.campaign


def test_an_unknown_newer_state(installed: tuple[Sandbox, Installation]) -> None:
    """What a newer version has written is left exactly as it is, label or not; Events say what to do."""
    sandbox, installation = installed
    installation.run(NOW)
    opened = contextmanager(open_shop)
    with opened(sandbox, installation) as first, opened(sandbox, installation) as second:
        world = World(first, second)
        world.create()
        world.split()
        installation.stop()
        world.write_newer_format()
        before = world.versions()
        pods = world.pods()
        installation.run(NOW)
        world.reported_by_all("NewerState", "format 3")
        assert world.versions() == before
        first.unlabel()
        first.wait_posted()
        after = world.versions()
        assert {key for key in before if after.get(key) != before[key]} == {"first/Deployment/web"}
        assert world.pods() == pods

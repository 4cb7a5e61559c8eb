"""From the first version to this one and back: nothing restarts, nothing is lost.

What the first version leaves is kept in `v0_1`: its manifests, and the objects of workloads that it has split
in every mode. Here they are made again, as if it had just been stopped; what it writes when it comes back is
played from there too. `make upgrade FROM=CHECKOUT` plays it with that version's own code.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.fixtures.namespaces import open_shop
from lab.fixtures.placed import PLACES
from lab.fixtures.shop import JsonObject
from lab.sandbox import Sandbox
from lab.upgrade.state import replay
from lab.upgrade.versions import NOW, Installation, Version
from lab.upgrade.world import World, assert_promised

pytestmark = pytest.mark.campaign

HERE = Path(__file__).parent
FIRST = Version("0.1", HERE / "v0_1")
LEFT: dict[str, list[JsonObject]] = json.loads((HERE / "v0_1" / "state.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Sandbox]:
    """Yield a cluster that has nothing of splitter's, with machines of both pools."""
    with Sandbox.start(progress=print) as sandbox:
        sandbox.fleet.add("on-demand", 4)
        sandbox.fleet.add("spot", 4)
        yield sandbox


@pytest.fixture
def installed(cluster: Sandbox, tmp_path: Path) -> Iterator[Installation]:
    """Yield the installation; nothing is installed yet."""
    installation = Installation(cluster, tmp_path)
    try:
        yield installation
    finally:
        installation.end()


@pytest.fixture
def world(cluster: Sandbox, installed: Installation) -> Iterator[World]:
    """Yield what the first version has left, split and at rest, with its manifests and no controller."""
    installed.apply(FIRST)
    opened = contextmanager(open_shop)
    with opened(cluster, installed) as first, opened(cluster, installed) as second:
        made = World(first, second)
        replay(first, LEFT["first"])
        if PLACES:
            replay(second, LEFT["second"])
        made.wait_standing()
        yield made


def test_to_now_and_back(world: World, installed: Installation) -> None:
    """This version goes on where the first one stopped, then again after that one, and gives all back."""
    with world.watch() as watched:
        before = world.pods()
        states = world.states()
        installed.run(NOW)
        world.wait_reported(states)
        world.wait_split()
        assert world.pods() == before
        # Back: its CRD drops what it does not know, and its own status replaces ours, with all that it keeps.
        installed.stop()
        installed.apply(FIRST)
        world.report(LEFT)
        states = world.states()
        installed.run(NOW)
        world.wait_reported(states)
        world.wait_split()
        assert world.pods() == before
        world.give_back()
        assert_promised(watched)


def test_that_goes_on(world: World, installed: Installation) -> None:
    """What the first version has split is scaled and rolled as if this one had split it."""
    installed.run(NOW)
    world.wait_split()
    with world.watch() as watched:
        world.first.scale(8)
        world.wait_split(web=(2, 6))
        world.first.kubectl("set", "image", "deployment/web", "web=web:2")
        world.first.until(lambda: set(world.first.images()) == {"web:2"}, "both twins to run web:2")
        world.wait_split(web=(2, 6))
        assert_promised(watched)


def test_an_unknown_newer_state(world: World, installed: Installation) -> None:
    """What a newer version has written is left exactly as it is, label or not; Events say what to do."""
    installed.apply(NOW)
    world.write_newer_format()
    before = world.versions()
    pods = world.pods()
    installed.run(NOW)
    world.reported_by_all("NewerState", "format 2")
    assert world.versions() == before
    world.first.unlabel()
    world.first.wait_posted()
    after = world.versions()
    assert {key for key in before if after.get(key) != before[key]} == {"first/Deployment/web"}
    assert world.pods() == pods

"""The controller ends in the middle of whatever it does, and comes back: nothing is lost, nothing doubled.

While it is down nothing moves. The other tests' controller is used, and runs again afterwards. In
`test_crash_at_every_write.py` it is killed at each of its writes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lab.fixtures.nodes import spot_closed
from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet
from world.sandbox import Process

ASKED = {"splitter.io/on-demand-base": "2"}
# One at a time, so that there are many moments in which it can be killed.
REPLICAS, SURGE = 5, 1
MARK = "splitter.io/taken-over"


@pytest.fixture
def mortal(controller: Process) -> Iterator[Process]:
    """Yield the controller; it runs again afterwards."""
    yield controller
    if not controller.running:
        controller.start()


@pytest.fixture
def shop(shop: Shop, mortal: Process, fleet: Fleet) -> Shop:
    """Return a namespace with `web`, not split, all of it on on-demand."""
    assert mortal.running
    with spot_closed(fleet):  # else it might be split as soon as its pods have changed their owner
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    return shop


@dataclass(frozen=True)
class Counts:
    """Whose replicas there are, as far as splitter decides about it."""

    twins: int
    own: dict[str, int]  # by ReplicaSet
    parked: bool
    paused: bool
    mark: bool


def counts(shop: Shop) -> Counts:
    """Return the counts of now."""
    source, sets = shop.deployment(), shop.replica_sets()
    return Counts(
        twins=sum(shop.twins() or (0, 0)),
        own={rs["metadata"]["name"]: rs["spec"]["replicas"] for rs in sets},
        parked=not all(rs["metadata"]["ownerReferences"][0].get("controller") for rs in sets),
        paused=bool(source["spec"].get("paused")),
        mark=MARK in source["metadata"].get("annotations", {}),
    )


def _time_goes_by(shop: Shop, name: str) -> None:
    """Let the cluster live on for a while: another Deployment is rolled out and taken away."""
    shop.deploy(name, replicas=2)
    shop.delete(name)


class TestKilled:
    def test_turns_round(self, shop: Shop, mortal: Process) -> None:
        """Killed half-way, and the label removed before it is back: it gives back what it had taken."""
        before = shop.snapshot()
        with shop.watch() as watched:
            shop.label()
            shop.until(lambda: shop.deployment()["spec"].get("paused"), "half of the way")
            mortal.kill()
            shop.unlabel()
            mortal.start()
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
        assert shop.snapshot() == before


class TestStopped:
    def test_in_the_middle(self, shop: Shop, mortal: Process) -> None:
        """Told to end half-way, it ends in good order; nothing moves until it is back, then it goes on."""
        with shop.watch() as watched:
            shop.label()
            shop.until(lambda: shop.deployment()["spec"].get("paused"), "half of the way")
            assert mortal.stop() == 0
            before = counts(shop)
            assert shop.twins() != (2, 3)  # wherever on its way: machines may be busy
            _time_goes_by(shop, "cart")
            assert counts(shop) == before
            mortal.start()
            shop.wait_split(on_demand=2, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE

    def test_label_removed_while_down(self, shop: Shop, mortal: Process) -> None:
        """A label removed while it is down, which no watch will ever tell it, gives back after the start."""
        snapshot = shop.snapshot()
        shop.label()
        shop.wait_split(on_demand=2, spot=3)
        with shop.watch() as watched:
            assert mortal.stop() == 0
            shop.unlabel()
            before = counts(shop)
            _time_goes_by(shop, "cart")
            assert counts(shop) == before
            mortal.start()
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
        assert shop.snapshot() == snapshot

    def test_all_at_once_while_down(self, shop: Shop, mortal: Process) -> None:
        """Scaled, rolled and another one labelled while it is down: all is done after the start."""
        shop.label()
        shop.wait_split(on_demand=2, spot=3)
        assert mortal.stop() == 0
        with shop.watch() as watched:
            shop.scale(6)
            shop.set_image("web:2")
            shop.deploy("cart", replicas=3)
            shop.label("cart")
            assert shop.split("cart") is None
            mortal.start()
            shop.wait_split(on_demand=2, spot=4)
            shop.until(lambda: set(shop.images()) == {"web:2"}, "both twins to run web:2")
            shop.wait_split(on_demand=0, spot=3, name="cart")
            assert watched.lowest() >= REPLICAS
            assert watched.highest_asked() <= 6 + SURGE

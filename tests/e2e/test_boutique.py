"""A whole application of twelve Deployments through two spot outages, told by its recorded pods."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.checkout import ROOT
from lab.fixtures.shop import Shop, Snapshot, Watched
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant

pytestmark = pytest.mark.campaign

MANIFEST = Path(os.environ.get("SPLITTER_DATA", ROOT.parent / "shared" / "data")) / "online-boutique.yaml"
# maxSurge is left at Kubernetes' 25 %, which is 1 of 3: so the floor is N.
REPLICAS, SURGE, BASE = 3, 1, 1
NOTICE_S = 15.0


class Boutique:
    """The application, and what is asked of all its workloads at once."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        shop.kubectl("apply", "-f", str(MANIFEST))
        shop.kubectl("scale", "deployment", "--all", f"--replicas={REPLICAS}")
        shop.kubectl("annotate", "deployment", "--all", f"splitter.io/on-demand-base={BASE}")
        self.names = sorted(shop.deployments())
        self.each(shop.wait_rolled_out)
        self.before = self.snapshot()

    def each(self, do: Callable[[str], object]) -> None:
        """Do something for each workload, one after the other."""
        for name in self.names:
            do(name)

    def snapshot(self) -> dict[str, Snapshot]:
        """Return what must be the same again afterwards."""
        return {name: self._shop.snapshot(name) for name in self.names}

    def wait_split(self) -> None:
        """Wait until each workload has its base on on-demand and the rest on spot."""
        self.each(lambda name: self._shop.wait_split(BASE, REPLICAS - BASE, name))

    def wait_on_demand(self) -> None:
        """Wait until on-demand nodes hold all replicas of each workload."""
        self.each(
            lambda name: self._shop.until(
                lambda: self._shop.shape(name).on_demand >= REPLICAS, f"on-demand to hold all of {name}"
            )
        )


@pytest.mark.skipif(
    not MANIFEST.exists(), reason=f"there is no {MANIFEST.name}; SPLITTER_DATA names its folder"
)
def test_an_application_survives_the_loss_of_all_spot_nodes(shop: Shop, fleet: Fleet) -> None:
    """Announced, the loss of all spot nodes costs nobody a replica; unannounced, all are back at once."""
    boutique = Boutique(shop)
    spot = fleet.names("spot")
    with shop.record() as recorder:
        watched = {name: Watched(recorder, {"app": name}) for name in boutique.names}

        def lowest(since: Instant) -> dict[str, int]:
            by_name = {name: watched[name].lowest(since) for name in boutique.names}
            return {name: replicas for name, replicas in by_name.items() if replicas < REPLICAS}

        def highest(since: Instant) -> dict[str, int]:
            by_name = {name: watched[name].highest(since) for name in boutique.names}
            return {name: replicas for name, replicas in by_name.items() if replicas > REPLICAS + SURGE}

        labelled = Instant.now()
        shop.kubectl("label", "deployment", "--all", "splitter.io/split=enabled")
        boutique.wait_split()
        assert not lowest(labelled)
        assert not highest(labelled)

        announced = fleet.notice(spot, deadline_s=NOTICE_S)
        shop.until(lambda: _passed(announced, NOTICE_S), "the end of the notice")
        fleet.kill(spot)
        boutique.wait_on_demand()
        shop.until(lambda: shop.bound_to_vanished() == 0, "the pods of the vanished nodes to go")
        assert not lowest(announced)

        returned = Instant.now()
        fleet.restore(spot)
        boutique.wait_split()
        assert not lowest(returned)
        assert not highest(returned)

        fleet.kill(spot)
        boutique.wait_on_demand()
        shop.until(lambda: shop.bound_to_vanished() == 0, "the pods of the vanished nodes to go")

        returned = Instant.now()
        fleet.restore(spot)
        boutique.wait_split()
        assert not lowest(returned)
        assert not highest(returned)

        unlabelled = Instant.now()
        shop.kubectl("label", "deployment", "--all", "splitter.io/split-")
        boutique.each(shop.wait_given_back)
        assert not lowest(unlabelled)
        assert not highest(unlabelled)
    assert boutique.snapshot() == boutique.before
    assert shop.deployments() == set(boutique.names)


def _passed(since: Instant, seconds: float) -> bool:
    return time.monotonic() - since.monotonic_s >= seconds

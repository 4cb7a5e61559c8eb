"""The guard: `kubectl drain` evicts all pods of a node at once, and replacements come first."""

import pytest

from e2e.support.guard import DRAIN, N, keeps, split, uncordon, under
from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet

pytestmark = pytest.mark.e2e


def test_each_node_in_turn(shop: Shop, fleet: Fleet) -> None:
    """As in an upgrade of the cluster, on spot and on-demand: every drain ends, and nobody is missing."""
    split(shop, **{"splitter.io/evictions": "surge-first"})
    shop.until(lambda: keeps(shop) == N, "the guard")
    try:
        with shop.watch() as watched:
            for node in under(shop):
                shop.sandbox.kubectl("drain", node, *DRAIN)
                uncordon(shop, node)
                shop.wait_split(on_demand=2, spot=2)
            assert watched.lowest() >= N
    finally:
        for node in fleet.names():
            uncordon(shop, node)
    shop.until(lambda: keeps(shop) == N, "the guard to be at rest")

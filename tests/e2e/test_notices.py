"""What a cloud says about one machine, and what splitter makes of it, told by the recorded pods."""

import pytest

from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet
from lab.sandbox.machines import Notice

pytestmark = pytest.mark.e2e

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2


@pytest.fixture
def busy(shop: Shop) -> str:
    """Split 4 replicas into 1 + 3, and return the spot node that holds the most of them."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    nodes = [node for node in shop.nodes() if node.startswith("spot")]
    return max(nodes, key=nodes.count)


@pytest.mark.parametrize("notice", [Notice.TAINT, Notice.CONDITION, Notice.CORDON])
def test_a_notice_moves_replicas_and_its_end_brings_them_back(
    shop: Shop, fleet: Fleet, busy: str, notice: Notice
) -> None:
    """Replicas on an announced node are replaced before it goes; a withdrawn notice does no harm."""
    doomed = shop.nodes().count(busy)
    with shop.watch() as watched:
        fleet.notice(busy, notice)
        shop.until(lambda: shop.available_off(busy) >= REPLICAS, f"{REPLICAS} replicas beside {busy}")
        fleet.withdraw(busy)
        shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS
        assert watched.highest() <= REPLICAS + SURGE + doomed


def test_a_lost_kubelet_is_covered(shop: Shop, fleet: Fleet, busy: str) -> None:
    """A NotReady node's replicas count as gone; its pods are left alone, and serve again once it is back."""
    lost = shop.nodes().count(busy)
    with shop.watch() as watched:
        fleet.lose(busy, seen_at_once=True)
        shop.until(lambda: shop.available_off(busy) >= REPLICAS, f"{REPLICAS} replicas beside {busy}")
        assert watched.lowest() >= REPLICAS - lost
        assert watched.highest() <= REPLICAS + SURGE + lost
    with shop.watch() as watched:
        fleet.reconnect(busy)
        shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS

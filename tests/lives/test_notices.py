"""What a cloud says about one machine, and what splitter makes of it, told by the recorded pods."""

import pytest

from lab.fixtures.shop import Shop
from lab.sandbox import Instant
from lab.sandbox.fleet import Fleet
from lab.sandbox.machines import Notice

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2
# A replica is asked for, bound and ready.
STARTS_S = 10


@pytest.fixture
def busy(shop: Shop) -> str:
    """Split 4 replicas into 1 + 3, and return the spot node that holds the most of them."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    nodes = [node for node in shop.nodes() if node.startswith("spot")]
    return max(nodes, key=nodes.count)


def test_a_deleted_node_is_left_before_it_goes(shop: Shop, fleet: Fleet, busy: str) -> None:
    """A node that is being deleted (held by a finalizer) is emptied in time, and used again when back."""
    with shop.watch() as watched:
        fleet.notice(busy, Notice.DELETION)
        shop.until(lambda: shop.available_off(busy) >= REPLICAS, f"{REPLICAS} replicas beside {busy}")
        fleet.kill(busy)
        fleet.restore(busy)
        shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS


def test_a_notice_on_an_on_demand_node_moves_within_on_demand(shop: Shop, fleet: Fleet, busy: str) -> None:
    """On-demand machines are taken away too: what stands there is replaced on on-demand."""
    assert busy
    [doomed] = [node for node in shop.nodes() if node.startswith("on-demand")]
    with shop.watch() as watched:
        fleet.notice(doomed, Notice.TAINT)
        shop.until(lambda: shop.available_off(doomed) >= REPLICAS, f"{REPLICAS} replicas beside {doomed}")
        assert any(node.startswith("on-demand") and node != doomed for node in shop.nodes())
        status = shop.says(
            "OnDemandDoomed", "hold on-demand at 2, 1 wanted: 1 of 2 on-demand replicas are on"
        )
        assert (status["state"], status["onDemand"]["doomed"], status["spot"]["spec"]) == ("Held", 1, 3)
        assert [(one["name"], one["state"]) for one in status["nodes"]] == [(doomed, "Doomed")]
        raised = "scale on-demand 1 -> 2 (+1): 1 of 1 on-demand replicas are on doomed nodes"
        assert shop.reported("OnDemandDoomed") == raised
        fleet.kill(doomed)
        shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS


def test_all_on_demand_goes_while_spot_is_well(shop: Shop, fleet: Fleet, busy: str) -> None:
    """What stood there waits for a node, and the Split says whose it is; spot keeps what it has."""
    assert busy
    everywhere = fleet.names("on-demand")
    [its] = [node for node in shop.nodes() if node in everywhere]
    with shop.watch() as watched:
        # Its own node last: else a replacement may find one whose notice has not been written yet.
        fleet.notice([name for name in everywhere if name != its], Notice.TAINT)
        fleet.notice(its, Notice.TAINT)
        shop.says("OnDemandDoomed", "1 of 2 on-demand replicas are on doomed nodes")
        assert watched.lowest() >= REPLICAS
        fleet.kill(everywhere)
        short = shop.says("OnDemandShort", "spot has all of its 3 and takes no on-demand replica's place")
        assert (short["state"], short["spot"]["ready"], short["onDemand"]["pending"]) == ("Held", 3, 1)
        assert watched.lowest() >= 3
        fleet.restore(everywhere)
        shop.wait_split(on_demand=1, spot=3)


def test_an_outage_is_known_after_a_night_at_0(shop: Shop, fleet: Fleet, busy: str) -> None:
    """Scaled to 0 in an outage of spot, and up again in it: on-demand takes all at once."""
    everywhere = fleet.names("spot")
    shop.annotate(grace="5m")  # longer than the test waits
    fleet.kill(everywhere)
    shop.until(lambda: shop.available_off(busy) >= REPLICAS, "the loss to be covered")
    shop.scale(0)
    shop.until(lambda: not shop.pods(), "no pod")
    shop.scale(REPLICAS)
    shop.until(lambda: shop.available_off(busy) >= REPLICAS, "the outage to be covered again")
    fleet.restore(everywhere)
    shop.wait_split(on_demand=1, spot=3)


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


@pytest.mark.parametrize(("base", "waits_s"), [("0", 180), ("1", 0)])
def test_an_outage_that_began_at_0_is_a_shortage(shop: Shop, fleet: Fleet, base: str, waits_s: int) -> None:
    """Nothing was lost, so KEDA's first replica waits for spot as long as the grace; a base of 1 does not."""
    shop.deploy(replicas=0, surge=SURGE, annotations={"splitter.io/on-demand-base": base})
    shop.label()
    shop.annotate(grace="180s")
    shop.wait_steady()
    fleet.kill(fleet.names("spot"))
    began = Instant.now().monotonic_s
    shop.scale(1)
    shop.until(lambda: shop.shape().on_demand == 1, "the first replica to serve", 2 * 180)
    assert waits_s <= Instant.now().monotonic_s - began <= waits_s + STARTS_S

"""What spot has saved: beside the same replicas on on-demand, with prices and without."""

import pytest

from splitter.core.nodes.facts import CapacityClass, NodeState
from splitter.core.split_status.usage import Amount, Use
from splitter.plugin.core.savings import Prices, Saving, UnitPrice, pool_price, together, unit_price

HOUR = 3600
GIB = 1024
QUIET = Saving(
    {
        Use.ON_DEMAND: Amount(2 * HOUR, 1000 * HOUR, 2 * GIB * HOUR),
        Use.SPOT: Amount(8 * HOUR, 4000 * HOUR, 8 * GIB * HOUR),
        Use.DESIRED: Amount(10 * HOUR, 5000 * HOUR, 10 * GIB * HOUR),
    }
)
PRICES = Prices(UnitPrice(0.04, 0.005), UnitPrice(0.01, 0.001), "USD", "a list")


def node(name: str, *, spot: bool, cpu: int = 4000, memory_gib: int = 16) -> NodeState:
    """Return a node of a pool."""
    capacity = CapacityClass.SPOT if spot else CapacityClass.ON_DEMAND
    size = {"cpu": cpu, "memory": memory_gib * 1024**3}
    return NodeState(name=name, uid=name, capacity=capacity, allocatable=size)


class TestSaving:
    def test_without_prices(self) -> None:
        """Eight of ten replicas at 0.3: 4.4 of 10 is paid."""
        assert QUIET.ratio(None) == pytest.approx(1 - 4.4 / 10)
        assert QUIET.spot_share == 0.8
        assert QUIET.replicas(Use.SPOT) == 8

    def test_with_prices(self) -> None:
        """What is requested is what costs."""
        paid, all_on_demand = QUIET.money(PRICES)
        assert paid == pytest.approx(1 * 0.04 + 2 * 0.005 + 4 * 0.01 + 8 * 0.001)
        assert all_on_demand == pytest.approx(5 * 0.04 + 10 * 0.005)
        assert QUIET.ratio(PRICES) == pytest.approx(1 - paid / all_on_demand)

    def test_surge_can_cost_more_than_spot_saves(self) -> None:
        """Then the saving is below 0, and is told so."""
        used = {Use.ON_DEMAND: Amount(12), Use.DESIRED: Amount(10)}
        assert Saving(used).ratio(None) == pytest.approx(-0.2)

    def test_of_nothing(self) -> None:
        """A workload of no replicas saves no share of nothing; one without requests has no price."""
        assert Saving({}).ratio(None) is None
        assert Saving({}).spot_share is None
        assert Saving({Use.SPOT: Amount(5), Use.DESIRED: Amount(5)}).ratio(PRICES) is None

    def test_together(self) -> None:
        """Sums of uses, not of shares."""
        both = together([QUIET, Saving({Use.ON_DEMAND: Amount(10 * HOUR), Use.DESIRED: Amount(10 * HOUR)})])
        assert both.ratio(None) == pytest.approx(1 - 14.4 / 20)


class TestPrices:
    def test_a_machine_is_parted(self) -> None:
        """Its vCPUs and its memory together cost what it costs."""
        price = unit_price(0.2, node("a", spot=False))
        assert price is not None
        assert 4 * price.cpu + 16 * price.memory == pytest.approx(0.2)
        assert unit_price(0.2, node("a", spot=False, cpu=0, memory_gib=0)) is None

    def test_a_pool_is_the_average_by_size(self) -> None:
        """A large machine counts more; one of the other pool, or without a price, does not."""
        nodes = [
            node("small", spot=True),
            node("large", spot=True, cpu=12000, memory_gib=48),
            node("other", spot=False),
            node("unknown", spot=True),
        ]
        known = {
            "small": UnitPrice(0.04, 0.004),
            "large": UnitPrice(0.02, 0.002),
            "other": UnitPrice(9.0, 9.0),
        }
        price = pool_price(nodes, known, spot=True)
        assert price is not None
        assert price.cpu == pytest.approx((4 * 0.04 + 12 * 0.02) / 16)
        assert price.memory == pytest.approx((16 * 0.004 + 48 * 0.002) / 64)
        assert pool_price(nodes, {}, spot=True) is None

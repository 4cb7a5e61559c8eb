"""Computes what spot has saved, compared with the same replicas all on on-demand.

`splitter savings` adds it up. Without prices a replica on spot is taken to cost 0.3 of one on on-demand, and
only shares are told. With prices per vCPU and GiB, what pods request is what they cost.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from splitter.core.nodes.facts import NodeState
from splitter.core.split_status.usage import Amount, Amounts, Use

ASSUMED_SPOT_PRICE = 0.3
"""Of on-demand's price: what clouds' price lists show most of the time."""
_GIB_OF_VCPU = 0.134
"""What 1 GiB costs, in vCPUs: how the price of a machine is parted between the two."""
_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """What one vCPU and one GiB cost for an hour."""

    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Prices:
    """What both pools cost, and who says so."""

    on_demand: UnitPrice
    spot: UnitPrice
    currency: str
    source: str


@dataclass(frozen=True, slots=True)
class Saving:
    """What was used within some time, and what it saved."""

    used: Amounts

    @property
    def spot_share(self) -> float | None:
        """The share of the replicas' time on spot; None when nothing ran."""
        spot, on_demand = self.replicas(Use.SPOT), self.replicas(Use.ON_DEMAND)
        return spot / (spot + on_demand) if spot + on_demand else None

    def replicas(self, use: Use) -> float:
        """Return replica-hours."""
        return self._of(use).replicas / 3600

    def cpu(self, use: Use) -> float:
        """Return the hours of requested vCPUs."""
        return self._of(use).cpu / 3600 / 1000

    def memory(self, use: Use) -> float:
        """Return the hours of requested GiB."""
        return self._of(use).memory / 3600 / 1024

    def ratio(self, prices: Prices | None) -> float | None:
        """Return the share that was saved; negative where surge cost more than spot saved.

        None when nothing was asked for, or nothing that has a price.
        """
        if prices is not None:
            paid, all_on_demand = self.money(prices)
        else:
            paid = self.replicas(Use.ON_DEMAND) + ASSUMED_SPOT_PRICE * self.replicas(Use.SPOT)
            all_on_demand = self.replicas(Use.DESIRED)
        return 1 - paid / all_on_demand if all_on_demand else None

    def money(self, prices: Prices) -> tuple[float, float]:
        """Return what was paid, and what all replicas had cost on on-demand."""
        paid = self._cost(Use.ON_DEMAND, prices.on_demand) + self._cost(Use.SPOT, prices.spot)
        return paid, self._cost(Use.DESIRED, prices.on_demand)

    def _cost(self, use: Use, price: UnitPrice) -> float:
        return self.cpu(use) * price.cpu + self.memory(use) * price.memory

    def _of(self, use: Use) -> Amount:
        return self.used.get(use, Amount())


def together(savings: Iterable[Saving]) -> Saving:
    """Return the sum of several."""
    total: dict[Use, Amount] = {}
    for saving in savings:
        for use, amount in saving.used.items():
            total[use] = total.get(use, Amount()) + amount
    return Saving(total)


def unit_price(per_hour: float, node: NodeState) -> UnitPrice | None:
    """Return what a vCPU and a GiB of a machine cost; None of one without either."""
    cpu, memory = _size(node)
    whole = cpu + _GIB_OF_VCPU * memory
    return UnitPrice(per_hour / whole, _GIB_OF_VCPU * per_hour / whole) if whole > 0 else None


def pool_price(
    nodes: Iterable[NodeState], prices: Mapping[str, UnitPrice], *, spot: bool
) -> UnitPrice | None:
    """Return what a pool costs on average, by the size of its machines; None when no price is known."""
    cpu = memory = cpu_cost = memory_cost = 0.0
    for node in nodes:
        price = prices.get(node.name)
        if node.is_spot is not spot or price is None:
            continue
        has_cpu, has_memory = _size(node)
        cpu, memory = cpu + has_cpu, memory + has_memory
        cpu_cost, memory_cost = cpu_cost + has_cpu * price.cpu, memory_cost + has_memory * price.memory
    return UnitPrice(cpu_cost / cpu, memory_cost / memory) if cpu and memory else None


def _size(node: NodeState) -> tuple[float, float]:
    return node.allocatable.get("cpu", 0) / 1000, node.allocatable.get("memory", 0) / _GIB

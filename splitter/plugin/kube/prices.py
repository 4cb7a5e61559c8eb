"""Reads prices of nodes from a file, OpenCost or Prometheus. Only `savings` needs them.

OpenCost's forms: the assets of its API (https://opencost.io/docs/integrations/api), and its metrics
node_cpu_hourly_cost and node_ram_hourly_cost (https://opencost.io/docs/integrations/metrics).
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from splitter.core.errors import UNREADABLE, SplitterError
from splitter.core.nodes.facts import NodeState
from splitter.core.reasons import Reason
from splitter.kube.prometheus import NoAnswerError, Series, answer_of, series, without_credentials
from splitter.plugin.core.savings import UnitPrice, unit_price

_GIB = 1024**3
_INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_ZONE = "topology.kubernetes.io/zone"


class PricesError(SplitterError):
    """Prices that cannot be read or cannot be meant, with what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.INVALID_SETTINGS, without_credentials(message))


@dataclass(frozen=True, slots=True)
class _Listed:
    """One line of a price list; what it leaves open holds for any."""

    instance_type: str
    zone: str
    capacity_type: str
    per_hour: float

    def is_of(self, node: NodeState) -> bool:
        """Whether it is about a node."""
        own_type = next((node.labels[label] for label in _INSTANCE_TYPES if label in node.labels), "")
        capacity = "spot" if node.is_spot else "on-demand"
        return (
            self.instance_type == own_type
            and self.zone in {"", node.labels.get(_ZONE, "")}
            and self.capacity_type in {"", capacity}
        )

    @property
    def precision(self) -> int:
        """How specific the line is: the most specific line for a node counts."""
        return bool(self.zone) + bool(self.capacity_type)


def listed(path: Path, nodes: Iterable[NodeState]) -> tuple[dict[str, UnitPrice], str]:
    """Return the prices of nodes by a price list, and its currency.

    Raises PricesError when the list cannot be read, or has a price that is none.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, *UNREADABLE) as error:
        raise PricesError(f"the price list {path} cannot be read: {error}") from error
    lines = raw.get("nodes") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(lines, list):
        raise PricesError(f"the price list {path} has no list `nodes`. See docs/how-to/savings.md")
    rows = sorted((_row(path, one) for one in lines), key=lambda row: -row.precision)
    prices = {}
    for node in nodes:
        row = next((row for row in rows if row.is_of(node)), None)
        price = unit_price(row.per_hour, node) if row is not None else None
        if price is not None:
            prices[node.name] = price
    return prices, str(raw.get("currency") or "")[:8]


def _row(path: Path, raw: Any) -> _Listed:  # noqa: ANN401 - whatever the file holds
    known = {"instanceType", "zone", "capacityType", "perHour"}
    if not isinstance(raw, Mapping) or set(raw) - known or "instanceType" not in raw:
        raise PricesError(
            f"{path}: a line of `nodes` is {str(raw)[:80]!r}; it takes instanceType, perHour, and if you like"
            " zone and capacityType. The currency is one for the whole list"
        )
    zone, capacity = (str(raw.get(key) or "") for key in ("zone", "capacityType"))
    if capacity not in {"", "spot", "on-demand"}:
        raise PricesError(f"{path}: capacityType is {capacity[:40]!r}; it is spot or on-demand")
    per_hour = raw.get("perHour")
    if not isinstance(per_hour, int | float) or not _is_price(per_hour):
        raise PricesError(
            f"{path}: perHour of {raw['instanceType']} is {per_hour!r}; it is a number of 0 or more"
        )
    return _Listed(str(raw["instanceType"]), zone, capacity, float(per_hour))


async def from_opencost(address: str) -> dict[str, UnitPrice]:
    """Return the prices of nodes as OpenCost has them for the last day. Raises PricesError."""
    answer = await _asked(f"{address.rstrip('/')}/assets", {"window": "1d", "accumulate": "true"})
    data = answer.get("data")
    sets = data if isinstance(data, list) else [data]
    prices = {}
    for asset in (one for assets in sets if isinstance(assets, Mapping) for one in assets.values()):
        try:
            if asset["type"] != "Node":
                continue
            cpu = asset["cpuCost"] / asset["cpuCoreHours"]
            memory = asset["ramCost"] / (asset["ramByteHours"] / _GIB)
            name = str(asset["properties"]["name"])
        except (KeyError, TypeError, ArithmeticError):
            continue  # a node that has only just come
        prices[name] = UnitPrice(*_checked(address, name, cpu, memory))
    return _any(prices, address, "assets of type Node")


async def from_prometheus(address: str) -> dict[str, UnitPrice]:
    """Return the prices of nodes as OpenCost's metrics have them now. Raises PricesError."""
    cpu, memory = [
        {one.labels.get("node", ""): one.value for one in await _series(address, f"max by (node) ({metric})")}
        for metric in ("node_cpu_hourly_cost", "node_ram_hourly_cost")
    ]
    prices = {
        name: UnitPrice(*_checked(address, name, cpu[name], memory[name]))
        for name in cpu
        if name and name in memory
    }
    return _any(prices, address, "metric node_cpu_hourly_cost")


async def _series(address: str, query: str) -> list[Series]:
    try:
        return await series(address, query)
    except NoAnswerError as error:
        raise PricesError(f"no prices from {error}") from error


async def _asked(url: str, query: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        return await answer_of(url, query)
    except NoAnswerError as error:
        raise PricesError(f"no prices from {error}") from error


def _checked(address: str, name: str, cpu: float, memory: float) -> tuple[float, float]:
    if not (_is_price(cpu) and _is_price(memory)):
        raise PricesError(f"{address} has a price of {cpu} for a vCPU and {memory} for a GiB of node {name}")
    return cpu, memory


def _is_price(raw: float) -> bool:
    return not isinstance(raw, bool) and 0 <= raw <= sys.float_info.max


def _any(prices: dict[str, UnitPrice], address: str, what: str) -> dict[str, UnitPrice]:
    if not prices:
        raise PricesError(f"{address} answers, and has no {what}. Is it OpenCost's?")
    return prices

"""Prices of nodes, of a list or of OpenCost: what is no price is said, and never used."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from splitter.core.nodes.facts import CapacityClass, NodeState
from splitter.kube.prometheus import NoAnswerError, Series
from splitter.plugin.core.savings import UnitPrice
from splitter.plugin.kube import prices
from splitter.plugin.kube.prices import PricesError, from_opencost, from_prometheus, listed

GIB = 1024**3
ADDRESS = "http://costs:9003"
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def node(name: str, *, spot: bool = False, memory: int = 0, **labels: str) -> NodeState:
    """Return a node of one vCPU without memory, which costs what its vCPU costs."""
    capacity = CapacityClass.SPOT if spot else CapacityClass.ON_DEMAND
    keys = {"type": "node.kubernetes.io/instance-type", "zone": "topology.kubernetes.io/zone"}
    known = {keys.get(key, key): value for key, value in {"type": "m6", "zone": "a", **labels}.items()}
    return NodeState(name, name, capacity, labels=known, allocatable={"cpu": 1000, "memory": memory})


def plain(result: Mapping[str, UnitPrice]) -> dict[str, object]:
    """Return prices of a vCPU and a GiB, to compare with."""
    return {name: pytest.approx((price.cpu, price.memory)) for name, price in result.items()}


def written(folder: Path, text: str) -> Path:
    """Return a price list."""
    path = folder / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    return path


class TestAList:
    LIST = """
currency: EUR
nodes:
- {instanceType: m6, perHour: 8}
- {instanceType: m6, zone: a, perHour: 4}
- {instanceType: m6, capacityType: spot, perHour: 2}
- {instanceType: m6, capacityType: spot, zone: a, perHour: 1}
- {instanceType: m6, capacityType: on-demand, zone: c, perHour: 16}
"""

    @pytest.mark.parametrize(
        ("seen", "per_hour"),
        [
            (node("n", spot=True), 1),
            (node("n", spot=True, zone="b"), 2),
            (node("n", zone="a"), 4),
            (node("n", zone="b"), 8),
            (node("n", zone="c"), 16),
            (node("n", spot=True, zone="c"), 2),
            (node("n", type="c7"), None),
        ],
    )
    def test_the_line_that_says_most_counts(
        self, tmp_path: Path, seen: NodeState, per_hour: int | None
    ) -> None:
        """One of another type, zone or capacity is not about a node."""
        result, currency = listed(written(tmp_path, self.LIST), [seen])
        assert plain(result) == ({} if per_hour is None else {"n": (per_hour, 0.134 * per_hour)})
        assert currency == "EUR"

    def test_what_is_left_empty_holds_for_any(self, tmp_path: Path) -> None:
        """An empty value in YAML is null, and not the zone `None`."""
        text = "currency:\nnodes:\n- instanceType: m6\n  zone:\n  capacityType:\n  perHour: 0\n"
        assert listed(written(tmp_path, text), [node("n")]) == ({"n": UnitPrice(0, 0)}, "")

    def test_the_older_label_of_the_type(self, tmp_path: Path) -> None:
        """Where the newer one is missing."""
        old = NodeState(
            "n",
            "n",
            CapacityClass.ON_DEMAND,
            labels={"beta.kubernetes.io/instance-type": "m6"},
            allocatable={"cpu": 2000},
        )
        sizeless = NodeState("x", "x", CapacityClass.ON_DEMAND, labels=old.labels)
        text = "nodes: [{instanceType: m6, perHour: 1}]"
        result, _ = listed(written(tmp_path, text), [old, sizeless])
        assert plain(result) == {"n": (0.5, 0.067)}

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("nodes: [{instanceType: a, perHour: -1}]", "perHour of a is -1; it is a number of 0 or more"),
            ("nodes: [{instanceType: a}]", "perHour of a is None"),
            ("nodes: [{instanceType: a, perHour: '1'}]", "perHour of a is '1'"),
            ("nodes: [{instanceType: a, perHour: true}]", "perHour of a is True"),
            ("nodes: [{instanceType: a, perHour: .inf}]", "perHour of a is inf"),
            ("nodes: [{instanceType: a, perHour: .nan}]", "perHour of a is nan"),
            (f"nodes: [{{instanceType: a, perHour: 1{'0' * 400}}}]", "it is a number of 0 or more"),
            ("nodes: [{instanceType: a, perHour: 1, currency: EUR}]", "one for the whole list"),
            ("nodes: [{perHour: 1}]", "it takes instanceType, perHour"),
            ("nodes: [x]", "it takes instanceType, perHour"),
            ("nodes: [{instanceType: a, perHour: 1, capacityType: cheap}]", "it is spot or on-demand"),
            ("nodes: {instanceType: a}", "has no list `nodes`"),
            ("prices: []", "has no list `nodes`"),
            ("[]", "has no list `nodes`"),
            ("{", "cannot be read"),
            ("currency: 2026-99-99", "cannot be read"),
            ("nodes: !!bool maybe", "cannot be read"),
        ],
    )
    def test_a_bad_one_is_told(self, tmp_path: Path, text: str, why: str) -> None:
        """And none of its prices is used."""
        with pytest.raises(PricesError) as caught:
            listed(written(tmp_path, text), [])
        assert why in str(caught.value)

    def test_one_that_is_not_there(self, tmp_path: Path) -> None:
        """Its name, and why."""
        with pytest.raises(PricesError, match=r"nowhere\.yaml cannot be read: .*No such file"):
            listed(tmp_path / "nowhere.yaml", [])


def asset(name: str, cpu: Any = 1.0, memory: Any = 0.5, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - of any kind
    """Return a node of OpenCost's, of 2 vCPUs and 4 GiB for ten hours, at these prices."""
    sums = {"cpuCost": 20.0 * cpu, "cpuCoreHours": 20.0, "ramCost": 40 * memory, "ramByteHours": 40.0 * GIB}
    return {"type": "Node", "properties": {"name": name}, **sums, **more}


class TestOpenCost:
    @pytest.fixture(autouse=True)
    def _answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Answer with what the test lays down; nobody is asked."""
        self.data: object = []
        self.asked: list[tuple[str, Mapping[str, str]]] = []

        async def answer_of(url: str, query: Mapping[str, str]) -> Mapping[str, Any]:
            self.asked.append((url, query))
            if isinstance(self.data, Exception):
                raise self.data
            return {"code": 200, "data": self.data}

        monkeypatch.setattr(prices, "answer_of", answer_of)

    def priced(self, data: object) -> dict[str, UnitPrice]:
        """Return the prices in an answer."""
        self.data = data
        return asyncio.run(from_opencost(f"{ADDRESS}/"))

    @pytest.mark.parametrize("many", [True, False])
    def test_its_assets_of_the_last_day(self, *, many: bool) -> None:
        """Newer versions answer with a list of sets, older ones with one set."""
        assets = {"a": asset("n", 0.04, 0.005)}
        assert plain(self.priced([assets, None] if many else assets)) == {"n": (0.04, 0.005)}
        assert self.asked == [(f"{ADDRESS}/assets", {"window": "1d", "accumulate": "true"})]

    @pytest.mark.parametrize(
        "other",
        [
            {"type": "Disk"},
            {},
            None,
            5,
            [],
            asset("new", cpuCoreHours=0.0),
            asset("new", ramByteHours=0),
            asset("new", cpuCost="1"),
            asset("new", properties=None),
            asset("new", cpuCost=10**400),
        ],
    )
    def test_what_is_no_node_has_no_price(self, other: object) -> None:
        """Nor one that has only just come; the others have theirs."""
        assert self.priced([{"a": other, "b": asset("n")}]) == {"n": UnitPrice(1.0, 0.5)}

    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (None, "answers, and has no assets of type Node"),
            ([], "answers, and has no assets of type Node"),
            ("x", "answers, and has no assets of type Node"),
            ({"a": asset("n", -1.0)}, "has a price of -1.0 for a vCPU and 0.5 for a GiB of node n"),
            ({"a": asset("n", 1.0, float("nan"))}, "and nan for a GiB of node n"),
            (NoAnswerError(f"{ADDRESS}/assets: 500"), f"no prices from {ADDRESS}/assets: 500"),
            (NoAnswerError("http://me:secret@costs: 500"), "no prices from http://…@costs: 500"),
        ],
    )
    def test_a_bad_answer_is_told(self, data: object, why: str) -> None:
        """Something else listens there, or it is broken; without the password of the address."""
        with pytest.raises(PricesError) as caught:
            self.priced(data)
        assert why in str(caught.value)


class TestPrometheus:
    @staticmethod
    def priced(
        monkeypatch: pytest.MonkeyPatch, cpu: dict[str, float], memory: dict[str, float]
    ) -> dict[str, UnitPrice]:
        """Return the prices where the two metrics say this, by node."""

        async def series(address: str, query: str) -> list[Series]:
            assert address == ADDRESS
            if not cpu:
                raise NoAnswerError(f"{address}: 500")
            values = {
                "max by (node) (node_cpu_hourly_cost)": cpu,
                "max by (node) (node_ram_hourly_cost)": memory,
            }
            return [
                Series({"node": name} if name else {}, NOON, value) for name, value in values[query].items()
            ]

        monkeypatch.setattr(prices, "series", series)
        return asyncio.run(from_prometheus(ADDRESS))

    def test_both_metrics_by_node(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A series of no node, and a node of which one is not known, have no price."""
        cpu, memory = {"a": 0.04, "b": 0.02, "": 9.0}, {"a": 0.005, "c": 0.001, "": 9.0}
        assert self.priced(monkeypatch, cpu, memory) == {"a": UnitPrice(0.04, 0.005)}

    @pytest.mark.parametrize(
        ("cpu", "why"),
        [
            ({"b": 1.0}, "answers, and has no metric node_cpu_hourly_cost"),
            ({"a": float("inf")}, "has a price of inf for a vCPU"),
            ({}, f"no prices from {ADDRESS}: 500"),
        ],
    )
    def test_a_bad_answer_is_told(
        self, monkeypatch: pytest.MonkeyPatch, cpu: dict[str, float], why: str
    ) -> None:
        """As OpenCost's."""
        with pytest.raises(PricesError) as caught:
            self.priced(monkeypatch, cpu, {"a": 0.005})
        assert why in str(caught.value)

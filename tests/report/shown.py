"""What Prometheus would read, as plain data."""

from collections.abc import Iterable
from dataclasses import replace

from prometheus_client import REGISTRY, Metric

from splitter.core.names import Key
from splitter.core.nodes.facts import CapacityClass
from splitter.core.reasons import Reason
from splitter.core.split_status import PoolCounts
from splitter.core.split_status.usage import Amount, Use
from splitter.report import metrics
from splitter.report.workloads import Figures

Labels = frozenset[tuple[str, str]]


def series(families: Iterable[Metric], name: str) -> dict[Labels, float]:
    """Return the samples of one name by their labels."""
    return {
        frozenset(sample.labels.items()): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def value(families: Iterable[Metric], name: str, /, **labels: str) -> float | None:
    """Return the one sample of this name that has these labels (and maybe more), None without one."""
    collected = [value for key, value in series(families, name).items() if labels.items() <= set(key)]
    assert len(collected) <= 1, f"{name} has {len(collected)} samples with {labels}"
    return collected[0] if collected else None


def figures(**fields: object) -> Figures:
    """Return the figures of a quiet life: 10 replicas, 3 on on-demand, 7 on spot."""
    made: dict[str, object] = {
        "state": "Steady",
        "reason": "Balanced",
        "desired": 10,
        "ready": 10,
        "cover": 0,
        "on_demand": counts(3),
        "spot": counts(7),
        "ready_on_spot": 7,
        "used": {},
        "held": {Use.ON_DEMAND: Amount(3, 300, 96), Use.SPOT: Amount(7, 700, 224), Use.DESIRED: Amount(10)},
        "guarded": 9,
    }
    return Figures(**{**made, **fields})  # type: ignore[arg-type]


def counts(number: int, **fields: int) -> PoolCounts:
    """Return the counts of a pool that has what it wants."""
    return replace(PoolCounts(wanted=number, spec=number, ready=number), **fields)


def everything() -> list[Metric]:
    """Return all families that splitter serves, each with samples of all its labels."""
    key = Key("Deployment", "shop", "every")
    metrics.workloads.show(key, figures())
    metrics.workloads.refuse(key, Reason.STRATEGY_RECREATE.value)
    metrics.workloads.trouble(key, [Reason.NOT_READY.value])
    metrics.count_request("get", 200, 0.01)
    metrics.count_nodes(lambda _: 1)
    watches = metrics.Watches(lambda: {"pods": 0}, lambda: {("pods", "shop"): 1})
    assert len(CapacityClass) == len(series(REGISTRY.collect(), "splitter_nodes"))
    try:
        return [
            family
            for family in (*REGISTRY.collect(), *watches.collect())
            if family.name.startswith("splitter_")
        ]
    finally:
        metrics.workloads.forget(key)


def served() -> dict[str, tuple[str, frozenset[str]]]:
    """Return what splitter serves: name -> type, labels."""
    return {
        family.name + ("_total" if family.type == "counter" else ""): (
            family.type,
            frozenset(label for sample in family.samples for label in sample.labels) - {"le"},
        )
        for family in everything()
    }

"""Prometheus metrics, keyed by the source's namespace and name.

The reconciler counts here; `operator` serves them. Names end in their unit. A workload's series go
when its Split goes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from splitter import __version__
from splitter.core.model import Key, Note
from splitter.core.nodes import CapacityClass

_WORKLOAD = ("namespace", "name")

replicas = Gauge(
    "splitter_replicas",
    "Replicas of a pool: wanted, spec, ready, doomed, pending",
    (*_WORKLOAD, "pool", "count"),
)
cover_replicas = Gauge("splitter_cover_replicas", "On-demand replicas standing in for spot", _WORKLOAD)
refused = Gauge(
    "splitter_refused",
    "1 for a labelled workload that splitter does not split, or would not split today, by reason",
    (*_WORKLOAD, "reason"),
)
troubles = Gauge(
    "splitter_troubles",
    "1 for a split workload whose replicas do not run for another reason than missing nodes, by reason",
    (*_WORKLOAD, "reason"),
)
decisions_total = Counter("splitter_decisions_total", "Decisions carried out, by reason", ("reason",))
reconcile_seconds = Histogram(
    "splitter_reconcile_seconds",
    "Duration of one pass, writes included",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
nodes = Gauge("splitter_nodes", "Nodes by how they are paid for: spot, on-demand, unknown", ("capacity",))
queue_keys = Gauge("splitter_queue_keys", "Workloads that wait for a pass")
errors_total = Counter("splitter_reconcile_errors_total", "Passes that ended with an error", ("kind",))
build_info = Gauge("splitter_build_info", "Always 1; the version is the label", ("version",))
build_info.labels(__version__).set(1)


def show(key: Key, status: Mapping[str, Any]) -> None:
    """Show one workload's counts, as its Split's status has them."""
    for pool, field in (("on-demand", "onDemand"), ("spot", "spot")):
        for count, number in status[field].items():
            replicas.labels(key.namespace, key.name, pool, count).set(number)
    cover_replicas.labels(key.namespace, key.name).set(status["cover"])


def count_nodes(count: Callable[[CapacityClass], int]) -> None:
    """Show how many nodes there are of each capacity class, counted whenever somebody asks."""
    for capacity in CapacityClass:
        nodes.labels(capacity.value).set_function(partial(count, capacity))


def show_refusal(key: Key, objection: Note | None) -> None:
    """Show why one workload is refused, or that it is not; it has one reason at a time."""
    _show_reasons(refused, key, [objection] if objection is not None else [])


def show_troubles(key: Key, notes: Sequence[Note]) -> None:
    """Show what is wrong with one workload's replicas; it may have several reasons at a time."""
    _show_reasons(troubles, key, notes)


def _show_reasons(gauge: Gauge, key: Key, notes: Sequence[Note]) -> None:
    gauge.remove_by_labels({"namespace": key.namespace, "name": key.name})
    for note in notes:
        gauge.labels(key.namespace, key.name, note.reason.value).set(1)


def forget(key: Key) -> None:
    """Drop the series of a workload that is no longer split; none may be there."""
    for gauge in (replicas, cover_replicas, troubles):
        gauge.remove_by_labels({"namespace": key.namespace, "name": key.name})

"""Prometheus metrics of the process; `workloads` has those of each workload.

The reconciler and the queue count here, `operator` hands in what can only be asked when a scrape comes, and
serves it all. Names end in their unit; every label's values are a closed set, but for the workloads' own
names, and those go with the workload (`workloads`). Everything begins at 0 with the process
(docs/reference/metrics.md, "After a restart").
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, Metric, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from splitter import __version__
from splitter.core.model import Observation
from splitter.core.nodes.facts import CapacityClass
from splitter.core.reasons import Reason
from splitter.core.split_status import SplitStatus
from splitter.report.workloads import Figures, Workloads

disable_created_metrics()  # type: ignore[no-untyped-call]  # nobody asks when a counter began; it doubles the series

# From the goal (a quarter of a second) in both directions, up to the shortest notice that any cloud gives.
_REACTIONS_S = (0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_REQUESTS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_PASSES_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)

REACTIONS = (Reason.SPOT_INTERRUPTED, Reason.SPOT_LOST, Reason.ON_DEMAND_DOOMED)
"""The answers to a node that goes: how long they took is what splitter is judged by."""

workloads = Workloads()
REGISTRY.register(workloads)

reaction_seconds = Histogram(
    "splitter_reaction_seconds",
    "From the moment in which splitter heard that a node goes to its last write that replaces replicas there",
    ("reason",),
    buckets=_REACTIONS_S,
)
reconcile_seconds = Histogram(
    "splitter_reconcile_seconds", "Duration of one reconcile, writes included", buckets=_PASSES_S
)
errors_total = Counter(
    "splitter_reconcile_errors_total",
    "Reconciles that ended with an error: its HTTP status, or bug",
    ("code",),
)
queue_keys = Gauge("splitter_queue_keys", "Workloads that wait for a reconcile")
requests_total = Counter(
    "splitter_api_requests_total",
    "Requests to the API server, by verb and HTTP status (0: no answer)",
    ("verb", "code"),
)
request_seconds = Histogram(
    "splitter_api_request_seconds",
    "Until the first byte of the API server's answer",
    ("verb",),
    buckets=_REQUESTS_S,
)
events_total = Counter(
    "splitter_events_total", "Events: created, repeated in a series, refused, dropped", ("outcome",)
)
nodes = Gauge("splitter_nodes", "Nodes by how they are paid for: spot, on-demand, unknown", ("capacity",))
hot_nodes = Gauge("splitter_hot_nodes", "Nodes that are hot by real use, for a workload that asks for relief")
relief_paused = Gauge(
    "splitter_relief_paused", "1 while relief is asked for and nothing moves anywhere; the Splits say why"
)
leader = Gauge("splitter_leader", "1 in the process that may write, 0 in one that stands by")
build_info = Gauge("splitter_build_info", "Always 1; the version is the label", ("version",))
build_info.labels(__version__).set(1)
for _reason in REACTIONS:
    reaction_seconds.labels(_reason.value)
errors_total.labels("bug")
for _outcome in ("created", "repeated", "refused", "dropped"):
    events_total.labels(_outcome)


def show(observed: Observation, status: SplitStatus) -> None:
    """Show one workload's counts, as its Split's status has them, and where its pods stand.

    A Split that only reports a refusal has no counts of its own to show.
    """
    if observed.split is None or not observed.split.takes_over:
        workloads.unsplit(observed.key)
        return
    pods = [pod for rs in observed.holders for pod in rs.pods]
    usage = status.usage
    workloads.show(
        observed.key,
        Figures(
            state=status.state,
            reason=status.reason,
            desired=status.desired,
            ready=status.ready,
            cover=status.cover,
            on_demand=status.on_demand,
            spot=status.spot,
            ready_on_spot=sum(pod.available and pod.on_spot for pod in pods),
            used=usage.at(observed.now) if usage is not None else {},
            held=usage.held if usage is not None else {},
            guarded=next((one.min_available for one in observed.budgets if one.is_ours), None),
        ),
    )


def reacted(reason: Reason, took_s: float) -> None:
    """Count an answer to a node that goes; other decisions are in no hurry and not counted."""
    if reason in REACTIONS:
        reaction_seconds.labels(reason.value).observe(took_s)


def leads(*, now: bool) -> None:
    """Show whether this process may write; one that may not shows no workloads, their leader does."""
    leader.set(now)
    if not now:
        workloads.clear()
        relief(0, paused=False)


def relief(hot: int, *, paused: bool) -> None:
    """Show what the last look at real use has found."""
    hot_nodes.set(hot)
    relief_paused.set(paused)


def count_request(verb: str, status: int, took_s: float) -> None:
    """Count one request to the API server; `status` 0 is one that nobody answered."""
    requests_total.labels(verb, str(status)).inc()
    request_seconds.labels(verb).observe(took_s)


def count_nodes(count: Callable[[CapacityClass], int]) -> None:
    """Show how many nodes there are of each capacity class, counted whenever somebody asks."""
    for capacity in CapacityClass:
        nodes.labels(capacity.value).set_function(partial(count, capacity))


class Watches(Collector):
    """How often the watch of each kind had to begin anew, and which fail; asked of whoever knows."""

    def __init__(
        self, restarts: Callable[[], Mapping[str, int]], failing: Callable[[], Mapping[tuple[str, str], int]]
    ) -> None:
        self._restarts, self._failing = restarts, failing

    def collect(self) -> Iterable[Metric]:
        """Return one series a kind, such as `pods`."""
        family = CounterMetricFamily(
            "splitter_watch_restarts",
            "Times that a watch broke off, or had to begin with a new list, by kind",
            labels=("resource",),
        )
        for resource, number in self._restarts().items():
            family.add_metric((resource,), number)
        yield family
        gauge = GaugeMetricFamily(
            "splitter_watches_failing",
            "Watches that cannot list, so that nothing is lowered in their namespace (empty: anywhere)",
            labels=("resource", "watched_namespace"),
        )
        for (resource, namespace), number in self._failing().items():
            gauge.add_metric((resource, namespace), number)
        yield gauge

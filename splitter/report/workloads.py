"""Prometheus metrics of each workload: one collector instead of one gauge for each figure.

The reconciler (through `metrics`) shows what a reconcile saw; a scrape reads it, in a thread of its own,
whenever it comes. So the series of a workload go at once with the workload, and the counters of seconds run
on between two reconciles, which may lie minutes apart. A scrape only ever reads tallies that are replaced
whole, never changed: no lock, and nothing that a reconcile could wait for.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from struct import Struct

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from splitter.core.names import Key
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.core.split_status import PoolCounts
from splitter.core.split_status.usage import Amount, Amounts, Use, grown

_POOLS = ((Pool.ON_DEMAND.value, Use.ON_DEMAND), (Pool.SPOT.value, Use.SPOT))
# Three numbers for each use: first what was used, then what is held.
_SPENT = Struct(f"<{2 * 3 * len(Use)}q")
_PLACES = [[(use, 3 * (half * len(Use) + at)) for at, use in enumerate(Use)] for half in range(2)]
_PACKED: Amounts = {}  # one for all
LABELS = ("namespace", "kind", "name")
# Counted from 0: a counter that begins at 1 hides its first step from `increase`.
_LOSSES = (Reason.SPOT_INTERRUPTED.value, Reason.SPOT_LOST.value)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one reconcile saw of a workload that is split. Counts are replicas."""

    state: str
    reason: str
    desired: int
    ready: int
    cover: int
    on_demand: PoolCounts
    spot: PoolCounts
    ready_on_spot: int  # by the node, not by the twin
    used: Amounts  # what it has used until this reconcile
    held: Amounts  # what it holds since then
    guarded: int | None = None  # how many pods splitter's PodDisruptionBudget keeps; None without one


@dataclass(frozen=True, slots=True)
class _Tally:
    """What is known of one workload, and what it has added up to until `at_s`."""

    at_s: float
    figures: Figures | None = None
    cover_s: float = 0.0
    shown_s: float = 0.0  # when the figures were seen
    spent: bytes = b""  # what was used by then, and what is held since: packed, there are very many
    decisions: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""
    troubles: tuple[str, ...] = ()

    def used(self, now_s: float) -> Amounts:
        """Return what the workload has used by now; until the next reconcile it holds what it held."""
        if not self.spent:
            return {}
        numbers = _SPENT.unpack(self.spent)
        used, held = ({use: Amount(*numbers[at : at + 3]) for use, at in places} for places in _PLACES)
        return grown(used, held, max(0.0, now_s - self.shown_s))

    def until(self, now_s: float) -> "_Tally":
        """Return the same with what the time since has added: until the next reconcile all is as it was."""
        if self.figures is None:
            return replace(self, at_s=now_s)
        passed_s = max(0.0, now_s - self.at_s)
        covered_s = passed_s if self.figures.cover else 0.0
        return replace(self, at_s=now_s, cover_s=self.cover_s + covered_s)


class Workloads(Collector):
    """The tallies of all workloads; `clock` returns seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tallies: dict[Key, _Tally] = {}

    def show(self, key: Key, figures: Figures) -> None:
        """Take what a reconcile saw."""
        tally = self._now(key)
        # The wall clock, by which a Split counts, may be behind. A counter never goes back.
        shown = tally.used(tally.at_s)
        used = [figures.used.get(use, Amount()).at_least(shown.get(use, Amount())) for use in Use]
        amounts = (*used, *(figures.held.get(use, Amount()) for use in Use))
        spent = _SPENT.pack(*(number for one in amounts for number in (one.replicas, one.cpu, one.memory)))
        figures = replace(figures, used=_PACKED, held=_PACKED)
        self._tallies[key] = replace(tally, figures=figures, shown_s=tally.at_s, spent=spent)

    def decided(self, key: Key, reason: str) -> None:
        """Count a reconcile that wrote something."""
        tally = self._now(key)
        counted = {**tally.decisions, reason: tally.decisions.get(reason, 0) + 1}
        self._tallies[key] = replace(tally, decisions=counted)

    def refuse(self, key: Key, reason: str) -> None:
        """Take why a workload is refused; empty when it is not."""
        before = self._tallies.get(key)
        if (before.refused if before is not None else "") != reason:
            self._tallies[key] = replace(self._now(key), refused=reason)

    def trouble(self, key: Key, reasons: Sequence[str]) -> None:
        """Take what is wrong with a workload's replicas."""
        before = self._tallies.get(key)
        if (before.troubles if before is not None else ()) != tuple(reasons):
            self._tallies[key] = replace(self._now(key), troubles=tuple(reasons))

    def unsplit(self, key: Key) -> None:
        """Drop all but a refusal: the workload is not split, or no longer."""
        if (tally := self._tallies.pop(key, None)) is not None and tally.refused:
            self._tallies[key] = _Tally(self._clock(), refused=tally.refused)

    def forget(self, key: Key) -> None:
        """Drop everything: the workload is gone."""
        self._tallies.pop(key, None)

    def clear(self) -> None:
        """Drop all workloads: somebody else looks after them."""
        self._tallies.clear()

    def describe(self) -> Iterable[Metric]:
        """Return the names, for the registry to know that they are taken."""
        return _families([])

    def collect(self) -> Iterable[Metric]:
        """Return the series as of now; called from the thread of a scrape."""
        now_s = self._clock()
        return _families([(key, tally.until(now_s)) for key, tally in list(self._tallies.items())])

    def _now(self, key: Key) -> _Tally:
        now_s = self._clock()
        return self._tallies.get(key, _Tally(now_s)).until(now_s)


_Tallies = Sequence[tuple[Key, _Tally]]


def _families(tallies: _Tallies) -> list[Metric]:
    spent = [(key, tally.used(tally.at_s)) for key, tally in tallies if tally.figures is not None]
    split = [(key, tally, tally.figures) for key, tally in tallies if tally.figures is not None]
    sized = [(key, figures) for key, _, figures in split if figures.desired > 0]
    return [
        _gauge(
            "splitter_replicas",
            "Replicas of a pool: wanted, spec, ready, doomed, pending",
            (
                ((*_of(key), pool, count), number)
                for key, _, figures in split
                for pool, counts in ((Pool.ON_DEMAND, figures.on_demand), (Pool.SPOT, figures.spot))
                for count, number in counts.to_json().items()
            ),
            "pool",
            "count",
        ),
        _gauge(
            "splitter_desired_replicas",
            "Replicas asked for on the source",
            ((_of(key), figures.desired) for key, _, figures in split),
        ),
        _gauge(
            "splitter_ready_replicas",
            "Ready replicas that are not doomed, of all holders",
            ((_of(key), figures.ready) for key, _, figures in split),
        ),
        _gauge(
            "splitter_cover_replicas",
            "On-demand replicas standing in for spot",
            ((_of(key), figures.cover) for key, _, figures in split),
        ),
        _gauge(
            "splitter_guarded_replicas",
            "Replicas that evictions have to leave, by splitter's PodDisruptionBudget",
            ((_of(key), figures.guarded) for key, _, figures in split if figures.guarded is not None),
        ),
        _gauge(
            "splitter_spot_share_ratio",
            "Ready replicas on spot nodes, of the replicas asked for",
            ((_of(key), figures.ready_on_spot / figures.desired) for key, figures in sized),
        ),
        _gauge(
            "splitter_spot_share_wanted_ratio",
            "Replicas that the policy wants on spot, of the replicas asked for",
            ((_of(key), figures.spot.wanted / figures.desired) for key, figures in sized),
        ),
        _gauge(
            "splitter_state",
            "1 for the state and the reason that the Split shows",
            (((*_of(key), figures.state, figures.reason), 1) for key, _, figures in split),
            "state",
            "reason",
        ),
        _counter(
            "splitter_cover_seconds",
            "Seconds in which at least one on-demand replica stood in for spot",
            ((_of(key), tally.cover_s) for key, tally, _ in split),
        ),
        _counter(
            "splitter_pod_seconds",
            "Seconds that pods have stood on nodes of a pool, since the workload was taken over",
            (((*_of(key), pool), used[use].replicas) for key, used in spent for pool, use in _POOLS),
            "pool",
        ),
        _counter(
            "splitter_requested_cpu_seconds",
            "The same, times the vCPUs that they request",
            (((*_of(key), pool), used[use].cpu / 1000) for key, used in spent for pool, use in _POOLS),
            "pool",
        ),
        _counter(
            "splitter_requested_memory_gib_seconds",
            "The same, times the GiB that they request",
            (((*_of(key), pool), used[use].memory / 1024) for key, used in spent for pool, use in _POOLS),
            "pool",
        ),
        _counter(
            "splitter_overhead_pod_seconds",
            "Seconds of on-demand pods in the place of spot (cover), of pods beyond those asked for (surge)",
            (
                ((*_of(key), use.value), used[use].replicas)
                for key, used in spent
                for use in (Use.COVER, Use.SURGE)
            ),
            "overhead",
        ),
        _counter(
            "splitter_desired_pod_seconds",
            "Seconds of pods that were asked for and stood somewhere: what savings are compared with",
            ((_of(key), used[Use.DESIRED].replicas) for key, used in spent),
        ),
        _counter(
            "splitter_decisions",
            "Reconciles that wrote something, by reason",
            _decisions(tallies),
            "reason",
        ),
        _gauge(
            "splitter_refused",
            "1 for a labelled workload that splitter does not split, or would not split today, by reason",
            (((*_of(key), tally.refused), 1) for key, tally in tallies if tally.refused),
            "reason",
        ),
        _gauge(
            "splitter_troubles",
            "1 while replicas do not run for another reason than missing nodes, by reason",
            (((*_of(key), reason), 1) for key, tally in tallies for reason in sorted(set(tally.troubles))),
            "reason",
        ),
    ]


def _decisions(tallies: _Tallies) -> Iterator[tuple[tuple[str, ...], float]]:
    for key, tally in tallies:
        begun = dict.fromkeys(_LOSSES, 0) if tally.figures is not None else {}
        for reason, number in {**begun, **tally.decisions}.items():
            yield (*_of(key), reason), number


def _of(key: Key) -> tuple[str, str, str]:
    return key.namespace, key.kind, key.name


def _metric(
    family: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    text: str,
    samples: Iterable[tuple[tuple[str, ...], float]],
    *labels: str,
) -> Metric:
    """Return the series of one metric; `labels` are those beside the workload's own."""
    metric = family(name, text, labels=(*LABELS, *labels))
    for values, value in samples:
        metric.add_metric(values, value)
    return metric


_gauge = partial(_metric, GaugeMetricFamily)
_counter = partial(_metric, CounterMetricFamily)

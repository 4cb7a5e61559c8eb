"""The spot capacity that an estimate is played on: a trace file, the ages of a cluster's nodes, or an outage.

Ages are what a cluster tells of lives without any record of them. Each is a lower bound, because that node
still lives; and nodes that went before are not seen. Source: docs/adr/0061.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from itertools import chain
from math import ceil

from splitter.plugin.simulate.outage import DAY_S, outage_trace
from splitter.plugin.simulate.trace import LENGTH_MAX_S, Change, Trace

EVERY_S, LAST_S, DAYS = DAY_S, 600, 1  # more days come to the same: each ends as it began
OUTAGE = "every=24h,last=10m,days=1"
"""The outage as `splitter simulate --outage` takes it, with nodes=N for N replicas."""
LIVES = "lives of spot nodes"
YOUNG_S = 3600.0
"""Nodes that are younger on average say nothing of how long they live."""
_LIVES = 6  # as many of the ages are played, evenly spread: a replay takes time for each


@unique
class HistorySource(StrEnum):
    """Where a history comes from."""

    FILE = "file"
    NODES = "nodes"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class SpotHistory:
    """When spot nodes come and go: the trace, else what the ages tell, else the outage that is assumed."""

    trace: Trace | None = None
    ages_s: tuple[float, ...] = ()
    """Of the spot nodes that there are: the seconds since each came, the youngest first."""

    @property
    def source(self) -> HistorySource:
        """Where it comes from."""
        if self.trace is not None:
            return HistorySource.FILE
        return HistorySource.NODES if self.mean_age_s >= YOUNG_S else HistorySource.ASSUMED

    @property
    def name(self) -> str:
        """What is played, in a word: a file's name, or the outage as `splitter simulate` takes it."""
        if self.trace is not None:
            return self.trace.name
        return LIVES if self.source is HistorySource.NODES else OUTAGE

    @property
    def mean_age_s(self) -> float:
        """The average age of the nodes; 0 where there is none."""
        return sum(self.ages_s) / len(self.ages_s) if self.ages_s else 0.0

    def of(self, replicas: int) -> tuple[Trace, int]:
        """Return what so many replicas are played on, and how many of them one node holds.

        A file's best moment holds all of them; else each has a node of its own.
        """
        if self.trace is not None:
            return self.trace, ceil(replicas / self.trace.most_nodes)
        if self.source is HistorySource.NODES:
            return lives_trace(self.ages_s, replicas), 1
        return outage_trace(EVERY_S, LAST_S, replicas, DAYS), 1


NO_HISTORY = SpotHistory()
"""Nothing is known: the outage is assumed."""


def history_of(trace: Trace | None, ages_s: Sequence[float]) -> SpotHistory:
    """Return the best history that there is.

    Ages of clocks that go wrong are left out. Raises ValueError for a trace without a node or a length.
    """
    if trace is not None and (trace.most_nodes < 1 or trace.duration_s <= 0):
        raise ValueError(f"{trace.name} has no node for any length of time; nothing can be played on it")
    return SpotHistory(trace, tuple(sorted(age_s for age_s in ages_s if 0 < age_s <= LENGTH_MAX_S)))


def lives_trace(lives_s: Sequence[float], nodes: int) -> Trace:
    """Return a trace in which nodes live as long as these, one life after the other, with a gap between.

    `lives_s`: at least one, in order. Each place for a node begins and ends in the middle of the same life,
    and is without a node after each life for as long as the assumed outage lasts. Equal lives end together.

    >>> [(change.at_s, change.added) for change in lives_trace([7200.0], 1).changes]
    [(0.0, True), (3600.0, False), (4200.0, True)]
    """
    number = min(len(lives_s), _LIVES)
    lives = [lives_s[(2 * place + 1) * len(lives_s) // (2 * number)] for place in range(number)]
    places = (_place(lives, slot * number // nodes, f"node-{slot + 1}") for slot in range(nodes))
    changes = sorted(chain.from_iterable(places), key=lambda change: change.at_s)
    return Trace(LIVES, tuple(changes), sum(lives) + LAST_S * number)


def _place(lives: Sequence[float], first: int, name: str) -> list[Change]:
    """Return the changes of one place: it begins in the middle of its first life."""
    changes, at_s = [Change(0.0, name, added=True)], -lives[first] / 2
    for number in range(len(lives)):
        at_s += lives[(first + number) % len(lives)]
        changes.append(Change(at_s, name, added=False))
        at_s += LAST_S
        changes.append(Change(at_s, name, added=True))
    return changes

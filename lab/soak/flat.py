"""Does a process keep what it takes? What was sampled through a run, judged robustly. Pure.

`gauges` samples, `report` prints. The first fifth of the run is warm-up and left out. Of the rest the growth
is taken twice, and the larger counts: as the slope of Theil and Sen (the median of the slopes of all pairs,
which 29 % of outliers do not move: Sen, JASA 63, 1968) over the judged time, and as the median of the last
fifth less that of the second, which sees what came late. The bound is an absolute one: flat is flat, however
long the run is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from statistics import median

FIFTHS = 5
LEAST = 50
"""Samples without which nothing is said: ten in each fifth."""
_MOST = 400  # of more the medians of equal bins are taken: pairs grow with the square


class Gauge(StrEnum):
    """What must stay flat."""

    MEMORY = "resident memory, MiB"
    FILES = "open files"
    THREADS = "threads"
    TASKS = "asyncio tasks"
    WATCHES = "watches"


BOUNDS: dict[Gauge, float] = {
    Gauge.MEMORY: 6.0,  # what the allocator of a settled process breathes; see docs/soak.md
    Gauge.FILES: 4.0,  # a handful of connections are kept for 15 s after their use
    Gauge.THREADS: 1.0,
    Gauge.TASKS: 4.0,  # reconciles and writes that are under way
    Gauge.WATCHES: 1.0,
}
"""How much more there may be at the end than after the warm-up."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value, so many seconds after the beginning."""

    at_s: float
    value: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One gauge of one process through a run."""

    gauge: Gauge
    second: float
    """The median of the second fifth."""
    last: float
    """The median of the last fifth."""
    an_hour: float
    """The slope of Theil and Sen."""
    growth: float
    """Over the judged part of the run, by the slope or by the medians, whichever says more."""

    @property
    def bound(self) -> float:
        """How much growth is no growth."""
        return BOUNDS[self.gauge]

    @property
    def flat(self) -> bool:
        """Whether it stayed within."""
        return self.growth <= self.bound


class TooShortError(ValueError):
    """There are too few samples to say anything."""


def judge(gauge: Gauge, samples: Sequence[Sample]) -> Finding:
    """Return what became of one gauge. Raises TooShortError for fewer samples than LEAST.

    Example: 100 MiB at first and 2 MiB more every minute for 20 minutes is a growth of 32 MiB.
    """
    if len(samples) < LEAST:
        raise TooShortError(f"{gauge}: {len(samples)} samples; at least {LEAST} are needed to judge")
    ordered = sorted(samples, key=lambda sample: sample.at_s)
    began_s, ended_s = ordered[0].at_s, ordered[-1].at_s
    fifth_s = (ended_s - began_s) / FIFTHS
    warm = [sample for sample in ordered if sample.at_s >= began_s + fifth_s]
    second = median(sample.value for sample in warm if sample.at_s < began_s + 2 * fifth_s)
    last = median(sample.value for sample in warm if sample.at_s >= ended_s - fifth_s)
    slope = theil_sen(thinned(warm))
    growth = max(slope * (ended_s - began_s - fifth_s), last - second)
    return Finding(gauge, second, last, an_hour=slope * 3600, growth=growth)


def theil_sen(samples: Sequence[Sample]) -> float:
    """Return the median of the slopes of all pairs, a second."""
    return median(
        (later.value - sooner.value) / (later.at_s - sooner.at_s)
        for sooner, later in combinations(samples, 2)
        if later.at_s > sooner.at_s
    )


def thinned(samples: Sequence[Sample]) -> list[Sample]:
    """Return at most _MOST samples: each the median of as many neighbours."""
    size = -(-len(samples) // _MOST)
    bins = [samples[start : start + size] for start in range(0, len(samples), size)]
    return [Sample(median(one.at_s for one in each), median(one.value for one in each)) for each in bins]

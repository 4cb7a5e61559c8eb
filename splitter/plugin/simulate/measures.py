"""What a replay's samples say: the worst minute, the share on spot, and slices of time for pictures.

`report`, `picture` and the command line read a `SimulationResult` with these. A sample holds until the
next one; the last holds until the end of the trace.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from splitter.plugin.simulate.replay import Sample, SimulationResult

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class WorstMinute:
    """The minute with the fewest ready replicas: its average, its least, and when it begins."""

    at_s: float
    ready: float


def spot_share(result: SimulationResult) -> float:
    """Return the share of ready replicas that were on spot, in time's average; 0 when none ever was."""
    on_spot_s = ready_s = 0.0
    for sample, seconds in _spans(result):
        on_spot_s += sample.spot_ready * seconds
        ready_s += sample.serving * seconds
    return on_spot_s / ready_s if ready_s else 0.0


def worst_minute(result: SimulationResult) -> WorstMinute:
    """Return the worst of all minutes, wherever it begins; more ready than wanted counts as wanted.

    The average over a sliding minute is least where the minute begins or ends with a change, so only
    those minutes are looked at.
    """
    width_s = min(MINUTE_S, result.duration_s)
    edges, sums = [0.0], [0.0]  # sums[i]: replica-seconds until edges[i]
    levels: list[int] = []
    for sample, seconds in _spans(result):
        level = min(sample.serving, result.desired)
        if levels and levels[-1] == level:
            edges[-1] += seconds
            sums[-1] += level * seconds
            continue
        levels.append(level)
        edges.append(edges[-1] + seconds)
        sums.append(sums[-1] + level * seconds)

    last_s = edges[-1] - width_s
    begins = sorted({min(max(0.0, begin), last_s) for edge in edges for begin in (edge, edge - width_s)})
    worst = WorstMinute(0.0, float(result.desired))
    low = high = 0
    for begin_s in begins:
        while low + 1 < len(levels) and edges[low + 1] <= begin_s:
            low += 1
        high = max(high, low)
        while high + 1 < len(levels) and edges[high + 1] <= begin_s + width_s:
            high += 1
        until = sums[high] + levels[high] * (begin_s + width_s - edges[high])
        ready = (until - sums[low] - levels[low] * (begin_s - edges[low])) / width_s
        if ready < worst.ready - 1e-9:
            worst = WorstMinute(begin_s, max(0.0, ready))
    return worst


def slices(result: SimulationResult, number: int) -> list[Sample]:
    """Return the worst moment of each of `number` slices of time: fewest ready, then fewest nodes."""
    width_s = result.duration_s / number
    samples: list[Sample | None] = [None] * number
    for sample, seconds in _spans(result):
        first = min(number - 1, int(sample.at_s / width_s))
        # A span that ends where a slice begins is not part of it.
        last = min(number - 1, int((sample.at_s + seconds) / width_s - 1e-9))
        for place in range(first, max(first, last) + 1):
            before = samples[place]
            if before is None or _badness(sample) < _badness(before):
                samples[place] = sample
    return [sample for sample in samples if sample is not None]


def _badness(sample: Sample) -> tuple[int, int]:
    return sample.serving, sample.spot_nodes


def _spans(result: SimulationResult) -> Iterator[tuple[Sample, float]]:
    """Yield each sample with the seconds for which it holds."""
    samples: Sequence[Sample] = result.samples
    for sample, following in pairwise(samples):
        yield sample, following.at_s - sample.at_s
    if samples:
        yield samples[-1], result.duration_s - samples[-1].at_s

"""The arithmetic: from the step functions of a recording to the figures of the table.

Pure. `rounds` asks it about the timelines that the sandbox's recorder makes; it knows no system and no
cluster. Durations are seconds, counts replicas.
"""

from collections.abc import Sequence

from lab.sandbox import Between, Instant, Steps


def lost(available: Steps, wanted: int, between: Between) -> float:
    """Return the replica-seconds that were missing: the area between `wanted` and what was available.

    Example: 4 of 20 for 5 s, then 18 for 2 s, then 20: 16 * 5 + 2 * 2 = 84.
    """
    return sum(
        max(0, wanted - value) * (until_s - from_s) for from_s, until_s, value in available.stretches(between)
    )


def back_after_s(available: Steps, wanted: int, between: Between) -> float | None:
    """Return after how many seconds `wanted` were available for good; None when they still are not.

    0.0 when they never were fewer. "For good": until the end of `between`, which begins with the loss.
    """
    back_s = between.start.monotonic_s
    for _, until_s, value in available.stretches(between):
        if value < wanted:
            back_s = until_s
    return back_s - between.start.monotonic_s if available.at(between.end) >= wanted else None


def dips(available: Steps, wanted: int, between: Between) -> int:
    """Return how many times fewer than `wanted` were available; a dip with several depths is one."""
    below = [value < wanted for _, _, value in available.stretches(between)]
    return sum(now and not before for before, now in zip([False, *below], below, strict=False))


def returns(on_demand: Steps, gaps: Sequence[Between]) -> int:
    """Return in how many of the gaps between outages replicas left on-demand again.

    A probe on spot beside a complete cover is no return: nothing depends on it.
    """
    return sum(on_demand.lowest(gap) < on_demand.at(gap.start) for gap in gaps)


def most_over(total: Steps, bounds: Sequence[Steps], fixed: int, surge: int, between: Between) -> int:
    """Return by how many pods `total` was above `fixed + max(surge, bounds[0]) + bounds[1] + ...` at most.

    0 when it never was. `bounds[0]` are the replicas that are starting, the rest those that are doomed.
    """
    starting, *doomed = bounds
    moments = {between.start.monotonic_s} | {
        time_s
        for steps in (total, *bounds)
        for time_s in steps.times
        if between.start.monotonic_s < time_s <= between.end.monotonic_s
    }

    def over(moment: Instant) -> int:
        allowed = fixed + max(surge, starting.at(moment)) + sum(steps.at(moment) for steps in doomed)
        return total.at(moment) - allowed

    return max(0, *(over(Instant(time_s, 0.0)) for time_s in moments))

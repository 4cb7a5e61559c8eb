"""The figures of some replays side by side: a table for people, plain values for programs."""

from collections.abc import Sequence

from splitter.plugin.simulate.measures import spot_share, worst_minute
from splitter.plugin.simulate.replay import DAY_S, Assumptions, SimulationResult
from splitter.plugin.simulate.trace import Trace

_HEADINGS = ("policy", "available", "cost", "on spot", "moves/day", "worst minute", "short/day")
_NOTES = (
    "cost: all on-demand is 1. moves: changes of the on-demand count. worst minute:",
    "ready replicas, on its average. short: fewer replicas ready than wanted.",
)


def compared(trace: Trace, assumptions: Assumptions, results: Sequence[SimulationResult]) -> str:
    """Return what was played, and a line of figures for each policy: 80 columns, if names are short."""
    rows = [_HEADINGS, *(_row(result) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    table = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*_played(trace, assumptions), "", *table, "", *_NOTES])


def available(result: SimulationResult) -> str:
    """Return the availability in percent, never rounded up to a promise: 99.9996 % is not 100 %."""
    whole = result.availability >= 1 - 1e-12  # sums of floats
    return "100 %" if whole else f"{int(result.availability * 1e5) / 1e3:.3f} %"


def as_json(
    trace: Trace, assumptions: Assumptions, results: Sequence[tuple[SimulationResult, dict[str, str]]]
) -> dict[str, object]:
    """Return the same as plain values, with each policy's annotations."""
    return {
        "trace": {
            "name": trace.name,
            "seconds": trace.duration_s,
            "changes": len(trace.changes),
            "mostNodes": trace.most_nodes,
        },
        "assumptions": {
            "replicas": assumptions.desired,
            "maxSurge": assumptions.max_surge,
            "replicasPerNode": assumptions.slots_per_node,
            "spotPrice": assumptions.spot_price,
            "onDemandStartSeconds": assumptions.on_demand_start_s,
            "spotStartSeconds": assumptions.spot_start_s,
            "noticeSeconds": assumptions.notice_s,
        },
        "policies": [_figures(result, annotations) for result, annotations in results],
    }


def _figures(result: SimulationResult, annotations: dict[str, str]) -> dict[str, object]:
    worst = worst_minute(result)
    return {
        "name": result.contender,
        "annotations": annotations,
        "availability": round(result.availability, 6),
        "cost": round(result.cost, 4),
        "spotShare": round(spot_share(result), 4),
        "movesPerDay": round(result.on_demand_changes_per_day, 2),
        "worstMinute": {"readyReplicas": round(worst.ready, 2), "atSeconds": round(worst.at_s, 1)},
        "shortSecondsPerDay": round(result.seconds_short * DAY_S / result.duration_s, 1),
        "leastReadyReplicas": result.least_ready,
        "mostReadyReplicas": result.most_ready,
    }


def _played(trace: Trace, given: Assumptions) -> list[str]:
    holds = "1 replica" if given.slots_per_node == 1 else f"{given.slots_per_node} replicas"
    nodes = "1 spot node" if trace.most_nodes == 1 else f"{trace.most_nodes} spot nodes"
    notice = f"notice {given.notice_s:g} s" if given.notice_s else "no notice"
    return [
        f"trace {trace.name}: {_length(trace.duration_s)}, at most {nodes}, {holds} on each",
        f"{given.desired} replicas; spot costs {given.spot_price:g} of on-demand; {notice};",
        f"ready after {given.on_demand_start_s:g} s on on-demand, {given.spot_start_s:g} s on spot",
    ]


def _row(result: SimulationResult) -> tuple[str, ...]:
    short_s = result.seconds_short * DAY_S / result.duration_s
    return (
        result.contender,
        available(result),
        f"{result.cost:.3f}",
        f"{spot_share(result):.0%}".replace("%", " %"),
        f"{result.on_demand_changes_per_day:.1f}",
        f"{worst_minute(result).ready:.1f}/{result.desired}",
        _length(short_s),
    )


def _length(seconds: float) -> str:
    """Return a length of time in the unit in which people say it."""
    for unit_s, unit in ((DAY_S, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.1f} {unit}"
    return f"{seconds:.0f} s"

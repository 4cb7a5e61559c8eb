"""Shows the results of a replay to people: a table of numbers, and a picture in plain characters."""

from collections.abc import Sequence
from dataclasses import dataclass

from splitter.simulate.measures import slices
from splitter.simulate.replay import DAY_S, SimulationResult

HEADINGS = ("policy", "cost", "availability", "changes/day", "most ready", "short min/day")


@dataclass(frozen=True, slots=True)
class _Row:
    policy: str
    cost: float
    availability: float
    changes: float
    most_ready: int
    minutes_short: float


def format_table(results: Sequence[SimulationResult]) -> str:
    """Return one row for each contender, over all its traces (longer traces weigh more).

    Cost is against all on-demand (1.000); changes are writes to on-demand's count.

    Example:
    `policy     cost  availability  changes/day  most ready  short min/day`
    `splitter  0.737        0.9963         17.3          20           10.0`
    """
    rows = [
        _row(name, [result for result in results if result.contender == name]) for name in _names(results)
    ]
    cells = [HEADINGS] + [
        (
            row.policy,
            f"{row.cost:.3f}",
            f"{row.availability:.4f}",
            f"{row.changes:.1f}",
            str(row.most_ready),
            f"{row.minutes_short:.1f}",
        )
        for row in rows
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def draw(result: SimulationResult, width: int = 100) -> str:
    """Return a picture of one replay: each column a slice of time, at its worst moment.

    `#` ready on spot, `+` ready on on-demand, `.` wanted and missing. A line is a replica.
    """
    columns = [(sample.spot_ready, sample.serving) for sample in slices(result, width)]
    lines = []
    for level in range(result.desired, 0, -1):
        cells = "".join(
            "#" if level <= spot else "+" if level <= serving else "." for spot, serving in columns
        )
        lines.append(f"{level:>4} {cells}")
    hours = result.duration_s / 3600
    lines.append(f"     {'0 h':<{max(0, width - 8)}}{hours:>6.1f} h")
    lines.append("     # ready on spot   + ready on on-demand   . missing")
    return "\n".join(lines)


def _names(results: Sequence[SimulationResult]) -> list[str]:
    return list(dict.fromkeys(result.contender for result in results))


def _row(name: str, results: Sequence[SimulationResult]) -> _Row:
    total_s = sum(result.duration_s for result in results)

    def mean(values: Sequence[float]) -> float:
        weighted = zip(values, results, strict=True)
        return sum(value * result.duration_s for value, result in weighted) / total_s

    return _Row(
        policy=name,
        cost=mean([result.cost for result in results]),
        availability=mean([result.availability for result in results]),
        changes=mean([result.on_demand_changes_per_day for result in results]),
        most_ready=max(result.most_ready for result in results),
        minutes_short=mean([result.seconds_short * DAY_S / result.duration_s / 60 for result in results]),
    )

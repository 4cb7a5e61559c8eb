"""What was measured as a table, beside its floor, its goal and how it grows; pure.

`__main__` writes both files from it, after each measure, so that a run that is broken off leaves what it had.
A goal that is missed says so; a figure that is not there is a dash and meets nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

REPLICAS = 10
"""Of a workload, where nothing else is said."""

Figures = Mapping[str, Any]
Sizes = Mapping[int, Figures]

_RATIO = 1.3
_BASE_MB, _KB_A_POD = 120, 2
_NONE, _CPU = "-", "s of CPU"
_HEAD = ("measure", "floor", "ratio", "goal", "met", "grows as n^", "limited by", "machine, load")
_WALL_CLOCK = frozenset({"s", "ms"})


@dataclass(frozen=True, slots=True)
class Goal:
    """A sentence, and whether a figure beside its floor keeps it with so many pods."""

    text: str
    met: Callable[[float, float | None, int], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """One line: which figure of which measure."""

    title: str
    measure: str
    name: str
    unit: str
    floor: str = ""
    goal: Goal | None = None

    def figure(self, figures: Figures) -> float | None:
        """Return the figure, None where it was not measured."""
        return number(figures.get(self.measure, {}), self.name)

    def floor_of(self, figures: Figures) -> float | None:
        """Return what a client that decides nothing needed."""
        return number(figures.get(self.floor, {}), self.name)


def number(figures: Figures, name: str) -> float | None:
    """Return a figure, None where it is missing or no number."""
    value = figures.get(name)
    return float(value) if isinstance(value, int | float) else None


def _below(limit: float, unit: str) -> Goal:
    return Goal(f"< {limit:g} {unit}", lambda figure, _floor, _pods: figure < limit)


_OF_FLOOR = Goal(
    f"<= {_RATIO:g} x floor",
    lambda figure, floor, _pods: floor is not None and figure <= _RATIO * floor,
)
_THIRD_OF_FLOOR = Goal(
    "<= 0.3 x floor",
    lambda figure, floor, _pods: floor is not None and figure <= 0.3 * floor,
)
_NONE_AT_ALL = Goal("0", lambda figure, _floor, _pods: figure == 0)
_MEMORY = Goal(
    f"{_BASE_MB} MB + {_KB_A_POD} KB a pod",
    lambda figure, _floor, pods: figure <= _BASE_MB + pods * _KB_A_POD / 1000,
)

ROWS = (
    Row("all pods made for the first time", "created", "seconds", "s"),
    Row("(a) all taken over at once", "on_boarding", "seconds", "s", "roll_floor", _OF_FLOOR),
    Row("(a) splitter's CPU", "on_boarding", "cpu_s", _CPU),
    Row("(a) API server's CPU", "on_boarding", "api_server_cpu_s", _CPU, "roll_floor"),
    Row("(a) nothing to move", "on_boarding_in_place", "seconds", "s", "roll_floor", _THIRD_OF_FLOOR),
    Row("(a) pods replaced, nothing to move", "on_boarding_in_place_pods", "replaced", "", "", _NONE_AT_ALL),
    Row("(a) all given back", "giving_back", "seconds", "s", "roll_floor", _THIRD_OF_FLOOR),
    Row("(a) pods replaced by giving back", "giving_back_pods", "replaced", "", "", _NONE_AT_ALL),
    Row("(a) taken over, 10 at a time", "on_boarding_by_turns", "seconds", "s", "roll_floor"),
    Row("(b) notice on one node, p50", "one_node", "p50_ms", "ms", "one_node_floor"),
    Row("(b) notice on one node, p99", "one_node", "p99_ms", "ms", "one_node_floor", _below(250, "ms")),
    Row("(c) notice on all spot nodes, p50", "all_nodes", "p50_ms", "ms", "all_nodes_floor"),
    Row("(c) p99", "all_nodes", "p99_ms", "ms", "all_nodes_floor"),
    Row("(c) last write", "all_nodes", "max_ms", "ms", "all_nodes_floor", _OF_FLOOR),
    Row("(c) splitter's CPU", "all_nodes", "cpu_s", _CPU, "all_nodes_floor"),
    Row("(d) all spot nodes gone, p50", "all_gone", "p50_ms", "ms", "all_gone_floor"),
    Row("(d) last write", "all_gone", "max_ms", "ms", "all_gone_floor"),
    Row("(d) until all N are available", "covered", "seconds", "s", "covered_floor"),
    Row("(e) return", "return", "seconds", "s", "return_floor"),
    Row("(f) new image of all", "roll", "seconds", "s", "twins_roll_floor", _OF_FLOOR),
    Row("(f) splitter's CPU", "roll", "cpu_s", _CPU),
    Row("(f) API server's CPU", "roll", "api_server_cpu_s", _CPU, "twins_roll_floor"),
    Row("(f) beside plain Deployments", "roll", "seconds", "s", "roll_floor"),
    Row("(f) API server's CPU, beside plain ones", "roll", "api_server_cpu_s", _CPU, "roll_floor"),
    Row("(g) start to the first right write", "start", "first_s", "s", "", _below(10, "s")),
    Row("(h) leader killed, last write", "fail_over", "last_s", "s"),
    Row("(h) leader asked to go, last write", "clean_stop", "last_s", "s"),
    Row("(i) idle", "idle", "percent", "% of a core", "", _below(1, "%")),
    Row("(i) writes while idle", "idle", "writes", "", "", _NONE_AT_ALL),
    Row("(j) resident after a start", "memory_of_a_new_process", "resident", "MB", "", _MEMORY),
    Row("(j) at most, notices on all nodes included", "memory_after_notices", "resident_at_most", "MB"),
    Row("(k) CPU of one watch event", "event", "microseconds", "us", "", _below(200, "us")),
    Row("(k) the same, 300 at once", "events_at_once", "microseconds", "us", "", _below(200, "us")),
)


def growth(values: Mapping[int, float]) -> float | None:
    """Return the exponent k of n^k that fits best (least squares of the logarithms); None for one size only.

    Example: `growth({100: 1.0, 1000: 10.0})` is 1.0.
    """
    points = [(log(size), log(figure)) for size, figure in values.items() if figure > 0]
    if len(points) < 2:
        return None
    slope, _ = _line(points)
    return round(slope, 2)


def of_n_log_n(sizes: Sequence[int]) -> float:
    """Return the exponent that n log n has between these sizes: 1.18 from 100 to 1,000."""
    return growth({size: size * log(size) for size in sizes}) or 1.0


def memory(sizes: Sizes, replicas: int = REPLICAS) -> tuple[float, float] | None:
    """Return the MB of a process without workloads and the KB of each pod, by a line through all sizes."""
    row = next(row for row in ROWS if row.measure == "memory_of_a_new_process")
    points = [
        (float(size * replicas), figure)
        for size, figures in sizes.items()
        if (figure := row.figure(figures)) is not None
    ]
    if len(points) < 2:
        return None
    slope, base = _line(points)
    return round(base, 1), round(slope * 1000, 2)


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return slope and height at zero of the line that fits best."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return slope, mean_y - slope * mean_x


def lines(sizes: Sizes, replicas: int = REPLICAS) -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows: one column a size, then those of the largest size that has the figure."""
    ordered = sorted(sizes)
    first, *rest = _HEAD
    yield (first, *(f"{size:,}" for size in ordered), *rest)
    for row in ROWS:
        by_name = {size: row.figure(sizes[size]) for size in ordered}
        known = {size: figure for size, figure in by_name.items() if figure is not None}
        cells = tuple(published(by_name[size], row.unit) for size in ordered)
        yield (row.title, *cells, *_beside(row, sizes, known, replicas))


def _beside(row: Row, sizes: Sizes, known: Mapping[int, float], replicas: int) -> tuple[str, ...]:
    if not known:
        return (_NONE,) * (len(_HEAD) - 1)
    size, figure = max(known), known[max(known)]
    floor = row.floor_of(sizes[size])
    goal, met = _NONE, _NONE
    if row.goal is not None:
        goal, met = row.goal.text, "yes" if row.goal.met(figure, floor, size * replicas) else "**no**"
    exponent = growth(known)
    seen = sizes[size][row.measure]
    busy = _NONE if "machine_percent" not in seen else f"{seen['machine_percent']} %, {seen['load_average']}"
    return (
        published(floor, row.unit),
        _NONE if not floor else f"{figure / floor:.2f}",
        goal,
        met,
        _NONE if exponent is None else f"{exponent:g}",
        str(seen.get("limit", _NONE)) if row.unit in _WALL_CLOCK else _NONE,
        busy,
    )


def published(figure: float | None, unit: str) -> str:
    """Return a figure with three digits or so and its unit, a dash for one that is missing."""
    if figure is None:
        return _NONE
    digits = 0 if figure >= 100 else 1 if figure >= 10 else 2
    return f"{round(figure, digits):,g} {unit}".strip()


def piped(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown: a title in each row, then figures, to the right."""
    numbers = "| --- |" + " ---: |" * (len(head) - 1)
    first, *others = ("| " + " | ".join(line) + " |" for line in (head, *rows))
    return "\n".join((first, numbers, *others))


def markdown(
    sizes: Sizes, machine: Figures, command: str, *, still: bool = False, replicas: int = REPLICAS
) -> str:
    """Return the page beside the JSON, of days of work or of still lifes."""
    head, *rows = lines(sizes, replicas)
    missing = [row[0] for row in rows if set(row[1:]) == {_NONE}]
    rows = [row for row in rows if row[0] not in missing]
    return "\n".join(
        (
            "# How splitter grows: a still life" if still else "# How splitter grows",
            "",
            f"`{command}`",
            "",
            f"{machine['cpu']}, {machine['cpus']} CPUs, Python {machine['python']}, {machine['date']}.",
            "",
            f"Workloads of {replicas} replicas, 2 on-demand and 3 spot nodes for 100 of them.",
            *(_STILL if still else _SETTING),
            "",
            piped(head, rows),
            "",
            *_fitted(sizes, replicas),
            *(
                (f"- n log n would be n^{of_n_log_n(sorted(sizes)):g} between these sizes.",)
                if len(sizes) > 1
                else ()
            ),
            *_NOTES,
            *((f"- Not measured in this run: {', '.join(missing)}.",) if missing else ()),
            "",
        )
    )


_SETTING = (
    "etcd, API server, controllers, scheduler and KWOK share the CPUs with splitter, which has one core.",
)
_STILL = (
    "They are written as they are once they have been split. Controllers, scheduler and KWOK stand still:",
    "nothing moves but splitter, which has one core, and the API server with etcd.",
)
_NOTES = (
    "- Columns from floor on are of the largest size that has the figure.",
    "- Floor: the same writes by a client that decides nothing, in a process of its own with the same HTTP",
    "  client, connections and core, in the same sandbox. Of (a): one rolling update of as many plain",
    "  Deployments with the same surge and none unavailable. Of (f): the twins get the new image themselves,",
    "  both at once; a line further down has the plain Deployments.",
    "- Limited by: splitter's core when it was busy for 80 % of the time, else the machine when all its CPUs",
    "  together were for 85 %, else waiting: for pods to start and end, for timers, for an answer.",
    "- Load: the average of the last minute; 2 CPUs are full at 2. Others' work on the machine is in it, so",
    "  durations say less than ratios.",
)


def _fitted(sizes: Sizes, replicas: int) -> tuple[str, ...]:
    result = memory(sizes, replicas)
    if result is None:
        return ()
    base_mb, pod_kb = result
    published = (
        f"- (j) by a line through all sizes: {base_mb:g} MB without a workload, and {pod_kb:g} KB for each"
    )
    return published, "  pod with its share of a workload."

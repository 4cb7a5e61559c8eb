"""Draws replays as one SVG: a panel for each policy, over the same time.

Written by hand, so that no library is needed. A panel shows the ready replicas by pool, stacked; what is
wanted, as a dashed line; what spot could have held, as a dotted one; and what was missing, in red. Each
column of the picture shows the worst moment of its slice of time: a gap of two minutes in two weeks is
seen.
"""

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby

from splitter.plugin.simulate.measures import slices
from splitter.plugin.simulate.replay import Sample, SimulationResult
from splitter.plugin.simulate.summary import available

_WIDTH, _LEFT, _RIGHT = 960, 64, 28
_PLOT = _WIDTH - _LEFT - _RIGHT
_HEAD, _PANEL, _GAP, _FOOT = 82, 170, 52, 40
_SLICES = _PLOT  # one a point: more could not be seen
_TICKS = 10
_LINES = 6

# Okabe and Ito's colours: told apart by everybody, and in grey.
_SPOT, _ON_DEMAND, _MISSING, _INK, _FAINT = "#56b4e9", "#e69f00", "#d62728", "#222222", "#dddddd"
_LEGEND = (
    ("ready on spot", "area", _SPOT),
    ("ready on on-demand", "area", _ON_DEMAND),
    ("missing", "area", _MISSING),
    ("wanted", "6 4", _INK),
    ("what spot could hold", "2 3", _INK),
)
_HOUR_S, _DAY_S = 3600, 86_400
_TICK_STEPS_S = (
    *(60, 300, 600, 1800),
    *(hours * _HOUR_S for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY_S for days in (1, 2, 7, 14, 28, 91, 364)),
)


def svg(results: Sequence[SimulationResult], replicas_per_node: int = 1) -> str:
    """Return the picture of some replays of one trace, as the text of an SVG file.

    Raises ValueError when there is nothing to draw.
    """
    if not results:
        raise ValueError("there is no replay to draw")
    height = _HEAD + len(results) * (_PANEL + _GAP) + _FOOT - _GAP + 20
    look = f'width="{_WIDTH}" height="{height}" role="img" font-family="sans-serif" fill="{_INK}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {look}>',
        f"<title>Ready replicas over time: {escape(results[0].trace)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        _text(_LEFT, 22, f"Ready replicas over time, trace {results[0].trace}", size=15),
        *_legend(),
    ]
    for number, result in enumerate(results):
        parts += _panel(result, _HEAD + number * (_PANEL + _GAP), replicas_per_node)
    parts.append(
        _text(_LEFT + _PLOT / 2, height - 8, "time since the start of the trace", anchor="middle"),
    )
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> list[str]:
    parts, x = [], float(_LEFT)
    for label, kind, colour in _LEGEND:
        if kind == "area":
            parts.append(f'<rect x="{x:g}" y="34" width="18" height="10" fill="{colour}"/>')
        else:
            parts.append(
                f'<path d="M{x:g} 39h18" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{kind}"/>'
            )
        parts.append(_text(x + 23, 43, label))
        x += 23 + 6.6 * len(label) + 18
    return parts


def _panel(result: SimulationResult, top: float, replicas_per_node: int) -> list[str]:
    samples = slices(result, _SLICES)
    highest = max(result.desired, *(sample.serving for sample in samples))
    bottom = top + _PANEL

    def y_of(replicas: float) -> float:
        return round(bottom - _PANEL * min(replicas, highest) / highest, 1)

    def capacity(sample: Sample) -> int:
        return sample.spot_nodes * replicas_per_node

    spot = _steps(samples, lambda sample: y_of(sample.spot_ready))
    ready = _steps(samples, lambda sample: y_of(sample.serving))
    wanted = [(0, _SLICES, y_of(result.desired))]
    held = _steps(samples, lambda sample: y_of(capacity(sample)))
    base = [(0, _SLICES, bottom)]
    kept = _steps(samples, lambda sample: y_of(max(sample.serving, result.desired)))
    figures = (
        f"{available(result)} available, cost {result.cost:.3f} of all on-demand, "
        f"{result.on_demand_changes_per_day:.1f} moves a day"
    )
    return [
        f'<g id="{escape(result.contender)}">',
        _text(_LEFT, top - 8, f"{result.contender}: {figures}", weight="bold"),
        *_axes(result, top, highest, y_of),
        _area(ready, kept, _MISSING),
        _area(base, spot, _SPOT),
        _area(spot, ready, _ON_DEMAND),
        f'<path d="{_line(held)}" fill="none" stroke="{_INK}" stroke-dasharray="2 3"/>',
        f'<path d="{_line(wanted)}" fill="none" stroke="{_INK}" stroke-width="1.5" stroke-dasharray="6 4"/>',
        f'<path d="M{_LEFT} {top}V{bottom}H{_LEFT + _PLOT}" fill="none" stroke="{_INK}"/>',
        "</g>",
    ]


def _axes(result: SimulationResult, top: float, highest: int, y_of: Callable[[float], float]) -> list[str]:
    bottom = top + _PANEL
    turned = f'transform="translate(18 {top + _PANEL / 2}) rotate(-90)" text-anchor="middle" font-size="12"'
    parts = [f"<text {turned}>replicas</text>"]
    for replicas in range(0, highest + 1, _replica_step(highest)):
        y = y_of(replicas)
        parts.append(f'<path d="M{_LEFT} {y}h{_PLOT}" stroke="{_FAINT}"/>')
        parts.append(_text(_LEFT - 8, y + 4, str(replicas), anchor="end"))
    step_s = _tick_step_s(result.duration_s)
    unit_s, unit = (_DAY_S, "d") if step_s >= _DAY_S else (_HOUR_S, "h") if step_s >= _HOUR_S else (60, "min")
    for tick in range(int(result.duration_s / step_s) + 1):
        x = round(_LEFT + _PLOT * tick * step_s / result.duration_s, 1)
        parts.append(f'<path d="M{x} {bottom}v5" stroke="{_INK}"/>')
        parts.append(_text(x, bottom + 18, f"{tick * step_s // unit_s} {unit}", anchor="middle"))
    return parts


def _tick_step_s(duration_s: float) -> int:
    fitting = (step_s for step_s in _TICK_STEPS_S if duration_s / step_s <= _TICKS)
    return next(fitting, _TICK_STEPS_S[-1] * max(1, int(duration_s / _TICK_STEPS_S[-1] / _TICKS) + 1))


def _replica_step(highest: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50 ... that leaves few lines."""
    steps = (digit * scale for scale in (1, 10, 100, 1000, 10_000, 100_000) for digit in (1, 2, 5))
    return next(step for step in steps if highest / step <= _LINES)


Steps = list[tuple[int, int, float]]
"""From slice, to slice, height on the page."""


def _steps(samples: Sequence[Sample], height: Callable[[Sample], float]) -> Steps:
    """Join neighbours of the same height."""
    steps, begin = [], 0
    for y, group in groupby(map(height, samples)):
        end = begin + sum(1 for _ in group)
        steps.append((begin, end, y))
        begin = end
    return steps


def _line(steps: Steps) -> str:
    first = steps[0][2]
    return f"M{_LEFT} {first:g}" + "".join(f"V{y:g}H{_LEFT + end}" for _, end, y in steps)


def _area(lower: Steps, upper: Steps, colour: str) -> str:
    """Fill between two lines."""
    back = "".join(f"V{y:g}H{_LEFT + begin}" for begin, _, y in reversed(lower))
    return f'<path d="{_line(upper)}{back}Z" fill="{colour}"/>'


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )

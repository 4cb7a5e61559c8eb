"""Draws replicas over time, and decisions on it, as SVG that the page's style sheet colours.

Pure: moments and decisions in, markup out. Every text of others is escaped. Shapes tell kinds of decisions
apart, not colours alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum, unique
from functools import cache

from markupsafe import Markup, escape

from splitter.core.reasons import Reason
from splitter.core.split_status import PastDecision
from splitter.plugin.dashboard.history import Moment
from splitter.plugin.report.meanings import meanings

_WIDTH, _LEFT, _RIGHT = 960, 44, 12
_PLOT = _WIDTH - _LEFT - _RIGHT
_LINES = 4
_MARK = 5.5
_LEVELS, _APART = 4, 22.0
_TICKS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600)
_MOST_TICKS = 8


@unique
class Sort(StrEnum):
    """What a decision is about."""

    LOSS = "loss"
    MOVE = "move"
    HANDOVER = "handover"
    ROLL = "roll"
    TROUBLE = "trouble"


WORDS = {
    Sort.LOSS: "spot lost or short",
    Sort.MOVE: "replicas moved",
    Sort.HANDOVER: "taken over, given back",
    Sort.ROLL: "rollout",
    Sort.TROUBLE: "trouble",
}
_LOSSES = frozenset(
    {
        Reason.SPOT_INTERRUPTED,
        Reason.SPOT_LOST,
        Reason.SPOT_SHORT,
        Reason.SPOT_BLOCKED,
        Reason.ON_DEMAND_DOOMED,
        Reason.ON_DEMAND_SHORT,
    }
)
_SORTS = {
    "Taking over and giving back": Sort.HANDOVER,
    "Rebalancing": Sort.MOVE,
    "Replicas that do not run": Sort.TROUBLE,
    "Templates and rollouts": Sort.ROLL,
    "Refusals and bad input": Sort.TROUBLE,
}


@cache
def _by_reason() -> Mapping[str, Sort]:
    sorts = {reason.value: _SORTS[meaning.section] for reason, meaning in meanings().items()}
    return sorts | {reason.value: Sort.LOSS for reason in _LOSSES}


def sort_of(decision: PastDecision) -> Sort:
    """Return what a decision is about."""
    return _by_reason().get(decision.reason, Sort.MOVE)


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is drawn."""

    begin: datetime
    end: datetime

    def x(self, at: datetime) -> float:
        """Return where an instant is."""
        share = (at - self.begin) / (self.end - self.begin)
        return round(_LEFT + _PLOT * min(1.0, max(0.0, share)), 1)


def span_of(begin: datetime, end: datetime) -> Span:
    """Return a span of a minute at least."""
    return Span(min(begin, end - timedelta(minutes=1)), end)


def fleet_picture(
    span: Span, seen: Sequence[Moment], said: Sequence[Moment], decisions: Iterable[PastDecision]
) -> Markup:
    """Return ready replicas of all workloads, and below them how many decisions there were, by sort."""
    height, lanes = 128, 16
    counted = _binned(span, decisions)
    shown = [sort for sort in Sort if any(counted[sort])]
    whole = height + lanes * len(shown) + 22
    parts = [_area(span, seen, said, 8, height - 8), *_time_axis(span, whole - 16)]
    for number, sort in enumerate(shown):
        y = height + 10 + lanes * number
        parts += [
            _mark(sort, _bin_x(place), y, f"{WORDS[sort]}: {count}")
            for place, count in enumerate(counted[sort])
            if count
        ]
    return _svg(whole, "Ready replicas and decisions over the last hours", parts)


def workload_picture(
    span: Span, seen: Sequence[Moment], said: Sequence[Moment], decisions: Sequence[PastDecision]
) -> Markup:
    """Return the replicas of one workload over time, each decision with its number and its sentence."""
    top, bottom, lane = 10, 128, 188
    parts = [_area(span, seen, said, top, bottom), *_time_axis(span, lane + 26)]
    # From the newest on; where marks would cover each other they go up, and then to the left.
    free = [_WIDTH + _APART] * _LEVELS
    for number, one in reversed(list(enumerate(decisions, 1))):
        if one.at < span.begin:
            break
        at_x = span.x(one.at)
        level = next((place for place, x in enumerate(free) if at_x <= x - _APART), free.index(max(free)))
        x = free[level] = min(at_x, free[level] - _APART)
        y = lane - 14 * level
        words = f"{number}. {one.at:%H:%M:%S} {one.reason}: {one.message}"
        parts.append(_tag("path", "drop", "", d=f"M{at_x} {top}V{bottom + 2}L{x:g} {y - 4}"))
        parts.append(_mark(sort_of(one), x, y, words))
        parts.append(_tag("text", "number", str(number), x=x + 7, y=y + 3.5))
    return _svg(lane + 42, "Replicas over time, with every decision", parts)


def key_picture(sort: Sort) -> Markup:
    """Return the mark of a sort of decisions, alone."""
    return Markup('<svg class="mark" viewBox="0 0 14 14" aria-hidden="true">{}</svg>').format(
        _mark(sort, 7, 7, "")
    )


def _svg(height: float, title: str, parts: Iterable[Markup]) -> Markup:
    inner = Markup("").join(parts)
    return Markup('<svg class="time" viewBox="0 0 {} {}" role="img"><title>{}</title>{}</svg>').format(
        _WIDTH, f"{height:g}", title, inner
    )


_BINS = 72
_BIN = _PLOT / _BINS


def _bin_x(place: int) -> float:
    return round(_LEFT + _BIN * (place + 0.5), 1)


def _binned(span: Span, decisions: Iterable[PastDecision]) -> dict[Sort, list[int]]:
    result = {sort: [0] * _BINS for sort in Sort}
    width = (span.end - span.begin) / _BINS
    for one in decisions:
        if span.begin <= one.at <= span.end:
            result[sort_of(one)][min(_BINS - 1, (one.at - span.begin) // width)] += 1
    return result


def _area(span: Span, seen: Sequence[Moment], said: Sequence[Moment], top: float, bottom: float) -> Markup:
    """Return replicas stacked: ready ones since they are seen, before that as many as were asked for."""
    seen_from = max(span.begin, seen[0].at) if seen else span.end
    before = [one for one in said if one.at < seen_from]
    highest = max([1, *(max(one.desired, sum(one.counts[1:])) for one in (*seen, *before))])

    def y_of(replicas: int) -> float:
        return round(bottom - (bottom - top) * replicas / highest, 1)

    def stacked(moments: Sequence[Moment], end: datetime, kind: str) -> Iterator[Markup]:
        on_demand = [(one.at, y_of(one.on_demand)) for one in moments]
        both = [(one.at, y_of(one.on_demand + one.spot)) for one in moments]
        whole = [(one.at, y_of(sum(one.counts[1:]))) for one in moments]
        ground = [(moments[0].at, bottom)]
        yield _tag("path", f"on-demand{kind}", "", d=_between(span, ground, on_demand, end))
        yield _tag("path", f"spot{kind}", "", d=_between(span, on_demand, both, end))
        if whole != both:
            yield _tag("path", f"going{kind}", "", d=_between(span, both, whole, end))

    parts: list[Markup] = []
    step = next(one for one in _steps() if highest / one <= _LINES)
    for replicas in range(0, highest + 1, step):
        y = y_of(replicas)
        parts.append(_tag("path", "grid", "", d=f"M{_LEFT} {y}H{_LEFT + _PLOT}"))
        parts.append(_tag("text", "axis end", str(replicas), x=_LEFT - 6, y=y + 4))
    if before:
        parts += stacked(before, seen_from, " said")
    if seen:
        parts += stacked(seen, span.end, "")
        wanted = [(one.at, y_of(one.desired)) for one in seen]
        parts.append(_tag("path", "wanted", "", d=_line(span, wanted, span.end)))
        if span.begin < seen_from:
            x = span.x(seen_from)
            parts.append(_tag("path", "opened", "", d=f"M{x} {top - 4}V{bottom}"))
    return Markup("").join(parts)


Steps = list[tuple[datetime, float]]
"""From when, at what height."""


def _line(span: Span, steps: Steps, end: datetime) -> str:
    result = [f"M{span.x(steps[0][0])} {steps[0][1]:g}"]
    result += [f"H{span.x(at)}V{y:g}" for at, y in steps[1:]]
    return "".join([*result, f"H{span.x(end)}"])


def _between(span: Span, lower: Steps, upper: Steps, end: datetime) -> str:
    back = [f"V{lower[-1][1]:g}"]
    for (_, y), (at, _) in zip(lower[-2::-1], lower[:0:-1], strict=False):
        back.append(f"H{span.x(at)}V{y:g}")
    return "".join([_line(span, upper, end), *back, f"H{span.x(lower[0][0])}Z"])


def _steps() -> Iterable[int]:
    scale = 1
    while True:
        yield from (scale, 2 * scale, 5 * scale)
        scale *= 10


def _time_axis(span: Span, y: float) -> list[Markup]:
    seconds = (span.end - span.begin).total_seconds()
    step_s = next((one for one in _TICKS if seconds / one <= _MOST_TICKS), _TICKS[-1])
    midnight = span.begin.replace(hour=0, minute=0, second=0, microsecond=0)
    first = int((span.begin - midnight).total_seconds() // step_s) + 1
    parts = []
    for number in range(first, first + _MOST_TICKS + 1):
        at = midnight + timedelta(seconds=number * step_s)
        if at <= span.end:
            x = span.x(at)
            parts.append(_tag("path", "grid", "", d=f"M{x} 4V{y}"))
            anchor = "end" if x > _LEFT + _PLOT - 20 else "middle"
            parts.append(_tag("text", f"axis {anchor}", f"{at:%H:%M}", x=x, y=y + 14))
    return parts


def _mark(sort: Sort, x: float, y: float, title: str) -> Markup:
    """Return a shape: a diamond, a disc, a square, a triangle or a cross."""
    r = _MARK
    shapes = {
        Sort.LOSS: f"M{x} {y - r}l{r} {r}l{-r} {r}l{-r} {-r}Z",
        Sort.MOVE: f"M{x - 4} {y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
        Sort.HANDOVER: f"M{x - 4} {y - 4}h8v8h-8Z",
        Sort.ROLL: f"M{x} {y - r}l{r} {2 * r - 1.5}h{-2 * r}Z",
        Sort.TROUBLE: f"M{x - 4} {y - 4}l8 8m0 -8l-8 8",
    }
    titled = Markup("<title>{}</title>").format(title) if title else Markup("")
    return Markup('<path class="m {}" d="{}">{}</path>').format(sort.value, shapes[sort], titled)


def _tag(name: str, kind: str, text: str, **attributes: object) -> Markup:
    written = Markup("").join(
        Markup(' {}="{}"').format(key, f"{value:g}" if isinstance(value, float) else value)
        for key, value in attributes.items()
    )
    return Markup('<{0} class="{1}"{2}>{3}</{0}>').format(Markup(name), kind, written, escape(text))  # noqa: S704 (a word of ours)

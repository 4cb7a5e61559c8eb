"""The table, the raw figures and the picture of what the users of both Services saw.

Pure. A figure counts from the segment's event; a request belongs to the second in which it began.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from lab.bench.traffic.stage import PLAIN, SPLITTER, SYSTEMS, N, Seen, Segment

_SETTLED = ("labelled", "new image", "scaled", "given back", "return")
_WIDTH, _BAND, _LEFT = 960, 110, 60
_LABEL = 95  # of a reason's word, about
_FONT = 'font-family="sans-serif" font-size="12"'


@dataclass(frozen=True, slots=True)
class Figures:
    """One system in one segment: requests, when the first and the last failed (seconds), and replicas."""

    sent: int
    failed: int
    first_s: float | None
    last_s: float | None
    lowest: int
    below_s: float

    @classmethod
    def of(cls, segment: Segment, seen: Seen) -> "Figures":
        """Return the figures of a system."""
        failures = [failure.at - segment.event.wall_s for failure in seen.requests.failures]
        return cls(
            sent=seen.requests.sent,
            failed=len(failures),
            first_s=round(failures[0], 2) if failures else None,
            last_s=round(failures[-1], 2) if failures else None,
            lowest=seen.timeline.lowest_available(segment.between),
            below_s=round(seen.timeline.seconds_below(N, segment.between), 2),
        )

    def __str__(self) -> str:
        """Return it as a cell."""
        when = "" if self.last_s is None else f", {self.first_s:.1f} to {self.last_s:.1f} s"
        return f"{self.failed} of {self.sent}{when}; {self.lowest}; {self.below_s:.1f} s"


def markdown(segments: Sequence[Segment]) -> str:
    """Return the table: a row a segment, a column a system."""
    head = ("scene: failed of sent, from when to when; fewest replicas; seconds below N", *SYSTEMS)
    rows = [
        (each.name, *(str(Figures.of(each, each.seen[system])) for system in SYSTEMS)) for each in segments
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def misses(segments: Iterable[Segment]) -> list[str]:
    """Return one sentence for each figure that is not as it is to be."""
    collected = []
    for each in segments:
        ours = Figures.of(each, each.seen[SPLITTER])
        theirs = Figures.of(each, each.seen[PLAIN])
        if each.name in _SETTLED and (ours.failed or ours.lowest < N):
            collected.append(f"{each.name}: {ours}, to reach 0 failed and never under {N}")
        if each.name.startswith(("drained", "notice")) and ours.failed:
            collected.append(f"{each.name}: {ours.failed} failed, to reach 0")
        if each.name == "lost, Nodes deleted":
            late = _after(each, SPLITTER, 2)
            collected += [f"{each.name}: {late} failed that began more than 2 s later"] if late else []
            if ours.failed >= 0.02 * theirs.failed:
                collected.append(f"{each.name}: {ours.failed} failed, to reach 2 % of {theirs.failed}")
        if each.name == "lost, Nodes left" and (late := _after(each, SPLITTER, 3)):
            collected.append(f"{each.name}: {late} failed that began more than 3 s after Unknown")
        if each.name.startswith("lost") and not theirs.failed:
            collected.append(f"{each.name}: the plain Deployment lost nothing, so this run proves nothing")
    return collected


def _after(segment: Segment, system: str, seconds: float) -> int:
    failures = segment.seen[system].requests.failures
    return sum(failure.at - segment.event.wall_s > seconds for failure in failures)


def raw(segments: Sequence[Segment], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything but the single requests, for the JSON file."""
    return {
        "machine": dict(machine),
        "misses": misses(segments),
        "segments": [
            {
                "name": each.name,
                **{
                    system: {
                        **{
                            name: getattr(Figures.of(each, seen), name)
                            for name in Figures.__dataclass_fields__
                        },
                        "reasons": dict(Counter(failure.reason for failure in seen.requests.failures)),
                        "ways": dict(Counter(failure.way for failure in seen.requests.failures)),
                    }
                    for system, seen in each.seen.items()
                },
            }
            for each in segments
        ],
    }


def svg(segment: Segment) -> str:
    """Return the picture of a segment: answers, failures, replicas and what splitter said, on one axis."""
    began, ended = segment.between.start, segment.between.end
    length_s = max(1.0, ended.monotonic_s - began.monotonic_s)
    scale = (_WIDTH - _LEFT - 20) / length_s
    height = len(SYSTEMS) * (_BAND + 50) + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_FONT}>',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-weight="bold">{escape(segment.name)}</text>',
    ]
    for number, system in enumerate(SYSTEMS):
        top = 40 + number * (_BAND + 50)
        parts += _band(segment, system, top, scale)
    for second in range(0, int(length_s) + 1, max(1, int(length_s) // 10)):
        from_event = second - (segment.event.monotonic_s - began.monotonic_s)
        parts.append(
            f'<text x="{_LEFT + second * scale:.1f}" y="{height - 10}" fill="#555">{from_event:.0f} s</text>'
        )
    at = _LEFT + (segment.event.monotonic_s - began.monotonic_s) * scale
    parts.append(
        f'<line x1="{at:.1f}" x2="{at:.1f}" y1="30" y2="{height - 25}" stroke="#888" stroke-dasharray="4"/>'
    )
    return "\n".join([*parts, "</svg>", ""])


def _band(segment: Segment, system: str, top: float, scale: float) -> list[str]:
    seen, began = segment.seen[system], segment.between.start
    floor = top + _BAND
    most = max([sum(second.sent.values()) for second in seen.requests.seconds] or [1])
    parts = [f'<text x="4" y="{top + 12}">{system}</text>']
    for second in seen.requests.seconds:
        x = _LEFT + max(0.0, second.at - began.wall_s) * scale
        for count, colour, base in (
            (sum(second.pods.values()), "#cfe3cf", 0),
            (sum(second.failed.values()), "#d33", sum(second.pods.values())),
        ):
            if count:
                y = floor - (base + count) / most * _BAND
                size = f'width="{scale:.1f}" height="{count / most * _BAND:.1f}"'
                parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{colour}"/>')
    highest = max(N, seen.timeline.available.highest(segment.between))
    line = []
    for from_s, until_s, value in seen.timeline.available.stretches(segment.between):
        y = floor - value / highest * _BAND
        line += [f"{_LEFT + (at - began.monotonic_s) * scale:.1f},{y:.1f}" for at in (from_s, until_s)]
    parts.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="#124" stroke-width="1.5"/>')
    wanted = floor - N / highest * _BAND
    parts.append(f'<text x="{_LEFT - 18}" y="{wanted + 4:.1f}" fill="#124">{N}</text>')
    written: dict[int, float] = {}  # the row of a label -> where the last one in it ends
    said_at: dict[str, float] = {}
    for at, reason in seen.said:
        x = _LEFT + max(0.0, at - began.wall_s) * scale
        again = x - said_at.get(reason, -_WIDTH) < _LABEL
        if again or not began.wall_s - 1 <= at <= segment.between.end.wall_s:
            continue
        said_at[reason] = x
        row = next(number for number in range(len(written) + 1) if written.get(number, 0) <= x)
        written[row] = x + _LABEL
        y = floor + 12 + 11 * row
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="10" fill="#555">{escape(reason)}</text>')
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{floor}" stroke="#bbb"/>')
    return parts

"""A recording of the demo for people who do not run it: one animated picture (SVG) of a few kilobytes.

`screen` passes on every line. `take` keeps what the screen shows at the end of a step: the heading, what was
said, and the table. `draw` shows these frames in turn, by CSS alone, so it moves as an image in a README.
Where nothing moves, and for people who prefer that, the last frame is shown: the verdict.
"""

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

FRAME_S = 4.0
_COLUMNS, _MOST_ROWS = 80, 36
_WIDTH, _HEIGHT = 8, 17  # pixels of a character of 13 px
# Of a step, decisions are many and alike: the first tell what kind they are.
_DECISIONS = 3
_NAMESPACE = "http://www.w3.org/2000/svg"
_STYLE = (
    "text{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d8dee9}"
    ".h{font-weight:bold;fill:#88d0c8}.c{font-weight:bold;fill:#fff}.d{fill:#8fb8e8}.g{fill:#a3d977}.b{fill:#ff7b72}"
)


class Line(NamedTuple):
    """A line of a frame; `kind` is a letter: heading, command, decision, good, bad, or text."""

    kind: str
    text: str


Frame = tuple[Line, ...]


class Recording:
    """What was on the screen, frame by frame."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._lines: list[Line] = []
        self._decisions = 0

    def heading(self, title: str) -> None:
        """Begin a step."""
        self._lines, self._decisions = [Line("h", f"== {title}"), Line("t", "")], 0

    def note(self, kind: str, lines: Sequence[str]) -> None:
        """Note what was said, wrapped as it was on the screen."""
        self._decisions += kind == "d"
        if kind != "d" or self._decisions <= _DECISIONS:
            self._lines += (Line(kind, line) for line in lines)

    def take(self, table: Sequence[str]) -> None:
        """Keep the screen as it is now, with a table."""
        more = self._decisions - _DECISIONS
        note = [Line("d", f"{'':9}and {more} decisions more")] if more > 0 else []
        rows_left = _MOST_ROWS - len(table) - len(note) - 1
        rows = [Line("t", row.rstrip()) for row in ("", *table)] if table else []
        self.frames.append((*self._lines[:rows_left], *note, *rows))
        self._lines, self._decisions = [], 0


def draw(frames: Sequence[Frame]) -> str:
    """Return the picture, an SVG that needs nothing else.

    >>> draw([(Line("t", "a < b"),)]).count("a &lt; b")
    1
    """
    width, height = _COLUMNS * _WIDTH + 32, max(map(len, frames), default=0) * _HEIGHT + 32
    share, all_s = 100 / max(1, len(frames)), FRAME_S * len(frames)
    moves = (
        f"@keyframes f{{0%{{visibility:visible}}{share:.3f}%{{visibility:hidden}}100%{{visibility:hidden}}}}"
        f".f{{visibility:hidden}}.f:last-child{{visibility:visible}}"
        f"@media(prefers-reduced-motion:no-preference){{.f{{animation:f {all_s:g}s step-end infinite}}}}"
    )
    drawn = [
        f'<svg xmlns="{_NAMESPACE}" viewBox="0 0 {width} {height}" xml:space="preserve" role="img">',
        "<title>A run of the demo, one frame for each step</title>",
        f"<style>{_STYLE}{moves}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#10191f"/>',
    ]
    for number, frame in enumerate(frames):
        drawn.append(f'<g class="f" style="animation-delay:{FRAME_S * number - all_s:g}s">')
        drawn += (
            f'<text class="{line.kind}" x="16" y="{30 + _HEIGHT * row}">{escape(line.text)}</text>'
            for row, line in enumerate(frame)
            if line.text
        )
        drawn.append("</g>")
    return "\n".join([*drawn, "</svg>", ""])

"""The columns of the table: which figures each has, how they are written, and what splitter is to reach.

Pure. `rounds` measures the figures by these keys, `report` prints them. The targets are the last row of the
table of docs/compare.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lab.bench.compare.scenario import LONG_NOTICE_S, SOAK_S, SPOT_WANTED, SURGE, N

Measured = Mapping[str, float | None]
"""Figures by key; None: it did not happen while we looked."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number: replicas, replica-seconds or (`unit` "s") seconds, and what it is to be, if anything."""

    key: str
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    def written(self, value: float | None) -> str:
        """Return the number as the table shows it; fractions are rounded up, never in anyone's favour."""
        if value is None:
            return "never"
        number = f"{math.ceil(round(value * 10, 6)) / 10:g}"
        return f"{number} {self.unit}" if self.unit else number

    @property
    def target(self) -> str:
        """Return what is to be reached, `-` when nothing is asked."""
        if self.at_least is not None and self.at_least == self.at_most:
            return self.written(self.at_least)
        if self.at_least is not None:
            return f">= {self.written(self.at_least)}"
        return "-" if self.at_most is None else f"<= {self.written(self.at_most)}"

    def reached(self, value: float | None) -> bool:
        """Say whether a value is as asked for; what never happened is not, unless nothing is asked."""
        if self.at_least is None and self.at_most is None:
            return True
        if value is None:
            return False
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True, slots=True)
class Column:
    """One event, and the figures that are read off it."""

    key: str
    title: str
    figures: tuple[Figure, ...]

    @property
    def heading(self) -> str:
        """Return the head of the column, such as `gone at once: lost; back after`."""
        return f"{self.title}: {'; '.join(figure.key for figure in self.figures)}"

    def written(self, measured: Measured) -> str:
        """Return one cell."""
        return "; ".join(figure.written(measured[figure.key]) for figure in self.figures)

    @property
    def target(self) -> str:
        """Return the cell of what is to be reached."""
        return "; ".join(figure.target for figure in self.figures)

    def misses(self, measured: Measured) -> list[str]:
        """Return one sentence for each figure that is not as it is to be."""
        return [
            f"{self.title}: {figure.key} is {figure.written(measured[figure.key])}, to reach {figure.target}"
            for figure in self.figures
            if not figure.reached(measured[figure.key])
        ]


_LOST_NOTHING = Figure("lost", at_most=0)
_NEVER_BELOW_N = Figure("min", at_least=N)
_WITHIN_SURGE = Figure("max", at_most=N + SURGE)
_RETURN = (Figure("complete after", "s", at_least=SOAK_S), _LOST_NOTHING, _WITHIN_SURGE)

COLUMNS = (
    Column("take-over", "take-over", (_LOST_NOTHING, _WITHIN_SURGE)),
    Column(
        "b",
        "b: notice, gone 30 s later",
        (_NEVER_BELOW_N, _LOST_NOTHING, Figure("max", at_most=N + SPOT_WANTED)),
    ),
    Column("c", "c: gone at once", (Figure("lost", at_most=96), Figure("back after", "s", at_most=7))),
    Column("orphans", "c, pods left to Kubernetes", (Figure("lost"), Figure("back after", "s"))),
    Column("d", "d: return", _RETURN),
    Column("d-slow", "d: return, slow starters", _RETURN),
    Column(
        "e",
        "e: three outages",
        (Figure("lost", at_most=110), Figure("returns", at_most=1), Figure("dips", at_most=0)),
    ),
    Column("image", "image change", (_NEVER_BELOW_N, _LOST_NOTHING, _WITHIN_SURGE)),
    Column("image-in-cover", "image change in cover", (_NEVER_BELOW_N, _LOST_NOTHING, Figure("max"))),
    Column(
        "long-notice",
        f"notice of {LONG_NOTICE_S:g} s, slow starters",
        (_LOST_NOTHING, Figure("max"), Figure("over the bound", at_most=0)),
    ),
)
"""In the order of that table, and what it has not at the end of each group."""

"""What a person sees of the demo: a log that scrolls, a live table below it, and the verdict.

`journey` tells it things; it decides nothing. On a terminal the table of the splits stands below the log
and is drawn anew while it changes; elsewhere everything is plain lines of 80 columns without colours or
control characters, and the table is printed at the end of each step.
"""

import textwrap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from lab.demo.promises import Judged
from lab.demo.recording import Recording
from lab.sandbox.real.traffic import Requests

Row = tuple[str, ...]

PLAIN_COLUMNS = 80
_COLUMNS = ("workload", "desired", "on-demand", "spot", "ready", "state", "reason")
_NUMBERS = frozenset({"desired", "on-demand", "spot", "ready"})
_REDRAWS_A_SECOND = 4
# How a line looks, by the kinds of `recording.Line`.
_STYLES = {"t": "", "c": "bold", "g": "green", "b": "bold red", "d": "cyan"}


def make_console() -> Console:
    """Return a console for standard output: rich on a terminal, plain lines of 80 columns elsewhere."""
    console = Console(highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        return console
    return Console(highlight=False, width=PLAIN_COLUMNS, force_terminal=False, color_system=None)


class Screen:
    """The log and the table; use it in a `with`. `rows` is asked for the table's rows at each drawing."""

    def __init__(self, console: Console, recording: Recording | None = None) -> None:
        self._console = console
        self._recording = recording
        self._plain = not console.is_terminal
        self._began_s = time.monotonic()
        self._rows: Callable[[], Sequence[Row]] = tuple
        self._below: Callable[[], str] | None = None
        self._title = ""
        self._live: Live | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Begin to draw."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing; the log stays."""
        self.stop_table()

    def show_table(self, rows: Callable[[], Sequence[Row]]) -> None:
        """Show the live table from now on; without a terminal, `print_table` prints it."""
        self._rows = rows
        if not self._plain:
            self._live = Live(
                get_renderable=self._drawn,
                console=self._console,
                refresh_per_second=_REDRAWS_A_SECOND,
                transient=True,
            )
            self._live.start()

    def show_below(self, line: Callable[[], str]) -> None:
        """Show one more line below the table from now on."""
        self._below = line

    def stop_table(self) -> None:
        """Remove the live table."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def print_table(self) -> None:
        """Print the table as it is now, once."""
        with self._lock:
            self._console.print()
            self._console.print(split_table(self._rows()))
            if self._below is not None:
                self._console.print(Text(self._below()))
            self._console.print()
            self._take(split_table(self._rows()))

    def end_recording(self) -> None:
        """Take the last frame: what was said since the last table, as the verdict is."""
        with self._lock:
            self._take(None)

    def _take(self, table: Table | None) -> None:
        if self._recording is not None:
            self._recording.take(as_lines(table) if table is not None else [])

    def heading(self, title: str) -> None:
        """Begin a step."""
        self._title = title
        with self._lock:
            if self._recording is not None:
                self._recording.heading(title)
            self._console.print()
            if self._plain:
                self._console.print(Text(f"== {title}"))
            else:
                self._console.print(Rule(Text(title, style="bold"), align="left", style="cyan"))

    def tell(self, line: str) -> None:
        """Say something about the demo itself."""
        self._print(f"{self._clock()} {line}", indent=8, kind="t")

    def command(self, line: str) -> None:
        """Show a command that a user would type."""
        self._print(f"{self._clock()} $ {line}", indent=10, kind="c")

    def good(self, line: str) -> None:
        """Say that something was checked and holds."""
        self._print(f"{self._clock()} {line}", indent=8, kind="g")

    def bad(self, line: str) -> None:
        """Say that something does not hold."""
        self._print(f"{self._clock()} {line}", indent=8, kind="b")

    def decision(self, workload: str, reason: str, sentence: str) -> None:
        """Show one decision of splitter's."""
        self._print(f"{self._clock()} {workload:<9} {reason}: {sentence}", indent=18, kind="d")

    def verdict(self, judged: Sequence[Judged], workloads: Sequence[str]) -> None:
        """Print the verdict about all steps."""
        self.stop_table()
        with self._lock:
            table = verdict_table(judged, workloads)
            self._console.print()
            self._console.print(table)
            if self._recording is not None:
                self._recording.note("t", as_lines(table))

    def _clock(self) -> str:
        return f"{time.monotonic() - self._began_s:6.1f}s"

    def _print(self, line: str, *, indent: int, kind: str) -> None:
        # Wrapped here, with a hanging indent, so that sentences stay apart from what they are about.
        first, *rest = line.splitlines()
        hang = " " * indent
        lines = textwrap.wrap(first, self._console.width, subsequent_indent=hang)
        for more in rest:  # of a log, for instance
            lines += textwrap.wrap(more, self._console.width, initial_indent=hang, subsequent_indent=hang)
        with self._lock:
            self._console.print(Text("\n".join(lines), style=_STYLES[kind]))
            if self._recording is not None:
                self._recording.note(kind, lines)

    def _drawn(self) -> RenderableType:
        title = Text(f"{self._clock()} {self._title}", style="bold")
        below = [Text(self._below(), style="bold")] if self._below is not None else []
        return Group(Text(""), title, split_table(self._rows()), *below)


def as_lines(table: Table) -> list[str]:
    """Return a table as plain lines of 80 columns."""
    console = Console(width=PLAIN_COLUMNS, force_terminal=False, color_system=None)
    with console.capture() as shown:
        console.print(table)
    return shown.get().splitlines()


def requests_line(requests: Requests) -> str:
    """Return the line about requests."""
    return f"requests: {requests.sent:,} sent, {len(requests.failures):,} failed"


def split_table(rows: Sequence[Row]) -> Table:
    """Return the table of the Splits."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in _COLUMNS:
        table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def verdict_table(judged: Sequence[Judged], workloads: Sequence[str]) -> Table:
    """Return the verdict, in replicas and milliseconds.

    For each step and workload: the lowest available count against the floor, the highest number of pods
    against the bound, and in the outage how long after the first taint on-demand was first raised, and
    asked for all replicas.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("step", no_wrap=True)
    table.add_column("sec", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in workloads:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("promise", no_wrap=True)
    for step in judged:
        cells = [step.cells[name] for name in workloads]
        floors = [_against(cell.lowest, cell.floor, kept=cell.floor_kept) for cell in cells]
        bounds = [_against(cell.highest, cell.bound, kept=cell.bound_kept) for cell in cells]
        table.add_row(
            step.name,
            f"{step.took_s:.0f}",
            "available",
            *floors,
            _word(kept=all(cell.floor_kept for cell in cells)),
        )
        table.add_row("", "", "pods", *bounds, _word(kept=all(cell.bound_kept for cell in cells)))
        if step.noticed:
            table.add_row("", "", "write ms", *(_milliseconds(cell.write_s) for cell in cells))
            table.add_row("", "", "cover ms", *(_milliseconds(cell.cover_s) for cell in cells))
        if step.restored is not None:
            marks = [_restored(name, step.restored) for name in workloads]
            table.add_row("", "", "restored", *marks, _word(kept=all(step.restored.values())))
        if step.stopped:
            table.add_row("", "", "settled", *("" for _ in workloads), _word(kept=False))
    return table


def _against(number: int, limit: int | None, *, kept: bool) -> Text:
    text = f"{number}/{'-' if limit is None else limit}"
    return Text(text) if kept else Text(f"!{text}", style="bold red")


def _milliseconds(seconds: float | None) -> Text:
    return Text("-" if seconds is None else f"{seconds * 1000:.0f}")


def _restored(name: str, restored: Mapping[str, bool]) -> Text:
    if name not in restored:
        return Text("")
    return Text("yes") if restored[name] else Text("!no", style="bold red")


def _word(*, kept: bool) -> Text:
    return Text("kept", style="green") if kept else Text("BROKEN", style="bold red")

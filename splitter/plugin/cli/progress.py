"""Shows on standard error how far a command is, where that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from splitter.report.printable import printable

Tell = Callable[[str, float | None], object]
"""Takes what is done now, and the share of it that is done; None: nobody knows how much there is."""


@contextmanager
def progress(*, wanted: bool = True) -> Iterator[Tell]:
    """Yield who shows a bar until the end of the block; what is piped or kept in a file gets none."""
    if not wanted or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("looking", total=None)
        yield lambda stage, share: bar.update(
            task,
            description=escape(printable(stage)),
            total=None if share is None else 1.0,
            completed=share or 0.0,
        )

"""What each reason means and what to do about it, as docs/reference/reasons.md says it.

The page is the only place where that is written, and it travels with splitter. `splitter explain` shows the
remedy beside what is not as it should be; the dashboard tells decisions apart by the sections of the page.
What is decided, and whether it is a Warning, is decided where the reason is said (docs/adr/0085).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from splitter.bundled import bundled_path
from splitter.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Meaning:
    """One reason for people: its row of the page, in Markdown. A link is relative to the page.

    `section` is the heading above the row, `event` the type of the Event; empty: there is none.
    """

    section: str
    event: str
    means: str
    remedy: str


def read_meanings(page: str) -> Iterator[tuple[Reason, Meaning]]:
    """Yield what the tables of the page say. Raises ValueError for a reason that there is not."""
    section, columns = "", list[str]()
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif "reason" in cells:
            columns = cells
        elif cells and cells[0].startswith("`"):
            row = dict(zip(columns, cells, strict=True))
            meaning = Meaning(section, row["type"], row["what it means"], row["what to do"])
            yield Reason(row["reason"].strip("`")), meaning


@cache
def meanings() -> Mapping[Reason, Meaning]:
    """Return what the page says, read once. Raises FileNotFoundError where it is not installed."""
    return dict(read_meanings(bundled_path("docs/reference/reasons.md").read_text(encoding="utf-8")))

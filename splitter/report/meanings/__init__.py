"""What each reason means and what to do about it: the tables of `docs/reference/reasons.md`.

`splitter explain` shows the remedy beside what is not as it should be; `tests/test_reference.py` keeps the
page in step (`reasons_tables`). What is decided, and whether it is a Warning, is decided where the reason
is said: this only repeats it for readers, and nothing else depends on it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from splitter.core.reasons import Reason
from splitter.report.meanings.meaning import Meaning
from splitter.report.meanings.moves import HAND_OVERS, REBALANCING
from splitter.report.meanings.refusals import REFUSALS
from splitter.report.meanings.troubles import ROLLOUTS, TROUBLES

# By the headings of the page.
SECTIONS: Final[Mapping[str, Mapping[Reason, Meaning]]] = {
    "Taking over and giving back": HAND_OVERS,
    "Rebalancing": REBALANCING,
    "Replicas that do not run": TROUBLES,
    "Templates and rollouts": ROLLOUTS,
    "Refusals and bad input": REFUSALS,
}
MEANINGS: Final[Mapping[Reason, Meaning]] = {
    reason: meaning for section in SECTIONS.values() for reason, meaning in section.items()
}

__all__ = ["MEANINGS", "SECTIONS", "Meaning", "reasons_tables"]


def reasons_tables() -> dict[str, str]:
    """Return the table of each section in Markdown, by its heading."""
    return {heading: "\n".join(_table(section)) for heading, section in SECTIONS.items()}


def _table(section: Mapping[Reason, Meaning]) -> Iterator[str]:
    columns = ["reason", "type", "what it means", "what to do"]
    moves = any(meaning.moves for meaning in section.values())
    if moves:
        columns.insert(2, "moves")
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for reason, meaning in section.items():
        cells = [f"`{reason}`", meaning.event, meaning.means, meaning.remedy]
        if moves:
            cells.insert(2, meaning.moves)
        yield "| " + " | ".join(cells).rstrip() + " |"

"""What each reason means and what to do about it: the tables of `docs/reference/reasons.md`.

`splitter explain` shows the remedy beside what is not as it should be; `tests/test_reference.py` keeps the
page in step. What is decided, and whether it is a Warning, is decided where the reason
is said: this only repeats it for readers, and nothing else depends on it.
"""

from collections.abc import Mapping
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

__all__ = ["MEANINGS", "SECTIONS", "Meaning"]

"""What a Split remembers of how long its workload's pods take to start (`core.start_times`).

The last few times themselves, in whole seconds: old ones make room for new ones, and people can read them.
At most 80 small numbers. Source: R28; docs/adr/0055.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from splitter.core.split_status.values import Kept, count, instant, kept, listed, ordinal, whole_seconds

LONGEST_START_S = 3600
"""A pod that was Ready later than this had become unready in between: that is no start."""
LONGEST_GRACE_S = 600
"""A spot node that comes later than this was not being bought: there was none. No grace grows beyond it."""
KEPT = 20
"""Times remembered for each pool."""


def _at_most(most_s: int, read: Callable[[object], int | None]) -> Callable[[object], int | None]:
    def bounded(value: object) -> int | None:
        seconds = read(value)
        return seconds if seconds is not None and seconds <= most_s else None

    return bounded


@dataclass(frozen=True, slots=True)
class PoolStarts(Kept):
    """The last times of one pool, in whole seconds, the newest last."""

    start_s: tuple[int, ...] = kept("startSeconds", listed(_at_most(LONGEST_START_S, ordinal), KEPT))
    """From scheduled to Ready."""
    node_s: tuple[int, ...] = kept("nodeSeconds", listed(_at_most(LONGEST_GRACE_S, ordinal), KEPT))
    """From created to scheduled: 0 where there was room, else until a node was bought."""


@dataclass(frozen=True, slots=True)
class StartTimes(Kept):
    """What is known of one workload's starts."""

    until: datetime | None = kept("until", instant, whole_seconds)
    """Pods that were bound until then have been counted."""
    notice_s: int | None = kept("noticeSeconds", _at_most(LONGEST_START_S, count))
    """How long the notice of the spot nodes lasts on which it stood last; None: it never stood on any."""
    on_demand: PoolStarts = kept("onDemand", PoolStarts.from_json)
    spot: PoolStarts = kept("spot", PoolStarts.from_json)


NOTHING_LEARNED = StartTimes()
"""Of a workload of which no start was seen."""

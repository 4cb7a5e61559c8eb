"""What goes wrong when: a round of chaos, drawn from a seed, so that it can be printed and played again.

Pure. The same seed and number give the same round, whatever was played before. `run` plays it; how long
things take, and so which requests a fault meets, is the machine's and not the seed's.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lab.chaos.faults import RIGHTS, Fault, Stroke


class Event(StrEnum):
    """What happens in the world around splitter, in one word each; `world` does it."""

    NOTICE = "notice"
    CONDITION = "condition"
    CORDON = "cordon"
    VANISH = "vanish"
    ALL_VANISH = "all-vanish"
    FALL_SILENT = "fall-silent"
    FLAP = "flap"
    ON_DEMAND_VANISHES = "on-demand-vanishes"
    SCALE = "scale"
    IMAGE = "image"
    RELABEL = "relabel"
    TWIN_EDITED = "twin-edited"
    TWIN_DELETED = "twin-deleted"
    POD_DELETED = "pod-deleted"
    SPLIT_DELETED = "split-deleted"
    CRASH = "crash"
    CRASH_BOTH = "crash-both"
    PAUSE = "pause"
    MANAGER_STOPS = "manager-stops"
    SCHEDULER_STOPS = "scheduler-stops"
    SERVER_STOPS = "server-stops"
    DATABASE_STOPS = "database-stops"
    CRD_REMOVED = "crd-removed"
    SET_BROKEN = "set-broken"
    CLOCK_JUMPS = "clock-jumps"
    NODE_STORM = "node-storm"
    NEVER_READY = "never-ready"


# In which a machine that workloads stand on goes.
MACHINES_GO = frozenset(
    {
        Event.NOTICE,
        Event.CONDITION,
        Event.CORDON,
        Event.VANISH,
        Event.ALL_VANISH,
        Event.FALL_SILENT,
        Event.FLAP,
        Event.ON_DEMAND_VANISHES,
    }
)
# More replicas than N + S are excused then, as far as promise 2 says.
EMERGENCIES = MACHINES_GO | {Event.TWIN_DELETED, Event.POD_DELETED}
ROUND_S = 30.0
_FAULTS, _EVENTS = (2, 4), (2, 4)
_FAULT_S, _EVENT_S = (3.0, 15.0), (4.0, 15.0)
_CHOICES = 1_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that goes wrong, from `at_s` seconds after the round's beginning, for `for_s` seconds.

    `which` picks a workload, a node or a count out of those there are.
    """

    at_s: float
    for_s: float
    what: Stroke | Event
    which: int = 0

    @property
    def name(self) -> Fault | Event:
        """Its one word."""
        return self.what.fault if isinstance(self.what, Stroke) else self.what

    def __str__(self) -> str:
        """Return one line of the printed schedule."""
        number = "" if isinstance(self.what, Stroke) else f" #{self.which}"
        return f"{self.at_s:5.1f} s  for {self.for_s:4.1f} s  {self.what}{number}"


def drawn(
    seed: int,
    number: int,
    faults: tuple[Fault, ...] = tuple(Fault),
    events: tuple[Event, ...] = tuple(Event),
) -> tuple[Entry, ...]:
    """Return a round's entries by time; no fault and no event twice.

    Example: `drawn(7, 3)` is what `make chaos CHAOS="--seed 7 --only 3"` plays.
    """
    dice = random.Random(f"{seed}/{number}")
    entries = [*_strokes(dice, faults), *_events(dice, events)]
    return tuple(sorted(entries, key=lambda entry: entry.at_s))


def _strokes(dice: random.Random, faults: tuple[Fault, ...]) -> Iterator[Entry]:
    for fault in dice.sample(faults, min(len(faults), dice.randint(*_FAULTS))):
        stroke = Stroke(fault, dice.randrange(_CHOICES), dice.randrange(len(RIGHTS)))
        yield _placed(dice, stroke, _FAULT_S)


def _events(dice: random.Random, events: tuple[Event, ...]) -> Iterator[Entry]:
    for event in dice.sample(events, min(len(events), dice.randint(*_EVENTS))):
        yield _placed(dice, event, _EVENT_S)


def _placed(dice: random.Random, what: Stroke | Event, lasts_s: tuple[float, float]) -> Entry:
    for_s = round(dice.uniform(*lasts_s), 1)
    at_s = round(dice.uniform(0, ROUND_S - for_s), 1)
    return Entry(at_s, for_s, what, dice.randrange(_CHOICES))

"""What happens in a day: a public spot trace for the nodes, and what users and operators do beside it.

Pure, and drawn from a seed, so that it can be printed and played again. A day has 24 hours, each of which
takes `hour_s` seconds here; in its first part things happen, in the rest all may come to rest. `town` does
what is drawn.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lab.traces import Trace

HOURS = 24
HOUR_S = 50.0
"""A day in 20 minutes."""
FIRST_NODES = 4
"""Spot nodes that are there when the first day begins."""
BUSY = 0.6
"""The part of an hour in which things happen."""
_MORE = 4  # at noon a workload has so many replicas more than at midnight
_NOTICE_S = 5.0
_DEPLOYS, _POLICIES, _UPGRADES, _NOTICES = 0.4, 0.2, 0.15, 0.5


class What(StrEnum):
    """One thing that people, or a cloud, do."""

    SCALE = "scale"
    DEPLOY = "deploy"
    POLICY = "policy"
    NODE_COMES = "node comes"
    NODE_NOTICED = "node is announced to go"
    NODE_GOES = "node goes"
    NODE_REPLACED = "on-demand node is replaced"
    RESTARTED = "splitter is killed and started"
    LEADER_CHANGES = "another splitter leads"


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing, so many seconds after the beginning of its hour.

    `part` is the workload's place in the cast; `number` are the replicas above its least, or the on-demand
    base; `percent` the share of spot; `node` a name of the trace, with its day.
    """

    at_s: float
    what: What
    part: int = 0
    number: int = 0
    percent: int = 0
    node: str = ""

    def __str__(self) -> str:
        """Return one line of the printed day."""
        details = {
            What.SCALE: f" workload {self.part}: {self.number} above its least",
            What.DEPLOY: f" workload {self.part}",
            What.POLICY: f" workload {self.part}: base {self.number}, {self.percent} % of the rest on spot",
        }
        return f"{self.at_s:5.1f} s  {self.what}{details.get(self.what, f' {self.node}')}".rstrip()


RESTARTS = {5: What.RESTARTED, 11: What.RESTARTED, 16: What.LEADER_CHANGES, 21: What.RESTARTED}
"""By the hour of the day, in its middle, where splitter is to be restarted."""


def hour(
    seed: int, number: int, trace: Trace, parts: int, hour_s: float = HOUR_S, *, restarts: bool = False
) -> tuple[Deed, ...]:
    """Return what happens in hour `number` of the run, by time; hour 24 is the first of the second day.

    Example: `hour(7, 0, trace, 5)` begins with the nodes that the trace begins with.
    """
    dice = random.Random(f"{seed}/{number}")
    busy_s = BUSY * hour_s
    deeds = [*_nodes(dice, number, trace, busy_s), *_people(dice, number, parts, busy_s)]
    if restarts and (what := RESTARTS.get(number % HOURS)):
        deeds.append(Deed(round(busy_s / 2, 1), what))
    return tuple(sorted(deeds, key=lambda deed: deed.at_s))


def _nodes(dice: random.Random, number: int, trace: Trace, busy_s: float) -> Iterator[Deed]:
    day, of_day = divmod(number, HOURS)
    span_s = trace.duration_s / HOURS
    for change in trace.changes:
        # The last change is at the very end of the trace, and belongs to the last hour.
        if min(int(change.at_s / span_s), HOURS - 1) != of_day:
            continue
        at_s = round((change.at_s / span_s - of_day) * busy_s, 1)
        if change.added:
            yield Deed(at_s, What.NODE_COMES, node=f"{day}/{change.node}")
        else:
            yield from _leaves(dice, f"{day}/{change.node}", at_s)
    if of_day == 0:  # yesterday's go when those of the new day are there
        for node in _left_over(day, trace):
            yield from _leaves(dice, node, busy_s)


def _leaves(dice: random.Random, node: str, at_s: float) -> Iterator[Deed]:
    if dice.random() < _NOTICES:
        yield Deed(max(0.0, at_s - _NOTICE_S), What.NODE_NOTICED, node=node)
    yield Deed(at_s, What.NODE_GOES, node=node)


def _left_over(day: int, trace: Trace) -> list[str]:
    if day == 0:
        return first_nodes()
    here: dict[str, None] = {}
    for change in trace.changes:
        if change.added:
            here[change.node] = None
        else:
            here.pop(change.node)
    return [f"{day - 1}/{node}" for node in here]


def first_nodes() -> list[str]:
    """Return the names, as the trace would have them, of the spot nodes of the beginning."""
    return [f"before/{number}" for number in range(FIRST_NODES)]


def _people(dice: random.Random, number: int, parts: int, busy_s: float) -> Iterator[Deed]:
    def some_time() -> float:
        return round(dice.uniform(0, busy_s), 1)

    above = round(_MORE * (1 - math.cos(2 * math.pi * number / HOURS)) / 2)
    for part in range(parts):
        if (number + part) % 3 == 2:  # autoscalers do not act at the same time
            yield Deed(some_time(), What.SCALE, part, above)
    if dice.random() < _DEPLOYS:
        yield Deed(some_time(), What.DEPLOY, dice.randrange(parts))
    if dice.random() < _POLICIES:
        yield Deed(some_time(), What.POLICY, dice.randrange(parts), dice.randrange(4), dice.choice((50, 100)))
    if dice.random() < _UPGRADES:
        yield Deed(some_time(), What.NODE_REPLACED)

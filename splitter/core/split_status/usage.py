"""What a workload has used: replica-seconds and requested resources by pool, and the overhead.

The Split keeps it, `report.workloads` shows it as metrics, `splitter savings` as a bill.
Only a change of what is held makes a new `Usage`: while nothing changes, nothing is written, and what is held
goes on counting from `until`. So idle costs no writes, and neither a restart nor a new leader loses anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from splitter.core.split_status.values import whole_seconds

_MOST = 2**62  # the API server keeps 63 bits; nobody uses so much
_DAY = timedelta(days=1)  # between marks
_MOST_MARKS = 8  # their distances double: enough for half a year


class Use(StrEnum):
    """What is counted, by the word that it has in a Split.

    Each replica that stands on a node is of one of the pools. COVER and SURGE are some of these: on-demand
    replicas that stand in for spot, and those beyond the replicas asked for. DESIRED is what was asked for
    and there: all of it on on-demand is what savings are compared with. A missing replica saves nothing.
    """

    ON_DEMAND = "onDemand"
    SPOT = "spot"
    COVER = "cover"
    SURGE = "surge"
    DESIRED = "desired"


@dataclass(frozen=True, slots=True)
class Amount:
    """Replicas, requested thousandths of a vCPU and requested MiB; or each of them times seconds."""

    replicas: int = 0
    cpu: int = 0
    memory: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        """Return the sum."""
        return _bounded(self.replicas + other.replicas, self.cpu + other.cpu, self.memory + other.memory)

    def times(self, factor: float) -> "Amount":
        """Return it `factor` times, each number rounded."""
        return _bounded(round(self.replicas * factor), round(self.cpu * factor), round(self.memory * factor))

    def share(self, part: int) -> "Amount":
        """Return what `part` replicas of this amount have on average."""
        return self.times(part / self.replicas) if self.replicas else Amount(part)

    def at_least(self, other: "Amount") -> "Amount":
        """Return the larger of each number."""
        return Amount(
            max(self.replicas, other.replicas), max(self.cpu, other.cpu), max(self.memory, other.memory)
        )

    def less(self, other: "Amount") -> "Amount":
        """Return what it has more than another, nothing below 0."""
        return Amount(
            max(0, self.replicas - other.replicas),
            max(0, self.cpu - other.cpu),
            max(0, self.memory - other.memory),
        )


def _bounded(*numbers: int) -> Amount:
    """Return an amount that a Split can hold, whatever pods ask for."""
    return Amount(*(min(number, _MOST) for number in numbers))


Amounts = Mapping[Use, Amount]
"""By use; what is missing is nothing."""


@dataclass(frozen=True, slots=True)
class UsagePoint:
    """What had been used by some moment in the past."""

    at: datetime
    total: Amounts


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used from `since` to `until`, in seconds, and what is held from then on."""

    since: datetime
    until: datetime
    total: Amounts
    held: Amounts
    marks: tuple[UsagePoint, ...] = ()

    def at(self, moment: datetime) -> Amounts:
        """Return what had been used by a moment; between two marks, as if it had been used evenly."""
        if moment <= self.since:
            return _whole({})
        if moment >= self.until:
            return grown(self.total, self.held, (moment - self.until).total_seconds())
        before = UsagePoint(self.since, _whole({}))
        for after in (*self.marks, UsagePoint(self.until, self.total)):
            if moment < after.at:
                share = (moment - before.at) / (after.at - before.at)
                return {
                    use: before.total[use] + after.total[use].less(before.total[use]).times(share)
                    for use in Use
                }
            before = after
        return self.total

    def between(self, begin: datetime, end: datetime) -> Amounts:
        """Return what was used from one moment to another."""
        used, before = self.at(end), self.at(begin)
        return {use: used[use].less(before[use]) for use in Use}

    def holding(self, held: Amounts, now: datetime) -> "Usage":
        """Return the same from `now` on with what is held then; itself where that is what it holds.

        A clock that was set back counts nothing; one that was set forward counts that once.
        """
        held = _whole(held)
        if held == self.held:
            return self
        now = now.replace(microsecond=0)
        total = self.at(now) if now >= self.until else self.total
        since, marks = min(self.since, now), tuple(mark for mark in self.marks if mark.at <= now)
        if now - (marks[-1].at if marks else since) >= _DAY:
            marks = _thinned((*marks, UsagePoint(now, total)), since)
        return Usage(since, now, total, held, marks)

    def to_json(self) -> dict[str, Any]:
        """Return it as a Split keeps it; times are whole seconds."""
        values = {
            "since": whole_seconds(self.since),
            "until": whole_seconds(self.until),
            "total": _written(self.total),
            "held": _written(self.held),
            "marks": [
                _filled({"at": whole_seconds(mark.at), "total": _written(mark.total)}) for mark in self.marks
            ],
        }
        return _filled(values)

    @classmethod
    def from_json(cls, raw: object) -> "Usage | None":
        """Return what a Split keeps; None where it keeps none, or nothing that can be read."""
        if not isinstance(raw, Mapping):
            return None
        try:
            marks = [
                UsagePoint(_read_time(one["at"]), _read(one.get("total", {}))) for one in raw.get("marks", [])
            ]
            usage = cls(
                _read_time(raw["since"]),
                _read_time(raw["until"]),
                _read(raw.get("total", {})),
                _read(raw.get("held", {})),
                tuple(marks[-_MOST_MARKS:]),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        times = [usage.since, *(mark.at for mark in usage.marks), usage.until]
        return usage if times == sorted(times) else None


def begun(now: datetime) -> Usage:
    """Return a usage that begins now and holds nothing."""
    now = now.replace(microsecond=0)
    return Usage(now, now, _whole({}), _whole({}))


def grown(total: Amounts, held_since: Amounts, seconds: float) -> Amounts:
    """Return a total and what was held for so many seconds more."""
    total, held_since = _whole(total), _whole(held_since)
    return {use: total[use] + held_since[use].times(seconds) for use in Use}


def _whole(amounts: Amounts) -> Amounts:
    """Return amounts of all uses; what is not said is nothing."""
    return {use: amounts.get(use, Amount()) for use in Use}


def _thinned(marks: tuple[UsagePoint, ...], since: datetime) -> tuple[UsagePoint, ...]:
    """Return fewer marks, ever further apart: one of day 2^k times an odd number lives for 2^(k+1) days."""
    newest = marks[-1].at

    def lives(mark: UsagePoint) -> bool:
        day = (mark.at - since) // _DAY
        return newest - mark.at <= 2 * (day & -day) * _DAY

    return tuple(filter(lives, marks))[-_MOST_MARKS:]


def _filled(values: dict[str, Any]) -> dict[str, Any]:
    """Return what is not empty: the API server takes no empty map."""
    return {field: value for field, value in values.items() if value}


def _written(amounts: Amounts) -> dict[str, dict[str, int]]:
    return {
        use.value: {"replicas": one.replicas, "cpu": one.cpu, "memory": one.memory}
        for use, one in amounts.items()
        if one != Amount()
    }


def _read(raw: Mapping[str, Any]) -> Amounts:
    """Return amounts; of a use that is not known, such as one of a later version, nothing."""
    known = {use: raw[use.value] for use in Use if use.value in raw}
    return _whole(
        {use: Amount(**{name: _number(one) for name, one in of.items()}) for use, of in known.items()}
    )


def _number(raw: object) -> int:
    if not isinstance(raw, int) or isinstance(raw, bool) or not 0 <= raw <= _MOST:
        raise ValueError(f"no amount: {raw!r}"[:99])
    return raw


def _read_time(raw: str) -> datetime:
    instant = datetime.fromisoformat(
        raw
    )  # each reconcile reads these, and strptime takes three times as long
    if whole_seconds(instant) != raw:
        raise ValueError(f"no time in whole seconds of UTC: {raw!r}"[:99])
    return instant

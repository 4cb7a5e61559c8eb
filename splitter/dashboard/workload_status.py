"""Reads the status of a Split for the page, whoever wrote it: numbers are numbers, lists are bounded.

Pure: the JSON of a status in, frozen data out. What is missing or of another kind is shown as nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from sys import intern
from typing import Any

from splitter.core.model import Pool
from splitter.core.names import Key
from splitter.core.reasons import State
from splitter.core.usage import Usage
from splitter.dashboard.history import Moment

_MOST = 2**31 - 1  # an int32, as every count of replicas in Kubernetes
_DECISIONS, _NODES, _POLICY = 20, 10, 40
_TEXT = 1024
# What a sentence begins with that scales a pool (core.model.Move).
_MOVE = re.compile(r"scale (on-demand|spot) ([0-9]{1,10}) -> ([0-9]{1,10}) ")
_LEVELS = {
    "Source": "on the workload",
    "Namespace": "on the Namespace",
    "Default": "default",
    "Learned": "default, as learned from its starts",
    "LastGood": "last good annotation",
}


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """Replicas of one pool."""

    wanted: int = 0
    spec: int = 0
    ready: int = 0
    doomed: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision, with its sentence."""

    at: datetime
    reason: str
    message: str

    @property
    def move(self) -> tuple[Pool, int, int] | None:
        """Which pool it scales, from how many to how many; None when it scales none."""
        result = _MOVE.match(self.message)
        return (Pool(result[1]), int(result[2]), int(result[3])) if result else None


@dataclass(frozen=True, slots=True)
class GoingNode:
    """A node that is about to go, or gone, under replicas, as splitter reports it."""

    name: str
    lost: bool
    replicas: int
    signal: str
    deadline: datetime | None


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """One value of the policy in force, and where it comes from."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class WorkloadStatus:
    """What a Split says about its workload."""

    key: Key
    state: str
    reason: str
    message: str
    desired: int
    ready: int
    cover: int
    on_demand: PoolCounts
    spot: PoolCounts
    decisions: tuple[Decision, ...]
    nodes: tuple[GoingNode, ...]
    policy: tuple[PolicyValue, ...]
    usage: Usage | None
    placed: bool
    asked: tuple[Moment, ...]
    """How many replicas were asked for since it is split, as far as the decisions say."""

    @property
    def at_rest(self) -> bool:
        """Whether nothing is to be done."""
        return self.state == State.STEADY


def read_status(key: Key, raw: Mapping[str, Any], *, placed: bool) -> WorkloadStatus:
    """Return what a status says."""
    on_demand, spot = _pool(raw.get("onDemand")), _pool(raw.get("spot"))
    decisions, usage = tuple(_decisions(raw.get("decisions"))), Usage.from_json(raw.get("usage"))
    since = usage.since if usage is not None else None
    return WorkloadStatus(
        key=key,
        state=_text(raw.get("state")) or "Unreported",
        reason=_text(raw.get("reason")),
        message=_text(raw.get("message")) or "Nothing is reported yet; is the controller running?",
        desired=_count(raw, "desired"),
        ready=_count(raw, "ready"),
        cover=_count(raw, "cover"),
        on_demand=on_demand,
        spot=spot,
        decisions=decisions,
        nodes=tuple(_nodes(raw.get("nodes"))),
        policy=tuple(_policy(raw.get("policy"), raw.get("policyFrom"))),
        usage=usage,
        placed=placed,
        asked=tuple(asked(since, decisions, on_demand, spot)),
    )


def asked(
    since: datetime | None, decisions: Sequence[Decision], on_demand: PoolCounts, spot: PoolCounts
) -> list[Moment]:
    """Return how many replicas were asked for since a workload is split, as the sentences say.

    Without `since`, since the first decision that is kept.
    """
    now = {Pool.ON_DEMAND: on_demand.spec, Pool.SPOT: spot.spec}
    result: list[Moment] = []
    for one in reversed(decisions):
        if one.move is not None:
            pool, was, to = one.move
            now[pool] = to
            result.append(Moment(one.at, 0, now[Pool.ON_DEMAND], now[Pool.SPOT]))
            now[pool] = was
    first = since or (decisions[0].at if decisions else None)
    if first is None:
        return []
    return [
        Moment(first, 0, now[Pool.ON_DEMAND], now[Pool.SPOT]),
        *(one for one in result[::-1] if one.at >= first),
    ]


def read_time(text: object) -> datetime | None:
    """Return an instant of a status; None of what is none."""
    if not isinstance(text, str):
        return None
    try:
        result = datetime.fromisoformat(text)
    except ValueError:
        return None
    return result if result.tzinfo is not None else result.replace(tzinfo=UTC)


def _text(raw: object) -> str:
    return intern(raw[:_TEXT]) if isinstance(raw, str) else ""


def _count(raw: Mapping[str, Any], field: str) -> int:
    result = raw.get(field)
    if not isinstance(result, int) or isinstance(result, bool):
        return 0
    return min(max(0, result), _MOST)


def _pool(raw: object) -> PoolCounts:
    if not isinstance(raw, Mapping):
        return PoolCounts()
    return PoolCounts(*(_count(raw, field) for field in ("wanted", "spec", "ready", "doomed", "pending")))


def _items(raw: object, most: int) -> Iterator[Mapping[str, Any]]:
    """Yield the last objects of a list."""
    if isinstance(raw, list):
        yield from (one for one in raw[-most:] if isinstance(one, Mapping))


def _decisions(raw: object) -> Iterator[Decision]:
    for one in _items(raw, _DECISIONS):
        if (at := read_time(one.get("time"))) is not None:
            yield Decision(at, _text(one.get("reason")), _text(one.get("message")))


def _nodes(raw: object) -> Iterator[GoingNode]:
    for one in _items(raw, _NODES):
        if name := _text(one.get("name")):
            yield GoingNode(
                name,
                one.get("state") == "Lost",
                _count(one, "replicas"),
                _text(one.get("signal")),
                read_time(one.get("deadline")),
            )


def _policy(raw: object, origins: object) -> Iterator[PolicyValue]:
    if not isinstance(raw, Mapping):
        return
    levels = origins if isinstance(origins, Mapping) else {}
    for field, value in list(raw.items())[:_POLICY]:
        if isinstance(value, str | int | float | bool):
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            origin = _LEVELS.get(str(levels.get(field)), "not said")
            yield PolicyValue(_dashed(str(field)[:_TEXT]), shown[:_TEXT], origin)


def _dashed(field: str) -> str:
    """Return a field as its annotation is called.

    >>> _dashed("onDemandBase")
    'on-demand-base'
    """
    return "template" if field == "templateSet" else re.sub("[A-Z]", lambda one: f"-{one[0].lower()}", field)

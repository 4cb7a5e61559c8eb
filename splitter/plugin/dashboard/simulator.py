"""Plays the policy in force and one that is written by hand on the same trace, and draws both.

`replay` bounds what is asked for: a page that stays open must not keep a processor busy. All is assumed
but the policy: the trace says when spot is there.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from markupsafe import Markup

from splitter.core.division import caps_conflict
from splitter.core.labels_annotations import PREFIX
from splitter.core.labels_annotations.policy import Policy, parse_policy, without_last_good
from splitter.core.labels_annotations.reported import policy_in_words
from splitter.core.labels_annotations.words import parse_duration
from splitter.core.rebalance import Tuning
from splitter.core.split_status import SplitStatus
from splitter.plugin.core.savings import ASSUMED_SPOT_PRICE
from splitter.plugin.simulate.contenders import Rebalancing
from splitter.plugin.simulate.measures import spot_share
from splitter.plugin.simulate.outage import outage_trace
from splitter.plugin.simulate.picture import svg
from splitter.plugin.simulate.replay import Assumptions, SimulationResult, simulate
from splitter.plugin.simulate.summary import available
from splitter.plugin.simulate.trace import Trace

REPLICAS_MAX, DAYS_MAX, CHANGES_MAX = 200, 31, 5_000
_DAY_S = 86_400
_LONGEST_S = 31 * _DAY_S
_DIGITS = 6
_TEXT = 40
_FIELDS = ("on-demand-base", "spot-percent", "on-demand-max", "spot-max", "grace", "soak")
_HINTS = {
    "on-demand-base": "2 or majority",
    "spot-percent": "0 to 100",
    "on-demand-max": "no limit",
    "spot-max": "no limit",
    "grace": "180s",
    "soak": "10m",
}
_IN_FORCE, _BY_HAND = "in force", "by hand"
_TRACE_OF_OUTAGES, _TRACE_OF_FILE = "outages", "file"


class _AskedWrongError(ValueError):
    """A field that cannot be obeyed, in a sentence."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What to simulate."""

    given: Assumptions
    trace: Trace


class Simulator:
    """Plays policies, one replay at a time."""

    def __init__(self, defaults: Policy, tuning: Tuning, file: Trace | None = None) -> None:
        """`file`: a trace that can be chosen beside outages."""
        self._defaults = defaults
        self._tuning = tuning
        self._file = file
        self._turn = asyncio.Lock()

    def form(self, status: SplitStatus | None, query: Mapping[str, str]) -> dict[str, Any]:
        """Return what the form is filled with: the workload's own values, where nothing else is asked for."""
        in_force = _annotations(status)
        replicas = status.desired if status is not None and status.desired else 10
        usual = {
            "replicas": str(min(replicas, REPLICAS_MAX)),
            "trace": _TRACE_OF_OUTAGES,
            "every": "12h",
            "last": "20m",
            "days": "3",
            "notice": "30s",
            "start": "60s",
        }
        usual |= {field: in_force.get(PREFIX + field, "") for field in _FIELDS}
        return {
            "workload": query.get("workload", "")[: 3 * 254] if status is not None else "",
            "status": status,
            "filled": {name: query.get(name, value)[:_TEXT] for name, value in usual.items()},
            "policy": [(field, in_force.get(PREFIX + field, ""), _HINTS[field]) for field in _FIELDS],
            "file": self._file.name if self._file is not None else "",
        }

    async def replay(self, status: SplitStatus | None, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the figures and the picture of both policies, or what is wrong, in sentences."""
        try:
            asked = self._asked(query)
            by_hand = {PREFIX + field: text for field in _FIELDS if (text := query.get(field, "").strip())}
            policies = [
                (_IN_FORCE if status is not None else "default", self._policy(_annotations(status), asked)),
                (_BY_HAND, self._policy(by_hand, asked)),
            ]
            async with self._turn:
                results = await asyncio.to_thread(self._play, asked, policies)
        except ValueError as fault:
            return {"problem": str(fault), "results": [], "drawn": Markup("")}
        drawn = Markup(svg(results))  # noqa: S704 (it escapes what others wrote)
        return {"problem": "", "results": [_figures(one) for one in results], "drawn": drawn}

    def _play(self, asked: _Asked, policies: list[tuple[str, Policy]]) -> list[SimulationResult]:
        return [
            simulate(asked.trace, Rebalancing(name, policy, self._tuning), asked.given)
            for name, policy in policies
        ]

    def _policy(self, annotations: Mapping[str, str], asked: _Asked) -> Policy:
        parsed = parse_policy(annotations, self._defaults)
        if parsed.policy is None:
            raise _AskedWrongError(" ".join(without_last_good(note.message) for note in parsed.problems))
        if caps_conflict(asked.given.desired, parsed.policy):
            raise _AskedWrongError("on-demand-max and spot-max hold fewer than the replicas; raise one.")
        return parsed.policy

    def _asked(self, query: Mapping[str, str]) -> _Asked:
        replicas = _number(query, "replicas", 10, 1, REPLICAS_MAX)
        start_s = _seconds(query, "start", 60)
        given = Assumptions(
            desired=replicas,
            max_surge=ceil(replicas / 4),
            on_demand_start_s=start_s,
            spot_start_s=start_s,
            notice_s=_seconds(query, "notice", 30),
            spot_price=ASSUMED_SPOT_PRICE,
        )
        if query.get("trace") == _TRACE_OF_FILE and self._file is not None:
            return _Asked(given, self._file)
        every_s, last_s = _seconds(query, "every", 12 * 3600), _seconds(query, "last", 1200)
        days = _number(query, "days", 3, 1, DAYS_MAX)
        if not 0 < last_s < every_s <= days * _DAY_S:
            raise _AskedWrongError("an outage is shorter than the time to the next, which fits into the days")
        if 2 * replicas * days * _DAY_S / every_s > CHANGES_MAX:
            raise _AskedWrongError(f"these are more than {CHANGES_MAX} changes of nodes; take fewer days")
        trace = outage_trace(every_s, last_s, replicas, days)
        return _Asked(given, replace(trace, name=f"all spot gone every {query.get('every', '12h')[:_TEXT]}"))


def _annotations(status: SplitStatus | None) -> dict[str, str]:
    """Return the policy in force as annotations; without a workload the defaults, which need none."""
    if status is None:
        return {}
    return {PREFIX + name: value for name, value, _ in policy_in_words(status) if name in _FIELDS}


def _number(query: Mapping[str, str], field: str, usual: int, least: int, most: int) -> int:
    text = query.get(field, "").strip() or str(usual)
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and least <= int(text) <= most):
        raise _AskedWrongError(f"{field} is a whole number from {least} to {most}")
    return int(text)


def _seconds(query: Mapping[str, str], field: str, usual: int) -> int:
    text = query.get(field, "").strip()
    seconds = parse_duration(text) if text else usual
    if seconds is None or seconds > _LONGEST_S:
        raise _AskedWrongError(f"{field} is a time such as 90s, 20m or 12h")
    return seconds


def _figures(result: SimulationResult) -> dict[str, str]:
    return {
        "name": result.contender,
        "available": available(result),
        "saved": f"{100 * (1 - result.cost):.0f} %",
        "spot": f"{100 * spot_share(result):.0f} %",
        "moves": f"{result.on_demand_changes_per_day:.1f}",
        "least": f"{result.least_ready}/{result.desired}",
    }

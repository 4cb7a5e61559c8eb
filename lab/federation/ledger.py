"""Counts lost replica-seconds from what was seen of hub and members; pure.

A replica serves if its pod is ready, is not being deleted, and its node is there: KWOK leaves the pods of a
machine that was killed Running and Ready until they are collected.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen at a moment, in seconds of any clock that does not go back."""

    at_s: float
    wanted: int
    serving: int


@dataclass(slots=True)
class Ledger:
    """All samples of one workload, oldest first."""

    samples: list[Sample] = field(default_factory=list)

    def lost(self, since_s: float = float("-inf")) -> float:
        """Return the lost replica-seconds: what was missing at a sample is missing until the next one."""
        return sum(
            max(0, one.wanted - one.serving) * (later.at_s - one.at_s)
            for one, later in pairwise(self._since(since_s))
        )

    def lowest(self, since_s: float = float("-inf")) -> int:
        """Return the fewest replicas that served. Raises ValueError if nothing was seen."""
        return min(one.serving for one in self._since(since_s))

    def _since(self, since_s: float) -> Sequence[Sample]:
        return [one for one in self.samples if one.at_s >= since_s]


def serving(pods: Iterable[dict[str, Any]], nodes: Iterable[str]) -> int:
    """Return how many of these pods serve."""
    there = frozenset(nodes)
    return sum(_serves(pod, there) for pod in pods)


def _serves(pod: dict[str, Any], nodes: frozenset[str]) -> bool:
    if pod["spec"].get("nodeName") not in nodes or "deletionTimestamp" in pod["metadata"]:
        return False
    conditions = pod.get("status", {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

"""The words of the domain as frozen data: what was observed, what is wanted.

Everything here is built by `kube.observe` (from the cluster) or by tests (`tests/builders.py`) and
read by the planner. Nothing here decides. Instants are aware UTC datetimes; counts are replicas.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, unique
from typing import Literal

from splitter.core.reasons import Reason


@unique
class Pool(StrEnum):
    """Which half of the split a twin belongs to."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


@unique
class SpotAffinity(StrEnum):
    """How strictly spot pods ask for spot nodes."""

    REQUIRED = "required"
    PREFERRED = "preferred"


@unique
class RolloutOrder(StrEnum):
    """Which twin gets a new template first."""

    ON_DEMAND_FIRST = "on-demand-first"
    SPOT_FIRST = "spot-first"


@dataclass(frozen=True, slots=True)
class Key:
    """Names one source: what the queue holds and what every log line is about."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return `namespace/name`, as kubectl users write it."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a source's annotations ask for, parsed and valid (design: "The surface")."""

    on_demand_base: int | Literal["majority"] = 0
    spot_percent: int = 100
    on_demand_max: int | None = None
    spot_max: int | None = None
    spot_affinity: SpotAffinity = SpotAffinity.REQUIRED
    grace_s: float = 180.0
    soak_s: float = 600.0
    freeze: bool = False
    dry_run: bool = False
    template_set: str = "default"
    rollout_order: RolloutOrder = RolloutOrder.ON_DEMAND_FIRST
    restarted_at: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence for people: becomes an Event, a log field and a status message."""

    reason: Reason
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Labels:
    """A hashable, read-only set of labels."""

    pairs: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(labels: Mapping[str, str] | None) -> "Labels":
        """Sort the pairs, so that equal labels compare equal."""
        return Labels(tuple(sorted((labels or {}).items())))

    def get(self, key: str) -> str | None:
        """Return the value of one label, or None."""
        return next((value for name, value in self.pairs if name == key), None)


def seconds_between(earlier: datetime, later: datetime) -> float:
    """Return `later - earlier` in seconds; negative when they are the other way round."""
    return (later - earlier).total_seconds()

"""The words of relief that others need: amounts, samples, thresholds, bounds. Nothing here decides.

CPU is in thousandths of a core, memory in bytes, durations in seconds; instants are aware UTC datetimes.
Percent are of what a node can allocate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, unique
from typing import Final

SKEW_S: Final = 30.0
"""The clocks of two machines may differ so far; what is further in the future was made up."""
VAIN_S: Final = 86_400.0
"""So long what was in vain is not tried again while all stands so: what nobody sees may change."""


@unique
class Resource(StrEnum):
    """What can be short on a node."""

    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Amounts:
    """Some CPU and some memory."""

    cpu: float = 0.0
    memory: float = 0.0

    def of(self, resource: Resource) -> float:
        """Return one of the two."""
        return self.cpu if resource is Resource.CPU else self.memory

    def __add__(self, other: "Amounts") -> "Amounts":
        """Return both together."""
        return Amounts(self.cpu + other.cpu, self.memory + other.memory)

    def __sub__(self, other: "Amounts") -> "Amounts":
        """Return what is left."""
        return Amounts(self.cpu - other.cpu, self.memory - other.memory)

    def within(self, other: "Amounts") -> bool:
        """Whether it is no more than another, in either."""
        return self.cpu <= other.cpu and self.memory <= other.memory


HINT: Final = Amounts(cpu=10.0, memory=16.0 * 1024**2)
"""What a placeholder requests: it tells, and holds no room."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a node or a pod really used at one time."""

    at: datetime
    used: Amounts


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From how many percent of a node on it is hot, by resource: only those that were written."""

    percent: Mapping[Resource, float]


@dataclass(frozen=True, slots=True)
class Tuning:
    """The bounds that no annotation changes."""

    samples: int = 3
    """A node is hot when so many samples in a row are over the threshold."""
    stale_s: float = 180.0
    """A sample that is older says nothing; nor do two that are further apart make a row."""
    margin: float = 20.0
    """A node is relieved down to so many points below its threshold; nobody is brought above that."""
    cycle_s: float = 600.0
    """The time in which the bounds below count; it slides."""
    moves_per_cycle: int = 6
    """Of all workloads together."""
    share_per_cycle: float = 0.1
    """Of the replicas of one workload, but always one."""
    rest_s: float = 1800.0
    """So long a node that gave a replica is no target, a young replica stays where it is, and a workload
    whose replica was taken back is left alone."""
    received_s: float = 600.0
    """So long a node that received a replica is no target."""
    least_percent: float = 1.0
    """A replica that uses less than this of a node brings no relief."""

"""What relief looks at: nodes, replicas, what they really use. Nothing here decides.

CPU is in thousandths of a core, memory in bytes, durations in seconds; instants are aware UTC datetimes.
Percent are of what a node can allocate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum, unique
from typing import Final

from splitter.core.hot_nodes import Aim
from splitter.core.model import Pool
from splitter.core.names import Key
from splitter.core.nodes.fit import SpreadConstraint

SKEW_S: Final = 30.0
"""The clocks of two machines may differ so far; what is further in the future was made up."""
VAIN_S: Final = 86_400.0
"""So long what was in vain is not tried again while all stands so: what nobody sees may change."""


@unique
class Resource(StrEnum):
    """What can be short on a node."""

    CPU = "cpu"
    MEMORY = "memory"


@unique
class Qos(IntEnum):
    """The QoS class of a pod; the lowest goes first."""

    BEST_EFFORT = 0
    BURSTABLE = 1
    GUARANTEED = 2


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


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """A node, and what is asked for on it."""

    name: str
    uid: str
    pool: Pool
    allocatable: Amounts
    requested: Amounts
    free_pods: int
    sound: bool = True
    """It takes pods, and nothing says that it may go."""


@dataclass(frozen=True, slots=True)
class ReplicaLoad:
    """A running replica of a twin."""

    pod: str
    uid: str
    node: str
    pool: Pool
    requests: Amounts
    ready_since: datetime | None
    priority: int = 0
    qos: Qos = Qos.BURSTABLE
    may_run_on: frozenset[str] = frozenset()
    """The nodes that its twin's own rules admit, by name."""


@dataclass(frozen=True, slots=True)
class Domains:
    """The domains of a topology key; one object for all constraints that count on the same nodes."""

    of_node: Mapping[str, str] = field(default_factory=dict)
    """By the name of each node on which the scheduler counts."""
    all: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SpreadLoad:
    """A topology spread constraint, with whom it counts and where."""

    constraint: SpreadConstraint
    pods: frozenset[str]
    """The UIDs of the replicas that bear it."""
    counted: frozenset[str]
    """The UIDs of the replicas that it counts. Pods of other workloads are not known."""
    domains: Domains = Domains()


@dataclass(frozen=True, slots=True)
class WorkloadLoad:
    """A split workload."""

    key: Key
    thresholds: Thresholds | None
    """None: it has not asked for relief, or nobody can read what it wrote."""
    replicas: tuple[ReplicaLoad, ...] = ()
    busy: str = ""
    """Why nothing is moved: a loss, a notice, a roll, a return, a hand-over, a freeze."""
    spot_soak_s: float | None = None
    """Spot twins that only prefer spot: so long spot has to have room before a replica of theirs comes there
    from on-demand. None: they stand on spot or nowhere."""
    restarts: bool = False
    """A move is a restart there (placement mode), and nobody has asked for it."""
    spreads: tuple[SpreadLoad, ...] = ()
    """How its replicas ask to be spread."""


@dataclass(frozen=True, slots=True)
class PastMove:
    """A move that was begun, as the Split of its workload remembers it: nodes by their UID."""

    at: datetime
    workload: Key
    from_node: str
    ended: datetime | None = None
    """None: it goes on."""
    to_node: str = ""
    """Empty: not known yet, or taken back."""
    taken_back: bool = False
    aim: Aim = Aim.COOL
    stand: str = ""
    """Of one that was in vain: how replicas and nodes stood."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One moment: what there is, and what was measured."""

    now: datetime
    nodes: tuple[NodeLoad, ...] = ()
    workloads: tuple[WorkloadLoad, ...] = ()
    node_samples: Mapping[str, Sample] = field(default_factory=dict)
    """By the name of the node."""
    pod_samples: Mapping[str, Sample] = field(default_factory=dict)
    """By the UID of the pod."""
    waiting: tuple[Amounts, ...] = ()
    """What pods request that wait for a node, whoever's they are."""
    alarm: str = ""
    """Why nothing is moved anywhere: a node goes, or is lost."""

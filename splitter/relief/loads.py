"""What relief looks at: nodes, replicas, workloads and the moves that were begun. Nothing here decides.

The units are those of `core.relief.model`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, unique

from splitter.core.hot_nodes import Aim
from splitter.core.names import Key
from splitter.core.nodes.fit import SpreadConstraint
from splitter.core.relief.model import Amounts, Sample, Thresholds
from splitter.core.replica import Pool


@unique
class Qos(IntEnum):
    """The QoS class of a pod; the lowest goes first."""

    BEST_EFFORT = 0
    BURSTABLE = 1
    GUARANTEED = 2


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

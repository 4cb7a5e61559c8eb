"""The observed state, as frozen data. Instants are aware UTC; counts are replicas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum, unique

from splitter.core.clock import ANOTHER_MOMENT, Waits, waits_of
from splitter.core.evictions import BudgetView
from splitter.core.hot_nodes import HotNodes
from splitter.core.keyed import Edit, Removed
from splitter.core.names import Key
from splitter.core.nodes.pools import PoolFit
from splitter.core.placeable import EvictionRefusal, OneNodeClaim, Reach, Runs
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.replica import Pool, Replica, Trouble
from splitter.core.split_status import UNREPORTED, Condition, RebalanceState, Restart, SplitStatus
from splitter.core.split_status.view import SplitView
from splitter.core.stateful import StatefulView


@unique
class Mode(StrEnum):
    """How a workload is split."""

    TWINS = "twins"
    PLACEMENT = "placement"


@dataclass(frozen=True, slots=True)
class Move:
    """Scaling a twin, as a sentence begins with it."""

    pool: Pool
    was: int
    replicas: int

    def __str__(self) -> str:
        """Say it."""
        return f"scale {self.pool} {self.was} -> {self.replicas} ({self.replicas - self.was:+d})"


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence for people: becomes an Event, a log field and a status message."""

    reason: Reason
    message: str
    warning: bool = False
    quiet: bool = False  # a step of many: logged and listed, but no Event of its own
    about: str = ""  # the same news whatever the numbers in it: said once, by this word and the reason
    move: Move | None = None  # what the sentence begins with: said only when it is written
    cause: VerdictCause | None = field(default=None, compare=False)  # not said: the reason says it to people


def seconds_between(earlier: datetime, later: datetime) -> float:
    """Return `later - earlier` in seconds; negative when they are the other way round."""
    return (later - earlier).total_seconds()


@unique
class Attachment(StrEnum):
    """How a ReplicaSet hangs on the source."""

    ATTACHED = "attached"  # controlled by it
    RETURNING = "returning"  # ours, the selector's labels are back, not adopted yet
    PARKED = "parked"  # owned but released: the Deployment controller leaves it alone


@dataclass(frozen=True, slots=True)
class ReplicaSetView:
    """A ReplicaSet of source or twin; a StatefulSet as if parked, a twin's pods of one revision as if one."""

    name: str
    uid: str
    resource_version: str
    template_hash: str
    spec_replicas: int
    status_replicas: int
    available_replicas: int
    created: datetime
    pod_hash: str = ""  # of a twin's: equal to its source's where pods differ in no more than placement
    template_labels: Mapping[str, str] = field(default_factory=dict)
    hashes: tuple[str, ...] = ()  # pods of which pod-template-hash it selects
    marked: bool = False  # the Deployment controller has copied our mark onto it
    attachment: Attachment = Attachment.ATTACHED
    first_ordinal: int | None = None  # of the source's own pods, a StatefulSet's: it loses the highest first
    rolls: bool = False  # that StatefulSet is in a roll of its own, or may be
    orphaned: bool = False  # parked for a source of this name that was deleted without it
    refusal: Trouble | None = None  # why the API server takes no more pods of it
    refused_since: datetime | None = None
    retried: datetime | None = None  # when we had it try again
    deleted: datetime | None = None  # since when it is to go and leave its pods: it acts on none of them
    held_by: Pool | None = None  # of one that is going: the twin that controls it; None: the source
    pods: tuple[Replica, ...] = ()

    @property
    def refused(self) -> int:
        """The pods that it wants and the API server does not let it create."""
        missing = self.spec_replicas - sum(pod.counts for pod in self.pods)
        return max(0, missing) if self.refusal is not None else 0


@dataclass(frozen=True, slots=True)
class TwinView:
    """A generated Deployment or StatefulSet, with its ReplicaSets."""

    pool: Pool
    name: str
    uid: str
    resource_version: str
    rendered_hash: str
    template_hash: str
    spec_replicas: int
    status_replicas: int
    available_replicas: int
    updated_replicas: int
    observed: bool  # its controller has seen the last write
    max_surge: int
    max_unavailable: int
    deleting: bool = False
    paused: bool = False
    edits: tuple[Edit, ...] = ()
    removed: Removed | None = None  # fields of its pod template that we have applied
    robbed: bool = False  # its label or its owner was taken away
    altered: tuple[str, ...] = ()  # fields that a policy has changed on their way here, by our last write
    added: tuple[str, ...] = ()  # and those that it has added to the pod template
    unanswered: bool = False  # this process has not written it: what is known of that, its Split says
    made_of: str = ""  # what of the source its template was made of
    stalled: bool = False  # its roll has made no progress for progressDeadlineSeconds
    strays: frozenset[str] = frozenset()  # its pods in the other pool, by UID, where it starts none
    excluded: Trouble | None = None  # why no healthy node of its pool takes a pod of it, however empty
    first_ordinal: int | None = None  # of a StatefulSet
    partition: int = 0  # of a StatefulSet: so many of its pods keep the old template
    replica_sets: tuple[ReplicaSetView, ...] = ()

    @property
    def pods(self) -> tuple[Replica, ...]:
        """All pods of all its ReplicaSets."""
        return tuple(pod for replica_set in self.replica_sets for pod in replica_set.pods)

    @property
    def is_losing(self) -> bool:
        """Whether a node goes, or is gone, under a pod of it."""
        return any(pod.going for pod in self.pods)

    def bears(self, rendered_hash: str) -> bool:
        """Whether it is as this was rendered; one that was robbed is written whole again."""
        return self.rendered_hash == rendered_hash and not self.robbed


@dataclass(frozen=True, slots=True)
class SourceView:
    """The user's original Deployment or StatefulSet; a Deployment keeps its count while it is split (H1)."""

    key: Key
    uid: str
    resource_version: str
    generation: int
    replicas: int
    max_surge: int
    max_unavailable: int
    paused: bool
    observed: bool
    template_hash: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    selector_keys: tuple[str, ...]  # labels that a parked ReplicaSet must not carry
    manifest_json: str  # what the templates get; opaque here
    pod_hash: str = ""  # of its pod template, without placement and our own marks
    deleting: bool = False
    paused_by_us: bool = False  # managedFields: f:paused is splitter's
    unpaused_by_manifest: str | None = None  # who says `paused: false`
    recreate: bool = False
    releasable: bool = True  # its selector has a positive term
    controller: str | None = None  # the kind/name that controls it
    rollout_complete: bool = True  # all of its pods have its template; some may be missing or not ready
    all_available: bool = True
    rollout: str = ""
    claims: tuple[str, ...] = ()  # the PersistentVolumeClaims that its pod template names
    one_a_node: str = ""  # what lets only one of its pods stand on a node
    revisions_kept: int = 10  # spec.revisionHistoryLimit: old ReplicaSets kept for `kubectl rollout undo`
    stateful: StatefulView | None = None
    pod_labels: tuple[str, ...] = ()  # of those that its pod template or its selector names, our own
    selector: str = ""  # of its pods, as text: what an autoscaler of the Split is told
    selector_terms: int = 1  # of the same, with their values
    by_karmada: bool = False  # Karmada writes it
    available: Condition | None = None  # what its status says of its replicas, in a condition of ours
    karmada_generation: str = ""  # of the workload at Karmada's hub; empty: not managed by it


@dataclass(frozen=True, slots=True)
class Rendered:
    """A twin as its template rendered it."""

    manifest_json: str
    hash: str
    made_of: str = ""  # a hash of what of the source went into it: the template set apart
    template_set: str = "default"  # its name
    same_pods: bool = True  # but for where they may stand, its pods are the source's


@dataclass(frozen=True, slots=True)
class RelatedObjects:
    """Other objects of the namespace that matter for a split."""

    taken_names: tuple[str, ...] = ()  # twins' names that a foreign object has
    taken_claims: Mapping[Pool, tuple[int, str]] = field(default_factory=dict)  # replicas below it, its name
    autoscaled_twin: str = ""  # who is aimed at a twin's name: an autoscaler, as kind/name
    untolerant_autoscaler: str = ""  # one aimed at the source that loses its tolerance while it is split
    one_node_claim: OneNodeClaim | None = None  # of the template: two pools cannot mount it
    scaled_by: str = ""  # an autoscaler aimed at a StatefulSet: at 0 it stops, or acts on nothing
    unplaceable: str = ""  # why the API server places no pods of StatefulSets
    shared_reach: Reach = field(default_factory=Reach)  # of the volumes that all replicas mount
    reach: Mapping[int, Reach] = field(default_factory=dict)  # of a StatefulSet's pods, by ordinal
    split_of: str = ""  # another workload, as kind/name, whose Split has the name that this one's would have
    rival: str = ""  # what else selects its pods, in words; looked for when they may be let go
    rivals_unread: str = ""  # and why that is not known


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that one reconcile may know about one source."""

    key: Key
    now: datetime
    source: SourceView | None
    split: SplitView | None
    replica_sets: tuple[ReplicaSetView, ...] = ()
    on_demand: TwinView | None = None
    spot: TwinView | None = None
    related: RelatedObjects = RelatedObjects()
    pools: PoolFit | None = None  # whether each pool can take its replicas; None: not known
    fit_spot: int = 0
    blocked: str = ""  # why spot cannot be had or should not be asked for, if anything says so
    signal_ends_at: datetime | None = None  # when that, or a notice by Event, ends by time alone
    view_broken: bool = False  # more than half of the on-demand nodes are NotReady too
    namespace_annotations: Mapping[str, str] | None = None
    denied: Note | None = None  # what the dry run of the writes to come was answered
    additions: tuple[Note, ...] = ()  # what a policy would add to its twins, by that dry run
    letting_go_refused: Note | None = None  # why pods that lost their owner now would find no new one
    placeholders: tuple[Replica, ...] = ()  # in placement mode: they hold room for a move
    published: Runs | None = None  # in placement mode: the ordinals that the admission policy goes by, if any
    published_nodes: bool = True  # and whether it knows of every kind of spot nodes that was seen
    refused: EvictionRefusal | None = None  # and what the last eviction was answered
    restarts: tuple[Restart, ...] = ()  # and the ends that were asked for, told to the Split or not
    others_moving: int = 0  # other workloads in a voluntary move now
    budgets: tuple[BudgetView, ...] = ()
    consolidates: bool | None = None  # Karpenter would give up a node under it; None: it has none there
    unguardable: str = ""  # why splitter can write no budget of this workload now
    leaving: bool = False  # a ReplicaSet is going, and its pods are about to have no owner
    going: tuple[ReplicaSetView, ...] = ()  # those of source and twins
    orphans: tuple[Replica, ...] = ()  # pods that we have labelled for a pool, and that nobody controls
    hot_nodes: HotNodes | None = None  # None: it asks for no relief, or the settings give none
    waits: Waits = field(default=ANOTHER_MOMENT, compare=False, repr=False)  # each question that has a clock

    def __post_init__(self) -> None:
        """Begin to wait when nothing of this moment waits yet."""
        object.__setattr__(self, "waits", waits_of(self.waits, self.now))

    @property
    def reported(self) -> SplitStatus:
        """What its Split says; nothing where there is none."""
        return self.split.status if self.split is not None else UNREPORTED

    @property
    def rebalance(self) -> RebalanceState:
        """What is remembered of spot."""
        return self.reported.memory.rebalance

    def twin(self, pool: Pool) -> TwinView | None:
        """Return the twin of a pool, if it exists."""
        return self.on_demand if pool is Pool.ON_DEMAND else self.spot

    @property
    def twins(self) -> tuple[TwinView, ...]:
        """The twins that exist, on-demand first."""
        return tuple(twin for twin in (self.on_demand, self.spot) if twin is not None)

    @property
    def holders(self) -> tuple[ReplicaSetView, ...]:
        """All that hold pods: the source's ReplicaSets, then those of the twins."""
        return (*self.replica_sets, *(rs for twin in self.twins for rs in twin.replica_sets))

    def attached_as(self, attachment: Attachment) -> tuple[ReplicaSetView, ...]:
        """Return the source's ReplicaSets that hang on it this way."""
        return tuple(replica_set for replica_set in self.replica_sets if replica_set.attachment is attachment)

"""What splitter may write: the closed list of actions that the planner returns and `kube.apply` does.

Each action names its object and carries the precondition it was computed from. There is no action
that the planner does not use, and no write that is not an action (but the report's: Split status,
Events). A write that lowers a count always carries a resourceVersion; one that raises need not (H6).
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, unique

from splitter.core.replica import Pool


@unique
class HolderKind(StrEnum):
    """What kind of object holds replicas."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    REPLICA_SET = "ReplicaSet"


@dataclass(frozen=True, slots=True)
class EnsureSplit:
    """Create the Split, or mark the reporting one as taking over."""

    takes_over: bool


@dataclass(frozen=True, slots=True)
class DeleteSplit:
    """Remove the Split."""


@dataclass(frozen=True, slots=True)
class SetOwnershipMark:
    """Put the mark on the source (None removes it)."""

    value: str | None


@dataclass(frozen=True, slots=True)
class SetPaused:
    """Pause the source, or take the pause away."""

    paused: bool
    resource_version: str


@dataclass(frozen=True, slots=True)
class SaveReplicas:
    """Write down N of a StatefulSet, and what stands in its `spec.replicas`, which is not written."""

    replicas: int
    left: int
    resource_version: str


@dataclass(frozen=True, slots=True)
class ShowReplicas:
    """Write N into the Split of a StatefulSet, where an autoscaler finds it."""

    replicas: int


@dataclass(frozen=True, slots=True)
class ReleaseSource:
    """Take the mark, the saved N and our name as the writer of `spec.replicas` off a StatefulSet."""


@dataclass(frozen=True, slots=True)
class Park:
    """Release a ReplicaSet from the source, in one patch."""

    name: str
    resource_version: str
    strip: tuple[str, ...]  # the selector's labels
    twin: Pool | None = None  # whose it is; None: the source's


@dataclass(frozen=True, slots=True)
class Reattach:
    """Give a parked ReplicaSet its labels back, so that the Deployment controller adopts it."""

    name: str
    resource_version: str
    labels: tuple[tuple[str, str], ...]
    active: bool  # it has replicas: the Deployment controller looks at the counts that it bears


@dataclass(frozen=True, slots=True)
class PauseTwin:
    """Pause a twin, or resume it."""

    name: str
    paused: bool
    resource_version: str


@dataclass(frozen=True, slots=True)
class LabelPod:
    """Label a running pod as one of a pool; None takes the labels off."""

    pod: str
    uid: str
    pool: Pool | None


@dataclass(frozen=True, slots=True)
class KeepRevision:
    """Create a parked ReplicaSet at 0 with the template of another one, before that one goes."""

    name: str
    replica_set: str | None  # None: with the source's template, as it was seen


@dataclass(frozen=True, slots=True)
class OrphanPods:
    """Delete a ReplicaSet and leave its pods running, without an owner."""

    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class AdoptPods:
    """Create the ReplicaSet that adopts orphaned pods, controlled by a twin, or by the source.

    It has as many replicas as its owner has by then, and is made only while that is paused (H47).
    """

    name: str
    pool: Pool | None  # None: the source
    hashes: tuple[str, ...]  # the pod-template-hash labels of the pods
    template_of: str | None  # a parked ReplicaSet; None: its owner has the template


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete, gracefully, a pod that no ReplicaSet acts on: it has finished, or was replaced."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True)
class StripOwnershipMark:
    """Take our mark off a ReplicaSet of the source: the Deployment controller copies annotations there."""

    name: str


@dataclass(frozen=True, slots=True)
class RetryPods:
    """Have a twin's ReplicaSet try at once to create the pods that it was refused: any write to it does."""

    name: str
    uid: str
    at: datetime


@dataclass(frozen=True, slots=True)
class HideAvailable:
    """Take the condition `splitter.io/Available` off the source; where that may not be done, it stays."""


@dataclass(frozen=True, slots=True)
class DeleteReplicaSet:
    """Delete a parked ReplicaSet of size 0 that must not come back."""

    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class ApplyTwin:
    """Write a twin whole, server-side apply: its creation, or a new template."""

    pool: Pool
    manifest_json: str
    hash: str
    replicas: int
    max_surge: int
    max_unavailable: int
    resource_version: str | None  # None: it does not exist yet
    partition: int = 0  # of a StatefulSet: so many of its pods keep the old template
    first_ordinal: int | None = None  # of a StatefulSet that exists: where its names begin stays as it is
    paused: bool = False  # of a new Deployment: it waits for pods to adopt


@dataclass(frozen=True, slots=True)
class RestoreTemplate:
    """Put a twin's last available template back, read from the ReplicaSet (or revision) that still has it."""

    twin: str
    replica_set: str
    resource_version: str
    tried: bool = True  # the one that it takes the place of; False: no pod was made of that yet


@dataclass(frozen=True, slots=True)
class DeleteTwin:
    """Delete a twin at 0."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Set the replicas of a holder; those of a StatefulSet that is the source together with the saved N."""

    kind: HolderKind
    name: str
    was: int
    replicas: int
    resource_version: str | None


@dataclass(frozen=True, slots=True)
class SetDeletionCost:
    """Make a ReplicaSet's scale-down pick this pod first; None restores what was there."""

    pod: str
    uid: str
    cost: str | None
    remember: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteVanishedPod:
    """Delete, gracefully, a pod whose Node object is gone (after a live GET answered 404).

    With a `successor` the GET may also find that very node: a later one under the same name, by its UID.
    A StatefulSet waits for the object to go before it makes the same pod again: `at_once` takes it away,
    where no node has that name.
    """

    pod: str
    uid: str
    node: str
    successor: str = ""
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class PlaceOrdinals:
    """Put these ordinals of a StatefulSet in force: told to the admission policy, then the Split whole."""

    ordinals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EvictPod:
    """End a pod by the eviction API, which heeds PodDisruptionBudgets: 429 is an answer, not an error."""

    pod: str
    uid: str
    pool: Pool  # where its successor is to start


@dataclass(frozen=True, slots=True)
class DeleteUnboundPod:
    """Delete a pod that never had a node, so that its ordinal is born for another pool."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True)
class CreatePlaceholder:
    """Create the placeholder for a move in placement mode, or one of relief's."""

    pool: Pool
    held_for: str  # the move: pool/ordinal/hash of what it is made of; of relief relief/node
    spec_json: str
    node: str = ""  # of relief: the next replica of the pool is to be kept off it, while others have room


@dataclass(frozen=True, slots=True)
class DeletePlaceholder:
    """Delete the placeholder."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True)
class SetBudget:
    """Write the PodDisruptionBudget that guards a workload; None: delete it."""

    name: str
    min_available: int | None
    uid: str = ""  # of the one that is there
    raised: bool = False  # it keeps more pods than before: the first write of all


AdoptionAction = PauseTwin | LabelPod | KeepRevision | OrphanPods | AdoptPods | DeletePod
PlacementAction = PlaceOrdinals | EvictPod | DeleteUnboundPod | CreatePlaceholder | DeletePlaceholder

Action = (
    EnsureSplit
    | DeleteSplit
    | SetOwnershipMark
    | SetPaused
    | SaveReplicas
    | ShowReplicas
    | ReleaseSource
    | Park
    | Reattach
    | StripOwnershipMark
    | RetryPods
    | HideAvailable
    | AdoptionAction
    | DeleteReplicaSet
    | ApplyTwin
    | RestoreTemplate
    | DeleteTwin
    | Scale
    | SetBudget
    | SetDeletionCost
    | DeleteVanishedPod
    | PlacementAction
)


def is_raise(action: Action) -> bool:
    """Whether it asks for more replicas somewhere."""
    return isinstance(action, Scale) and action.replicas > action.was


def is_lowering(action: Action) -> bool:
    """Whether it asks for fewer replicas somewhere."""
    return isinstance(action, Scale) and action.replicas < action.was


def must_not_wait(action: Action) -> bool:
    """Whether it is tried although an earlier write of its batch was refused: raises, owners for pods."""
    return is_raise(action) or isinstance(action, AdoptPods)

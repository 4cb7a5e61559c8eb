"""Every reason that splitter gives: the same word in Events, log, metrics, status and stories.

Renaming one is a breaking change: people grep for them and alert on them. `docs/reference/reasons.md`
lists them with what to do.
"""

from enum import Enum, StrEnum, auto, unique


@unique
class Reason(StrEnum):
    """One CamelCase word: past tense for what was done, a state for what holds."""

    # Taking over and giving back.
    HANDING_OVER = "HandingOver"
    TAKEN_OVER = "TakenOver"
    GIVING_BACK = "GivingBack"
    GIVEN_BACK = "GivenBack"
    WAITING_FOR_TURN = "WaitingForTurn"
    WAITING_FOR_CONTROLLER = "WaitingForController"
    WAITING_FOR_REPLICAS = "WaitingForReplicas"
    WAITING_FOR_CALM = "WaitingForCalm"
    HANDOVER_HANGS = "HandoverHangs"
    FOREIGN_WRITE = "ForeignWrite"
    IDENTITIES_CHANGE = "IdentitiesChange"
    CONFLICT = "Conflict"

    # Rebalancing.
    BALANCED = "Balanced"
    SCALED = "Scaled"
    SPOT_INTERRUPTED = "SpotInterrupted"
    SPOT_LOST = "SpotLost"
    SPOT_SHORT = "SpotShort"
    SPOT_BLOCKED = "SpotBlocked"
    SPOT_UNPROFITABLE = "SpotUnprofitable"
    SOAKING = "Soaking"
    RETURNING = "Returning"
    COVERED = "Covered"
    PROBING = "Probing"
    ON_DEMAND_DOOMED = "OnDemandDoomed"
    ON_DEMAND_SHORT = "OnDemandShort"
    ON_DEMAND_CAPPED = "OnDemandCapped"
    NOTICE_TOO_SHORT = "NoticeTooShort"
    LINGERING = "Lingering"
    SPOT_UNSEEN = "SpotUnseen"
    SPOT_IMPOSSIBLE = "SpotImpossible"
    CONTROL_PLANE_VIEW = "ControlPlaneView"
    QUORUM_HELD = "QuorumHeld"
    WAITING_FOR_ROOM = "WaitingForRoom"
    EVICTION_REFUSED = "EvictionRefused"
    UNGUARDED = "Unguarded"
    MOVE_UNDONE = "MoveUndone"
    RESTART_LIMIT = "RestartLimit"
    RELIEVING = "Relieving"
    RELIEVED = "Relieved"
    RELIEF_UNDONE = "ReliefUndone"
    RELIEF_PAUSED = "ReliefPaused"
    NODES_MEASURED = "NodesMeasured"
    PODS_IN_OTHER_POOL = "PodsInOtherPool"
    FROZEN = "Frozen"
    DRY_RUN = "DryRun"

    # Why replicas do not run, when it is not for want of nodes.
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CRASH_LOOPING = "CrashLooping"
    CONTAINER_CONFIG_INVALID = "ContainerConfigInvalid"
    NOT_READY = "NotReady"
    QUOTA_EXCEEDED = "QuotaExceeded"
    PODS_REFUSED = "PodsRefused"
    VOLUME_UNAVAILABLE = "VolumeUnavailable"
    SCHEDULING_GATED = "SchedulingGated"
    VOLUME_ZONE_CONFLICT = "VolumeZoneConflict"
    NODES_UNSUITABLE = "NodesUnsuitable"

    # Templates and rollouts.
    ROLLING = "Rolling"
    ROLLOUT_STALLED = "RolloutStalled"
    TEMPLATE_INVALID = "TemplateInvalid"
    DRIFT = "Drift"
    TEMPLATE_SET_CHANGED = "TemplateSetChanged"

    # Refusals and bad input.
    INVALID_LABEL = "InvalidLabel"
    INVALID_ANNOTATION = "InvalidAnnotation"
    INVALID_POLICY = "InvalidPolicy"
    ALREADY_PAUSED = "AlreadyPaused"
    UNPAUSED_BY_MANIFEST = "UnpausedByManifest"
    ROLLOUT_IN_PROGRESS = "RolloutInProgress"
    STRATEGY_RECREATE = "StrategyRecreate"
    SELECTOR_NOT_RELEASABLE = "SelectorNotReleasable"
    TWIN_NAME_TAKEN = "TwinNameTaken"
    CLAIM_NAME_TAKEN = "ClaimNameTaken"
    IS_TWIN = "IsTwin"
    NAME_TOO_LONG = "NameTooLong"
    NAMESPACE_EXCLUDED = "NamespaceExcluded"
    TOO_LARGE = "TooLarge"
    OWNED_BY_CONTROLLER = "OwnedByController"
    AUTOSCALER_ON_TWIN = "AutoscalerOnTwin"
    SELECTOR_OVERLAPS = "SelectorOverlaps"
    VOLUME_READ_WRITE_ONCE = "VolumeReadWriteOnce"
    AUTOSCALER_ON_SOURCE = "AutoscalerOnSource"
    REPLICAS_IN_GIT = "ReplicasInGit"
    VOLUMES_NOT_SHARED = "VolumesNotShared"
    VOLUMES_DELETED_WHEN_SCALED = "VolumesDeletedWhenScaled"
    STRATEGY_ON_DELETE = "StrategyOnDelete"
    PLACEMENT_UNSUPPORTED = "PlacementUnsupported"
    SPLIT_NAME_TAKEN = "SplitNameTaken"
    NEWER_STATE = "NewerState"
    SURGE_MAY_PEND = "SurgeMayPend"
    PROBE_MAY_PREEMPT = "ProbeMayPreempt"
    AUTOSCALER_WITHOUT_TOLERANCE = "AutoscalerWithoutTolerance"
    COVER_IMPOSSIBLE = "CoverImpossible"
    WRITE_DENIED = "WriteDenied"
    INVALID_SETTINGS = "InvalidSettings"
    FORBIDDEN = "Forbidden"
    ANOTHER_LEADS = "AnotherLeads"
    API_UNREACHABLE = "ApiUnreachable"


@unique
class State(StrEnum):
    """What a Split shows in its STATE column."""

    REFUSED = "Refused"
    TAKING_OVER = "TakingOver"
    STEADY = "Steady"
    MOVING = "Moving"
    ROLLING = "Rolling"
    HELD = "Held"
    GIVING_BACK = "GivingBack"
    CONFLICT = "Conflict"


@unique
class VerdictCause(Enum):
    """What a verdict rests on, where something else is decided by it: nobody branches on a reason."""

    ON_THE_WAY = auto()  # replicas are moved, or waited for
    TURN = auto()  # others are being moved, and it waits for its turn
    NEXT_ROLLOUT = auto()  # a changed template set waits for the source's next rollout
    HELD_ROLL = auto()  # a roll waits for the other twin, or for room
    ANOTHER_OBJECT = auto()  # refused for what another object says: no watch tells when that is mended
    NAME_TAKEN = auto()  # the same, and the other object is a Split of the name that this one's would have
    RELIEF = auto()  # a replica leaves a hot node
    BY_NODES = auto()  # judged by the nodes that there are: others may come
    CONTROLLER = auto()  # a controller has to act
    EXCLUDED = auto()  # refused with its whole namespace

"""What one twin does while the other is being deleted, or is gone and cannot be made: `steps` asks here."""

from splitter.core.actions import Scale
from splitter.core.division import base_replicas
from splitter.core.model import Attachment, Note
from splitter.core.plan import PlanInput
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.replica import Pool
from splitter.core.twins import replica_moves

_GOES_WITHIN_S = 5.0


def waiting(this: PlanInput) -> Note:
    """Say which twin is being deleted, and what may keep it: splitter puts no finalizer on one."""
    names = " and ".join(twin.name for twin in this.observed.twins if twin.deleting)
    message = (
        f"waiting for a deleted twin to go: {names}. The garbage collector ends its pods first; if it stays,"
        " look at its metadata.finalizers, and remove what no controller removes any more"
    )
    return Note(Reason.WAITING_FOR_CONTROLLER, message, cause=VerdictCause.CONTROLLER)


def was_refused(this: PlanInput) -> bool:
    """Whether the API server's last answer was a refusal: the other twin may not be made for long."""
    return this.observed.reported.reason == Reason.WRITE_DENIED


def covering(this: PlanInput) -> tuple[Scale, ...]:
    """Return the raise of the twin that is left to what the other one has no more (H59).

    The other's pods go with it, and a finalizer may keep it for ever.
    """
    left = [twin for twin in this.observed.twins if not twin.deleting and not twin.paused]
    parked = this.observed.attached_as(Attachment.PARKED)
    if len(left) != 1 or this.policy.freeze or not replica_moves.at_zero((), parked):
        return ()
    if any(one.deleting and not one.replica_sets for one in this.observed.twins) and not _has_waited(this):
        return ()
    [twin] = left
    others = (pod for one in this.observed.twins if one is not twin for pod in one.pods)
    wanted = this.source.replicas - sum(pod.available for pod in others)
    wanted += sum(pod.is_to_be_replaced for pod in twin.pods)
    if twin.pool is Pool.ON_DEMAND and this.policy.on_demand_max is not None:
        base = base_replicas(this.source.replicas, this.policy)
        wanted = min(wanted, max(this.policy.on_demand_max, base))
    wanted = replica_moves.with_own_volumes(this.observed, twin, wanted)
    if wanted <= twin.spec_replicas:
        return ()
    kind = replica_moves.kind_of_twins(this.observed)
    return (Scale(kind, twin.name, twin.spec_replicas, wanted, None),)


def _has_waited(this: PlanInput) -> bool:
    """Whether the Split has said for a while that a twin is waited for.

    Deleted with its ReplicaSets left (`--cascade=orphan`), a twin goes in a moment, and its pods run on.
    """
    reported = this.observed.reported
    since = (
        one.since
        for one in reported.conditions
        if one.holds_for("Progressing", Reason.WAITING_FOR_CONTROLLER)
    )
    return this.observed.waits.past(next(since, this.observed.now), _GOES_WITHIN_S)

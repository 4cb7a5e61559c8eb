"""What stands in the way of splitting a Deployment."""

from splitter.core.eligibility import checks
from splitter.core.eligibility.pools import no_cover
from splitter.core.labels_annotations.policy import Policy
from splitter.core.limits import MAX_REPLICA_SETS
from splitter.core.model import Attachment, Note, Observation, SourceView
from splitter.core.reasons import Reason


def _paused_by_user(_: Observation, source: SourceView, __: Policy) -> Note | None:
    if not source.paused:
        return None
    return checks.objection(
        Reason.ALREADY_PAUSED,
        "the Deployment is paused by somebody else; run kubectl rollout resume, wait for it, and it is split",
    )


def _unpaused_by_manifest(_: Observation, source: SourceView, __: Policy) -> Note | None:
    if source.unpaused_by_manifest is None:
        return None
    return checks.objection(
        Reason.UNPAUSED_BY_MANIFEST,
        f"{source.unpaused_by_manifest} says `paused: false`: each apply would unpause it and run twice the"
        " replicas; remove that line from the manifest and apply it again",
    )


def _recreate(_: Observation, source: SourceView, __: Policy) -> Note | None:
    if not source.recreate:
        return None
    return checks.objection(
        Reason.STRATEGY_RECREATE,
        "a handover runs pods of two generations at a time, which strategy Recreate does not allow;"
        " set spec.strategy.type to RollingUpdate",
    )


def _selector_not_releasable(_: Observation, source: SourceView, __: Policy) -> Note | None:
    if source.releasable:
        return None
    return checks.objection(
        Reason.SELECTOR_NOT_RELEASABLE,
        "the selector has only NotIn and DoesNotExist terms, so no ReplicaSet can be released from it;"
        " it needs one matchLabels entry (a selector is immutable: re-create the Deployment)",
    )


def _without_hash(observed: Observation, _: SourceView, __: Policy) -> Note | None:
    """Object to a ReplicaSet with pods that does not select them by pod-template-hash."""
    for rs in observed.attached_as(Attachment.ATTACHED):
        if (rs.spec_replicas or rs.status_replicas) and not rs.hashes:
            return checks.objection(
                Reason.SELECTOR_NOT_RELEASABLE,
                f"ReplicaSet {rs.name} was not made by the Deployment controller: it does not select its pods"
                " by pod-template-hash; restart the Deployment (kubectl rollout restart), and it is split",
            )
    return None


def selected_by_others(observed: Observation, _: SourceView, __: Policy) -> Note | None:
    """Object to another controller that would adopt its pods, and end them, while they change their owner.

    A right that is missing is an objection too: what was not looked at may be one. Source: H82.
    """
    related = observed.related
    if related.rival:
        return checks.by_another(
            Reason.SELECTOR_OVERLAPS,
            f"{related.rival} selects its pods too: while they change their owner, it would adopt and end"
            " them; give the two selectors and pod templates labels that differ, or delete it",
        )
    if related.rivals_unread:
        return checks.by_another(
            Reason.FORBIDDEN,
            "it is not known which other controllers of this namespace select its pods:"
            f" {related.rivals_unread}",
        )
    return None


def _too_many_replica_sets(observed: Observation, _: SourceView, __: Policy) -> Note | None:
    if len(observed.replica_sets) <= MAX_REPLICA_SETS:
        return None
    return checks.objection(
        Reason.TOO_LARGE,
        f"it has more than {MAX_REPLICA_SETS} ReplicaSets, and each is parked and given back by itself;"
        " delete old ones, or lower spec.revisionHistoryLimit",
    )


CHECKS: tuple[checks.Check, ...] = (
    _too_many_replica_sets,
    checks.controlled_by_another,
    _paused_by_user,
    _unpaused_by_manifest,
    _recreate,
    _selector_not_releasable,
    _without_hash,
    checks.own_labels_taken,
    checks.name_taken,
    checks.autoscaler_on_twin,
    checks.one_node_volume,
    selected_by_others,
    no_cover,
    checks.rollout_in_progress,
    checks.replicas_starting,
    checks.denied,
)
# What is ours already is paused, rolled and named by us: only these still say something.
CHECKS_WHILE_SPLIT: tuple[checks.Check, ...] = (
    checks.controlled_by_another,
    _recreate,
    checks.own_labels_taken,
    checks.mutated,
    checks.autoscaler_on_twin,
    checks.one_node_volume,
)

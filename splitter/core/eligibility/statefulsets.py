"""What stands in the way of splitting a StatefulSet into twins.

Such a source is scaled to 0 and its pods get other names: so whatever acts on its count or its pods' names
and volumes has to be looked at.
"""

from splitter.core.eligibility import checks
from splitter.core.eligibility.pools import no_cover
from splitter.core.labels_annotations import ANNOTATION_MODE, ANNOTATION_VOLUMES, split_name
from splitter.core.labels_annotations.policy import Policy
from splitter.core.mode import mode_of
from splitter.core.model import Mode, Note, Observation, SourceView
from splitter.core.reasons import Reason


def _not_by_twins(_: Observation, source: SourceView, policy: Policy) -> Note | None:
    if mode_of(source.key.kind, policy.mode) is Mode.TWINS:
        return None
    return checks.objection(
        Reason.PLACEMENT_UNSUPPORTED,
        f"it is split into twins, and no longer annotated {ANNOTATION_MODE}=twins; to have it split by"
        " placement, remove its label and set it again",
    )


def _on_delete(_: Observation, source: SourceView, __: Policy) -> Note | None:
    if source.stateful is None or not source.stateful.on_delete:
        return None
    return checks.objection(
        Reason.STRATEGY_ON_DELETE,
        "updateStrategy OnDelete leaves it to a person when a pod gets a new template, and twins are rolled;"
        " set spec.updateStrategy.type to RollingUpdate",
    )


def _deletes_claims(_: Observation, source: SourceView, __: Policy) -> Note | None:
    if source.stateful is None or not source.stateful.deletes_claims:
        return None
    return checks.objection(
        Reason.VOLUMES_DELETED_WHEN_SCALED,
        "persistentVolumeClaimRetentionPolicy.whenScaled is Delete: to split it, it is scaled to 0, which"
        " would delete all its volumes; set spec.persistentVolumeClaimRetentionPolicy.whenScaled to Retain",
    )


def _has_volumes(_: Observation, source: SourceView, policy: Policy) -> Note | None:
    if source.stateful is None or not source.stateful.claim_templates or policy.disposable_volumes:
        return None
    names = ", ".join(source.stateful.claim_templates)
    return checks.objection(
        Reason.VOLUMES_NOT_SHARED,
        f"spec.volumeClaimTemplates ({names}): the pods of its twins have other names and would begin with"
        f" empty volumes; if these can be lost, as a cache, annotate {ANNOTATION_VOLUMES}=disposable",
    )


def _claim_taken(observed: Observation, _: SourceView, __: Policy) -> Note | None:
    if not observed.related.taken_claims:
        return None
    names = ", ".join(name for _, name in observed.related.taken_claims.values())
    return checks.by_another(
        Reason.CLAIM_NAME_TAKEN,
        f"volume claim {names} exists and is not splitter's: a twin's pod would mount it, and it would be"
        " deleted with that pod; move what is on it elsewhere and delete it, or rename the claim template",
    )


def _autoscaled(observed: Observation, source: SourceView, _: Policy) -> Note | None:
    who = observed.related.scaled_by
    if not who:
        return None
    split = split_name(source.key)
    remedy = (
        "set its updateMode to Off"
        if who.startswith("VerticalPodAutoscaler/")
        else f"aim its scaleTargetRef at the Split instead: apiVersion splitter.io/v1alpha1, kind Split, name"
        f" {split} (it exists as soon as the StatefulSet is labelled)"
    )
    return checks.by_another(
        Reason.AUTOSCALER_ON_SOURCE,
        f"{who} is aimed at this StatefulSet, which has 0 replicas while it is split: there it would stop, or"
        f" act on no pod; {remedy}",
    )


def _declared_in_git(_: Observation, source: SourceView, __: Policy) -> Note | None:
    if source.stateful is None or not source.stateful.declared_by:
        return None
    return checks.objection(
        Reason.REPLICAS_IN_GIT,
        f"spec.replicas is in the manifests that {source.stateful.declared_by} applies, and a StatefulSet"
        " that is split has 0 replicas: it would be set back again and again; take spec.replicas out of the"
        " manifest (a server-side apply that drops it leaves 1), and scale the Split"
        f" {split_name(source.key)}",
    )


CHECKS: tuple[checks.Check, ...] = (
    checks.controlled_by_another,
    _on_delete,
    _deletes_claims,
    _has_volumes,
    _declared_in_git,
    checks.own_labels_taken,
    checks.name_taken,
    _claim_taken,
    _autoscaled,
    checks.autoscaler_on_twin,
    checks.one_node_volume,
    no_cover,
    checks.rollout_in_progress,
    checks.replicas_starting,
    checks.denied,
)
# It stands at 0 and is named by us: only these still say something.
CHECKS_WHILE_SPLIT: tuple[checks.Check, ...] = (
    checks.controlled_by_another,
    _not_by_twins,
    _on_delete,
    _deletes_claims,
    _claim_taken,
    _autoscaled,
    _declared_in_git,
    checks.own_labels_taken,
    checks.mutated,
    checks.autoscaler_on_twin,
    checks.one_node_volume,
)

"""Decides which workloads may be split: each refusal has its reason and its remedy.

The planner asks `refusal` before the first write. The checks are tried in order; the first that objects is
the answer, so that people mend one thing at a time. `objection_while_split` asks what still matters of a
workload that is split: it is kept as it is, and the objection is reported. `advice` says what is allowed,
but better known. Source: H11 to H14.
"""

from collections.abc import Sequence

from splitter.core.eligibility import deployments, placement, statefulsets
from splitter.core.eligibility.checks import Check, over_a_limit
from splitter.core.eligibility.placement import advice as placement_advice
from splitter.core.eligibility.placement import why_unplaceable
from splitter.core.eligibility.pools import barriers, no_spot_node, seen_as_spot
from splitter.core.labels_annotations import SPOT_ORDINALS, split_name, twin_name
from splitter.core.labels_annotations.policy import Policy
from splitter.core.mode import mode_of
from splitter.core.model import Mode, Note, Observation, SourceView
from splitter.core.names import DEPLOYMENT
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.replica import Pool

__all__ = [
    "advice",
    "barriers",
    "no_spot_node",
    "objection_while_split",
    "placement_advice",
    "refusal",
    "seen_as_spot",
    "why_unplaceable",
]


def refusal(
    observed: Observation, source: SourceView, policy: Policy, excluded_namespaces: Sequence[str]
) -> Note | None:
    """Return why this source cannot be split now (a warning), or not yet (none), or None when it can be."""
    if source.key.namespace in excluded_namespaces:
        message = (
            f"splitter leaves namespace {source.key.namespace} alone: it is splitter's own, or"
            " excluded_namespaces in its settings names it; move the workload, or change the setting, and the"
            " policy on splitter's account"
        )
        return Note(Reason.NAMESPACE_EXCLUDED, message, warning=True, cause=VerdictCause.EXCLUDED)
    if (other := observed.related.split_of) != "":
        message = (
            f"{other} has a Split of the name that this one's would have, {split_name(source.key)};"
            " split only one of them, or rename one"
        )
        return Note(Reason.SPLIT_NAME_TAKEN, message, warning=True, cause=VerdictCause.NAME_TAKEN)
    for check in _checks(source, policy):
        if (objection := check(observed, source, policy)) is not None:
            return objection
    return None


def objection_while_split(observed: Observation, source: SourceView, policy: Policy) -> Note | None:
    """Return why a workload that is split would be refused today; it stays split, and is kept safe (H14)."""
    for check in _checks_while_split(observed, source):
        if (objection := check(observed, source, policy)) is not None:
            message = f"{objection.message}. It stays split and is kept safe until its label is removed"
            return Note(objection.reason, message, warning=True)
    return _said_before(observed)


def _said_before(observed: Observation) -> Note | None:
    """Return what a policy has made of twins that this process has not written yet, as their Split says."""
    if not any(twin.unanswered for twin in observed.twins):
        return None
    said = (one for one in observed.reported.conditions if one.type == "Eligible" and one.status == "False")
    return next(
        (Note(Reason.DRIFT, one.message, warning=True) for one in said if one.reason == Reason.DRIFT), None
    )


def _checks(source: SourceView, policy: Policy) -> Sequence[Check]:
    if source.key.kind == DEPLOYMENT:
        return (over_a_limit, *deployments.CHECKS)
    placed = mode_of(source.key.kind, policy.mode) is Mode.PLACEMENT
    return (over_a_limit, *(placement.CHECKS if placed else statefulsets.CHECKS))


def _checks_while_split(observed: Observation, source: SourceView) -> Sequence[Check]:
    if source.key.kind == DEPLOYMENT:
        return (over_a_limit, *deployments.CHECKS_WHILE_SPLIT)
    placed = observed.split is not None and observed.split.ordinals is not None
    return (over_a_limit, *(placement if placed else statefulsets).CHECKS_WHILE_SPLIT)


def advice(observed: Observation, source: SourceView) -> tuple[Note, ...]:
    """Return what people should know about a workload that is being taken over."""
    notes = []
    if source.stateful is not None:
        notes.append(_identities(source, source.stateful.service, source.stateful.first_ordinal))
    if source.one_a_node and source.max_surge:
        message = (
            f"{source.one_a_node} allows one pod on a node: where nodes are few, surge replicas stay"
            " Pending and moves wait for the grace; they are never forced"
        )
        notes.append(Note(Reason.SURGE_MAY_PEND, message))
    pods = [pod for rs in observed.replica_sets for pod in rs.pods]
    if (priority := max((pod.priority for pod in pods if pod.counts), default=0)) > 0:
        message = (
            f"its pods have the priority {priority}, and so has the replica that asks for spot in an outage:"
            " the scheduler may preempt pods of a lower priority on spot nodes for it; a PriorityClass with"
            " preemptionPolicy: Never rules that out"
        )
        notes.append(Note(Reason.PROBE_MAY_PREEMPT, message))
    if who := observed.related.untolerant_autoscaler:
        message = (
            f"{who} scales by the average of an external or object metric, and does so without the usual 10 %"
            " tolerance while the Deployment is split; set behavior.scaleUp.stabilizationWindowSeconds"
        )
        notes.append(Note(Reason.AUTOSCALER_WITHOUT_TOLERANCE, message))
    return tuple(notes)


def _identities(source: SourceView, service: str, first: int) -> Note:
    """Say what the peers of a StatefulSet will see: other names, behind the same Service."""
    name, dot = source.key.name, f".{service}" if service else ""
    on_demand, spot = (twin_name(name, pool) for pool in Pool)
    message = (
        f"its pods get other names: {name}-{first}{dot} becomes {on_demand}-{first}{dot} or"
        f" {spot}-{first + SPOT_ORDINALS}{dot}. Selectors find them as before, and the Service's DNS name"
        " lists them all; lists of peers by name have to be changed (docs/how-to/split-a-statefulset.md)"
    )
    return Note(Reason.IDENTITIES_CHANGE, message)

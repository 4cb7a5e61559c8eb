"""What stands in the way of splitting any workload; `deployments` and `statefulsets` have the rest."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from splitter.core.causes import why_unready
from splitter.core.desired.manifest import mapping_at
from splitter.core.labels_annotations import PREFIX
from splitter.core.labels_annotations.policy import Policy
from splitter.core.limits import too_large
from splitter.core.model import Note, Observation, SourceView
from splitter.core.names import DEPLOYMENT
from splitter.core.reasons import Reason, VerdictCause

# What Kubernetes itself tells the pods of a Deployment's templates apart by.
_HASH: Final = "pod-template-hash"

Check = Callable[[Observation, SourceView, Policy], Note | None]


def objection(reason: Reason, message: str) -> Note:
    """Return a refusal: somebody has to change something."""
    return Note(reason, message, warning=True)


def by_another(reason: Reason, message: str) -> Note:
    """Return an objection that another object mends."""
    return replace(objection(reason, message), cause=VerdictCause.ANOTHER_OBJECT)


def over_a_limit(_: Observation, source: SourceView, __: Policy) -> Note | None:
    """Object to a workload that is larger than any that people write."""
    why = too_large(source)
    return objection(Reason.TOO_LARGE, why) if why else None


def controlled_by_another(_: Observation, source: SourceView, __: Policy) -> Note | None:
    """Object to a workload whose controller would undo what we write."""
    if source.controller is None:
        return None
    undone = "the pause" if source.key.kind == DEPLOYMENT else "each change of its replicas"
    return objection(
        Reason.OWNED_BY_CONTROLLER,
        f"{source.controller} owns this {source.key.kind} and would undo {undone};"
        " split what that controller creates it from, if it offers it",
    )


def name_taken(observed: Observation, source: SourceView, _: Policy) -> Note | None:
    """Object to an object of somebody else under a twin's name."""
    if not observed.related.taken_names:
        return None
    names = ", ".join(observed.related.taken_names)
    return by_another(
        Reason.TWIN_NAME_TAKEN,
        f"{source.key.kind} {names} exists and is not splitter's; rename or delete it",
    )


def autoscaler_on_twin(observed: Observation, source: SourceView, _: Policy) -> Note | None:
    """Object to an autoscaler that is aimed at a twin."""
    if not observed.related.autoscaled_twin:
        return None
    handle = "source" if source.key.kind == DEPLOYMENT else "Split"
    return by_another(
        Reason.AUTOSCALER_ON_TWIN,
        f"{observed.related.autoscaled_twin} is aimed at a twin; autoscalers belong on the {handle}, the"
        f" one handle of the count (two whose pods overlap disable each other): aim it at the {handle}, or"
        " delete it",
    )


def one_node_volume(observed: Observation, source: SourceView, _: Policy) -> Note | None:
    """Object to a volume that the replica of a move cannot mount beside the old one (H15).

    A new replica is made before an old one goes, on a node of the other pool, also of a single replica and
    with maxSurge 0.
    """
    claim = observed.related.one_node_claim
    if claim is None:
        return None
    mode, why = "ReadWriteOnce", "a pod on a second node never starts"
    if claim.one_pod:
        mode, why = "ReadWriteOncePod", "a second pod is never scheduled"
    return by_another(
        Reason.VOLUME_READ_WRITE_ONCE,
        f"each replica mounts the volume claim {claim.name}, which is {mode}: {why}, and every move needs two"
        f" pods, one in each pool; use a ReadWriteMany claim, or leave this {source.key.kind} on its node",
    )


def own_labels_taken(_: Observation, source: SourceView, __: Policy) -> Note | None:
    """Object to labels of splitter's own on the pods: a ReplicaSet with them is taken for another one (H16).

    `commonLabels` of kustomize and of charts puts the label that asks for the split into all three places.
    """
    ours = (_HASH, PREFIX) if source.key.kind == DEPLOYMENT else (PREFIX,)
    taken = next((name for name in source.pod_labels if name.startswith(ours)), None)
    if taken is None:
        return None
    spec = mapping_at(json.loads(source.manifest_json), "spec")
    template = mapping_at(mapping_at(mapping_at(spec, "template"), "metadata"), "labels")
    selected = taken in source.selector_keys or taken not in template
    places = (("spec.selector", selected), ("spec.template.metadata.labels", taken in template))
    why = (
        f"its pods have the label {taken} ({' and '.join(place for place, there in places if there)}), and"
        " splitter tells pods, ReplicaSets and twins apart by the labels of its own"
        if taken != _HASH
        else f"its selector or its pod template names {taken}, by which Kubernetes tells its pods apart"
    )
    remedy = "keep it in metadata.labels alone" if taken != _HASH else "take that label off"
    if selected:
        remedy += f"; a selector is immutable, so delete the {source.key.kind} and create it again"
    if taken != _HASH:
        remedy += " (kustomize: `labels` without includeSelectors and includeTemplates, not `commonLabels`)"
    return objection(Reason.SELECTOR_NOT_RELEASABLE, f"{why}; {remedy}")


def rollout_in_progress(_: Observation, source: SourceView, __: Policy) -> Note | None:
    """Let a rollout end first: it passes by itself (H13)."""
    if source.rollout_complete:
        return None
    return Note(
        Reason.ROLLOUT_IN_PROGRESS,
        f"a rollout is in progress ({source.rollout}); it is split when all of its pods are of one template",
        quiet=True,
    )


def replicas_starting(observed: Observation, source: SourceView, policy: Policy) -> Note | None:
    """Let replicas start that may be ready in a moment; one that is held up keeps nothing waiting (H13)."""
    if source.all_available:
        return None
    pods = [pod for rs in observed.replica_sets for pod in rs.pods if pod.counts]
    unready = {
        pod.name: why_unready(pod, observed.waits, policy.grace_s) for pod in pods if pod.ready_since is None
    }
    starting = sorted(name for name, why in unready.items() if not why)
    missing = max(0, source.replicas - len(pods) - sum(rs.refused for rs in observed.replica_sets))
    if source.stateful is not None and any(unready.values()):
        missing = 0  # OrderedReady: the members behind one that is held up are not made
    if not starting and not missing:
        return None
    example = f" (pod {starting[0]})" if starting else ""
    return Note(
        Reason.WAITING_FOR_REPLICAS,
        f"{len(starting) + missing} of {source.replicas} replicas are starting{example}; it is split when all"
        f" are ready, or known to be held up, at the latest after the grace of {policy.grace_s:g} s",
        quiet=True,
        cause=VerdictCause.ON_THE_WAY,
    )


def mutated(observed: Observation, _: SourceView, __: Policy) -> Note | None:
    """Object to a policy that has changed a twin on its way (H17)."""
    for twin in observed.twins:
        if fields := (*twin.altered, *twin.added):
            return by_another(
                Reason.DRIFT,
                f"a mutating policy or webhook has made {twin.name} another than splitter wrote it:"
                f" {', '.join(fields)}; have it leave objects with the label splitter.io/split=twin as they"
                " are, or give the source the same",
            )
    return None


def denied(observed: Observation, _: SourceView, __: Policy) -> Note | None:
    """Object with what the dry run was answered."""
    return observed.denied

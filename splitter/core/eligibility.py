"""Which sources may be split: each refusal with its reason word and its remedy (promise 7).

The planner asks `refusal` before the first write. The checks are tried in order; the first that objects is
the answer, so that people mend one thing at a time. `objection_while_split` asks what still matters of a
workload that is split: it is kept as it is, and the objection is reported. `advice` says what is allowed,
but better known. Source of the rules: handover.md, "Eligibility" and "Neighbours".
"""

from collections.abc import Callable, Sequence

from splitter.core.model import Note, Observation, SourceView
from splitter.core.reasons import Reason


def refusal(observed: Observation, source: SourceView, excluded_namespaces: Sequence[str]) -> Note | None:
    """Return why this source cannot be split now (a warning), or not yet (none), or None when it can be."""
    if source.key.namespace in excluded_namespaces:
        return _note(
            Reason.NAMESPACE_EXCLUDED,
            f"splitter is told to leave namespace {source.key.namespace} alone;"
            " change excluded_namespaces in its settings",
        )
    for check in _CHECKS:
        if (objection := check(observed, source)) is not None:
            return objection
    return None


def objection_while_split(observed: Observation, source: SourceView) -> Note | None:
    """Return why a workload that is split would not be split today; it stays split, and is kept safe."""
    for check in _CHECKS_WHILE_SPLIT:
        if (objection := check(observed, source)) is not None:
            message = f"{objection.message}. It stays split and is kept safe until its label is removed"
            return Note(objection.reason, message, warning=True)
    return None


def advice(observed: Observation, source: SourceView) -> tuple[Note, ...]:
    """Return what people should know about a workload that is being taken over."""
    found = []
    if source.one_a_node and source.max_surge:
        message = (
            f"{source.one_a_node} lets one pod stand on a node: where nodes are few, surge replicas stay"
            " Pending and moves wait for the grace; they are never forced"
        )
        found.append(Note(Reason.SURGE_MAY_PEND, message))
    if who := observed.neighbours.untolerant_autoscaler:
        message = (
            f"{who} scales by the average of an external or object metric, and does so without the usual 10 %"
            " tolerance while the Deployment is split; set behavior.scaleUp.stabilizationWindowSeconds"
        )
        found.append(Note(Reason.AUTOSCALER_WITHOUT_TOLERANCE, message))
    return tuple(found)


def _note(reason: Reason, message: str) -> Note:
    return Note(reason, message, warning=True)


def _controlled_by_another(_: Observation, source: SourceView) -> Note | None:
    if source.controller is None:
        return None
    return _note(
        Reason.OWNED_BY_CONTROLLER,
        f"{source.controller} owns this Deployment and would undo the pause;"
        " split what that controller creates it from, if it offers it",
    )


def _paused_by_user(_: Observation, source: SourceView) -> Note | None:
    if not source.paused:
        return None
    return _note(
        Reason.ALREADY_PAUSED,
        "the Deployment is paused by somebody else; run kubectl rollout resume, wait for it, and it is split",
    )


def _unpaused_by_manifest(_: Observation, source: SourceView) -> Note | None:
    if source.unpaused_by_manifest is None:
        return None
    return _note(
        Reason.UNPAUSED_BY_MANIFEST,
        f"{source.unpaused_by_manifest} says `paused: false`: each apply would unpause it and run twice the"
        " replicas; remove that line from the manifest and apply it again",
    )


def _recreate(_: Observation, source: SourceView) -> Note | None:
    if not source.recreate:
        return None
    return _note(
        Reason.STRATEGY_RECREATE,
        "strategy Recreate does not allow two generations of pods at a time, and a hand-over is just that;"
        " set spec.strategy.type to RollingUpdate",
    )


def _selector_not_releasable(_: Observation, source: SourceView) -> Note | None:
    if source.releasable:
        return None
    return _note(
        Reason.SELECTOR_NOT_RELEASABLE,
        "the selector has only NotIn and DoesNotExist terms, so no ReplicaSet can be released from it;"
        " it needs one matchLabels entry (a selector is immutable: re-create the Deployment)",
    )


def _name_taken(observed: Observation, _: SourceView) -> Note | None:
    if not observed.neighbours.taken_names:
        return None
    names = ", ".join(observed.neighbours.taken_names)
    return _note(
        Reason.TWIN_NAME_TAKEN,
        f"Deployment {names} exists and is not splitter's; rename or delete it",
    )


def _autoscaler_on_twin(observed: Observation, _: SourceView) -> Note | None:
    if not observed.neighbours.autoscaled_twin:
        return None
    return _note(
        Reason.AUTOSCALER_ON_TWIN,
        f"{observed.neighbours.autoscaled_twin} is aimed at a twin; autoscalers belong on the source, the one"
        " handle of the count (two whose pods overlap disable each other): aim it at the source, or delete"
        " it",
    )


def _one_node_volume(observed: Observation, source: SourceView) -> Note | None:
    claim = observed.neighbours.one_node_claim
    if not claim or (source.replicas <= 1 and not source.max_surge):
        return None
    return _note(
        Reason.VOLUME_READ_WRITE_ONCE,
        f"all replicas mount the volume claim {claim}, which is ReadWriteOnce: pods on a second node would"
        " never start; use a ReadWriteMany claim, or leave this Deployment on its node",
    )


def _denied(observed: Observation, _: SourceView) -> Note | None:
    return observed.denied


def _rollout_in_progress(_: Observation, source: SourceView) -> Note | None:
    if source.rollout_complete:
        return None
    return Note(  # passes by itself
        Reason.ROLLOUT_IN_PROGRESS,
        f"a rollout is in progress ({source.rollout}); it is split when updated, available and all"
        f" replicas are {source.replicas}",
        quiet=True,
    )


_CHECKS: tuple[Callable[[Observation, SourceView], Note | None], ...] = (
    _controlled_by_another,
    _paused_by_user,
    _unpaused_by_manifest,
    _recreate,
    _selector_not_releasable,
    _name_taken,
    _autoscaler_on_twin,
    _one_node_volume,
    _rollout_in_progress,
    _denied,
)
# What is ours already is paused, rolled and named by us: only these still say something.
_CHECKS_WHILE_SPLIT = (_controlled_by_another, _recreate, _autoscaler_on_twin, _one_node_volume)

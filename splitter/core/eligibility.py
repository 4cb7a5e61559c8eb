"""Which sources may be split: each refusal with its reason word and its remedy (promise 7).

The planner asks before the first write, and never again for a workload that is already split. The
checks are tried in order; the first that objects is the answer, so that people mend one thing at a
time. Source of the rules: handover.md, "Eligibility".
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
    if not observed.taken_names:
        return None
    names = ", ".join(observed.taken_names)
    return _note(
        Reason.TWIN_NAME_TAKEN,
        f"Deployment {names} exists and is not splitter's; rename or delete it",
    )


def _autoscaler_on_twin(observed: Observation, _: SourceView) -> Note | None:
    if not observed.autoscaled_twin:
        return None
    return _note(
        Reason.AUTOSCALER_ON_TWIN,
        f"{observed.autoscaled_twin} is aimed at a twin; autoscalers belong on the source, the one handle of"
        " the count (two whose pods overlap disable each other): aim it at the source, or delete it",
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
    _rollout_in_progress,
    _denied,
)

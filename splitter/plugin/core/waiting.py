"""Judges by a Split whether a change of its source has come to all replicas, for `splitter wait`.

A Split is about the generation of the source that its last reconcile has seen, and for a moment after a
change that is the one before. So nothing that it says counts before it is about the generation that is
waited for (docs/adr/0123). Pure: the state of the two objects in, a sentence out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique

from splitter.core.labels_annotations import ANNOTATION_RESTARTED_AT, ANNOTATION_ROLLOUT_AT
from splitter.core.labels_annotations.policy import USER_ANNOTATIONS
from splitter.core.reasons import State
from splitter.core.split_status import Condition, SplitStatus

_ROLLING = (ANNOTATION_RESTARTED_AT, ANNOTATION_ROLLOUT_AT)


@unique
class Until(StrEnum):
    """What is waited for."""

    UPDATED = "updated"
    """All replicas have the newest template and are available, in whichever pool."""
    STEADY = "steady"
    """They are also in the pools that the policy asks for."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The source as it was when the wait began."""

    generation: int
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Judgement:
    """How it stands, in a sentence. `done` and `failed` end the wait."""

    sentence: str
    done: bool = False
    failed: bool = False
    refused: bool = False  # it failed, and is not split
    unseen: bool = False  # the controller has not looked at what is waited for


def judged(status: SplitStatus, asked: Asked, until: Until = Until.UPDATED) -> Judgement:
    """Return how a Split stands against what was asked for.

    A stalled one fails: nothing goes on before a person acts, as after the progress deadline of a Deployment.
    """
    if not status.state:
        return Judgement("splitter has not reported on it yet", unseen=True)
    if status.source_generation < asked.generation:
        return Judgement(
            f"splitter has seen generation {status.source_generation} of it, and not {asked.generation} yet",
            unseen=True,
        )
    conditions = {one.type: one for one in status.conditions}
    if (unread := _unread(status, asked, conditions.get("PolicyValid"))) is not None:
        return Judgement(unread)
    return _by_conditions(status, conditions, until)


def _by_conditions(status: SplitStatus, conditions: Mapping[str, Condition], until: Until) -> Judgement:
    said = f"{status.reason}: {status.message}"
    refused = status.state == State.REFUSED
    if _is(conditions.get("Stalled"), "True"):
        return Judgement(said, failed=True, refused=refused)
    updated = conditions.get("Updated")
    if updated is None:  # of a controller that is older than this command
        done = status.state == State.STEADY
        return Judgement(said, done=done, failed=refused, refused=refused)
    if updated.status != "True":
        return Judgement(f"{updated.message} ({said})" if updated.message != status.message else said)
    if until is Until.STEADY and status.state != State.STEADY:
        return Judgement(f"{updated.message}; {status.state}, {said}")
    return Judgement(updated.message, done=True)


def _unread(status: SplitStatus, asked: Asked, valid: Condition | None) -> str | None:
    """Say which annotations are not in force yet; a StatefulSet's raise no generation.

    While one of them cannot be read the last good ones are, and only a restart that was asked for is missed.
    """
    invalid = _is(valid, "False")
    names = _ROLLING if invalid else USER_ANNOTATIONS
    late = [
        name
        for name in names
        if name in asked.annotations and status.memory.good_annotations.get(name) != asked.annotations[name]
    ]
    if not late:
        return None
    why = f": {valid.message}" if invalid and valid is not None else ""
    return f"{', '.join(late)} {'is' if len(late) == 1 else 'are'} not in force yet{why}"


def _is(condition: Condition | None, status: str) -> bool:
    return condition is not None and condition.status == status

"""Reads a source's annotations, and its namespace's, into a `Policy` or sentences.

Called by the planner for each reconcile. What is done about a sentence is decided there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from typing import Final, TypeVar

from splitter.core import labels_annotations as keys
from splitter.core.labels_annotations.words import (
    BASE,
    EVICTIONS,
    GRACE,
    MODE,
    MOMENT,
    PERCENT,
    RANK,
    REPLICAS,
    ROLLOUT_ORDER,
    SOAK,
    SPOT_AFFINITY,
    SWITCH,
    TEMPLATE_SET,
    VOLUMES,
    Form,
    nearest,
    quoted,
)
from splitter.core.model import Note, Policy
from splitter.core.names import STATEFUL_SET
from splitter.core.reasons import Reason

_LAST_GOOD: Final = "Until then the last good policy stays in force."

T = TypeVar("T")
D = TypeVar("D")


@unique
class Level(StrEnum):
    """Where a value of the policy comes from, by its word in a Split."""

    SOURCE = "Source"
    NAMESPACE = "Namespace"
    DEFAULT = "Default"
    LEARNED = "Learned"
    """A default that follows what was seen of this workload's starts."""
    LAST_GOOD = "LastGood"
    """What is written now cannot be read: as it was written before."""


@dataclass(frozen=True, slots=True)
class ParsedPolicy:
    """What annotations ask for; `policy` is None when any of them cannot be obeyed.

    `problems` holds warnings too (an unknown annotation), which refuse nothing. `levels` names
    where each annotation's value came from, in the order of docs/reference/annotations.md.
    """

    policy: Policy | None
    problems: tuple[Note, ...] = ()
    levels: tuple[tuple[str, Level], ...] = ()


@dataclass(slots=True)
class _Reader:
    """Reads annotations one by one and remembers what was wrong and where values came from."""

    source: Mapping[str, str]
    namespace: Mapping[str, str]
    problems: list[Note] = field(default_factory=list)
    levels: list[tuple[str, Level]] = field(default_factory=list)

    def get(self, annotation: str, form: Form[T], default: D) -> T | D:
        """Return the value of one annotation: the source's, else its namespace's, else `default`."""
        for level, annotations in ((Level.SOURCE, self.source), (Level.NAMESPACE, self.namespace)):
            if annotation not in annotations:
                continue
            self.levels.append((annotation, level))
            text = annotations[annotation]
            value = form.read(text)
            if value is None:
                self._refuse(annotation, level, text, form.must_be, form.advice(text))
                return default
            return value
        self.levels.append((annotation, Level.DEFAULT))
        return default

    def _refuse(self, annotation: str, level: Level, text: str, must_be: str, advice: str) -> None:
        message = (
            f"{annotation}{_where(level)} is {quoted(text)}; it must be {must_be}. {advice} {_LAST_GOOD}"
        )
        self.problems.append(Note(Reason.INVALID_ANNOTATION, message, warning=True))


def defaults_for(kind: str, defaults: Policy) -> Policy:
    """Return what holds for a kind of workload where nothing is written.

    More than half of a StatefulSet's members stay on on-demand, so that their quorum outlives all of spot.

    >>> defaults_for("StatefulSet", Policy()).on_demand_base
    'majority'
    """
    return replace(defaults, on_demand_base="majority") if kind == STATEFUL_SET else defaults


def parse_policy(
    annotations: Mapping[str, str],
    defaults: Policy,
    namespace_annotations: Mapping[str, str] | None = None,
) -> ParsedPolicy:
    """Return the policy a source asks for, and a sentence for each annotation that is wrong.

    `defaults` is what holds where nothing is written (the settings', by way of
    `defaults_for`). A namespace's annotation is a default for its workloads, and is not
    read where the source overrides it. Caps that contradict each other depend on N and are checked
    where N is known (`InvalidPolicy`), not here.

    >>> parse_policy({"splitter.io/spot-percent": "80%"}, Policy()).problems[0].message
    'splitter.io/spot-percent is "80%"; it must be a whole number 0..100. Write "80". \
Until then the last good policy stays in force.'
    """
    reader = _Reader(annotations, namespace_annotations or {})
    policy = Policy(
        on_demand_base=reader.get(keys.ANNOTATION_ON_DEMAND_BASE, BASE, defaults.on_demand_base),
        spot_percent=reader.get(keys.ANNOTATION_SPOT_PERCENT, PERCENT, defaults.spot_percent),
        on_demand_max=reader.get(keys.ANNOTATION_ON_DEMAND_MAX, REPLICAS, defaults.on_demand_max),
        spot_max=reader.get(keys.ANNOTATION_SPOT_MAX, REPLICAS, defaults.spot_max),
        spot_affinity=reader.get(keys.ANNOTATION_SPOT_AFFINITY, SPOT_AFFINITY, defaults.spot_affinity),
        grace_s=reader.get(keys.ANNOTATION_GRACE, GRACE, defaults.grace_s),
        soak_s=reader.get(keys.ANNOTATION_SOAK, SOAK, defaults.soak_s),
        freeze=reader.get(keys.ANNOTATION_FREEZE, SWITCH, defaults.freeze),
        dry_run=reader.get(keys.ANNOTATION_DRY_RUN, SWITCH, defaults.dry_run),
        template_set=reader.get(keys.ANNOTATION_TEMPLATE, TEMPLATE_SET, defaults.template_set),
        rollout_order=reader.get(keys.ANNOTATION_ROLLOUT_ORDER, ROLLOUT_ORDER, defaults.rollout_order),
        evictions=reader.get(keys.ANNOTATION_EVICTIONS, EVICTIONS, defaults.evictions),
        rank=reader.get(keys.ANNOTATION_RANK, RANK, defaults.rank),
        restarted_at=reader.get(keys.ANNOTATION_RESTARTED_AT, MOMENT, defaults.restarted_at),
        rollout_at=reader.get(keys.ANNOTATION_ROLLOUT_AT, MOMENT, defaults.rollout_at),
        mode=reader.get(keys.ANNOTATION_MODE, MODE, defaults.mode),
        disposable_volumes=reader.get(keys.ANNOTATION_VOLUMES, VOLUMES, defaults.disposable_volumes),
    )
    refusals = tuple(reader.problems)
    warnings = (*_unknown(annotations, Level.SOURCE), *_unknown(reader.namespace, Level.NAMESPACE))
    return ParsedPolicy(None if refusals else policy, refusals + warnings, tuple(reader.levels))


_UNKNOWN_NAMED: Final = 10


def _unknown(annotations: Mapping[str, str], level: Level) -> tuple[Note, ...]:
    """Return a warning for each annotation under our prefix that means nothing to us."""
    known = {*keys.USER_ANNOTATIONS, *keys.OWN_ANNOTATIONS}
    unknown = sorted(key for key in annotations if key.startswith(keys.PREFIX) and key not in known)
    messages = [_unknown_message(key, level) for key in unknown[:_UNKNOWN_NAMED]]
    if more := unknown[_UNKNOWN_NAMED:]:
        messages.append(
            f"{len(more)} more annotations{_where(level)} begin with {keys.PREFIX} and are ignored."
        )
    return tuple(Note(Reason.INVALID_ANNOTATION, message, warning=True) for message in messages)


def _unknown_message(key: str, level: Level) -> str:
    if key in {keys.LABEL_SPLIT, keys.LABEL_POOL, keys.LABEL_SOURCE}:
        return f"{key}{_where(level)} is read as a label only. Write it under labels, or remove it."
    near = nearest(
        key.removeprefix(keys.PREFIX), tuple(name.removeprefix(keys.PREFIX) for name in keys.USER_ANNOTATIONS)
    )
    advice = (
        f"Did you mean {keys.PREFIX}{near}?" if near else f"Known are: {', '.join(keys.USER_ANNOTATIONS)}."
    )
    return f"{key}{_where(level)} is not an annotation splitter knows, and is ignored. {advice}"


def _where(level: Level) -> str:
    return " on the Namespace" if level is Level.NAMESPACE else ""

"""The policy: a row for each annotation that users write, and how these are read.

A field of `Policy` is all that there is to add for a new one. The parser, what a Split reports of the policy,
its schema in the CRD, the policies for the API server (`admission`) and the reference page follow from it.
`parse_policy` is called by the planner for each reconcile; what is done about a sentence is decided there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum, unique
from typing import Final, Literal, TypeVar

from splitter.core import labels_annotations as keys
from splitter.core.evictions import Evictions
from splitter.core.labels_annotations import words
from splitter.core.labels_annotations.words import Annotation, Form, annotated, nearest, quoted
from splitter.core.model import Mode, Note
from splitter.core.names import STATEFUL_SET
from splitter.core.reasons import Reason

_LAST_GOOD: Final = "Until then the last good policy stays in force."

T = TypeVar("T")
D = TypeVar("D")


@unique
class SpotAffinity(StrEnum):
    """How strictly spot pods ask for spot nodes."""

    REQUIRED = "required"
    PREFERRED = "preferred"


@unique
class RolloutOrder(StrEnum):
    """Which twin gets a new template first."""

    ON_DEMAND_FIRST = "on-demand-first"
    SPOT_FIRST = "spot-first"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a source's annotations ask for, parsed and valid (docs/reference/annotations.md).

    Each line: the annotation (by its constant where other code names it too), how its value is written, the
    default, what it means, and how it is called in `status.policy`.
    """

    on_demand_base: int | Literal["majority"] = annotated(
        keys.ANNOTATION_ON_DEMAND_BASE,
        words.BASE,
        0,
        "replicas always on on-demand; `majority` is N // 2 + 1",
        reported_as="onDemandBase",
        for_statefulsets="StatefulSets: `majority`",
    )
    spot_percent: int = annotated(
        keys.ANNOTATION_SPOT_PERCENT,
        words.PERCENT,
        100,
        "share of the replicas above the base that should be on spot",
        reported_as="spotPercent",
    )
    on_demand_max: int | None = annotated(
        keys.ANNOTATION_ON_DEMAND_MAX,
        words.REPLICAS,
        None,
        "upper bound of replicas on on-demand, in an emergency too",
        reported_as="onDemandMax",
    )
    spot_max: int | None = annotated(
        keys.ANNOTATION_SPOT_MAX,
        words.REPLICAS,
        None,
        "upper bound of replicas on spot",
        reported_as="spotMax",
    )
    spot_affinity: SpotAffinity = annotated(
        "splitter.io/spot-affinity",
        words.one_of(SpotAffinity),
        SpotAffinity.REQUIRED,
        "`required`: spot pods run on spot nodes only, and Pending ones ask the autoscaler for them;"
        " `preferred`: they may land anywhere",
        reported_as="spotAffinity",
    )
    grace_s: float = annotated(
        keys.ANNOTATION_GRACE,
        words.GRACE,
        180.0,
        "how long a shortage of spot may last before on-demand covers it (a notice or a loss is covered at"
        " once); the default is longer, 10m at most, where its spot nodes were seen to take longer",
        reported_as="grace",
    )
    soak_s: float = annotated(
        keys.ANNOTATION_SOAK,
        words.SOAK,
        600.0,
        "how long spot must have been ready before cover goes; doubles to one hour while spot flaps;"
        " the default is longer, 1h at most, where three starts of its pods take longer",
        reported_as="soak",
    )
    freeze: bool = annotated(
        keys.ANNOTATION_FREEZE,
        words.SWITCH,
        default=False,
        means="hold all counts, in an emergency too; templates are still kept in step",
        reported_as="freeze",
    )
    dry_run: bool = annotated(
        "splitter.io/dry-run",
        words.SWITCH,
        default=False,
        means="decide and report; write nothing but the report",
        reported_as="dryRun",
    )
    template_set: str = annotated(
        keys.ANNOTATION_TEMPLATE,
        words.TEMPLATE_SET,
        "default",
        "the [template set](../../templates/README.md) that the twins are rendered from",
        reported_as="templateSet",
    )
    rollout_order: RolloutOrder = annotated(
        "splitter.io/rollout-order",
        words.one_of(RolloutOrder),
        RolloutOrder.ON_DEMAND_FIRST,
        "which twin gets a new template first; `spot-first` makes spot the canary",
        reported_as="rolloutOrder",
    )
    evictions: Evictions = annotated(
        "splitter.io/evictions",
        words.one_of(Evictions),
        Evictions.ONE_AT_A_TIME,
        "how [evictions wait for replacements](../how-to/evictions.md): one goes at once and the others wait"
        " (`one-at-a-time`), all wait (`surge-first`), or none (`unguarded`)",
        reported_as="evictions",
    )
    linger_s: float | None = annotated(
        keys.ANNOTATION_LINGER,
        words.LINGER,
        None,
        "how long replicas stay that [Karmada](../how-to/karmada.md) moves to another cluster; the default is"
        " one and a half starts, 30s at least; `0s`: they go at once",
        reported_as="linger",
    )
    rank: int = annotated(
        "splitter.io/rank",
        words.RANK,
        500,
        "which workloads of a namespace go first, 0 before all others, when many need on-demand replicas at"
        " once or wait to be taken over; between namespaces the priority of their pods decides",
        reported_as="rank",
    )
    relief: str | None = annotated(
        keys.ANNOTATION_RELIEF,
        words.RELIEF,
        None,
        "from which percent of what a node can allocate, by real use, [its replicas are moved off"
        " it](../how-to/hot-nodes.md), make before break: `cpu=85,memory=90`, or one of them; `off` where the"
        " Namespace says otherwise. `cpu=85,restarts` on a StatefulSet in placement mode: a move is a"
        " restart there, and what the Namespace says restarts nobody",
        reported_as="relief",
    )
    restarted_at: str | None = annotated(
        keys.ANNOTATION_RESTARTED_AT,
        words.MOMENT,
        None,
        "copied into the twins' pods: a new value is a rolling restart",
    )
    rollout_at: str | None = annotated(
        keys.ANNOTATION_ROLLOUT_AT,
        words.MOMENT,
        None,
        "a new value rolls a changed template set out now, instead of with the next rollout",
    )
    mode: Mode | None = annotated(  # None: nobody has said; `core.mode` decides
        keys.ANNOTATION_MODE,
        words.one_of(Mode),
        None,
        "of StatefulSets: `placement` [places their own pods](../how-to/placement.md), names and volumes"
        " kept; `twins` [splits them as Deployments](../how-to/split-a-statefulset.md), with pods of other"
        " names",
        for_statefulsets="StatefulSets: `placement`",
    )
    disposable_volumes: bool = annotated(
        keys.ANNOTATION_VOLUMES,
        words.VOLUMES,
        default=False,
        means="a StatefulSet's volumes can be lost: its twins begin with empty ones, and those of the twins"
        " are deleted with their pods",
    )


ANNOTATIONS: Final[tuple[Annotation, ...]] = tuple(
    replace(one.metadata["row"], field=one.name) for one in fields(Policy)
)
USER_ANNOTATIONS: Final = tuple(row.key for row in ANNOTATIONS)


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


def without_last_good(message: str) -> str:
    """Return what is said of a bad annotation where no policy is in force, and so no last good one either."""
    return message.removesuffix(_LAST_GOOD).rstrip()


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
    written = {row.field: reader.get(row.key, row.form, getattr(defaults, row.field)) for row in ANNOTATIONS}
    refusals = tuple(reader.problems)
    warnings = (*_unknown(annotations, Level.SOURCE), *_unknown(reader.namespace, Level.NAMESPACE))
    return ParsedPolicy(None if refusals else Policy(**written), refusals + warnings, tuple(reader.levels))


_UNKNOWN_NAMED: Final = 10


def _unknown(annotations: Mapping[str, str], level: Level) -> tuple[Note, ...]:
    """Return a warning for each annotation under our prefix that means nothing to us."""
    known = {*USER_ANNOTATIONS, *keys.OWN_ANNOTATIONS}
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
        key.removeprefix(keys.PREFIX), tuple(name.removeprefix(keys.PREFIX) for name in USER_ANNOTATIONS)
    )
    advice = f"Did you mean {keys.PREFIX}{near}?" if near else f"Known are: {', '.join(USER_ANNOTATIONS)}."
    return f"{key}{_where(level)} is not an annotation splitter knows, and is ignored. {advice}"


def _where(level: Level) -> str:
    return " on the Namespace" if level is Level.NAMESPACE else ""

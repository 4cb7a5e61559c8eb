"""The surface: every label and annotation a user writes or splitter leaves, and how they are read.

`kube.observe` calls `parse_policy` for each labelled source (with its namespace's annotations as
defaults) and `source_label_state` for its label; the planner, the templates and the writers take
the constants and names from here, so that a key is spelled once. What comes out is a valid
`Policy` or sentences that say what to write instead; this module never decides what is done about
them (the last good policy stays in force: `core.planner`) and never raises for a user's input.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum, unique
from typing import Final, Generic, Literal, TypeVar

from splitter.core.model import Note, Policy, Pool, RolloutOrder, SpotAffinity
from splitter.core.reasons import Reason

PREFIX: Final = "splitter.io/"

# Labels. `splitter.io/split` is `enabled` on a source, and marks what is ours with the other two.
LABEL_SPLIT: Final = "splitter.io/split"
LABEL_POOL: Final = "splitter.io/pool"
LABEL_SOURCE: Final = "splitter.io/source"
SPLIT_ENABLED: Final = "enabled"
SPLIT_TWIN: Final = "twin"
SPLIT_PARKED: Final = "parked"

# Annotations a user writes on a source, or on its namespace as a default.
ANNOTATION_ON_DEMAND_BASE: Final = "splitter.io/on-demand-base"
ANNOTATION_SPOT_PERCENT: Final = "splitter.io/spot-percent"
ANNOTATION_ON_DEMAND_MAX: Final = "splitter.io/on-demand-max"
ANNOTATION_SPOT_MAX: Final = "splitter.io/spot-max"
ANNOTATION_SPOT_AFFINITY: Final = "splitter.io/spot-affinity"
ANNOTATION_GRACE: Final = "splitter.io/grace"
ANNOTATION_SOAK: Final = "splitter.io/soak"
ANNOTATION_MODE: Final = "splitter.io/mode"
ANNOTATION_FREEZE: Final = "splitter.io/freeze"
ANNOTATION_DRY_RUN: Final = "splitter.io/dry-run"
ANNOTATION_TEMPLATE: Final = "splitter.io/template"
ANNOTATION_ROLLOUT_ORDER: Final = "splitter.io/rollout-order"
ANNOTATION_VOLUMES: Final = "splitter.io/volumes"
ANNOTATION_RESTARTED_AT: Final = "splitter.io/restarted-at"

# Annotations of ours.
ANNOTATION_TAKEN_OVER: Final = "splitter.io/taken-over"
ANNOTATION_REPLICAS: Final = "splitter.io/replicas"
ANNOTATION_RENDERED_HASH: Final = "splitter.io/rendered-hash"

USER_ANNOTATIONS: Final = (
    ANNOTATION_ON_DEMAND_BASE,
    ANNOTATION_SPOT_PERCENT,
    ANNOTATION_ON_DEMAND_MAX,
    ANNOTATION_SPOT_MAX,
    ANNOTATION_SPOT_AFFINITY,
    ANNOTATION_GRACE,
    ANNOTATION_SOAK,
    ANNOTATION_MODE,
    ANNOTATION_FREEZE,
    ANNOTATION_DRY_RUN,
    ANNOTATION_TEMPLATE,
    ANNOTATION_ROLLOUT_ORDER,
    ANNOTATION_VOLUMES,
    ANNOTATION_RESTARTED_AT,
)
OWN_ANNOTATIONS: Final = (ANNOTATION_TAKEN_OVER, ANNOTATION_REPLICAS, ANNOTATION_RENDERED_HASH)

# The longest the back-off doubles the soak to (rebalancing.md, Hmax): a longer one has no meaning.
MAX_SOAK_S: Final = 3600
# Grace is waited out with fewer replicas than asked for: beyond a day it is a typing error.
MAX_GRACE_S: Final = 86400

# What Kubernetes allows for a label's value.
LABEL_VALUE_MAX: Final = 63
_HASH_LENGTH: Final = 8
# Kubernetes names a ReplicaSet `<deployment>-<hash of at most 10>`, within the 253 of a DNS
# subdomain; and labels a StatefulSet's pods with `<statefulset>-<hash of 10>`, within 63. Twins of
# 57 characters and more are accepted by the API and never get a pod (handover.md).
_LONGEST_TWIN_NAME: Final = {"Deployment": 253 - 11, "StatefulSet": 63 - 11}
# As much of a user's text as a sentence repeats: an Event's message holds 1,024 characters.
_QUOTED_MAX: Final = 60

_LAST_GOOD: Final = "Until then the last good policy stays in force."

T = TypeVar("T")
D = TypeVar("D")


@unique
class Level(StrEnum):
    """Where a value of the policy comes from: `explain` names it."""

    SOURCE = "source"
    NAMESPACE = "namespace"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ParsedPolicy:
    """What annotations ask for; `policy` is None when any of them cannot be obeyed.

    `problems` holds warnings too (an unknown annotation), which refuse nothing. `levels` names
    where each annotation's value came from, in the order of the design's table.
    """

    policy: Policy | None
    problems: tuple[Note, ...] = ()
    levels: tuple[tuple[str, Level], ...] = ()

    def level_of(self, annotation: str) -> Level:
        """Return where the value of one annotation came from."""
        return dict(self.levels).get(annotation, Level.DEFAULT)


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """How one kind of value is written: what it must be, an example, and the reader of it."""

    must_be: str
    example: str
    read: Callable[[str], T | None]

    def advice(self, text: str) -> str:
        """Return the sentence that says what to write, repaired from `text` where possible.

        >>> PERCENT.advice("80 %")
        'Write "80".'
        """
        bare = "".join(text.split())
        lower = bare.lower()
        guesses = (bare, lower, lower.rstrip("%"), lower.replace("_", "-"), f"{lower}s")
        for guess in guesses:
            if bare and self.read(guess) is not None:
                return f'Write "{guess}".'
        return f'Write for example "{self.example}".'


def parse_duration(text: str) -> int | None:
    """Return the seconds of a duration such as `90s`, `10m`, `1h30m`; None when it is not one.

    A plain number is not one: whether "600" means seconds or minutes is a guess.

    >>> parse_duration("1h30m"), parse_duration("600"), parse_duration("30m1h")
    (5400, None, None)
    """
    found = re.fullmatch(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?", text)
    if found is None or not text:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds


def _whole(lowest: int, highest: int) -> Callable[[str], int | None]:
    """Return a reader of whole numbers within bounds: digits only, no sign, no leading zero."""

    def read(text: str) -> int | None:
        if re.fullmatch(r"0|[1-9][0-9]{0,8}", text) is None:
            return None
        number = int(text)
        return number if lowest <= number <= highest else None

    return read


def _base(text: str) -> int | Literal["majority"] | None:
    return "majority" if text == "majority" else REPLICAS.read(text)


def _duration(lowest_s: int, highest_s: int) -> Callable[[str], float | None]:
    def read(text: str) -> float | None:
        seconds = parse_duration(text)
        if seconds is None or not lowest_s <= seconds <= highest_s:
            return None
        return float(seconds)

    return read


def _one_of(words: Mapping[str, T]) -> Form[T]:
    """Return the form of a value that is one of a few words, the first being the example."""
    quoted_words = " or ".join(f'"{word}"' for word in words)
    return Form(quoted_words, next(iter(words)), words.get)


def _text(pattern: str) -> Callable[[str], str | None]:
    return lambda text: text if re.fullmatch(pattern, text) else None


REPLICAS: Final = Form("a whole number, 0 or more", "2", _whole(0, 999_999_999))
PERCENT: Final = Form("a whole number 0..100", "80", _whole(0, 100))
BASE: Final[Form[int | Literal["majority"]]] = Form('a whole number, 0 or more, or "majority"', "2", _base)
GRACE: Final = Form("a duration 0s..24h, such as 90s, 10m or 1h30m", "180s", _duration(0, MAX_GRACE_S))
SOAK: Final = Form("a duration 1s..1h, such as 90s, 10m or 1h", "10m", _duration(1, MAX_SOAK_S))
SWITCH: Final = _one_of({"true": True, "false": False})
SPOT_AFFINITY: Final = _one_of({word.value: word for word in SpotAffinity})
ROLLOUT_ORDER: Final = _one_of({word.value: word for word in RolloutOrder})
MODE: Final = _one_of({"twins": "twins", "placement": "placement"})
VOLUMES: Final = _one_of({"disposable": "disposable"})
# The name of a template set becomes the name of a folder or a ConfigMap: no dots, no slashes.
TEMPLATE_SET: Final = Form(
    "the name of a template set: lower-case letters, digits and '-', at most 63 characters",
    "default",
    _text(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"),
)
RESTARTED_AT: Final = Form(
    "a time or any other word of 1..64 printable characters without spaces",
    "2026-01-31T12:00:00Z",
    _text(r"[!-~]{1,64}"),
)


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


def parse_policy(
    annotations: Mapping[str, str],
    defaults: Policy,
    namespace_annotations: Mapping[str, str] | None = None,
) -> ParsedPolicy:
    """Return the policy a source asks for, and a sentence for each annotation that is wrong.

    `defaults` is what holds where nothing is written (the settings'; for StatefulSets the caller
    puts `majority` there). A namespace's annotation is a default for its workloads, and is not
    read where the source overrides it. Caps that contradict each other depend on N and are checked
    where N is known (`InvalidPolicy`), not here.

    >>> parse_policy({"splitter.io/spot-percent": "80%"}, Policy()).problems[0].message
    'splitter.io/spot-percent is "80%"; it must be a whole number 0..100. Write "80". \
Until then the last good policy stays in force.'
    """
    reader = _Reader(annotations, namespace_annotations or {})
    policy = Policy(
        on_demand_base=reader.get(ANNOTATION_ON_DEMAND_BASE, BASE, defaults.on_demand_base),
        spot_percent=reader.get(ANNOTATION_SPOT_PERCENT, PERCENT, defaults.spot_percent),
        on_demand_max=reader.get(ANNOTATION_ON_DEMAND_MAX, REPLICAS, defaults.on_demand_max),
        spot_max=reader.get(ANNOTATION_SPOT_MAX, REPLICAS, defaults.spot_max),
        spot_affinity=reader.get(ANNOTATION_SPOT_AFFINITY, SPOT_AFFINITY, defaults.spot_affinity),
        grace_s=reader.get(ANNOTATION_GRACE, GRACE, defaults.grace_s),
        soak_s=reader.get(ANNOTATION_SOAK, SOAK, defaults.soak_s),
        freeze=reader.get(ANNOTATION_FREEZE, SWITCH, defaults.freeze),
        dry_run=reader.get(ANNOTATION_DRY_RUN, SWITCH, defaults.dry_run),
        template_set=reader.get(ANNOTATION_TEMPLATE, TEMPLATE_SET, defaults.template_set),
        rollout_order=reader.get(ANNOTATION_ROLLOUT_ORDER, ROLLOUT_ORDER, defaults.rollout_order),
        restarted_at=reader.get(ANNOTATION_RESTARTED_AT, RESTARTED_AT, defaults.restarted_at),
    )
    # Not part of the policy of a division, yet a wrong word there must not pass in silence.
    reader.get(ANNOTATION_MODE, MODE, None)
    reader.get(ANNOTATION_VOLUMES, VOLUMES, None)
    refusals = tuple(reader.problems)
    warnings = (*_unknown(annotations, Level.SOURCE), *_unknown(reader.namespace, Level.NAMESPACE))
    return ParsedPolicy(None if refusals else policy, refusals + warnings, tuple(reader.levels))


def _unknown(annotations: Mapping[str, str], level: Level) -> tuple[Note, ...]:
    """Return a warning for each annotation under our prefix that means nothing to us."""
    known = {*USER_ANNOTATIONS, *OWN_ANNOTATIONS}
    unknown = sorted(key for key in annotations if key.startswith(PREFIX) and key not in known)
    return tuple(
        Note(Reason.INVALID_ANNOTATION, _unknown_message(key, level), warning=True) for key in unknown
    )


def _unknown_message(key: str, level: Level) -> str:
    if key in {LABEL_SPLIT, LABEL_POOL, LABEL_SOURCE}:
        return f"{key}{_where(level)} is read as a label only. Write it under labels, or remove it."
    near = nearest(key.removeprefix(PREFIX), tuple(name.removeprefix(PREFIX) for name in USER_ANNOTATIONS))
    advice = f"Did you mean {PREFIX}{near}?" if near else f"Known are: {', '.join(USER_ANNOTATIONS)}."
    return f"{key}{_where(level)} is not an annotation splitter knows, and is ignored. {advice}"


def _where(level: Level) -> str:
    return " on the Namespace" if level is Level.NAMESPACE else ""


def nearest(name: str, known: tuple[str, ...]) -> str | None:
    """Return the known name that looks most like `name`, or None when none does.

    >>> nearest("spot-percentage", ("spot-percent", "spot-max"))
    'spot-percent'
    """
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.6)), None)


def quoted(text: str) -> str:
    r"""Return a user's text as one quoted, escaped line, shortened to what a sentence can hold.

    >>> quoted("a\nb")
    '"a\\nb"'
    """
    short = text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}... ({len(text)} characters)"
    return json.dumps(short, ensure_ascii=False)


@unique
class LabelState(StrEnum):
    """What the label `splitter.io/split` says about an object."""

    ENABLED = "enabled"
    ABSENT = "absent"
    OURS = "ours"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class SourceLabel:
    """The state of the label; `note` says what to write when it is INVALID or OURS."""

    state: LabelState
    note: Note | None = None


def source_label_state(labels: Mapping[str, str]) -> SourceLabel:
    """Return what the label `splitter.io/split` asks for.

    `twin` and `parked` mark what splitter owns: such an object is never a source, whoever copied
    the label there (reason IsTwin).

    >>> source_label_state({"splitter.io/split": "enabled"}).state
    <LabelState.ENABLED: 'enabled'>
    """
    value = labels.get(LABEL_SPLIT)
    if value is None:
        return SourceLabel(LabelState.ABSENT)
    if value == SPLIT_ENABLED:
        return SourceLabel(LabelState.ENABLED)
    if value in {SPLIT_TWIN, SPLIT_PARKED}:
        message = (
            f'{LABEL_SPLIT} is "{value}", which marks what splitter owns: it is not split again. '
            f'Write "{SPLIT_ENABLED}" if this is a workload of yours that carries a copied label.'
        )
        return SourceLabel(LabelState.OURS, Note(Reason.IS_TWIN, message, warning=True))
    message = (
        f'{LABEL_SPLIT} is {quoted(value)}; it must be "{SPLIT_ENABLED}". '
        f'Write "{SPLIT_ENABLED}" to split this workload, or remove the label to have it back.'
    )
    return SourceLabel(LabelState.INVALID, Note(Reason.INVALID_LABEL, message, warning=True))


def short_name(name: str, max_len: int = LABEL_VALUE_MAX) -> str:
    """Return `name`, or where it is longer than `max_len` its beginning and a hash of the whole.

    Two long names with one beginning stay apart; the result is a valid label value, as the name
    of an object is. `max_len` must leave room for the hash (at least 10).

    >>> short_name("web"), len(short_name("w" * 253))
    ('web', 63)
    """
    if len(name) <= max_len:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: max_len - _HASH_LENGTH - 1].rstrip('-.')}-{digest}"


def twin_name(source_name: str, pool: Pool) -> str:
    """Return the name of a twin: `web` gives `web-on-demand` and `web-spot`.

    Never shortened (people look for it by hand); `name_problem` refuses what would not fit.
    """
    return f"{source_name}-{pool.value}"


def name_problem(kind: str, name: str) -> Note | None:
    """Return why a workload of this name cannot be split, or None; unknown kinds have no limit.

    The limit is what leaves room for the longer suffix and for what Kubernetes itself appends: a
    Deployment's name may have 232 characters, a StatefulSet's 42.
    """
    longest = _LONGEST_TWIN_NAME.get(kind)
    suffix = max(len(twin_name("", pool)) for pool in Pool)
    if longest is None or len(name) <= longest - suffix:
        return None
    message = (
        f"the name {quoted(name)} has {len(name)} characters; a {kind} to be split may have at most "
        f"{longest - suffix}, because its twins are called {twin_name('<name>', Pool.ON_DEMAND)} and "
        f"{twin_name('<name>', Pool.SPOT)}. Give it a shorter name, or remove the label {LABEL_SPLIT}."
    )
    return Note(Reason.NAME_TOO_LONG, message, warning=True)


@dataclass(frozen=True, slots=True)
class Mark:
    """The annotation `splitter.io/taken-over`: which object was taken over, and when."""

    uid: str
    time: datetime


def mark_value(uid: str, now: datetime) -> str:
    """Return the text of the mark, in JSON with the time in UTC, to the second.

    >>> mark_value("u-1", datetime(2026, 1, 31, 12, tzinfo=UTC))
    '{"uid":"u-1","time":"2026-01-31T12:00:00Z"}'
    """
    time = now.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
    return json.dumps({"uid": uid, "time": f"{time}Z"}, separators=(",", ":"))


def parse_mark(text: str | None) -> Mark | None:
    """Return the mark, or None when there is none or nobody of ours wrote it.

    A mark that does not parse counts as no mark: beside twins or parked ReplicaSets the source is
    recognised as ours again and marked anew (handover.md, row 4).
    """
    try:
        read: object = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict):
        return None
    uid, time = read.get("uid"), read.get("time")
    if not isinstance(uid, str) or not uid or not isinstance(time, str):
        return None
    try:
        instant = datetime.fromisoformat(time)
    except ValueError:
        return None
    return Mark(uid, instant if instant.tzinfo else instant.replace(tzinfo=UTC))

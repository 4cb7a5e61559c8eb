"""Reads the label `splitter.io/split`, and reads and writes the mark `splitter.io/taken-over`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum, unique

from splitter.core.labels_annotations import LABEL_SPLIT, SPLIT_ENABLED, SPLIT_PARKED, SPLIT_TWIN
from splitter.core.labels_annotations.words import quoted
from splitter.core.model import Note
from splitter.core.reasons import Reason

# Said in a sentence: no number with very many digits.
_MOST = 2**31 - 1


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


@dataclass(frozen=True, slots=True)
class OwnershipMark:
    """The annotation `splitter.io/taken-over`: which object was taken over, and when."""

    uid: str
    time: datetime


def ownership_mark_value(uid: str, now: datetime) -> str:
    """Return the text of the mark, in JSON with the time in UTC, to the second.

    >>> ownership_mark_value("u-1", datetime(2026, 1, 31, 12, tzinfo=UTC))
    '{"uid":"u-1","time":"2026-01-31T12:00:00Z"}'
    """
    time = now.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
    return json.dumps({"uid": uid, "time": f"{time}Z"}, separators=(",", ":"))


def format_of(text: str | None) -> int:
    """Return the form in which an annotation of ours is written; 1 where it says nothing that can be read.

    >>> format_of('{"uid":"u-1","time":"2026-01-31T12:00:00Z","format":2}')
    2
    """
    try:
        read: object = json.loads(text or "")
    except (ValueError, RecursionError):
        return 1
    return checked_format(read.get("format") if isinstance(read, dict) else None)


def checked_format(number: object) -> int:
    """Return a format number; 1, that of the first version, for what is none. Anybody may have written it."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        return 1
    return min(number, _MOST)


def parse_ownership_mark(text: str | None) -> OwnershipMark | None:
    """Return the mark, or None when there is none or nobody of ours wrote it.

    A mark that does not parse counts as no mark: beside twins or parked ReplicaSets the source is
    recognised as ours again and marked anew (H22).
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
    return OwnershipMark(uid, instant if instant.tzinfo else instant.replace(tzinfo=UTC))

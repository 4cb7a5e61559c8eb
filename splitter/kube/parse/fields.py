"""The fields that many kinds have: times, quantities, owners, conditions."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from math import ceil
from sys import intern
from typing import Any

from splitter.core.labels_annotations import OWN_ANNOTATIONS, PREFIX

Raw = Mapping[str, Any]


class UnreadableError(ValueError):
    """An object is not what it has to be. The message tells why, and holds no value of the object."""


# What reading an object of anybody's may raise.
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


# What the API server holds has at most 19 digits before the point; to write out 1e999999999 takes for ever.
_MOST_DIGITS = 30
_MOST_OURS, _LONGEST_OURS = 100, 4000
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_SUFFIXES = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1)}
_SUFFIXES |= {unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)}
_SUFFIXES |= {f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}


@lru_cache(maxsize=4096)
def instant(text: str) -> datetime:
    """Parse an RFC 3339 time as the API writes it; always aware, UTC. Pods often share one.

    Whoever may write an Event may write any time into it: to one at either end of the calendar no seconds
    can be added.
    """
    parsed = datetime.fromisoformat(text)
    aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
    return min(max(aware, _FIRST), _LAST)


def texts(written: Raw | None) -> Raw:
    """Return labels or annotations. Raises UnreadableError when a value is no text: then none is believed."""
    values = written or {}
    if not all(isinstance(text, str) for text in values.values()):
        raise UnreadableError("a label or an annotation is no text")
    return values


def short(text: str, most: int = 253) -> str:
    """Return a text, or the beginning of one that is longer than such a text ever is.

    Whoever writes it chooses its length, and one letter may make Python keep four bytes for each.
    """
    return text[:most]


def ours(written: Raw | None) -> Raw:
    """Return those labels or annotations that splitter reads, its own before others that bear its prefix.

    At most 100, of 4,000 characters each. Raises UnreadableError as `texts` does.
    """
    values = {name: text for name, text in texts(written).items() if name.startswith(PREFIX)}
    if len(values) > _MOST_OURS:
        names = sorted(values, key=lambda name: (name not in OWN_ANNOTATIONS, name))[:_MOST_OURS]
        values = {name: values[name] for name in names}
    return {name: short(text, _LONGEST_OURS) for name, text in values.items()}


def count(holder: Raw, name: str, default: int = 0) -> int:
    """Return a whole number of an object. Raises UnreadableError for anything else: then none is believed."""
    value = holder.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnreadableError(f"{name} is no whole number")
    return value


def maybe_instant(text: str | None) -> datetime | None:
    """Parse a time that may be missing."""
    return instant(text) if text else None


def quantity(resource: str, text: str | float) -> int:
    """Return a quantity as a whole number: millicores for cpu, bytes or pieces otherwise, rounded up.

    An unreadable one counts 0: the API server has accepted it, and fit is an estimate.

    >>> quantity("cpu", "250m"), quantity("memory", "1Gi"), quantity("cpu", "1.5")
    (250, 1073741824, 1500)
    """
    written = str(text)
    digits = written.rstrip("numkKMGTPEi")
    try:
        value = Decimal(digits) * _SUFFIXES[written[len(digits) :]]
    except (ArithmeticError, KeyError):
        return 0
    if not value.is_finite() or value.adjusted() > _MOST_DIGITS:
        return 0
    return ceil(value * 1000) if resource == "cpu" else ceil(value)


def identity(metadata: Raw) -> tuple[str, str, int]:
    """Return what every record begins with: namespace (empty without one), UID and version."""
    return intern(metadata.get("namespace", "")), metadata["uid"], int(metadata["resourceVersion"])


def owners(metadata: Raw) -> tuple[Raw, ...]:
    """Return the owners. Raises UnreadableError when what names one is no text: then none is believed."""
    references = tuple(metadata.get("ownerReferences", ()))
    if not all(isinstance(ref[name], str) for ref in references for name in ("kind", "name", "uid")):
        raise UnreadableError("what names an owner is no text")
    return references


def controller(metadata: Raw) -> Raw | None:
    """Return the owner that controls an object. Raises UnreadableError as `owners` does."""
    return next((ref for ref in owners(metadata) if ref.get("controller")), None)


def condition(status: Raw, kind: str) -> Raw | None:
    """Return the condition of one type."""
    return next((condition for condition in status.get("conditions", ()) if condition["type"] == kind), None)

"""Reads and writes a dataclass as JSON: each field says once how it is called, read and written there.

A field that is made by `kept` is all that there is to add. Whoever may edit a Split may have written anything
into its status, and another version may have written it: what is missing or of another kind is read as
nothing, numbers and lists are bounded, and nothing raises.
"""

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from datetime import UTC, datetime
from sys import intern
from typing import Any, Final, Self, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound="Kept")
Read = Callable[[object], Any]
Write = Callable[[Any], object]
Scalar = str | int | float | bool

NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A time that cannot be read, where there has to be one."""
TEXT_MAX: Final = 1024
_KEY: Final = "kept"
_INT32_MAX: Final = 2**31 - 1  # every count of replicas in Kubernetes
_YEAR_MAX: Final = 9000
_SECONDS_MAX: Final = 10**9  # a generation; anything longer is a slip of the hand


def plain(value: object) -> object:
    """Return a value in JSON's own types; times are exact."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case tuple():
            return [plain(one) for one in value]
        case Kept():
            return value.to_json()
        case Mapping():
            return dict(value)
        case _:
            return value


def kept(key: str, read: Read, write: Write = plain, *, always: bool = False) -> Any:  # noqa: ANN401 (any field)
    """Return a field that is called `key` in JSON; its default is what `read` makes of nothing.

    It is written where it differs from the default, or `always`.
    """
    nothing = read(None)
    metadata = {_KEY: (key, read, write, always, nothing)}
    if nothing.__class__.__hash__ is None:
        return field(default_factory=lambda: read(None), metadata=metadata)
    return field(default=nothing, metadata=metadata)


class Kept:
    """A dataclass of fields made by `kept`."""

    __slots__ = ()

    @classmethod
    def from_json(cls, raw: object) -> Self:
        """Read what `to_json` wrote; a missing or malformed field takes its default. Never raises."""
        if not isinstance(raw, Mapping):
            return cls()
        return cls(**{name: read(raw[key]) for name, key, read, _, _, _ in _kept(cls) if key in raw})

    def to_json(self) -> dict[str, Any]:
        """Return it in JSON's own types."""
        return self._written(always=True)

    def _written(self, *, always: bool) -> dict[str, Any]:
        return {
            key: write(value)
            for name, key, _, write, even, nothing in _kept(type(self))
            if (value := getattr(self, name)) != nothing or (even and always)
        }


_Spec = tuple[str, str, Read, Write, bool, object]
_SPECS: Final[dict[type, tuple[_Spec, ...]]] = {}


def _kept(of: Any) -> tuple[_Spec, ...]:  # noqa: ANN401 (a class)
    """Return of each field its name, then what `kept` was told of it, and its default."""
    if (known := _SPECS.get(of)) is None:
        known = _SPECS[of] = tuple((one.name, *one.metadata[_KEY]) for one in fields(of))
    return known


def whole_seconds(at: datetime | None) -> str | None:
    """Return an instant as the API server writes it."""
    # Not strftime: of a year before 1000 it writes less than four digits, which no API server takes.
    return f"{at.replace(tzinfo=None).isoformat(timespec='seconds')}Z" if at is not None else None


def instant(value: object) -> datetime | None:
    """Read an instant; one without a time zone is none, nor one so far away that no seconds can be added."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
        return at.astimezone(UTC) if at.tzinfo is not None and NEVER.year <= at.year < _YEAR_MAX else None
    except (ValueError, OverflowError):
        return None


def moment(value: object) -> datetime:
    """Read an instant where there has to be one."""
    return instant(value) or NEVER


def seconds(value: object) -> float | None:
    """Read a duration."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared before converted: JSON knows integers that no float can hold.
    return float(value) if 0 < value < _SECONDS_MAX else None


def ordinal(value: object) -> int | None:
    """Read a whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def count(value: object) -> int | None:
    """Read a whole number from 1."""
    return ordinal(value) or None


def number(value: object) -> int:
    """Read a whole number; what is none is 0."""
    return ordinal(value) or 0


def replicas(value: object) -> int:
    """Read a count of replicas; at most what Kubernetes can hold."""
    return min(number(value), _INT32_MAX)


def is_true(value: object) -> bool:
    """Read a flag."""
    return value is True


def maybe_word(value: object) -> str | None:
    """Read a text of any length, where what is none is left out."""
    return value if isinstance(value, str) else None


def word(value: object) -> str:
    """Read a text of any length."""
    return maybe_word(value) or ""


def text(value: object) -> str:
    """Read a text that people read: at most `TEXT_MAX` characters. Many are the same."""
    return intern(word(value)[:TEXT_MAX])


def listed(read: Callable[[object], T | None], most: int | None = None) -> Callable[[object], tuple[T, ...]]:
    """Return how a list is read: its last items, at most `most`, that can be read."""

    def read_all(value: object) -> tuple[T, ...]:
        if not isinstance(value, list | tuple):
            return ()
        return tuple(one for one in map(read, value[-most:] if most else value) if one is not None)

    return read_all


def items(of: type[K], needs: str, most: int) -> Callable[[object], tuple[K, ...]]:
    """Return how a list of objects is read: the last ones, at most `most`, that have the field `needs`."""
    nothing = getattr(of(), needs)

    def read(value: object) -> K | None:
        item = of.from_json(value)
        return item if getattr(item, needs) != nothing else None

    return listed(read, most)


def mapped(
    read: Callable[[object], T | None], most: int | None = None
) -> Callable[[object], Mapping[str, T]]:
    """Return how a map is read: its first values, at most `most`, that can be read."""

    def read_all(value: object) -> Mapping[str, T]:
        if not isinstance(value, Mapping):
            return {}
        values = ((str(key), read(one)) for key, one in list(value.items())[:most])
        return {key: one for key, one in values if one is not None}

    return read_all


def scalar(value: object) -> Scalar | None:
    """Read a text, a number or a flag."""
    return value if isinstance(value, str | int | float | bool) else None

"""How values are written: what each must be, an example, and how it is read.

`policy` reads annotations with these forms, the settings take their wording from here, and the policy
that refuses bad ones inside the API server is made of them (`admission`). A form never raises for a
text; it says what to write instead.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Final, Generic, Literal, TypeVar, cast

# The longest the back-off doubles the soak to (R25): a longer one has no meaning.
MAX_SOAK_S: Final = 3600
# Two clusters are paid for meanwhile.
MAX_LINGER_S: Final = 3600
# Grace is waited out with fewer replicas than asked for: beyond a day it is a typing error.
MAX_GRACE_S: Final = 86400
_DURATION: Final = "(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?"
# As much of a user's text as a sentence repeats: an Event's message holds 1,024 characters.
QUOTED_MAX: Final = 60
# What is longer than any value is no slip of the pen.
REPAIRED_MAX: Final = 100

T = TypeVar("T")
D = TypeVar("D")
E = TypeVar("E", bound=StrEnum)
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Form(Generic[T_co]):
    """How one kind of value is written: what it must be, an example, and the reader of it.

    `pattern` is in a syntax that Python and RE2 share, `value` takes a text that matches it whole;
    `within_s` are the bounds of a duration, in seconds; `schema` is how the CRD describes what
    `reported` makes of a value.
    """

    must_be: str
    example: str
    pattern: str
    value: Callable[[str], T_co | None]
    within_s: tuple[int, int] | None = None
    schema: Mapping[str, object] = field(default_factory=lambda: {"type": "string"})

    def read(self, text: str) -> T_co | None:
        """Return what a text says, or None when it is not of this form.

        >>> PERCENT.read("80"), PERCENT.read("101")
        (80, None)
        """
        return self.value(text) if re.fullmatch(self.pattern, text) else None

    def advice(self, text: str) -> str:
        """Return the sentence that says what to write, repaired from `text` where possible.

        >>> PERCENT.advice("80 %")
        'Write "80".'
        """
        bare = "".join(text.split()) if len(text) <= REPAIRED_MAX else ""
        lower = bare.lower()
        guesses = (bare, lower, lower.rstrip("%"), lower.replace("_", "-"), f"{lower}s")
        for guess in guesses:
            if bare and self.read(guess) is not None:
                return f'Write "{guess}".'
        return f'Write for example "{self.example}".'


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation of the user's: how it is written, and what it means, in Markdown for the docs."""

    key: str
    form: Form[Any]
    means: str
    reported_as: str = ""
    """Its name in `status.policy`; empty: not reported."""
    for_statefulsets: str = ""
    """The default of StatefulSets, in Markdown, where it is another."""
    field: str = ""
    """Of `Policy`."""


def annotated(
    key: str, form: Form[T], default: D, means: str, *, reported_as: str = "", for_statefulsets: str = ""
) -> T | D:
    """Return a field of the policy that an annotation sets."""
    row = Annotation(key, form, means, reported_as, for_statefulsets)
    return cast("T | D", field(default=default, metadata={"row": row}))


def parse_duration(text: str) -> int | None:
    """Return the seconds of a duration such as `90s`, `10m`, `1h30m`; None when it is not one.

    A plain number is not one: whether "600" means seconds or minutes is a guess.

    >>> parse_duration("1h30m"), parse_duration("600"), parse_duration("30m1h")
    (5400, None, None)
    """
    match = re.fullmatch(_DURATION, text)
    if match is None or not text:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def _base(text: str) -> int | Literal["majority"]:
    return "majority" if text == "majority" else int(text)


def _duration(must_be: str, example: str, lowest_s: int, highest_s: int) -> Form[float]:
    def value(text: str) -> float | None:
        seconds = parse_duration(text)
        if seconds is None or not lowest_s <= seconds <= highest_s:
            return None
        return float(seconds)

    return Form(must_be, example, _DURATION, value, (lowest_s, highest_s))


def _words(values: Mapping[str, T], **schema: object) -> Form[T]:
    """Return the form of a value that is one of a few words, the first being the example."""
    must_be = " or ".join(f'"{word}"' for word in values)
    return Form(must_be, next(iter(values)), "|".join(values), values.get, schema=schema)


def one_of(choice: type[E]) -> Form[E]:
    """Return the form of a value that is one of an enum's words."""
    return _words({one.value: one for one in choice}, type="string", enum=[one.value for one in choice])


def reported(value: object) -> str | int | None:
    """Return a value of the policy as a Split reports it; None: it is not reported.

    >>> reported(90.0), reported(True), reported(None)
    ('90s', True, None)
    """
    match value:
        case Enum():
            return str(value.value)
        case float():
            return f"{value:.0f}s"
        case str() | int():
            return value
        case _:
            return None


_COUNT: Final = {"type": "integer", "format": "int32", "minimum": 0}
# Whole numbers: digits only, no sign, no leading zero.
REPLICAS: Final = Form("a whole number, 0 or more", "2", "0|[1-9][0-9]{0,8}", int, schema=_COUNT)
PERCENT: Final = Form(
    "a whole number 0..100", "80", "0|[1-9][0-9]?|100", int, schema={**_COUNT, "maximum": 100}
)
RANK: Final = Form(
    "a whole number 0..1000, 0 first", "10", "0|[1-9][0-9]{0,2}|1000", int, schema={"type": "integer"}
)
BASE: Final[Form[int | Literal["majority"]]] = Form(
    'a whole number, 0 or more, or "majority"',
    "2",
    f"majority|{REPLICAS.pattern}",
    _base,
    schema={"x-kubernetes-int-or-string": True},
)
GRACE: Final = _duration("a duration 0s..24h, such as 90s, 10m or 1h30m", "180s", 0, MAX_GRACE_S)
SOAK: Final = _duration("a duration 1s..1h, such as 90s, 10m or 1h", "10m", 1, MAX_SOAK_S)
LINGER: Final = _duration("a duration 0s..1h, such as 90s or 10m", "90s", 0, MAX_LINGER_S)
SWITCH: Final = _words({"true": True, "false": False}, type="boolean")
VOLUMES: Final = _words({"disposable": True}, type="boolean")
# The name of a template set becomes the name of a folder or a ConfigMap: no dots, no slashes.
TEMPLATE_SET: Final = Form(
    "the name of a template set: lower-case letters, digits and '-', at most 63 characters",
    "default",
    "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
    str,
)
# From 50: a node is relieved down to 20 points below its threshold (docs/adr/0059).
_PERCENT_OF_NODE: Final = "(?:[5-9][0-9]|100)"
RELIEF: Final = Form(
    '"off", or from which percent of a node on it is hot, 50..100, such as "cpu=85", "memory=90" or both;'
    ' with ",restarts" after it on a StatefulSet whose members may be restarted for it',
    "cpu=85,memory=90",
    f"off|(?:cpu={_PERCENT_OF_NODE}(?:,memory={_PERCENT_OF_NODE})?"
    f"|memory={_PERCENT_OF_NODE}(?:,cpu={_PERCENT_OF_NODE})?)(?:,restarts)?",
    str,
)
MOMENT: Final = Form(
    "a time or any other word of 1..64 printable characters without spaces",
    "2026-01-31T12:00:00Z",
    "[!-~]{1,64}",
    str,
)


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
    short = text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}... ({len(text)} characters)"
    return json.dumps(short, ensure_ascii=False)

"""How values are written: what each must be, an example, and how it is read.

`policy` reads annotations with these forms, the settings take their wording from here. A form never
raises for a text; it says what to write instead.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from splitter.core.model import RolloutOrder, SpotAffinity

# The longest the back-off doubles the soak to (rebalancing.md, Hmax): a longer one has no meaning.
MAX_SOAK_S: Final = 3600
# Grace is waited out with fewer replicas than asked for: beyond a day it is a typing error.
MAX_GRACE_S: Final = 86400
# As much of a user's text as a sentence repeats: an Event's message holds 1,024 characters.
_QUOTED_MAX: Final = 60

T = TypeVar("T")


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
MOMENT: Final = Form(
    "a time or any other word of 1..64 printable characters without spaces",
    "2026-01-31T12:00:00Z",
    _text(r"[!-~]{1,64}"),
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
    short = text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}... ({len(text)} characters)"
    return json.dumps(short, ensure_ascii=False)

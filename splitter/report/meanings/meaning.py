"""The form of one meaning; the other modules of this folder fill it in."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Meaning:
    """One reason for people: the type of its Event (none is empty), what it means, what to do.

    `moves` is for replicas that do not run only: whether that moves any. The texts are Markdown; a link is
    relative to `docs/reference/reasons.md`.
    """

    event: Literal["Normal", "Warning", ""]
    means: str
    remedy: str = ""
    moves: str = ""

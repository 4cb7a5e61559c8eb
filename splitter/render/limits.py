"""The limits of one rendering of a template set, and their messages."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MIB: Final = 1024 * 1024
# What a rendering is about that is made in splitter's own process, while all else waits: it takes 10 ms.
SMALL_BYTES: Final = 32 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one rendering in the child process.

    The default templates take 0.1 s of CPU and 47 MiB for a source of 1 MiB; a template of 32 KiB takes 0.6 s
    and 74 MiB to be read (docs/adr/0029).
    """

    cpu_s: int = 3
    """Seconds of CPU; the kernel rounds up to the next."""
    memory_bytes: int = 128 * MIB
    """Address space of the process, of which 29 MiB are Python and what it imports."""
    time_s: float = 10.0
    """Seconds by the clock, for a process that waits for the CPU or sleeps."""
    again_s: float = 600.0
    """Tried again after so many seconds is what took too long by the clock alone, or was killed."""


class Limit(StrEnum):
    """The limit that was reached."""

    CPU = "CPU"
    MEMORY = "memory"
    TIME = "time"


def limit_message(limit: Limit, limits: Limits) -> str:
    """Return which limit was reached, and its value.

    >>> limit_message(Limit.MEMORY, Limits())
    'rendering it reached the limit of memory, 128 MiB'
    """
    value = {
        Limit.CPU: f"{limits.cpu_s} s",
        Limit.MEMORY: f"{limits.memory_bytes // MIB} MiB",
        Limit.TIME: f"{limits.time_s:g} s",
    }[limit]
    return f"rendering it reached the limit of {limit}, {value}"

"""What the mover answers: the eviction that is due, or what it waits for, and the room to hold meanwhile.

Plain data, which `place` turns into what one reconcile does. Nothing here decides.
"""

from dataclasses import dataclass

from splitter.core.model import Note, Pool
from splitter.core.placement.members import Member


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing moves, and the seconds after which time alone may change that."""

    note: Note
    requeue_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """End this pod, by the eviction API: the StatefulSet makes it again, in the other pool."""

    ordinal: int
    pod: str
    uid: str
    to: Pool


@dataclass(frozen=True, slots=True)
class Reservation:
    """Hold room in a pool for one member's move."""

    pool: Pool
    ordinal: int


@dataclass(frozen=True, slots=True)
class Move:
    """The next eviction or what it waits for, and the room to hold meanwhile; all None: nothing to move."""

    step: Eviction | Hold | None = None
    reservation: Reservation | None = None
    note: Note | None = None


def evicted(member: Member, to: Pool) -> Eviction | None:
    """Return the eviction of a member; None where it has no pod."""
    if member.pod is None:
        return None
    return Eviction(member.ordinal, member.pod.name, member.pod.uid, to)

"""What a Split remembers of replicas that were moved for relief, and says of it.

A move is written here before the twin is raised for it, so that whoever comes after a crash knows whose the
extra replica is. The bounds and rests of relief follow from it. Source: docs/adr/0063.
"""

from dataclasses import dataclass
from datetime import datetime

from splitter.core.hot_nodes import Aim
from splitter.core.split_status import values
from splitter.core.split_status.values import Kept, kept

MOVES_MAX = 24
"""So many moves are remembered: of one workload six in ten minutes are the most, and half an hour counts.
Those that were in vain are kept for a day, as far as there is room."""
HOT_NODES_MAX = 10


def _name(value: object) -> str | None:
    return values.text(value) or None


def _aim(value: object) -> Aim:
    return Aim(value) if isinstance(value, str) and value in set(Aim) else Aim.COOL


@dataclass(frozen=True, slots=True)
class ReliefMove(Kept):
    """One replica that leaves its node: one more, then one less."""

    at: datetime = kept("time", values.moment, always=True)
    """When it was begun."""
    pool: str = kept("pool", values.text, always=True)
    pod: str = kept("pod", values.text, always=True)
    pod_uid: str = kept("podUid", values.text, always=True)
    """Which leaves."""
    node: str = kept("node", values.text, always=True)
    node_uid: str = kept("nodeUid", values.text, always=True)
    """The one it leaves."""
    replicas: int = kept("replicas", values.replicas, always=True)
    """Of the twin, before it was raised by one."""
    newer_than: datetime = kept("newerThan", values.moment, always=True)
    """A pod of the twin that was created later is the new one."""
    raised: bool = kept("raised", values.is_true)
    """It is known that the twin was raised."""
    ended: datetime | None = kept("ended", values.instant)
    to_node_uid: str = kept("toNodeUid", values.text)
    """Where the new one stays; empty: not known yet, or it was taken back."""
    taken_back: bool = kept("takenBack", values.is_true)
    aim: Aim = kept("aim", _aim)
    stand: str = kept("stand", values.text)
    """How replicas and nodes stood when it was begun; kept beyond its end where it was in vain."""


@dataclass(frozen=True, slots=True)
class ReliefStatus(Kept):
    """How relief of one workload stands."""

    reason: str = kept("reason", values.text)
    message: str = kept("message", values.text)
    hot_nodes: tuple[str, ...] = kept("hotNodes", values.listed(_name, HOT_NODES_MAX))
    moves: tuple[ReliefMove, ...] = kept("moves", values.items(ReliefMove, "pod_uid", MOVES_MAX))

    @property
    def current(self) -> ReliefMove | None:
        """Return the move that goes on, if one does: the last, since one goes on at a time."""
        last = self.moves[-1] if self.moves else None
        return last if last is not None and last.ended is None else None

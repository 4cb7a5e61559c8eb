"""Counts how far holders may grow and shrink: the arithmetic of a hand-over.

`make` grows holders that want more within the headroom, `break_` shrinks those that want less down to the
floor; steps call `break_` only when nothing was made.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from splitter.core.holders.holder import Holder


@dataclass(frozen=True, slots=True)
class Share:
    """One holder and its target, in the arithmetic of MAKE and BREAK (all counts: replicas)."""

    name: str
    spec: int
    held: int  # the most it may have at this moment, unschedulable ones left out
    available: int  # that it surely keeps as it is
    target: int
    on_demand: bool = False
    rank: int = 0  # BREAK takes from the lowest rank first
    resource_version: str = ""
    kind: str = ""
    of: Holder | None = None  # None: all that is available serves, and nothing else

    def kept(self, given: int) -> int:
        """Return how many available replicas it surely keeps after it has given this many."""
        if self.of is None:
            return max(0, min(self.available, self.spec - given))
        return self.of.surely_keeps(self.spec - given)

    def cost(self, given: int) -> int:
        """Return how many serving replicas it may lose, at the most, if it gives this many (H56)."""
        return self.available - self.kept(given) if self.of is None else self.of.may_lose(self.spec - given)

    def shrink(self, least: int) -> int:
        """Return how many replicas above its target it can give: so that `least` surely stay available.

        If fewer are available, it gives only replicas that do not serve. Giving more keeps no more, except in
        some rolls, in which it may give fewer than it could. This never iterates over the replicas: their
        number is chosen by a tenant.
        """
        excess = max(0, self.spec - self.target)
        return bisect_left(range(1, excess + 1), x=True, key=lambda given: self.is_too_many(given, least))

    def is_too_many(self, given: int, least: int) -> bool:
        """Whether fewer than `least` may stay available if it gives this many, and serving ones may go."""
        return self.kept(given) < least and self.cost(given) > 0


def share_of(holder: Holder, target: int, rank: int, *, on_demand: bool = False) -> Share:
    """Count a holder: the most that it may have, the least that serves."""
    view = holder.view
    return Share(
        name=view.name,
        spec=view.spec_replicas,
        held=holder.held,
        available=holder.surely_keeps(view.spec_replicas),
        target=target,
        on_demand=on_demand,
        rank=rank,
        resource_version=view.resource_version,
        kind=holder.kind,
        of=holder,
    )


def surge_headroom(shares: Sequence[Share], replicas: int, surge: int, going: int) -> int:
    """Return how many replicas may be made now: N + S + doomed - what is held (never negative).

    `going` counts the doomed and the lost: in an emergency they do not take the place of their
    replacements (promise 2).
    """
    return max(0, replicas + surge + going - sum(share.held for share in shares))


def make(shares: Sequence[Share], space: int) -> dict[str, int]:
    """Return the new spec of each holder that grows: on-demand before spot, within the room.

    >>> make([Share("web-spot", 0, 0, 0, 6), Share("web-od", 0, 0, 0, 2, on_demand=True)], 3)
    {'web-od': 2, 'web-spot': 1}
    """
    grown: dict[str, int] = {}
    for share in sorted(shares, key=lambda share: not share.on_demand):
        step = min(share.target - share.spec, space)
        if step > 0:
            grown[share.name] = share.spec + step
            space -= step
    return grown


def break_(shares: Sequence[Share], floor: int, others_available: int = 0) -> dict[str, int]:
    """Return the new spec of each holder that shrinks, without going below the floor (H56).

    A holder gives as many as leave the floor available for sure, in all. Below the floor it gives only
    replicas that do not serve. A replica that became ready in between would be deleted, so the caller sends
    each holder's resourceVersion along. `others_available` stay too, but splitter does not scale them (the
    source's own, on the way back).

    >>> break_([Share("old", 8, 8, 8, 0), Share("web-spot", 2, 2, 2, 8)], floor=8)
    {'old': 6}
    """
    available = others_available + sum(share.available for share in shares)
    shrunk: dict[str, int] = {}
    for share in sorted(shares, key=lambda share: share.rank):
        given = share.shrink(floor - (available - share.available))
        if given > 0:
            shrunk[share.name] = share.spec - given
            available -= share.available - share.kept(given)
    return shrunk

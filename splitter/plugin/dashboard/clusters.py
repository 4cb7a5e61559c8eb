"""The view of several clusters: each workload in all of them, its sum, and what Karmada's hub asks for.

Each cluster has all other views, too, below its number: `MEMBERS/0/`. Pure but for the models that it reads.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from splitter.core.names import Key
from splitter.core.reasons import State
from splitter.core.split_status import SplitStatus
from splitter.plugin.dashboard.model import Model

MEMBERS: Final = "cluster"
_MOST_WORKLOADS: Final = 500  # in one table that is sent whole


@dataclass(frozen=True, slots=True)
class Member:
    """One cluster: what people call it, and what is seen of it."""

    name: str
    model: Model


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a hub asks for."""

    name: str
    replicas: Callable[[Key], int | None]
    missing: Callable[[], Sequence[str]] = tuple
    changes: Callable[[], int] = int


@dataclass(frozen=True, slots=True)
class Part:
    """A workload in one cluster; `number` is that of the cluster."""

    number: int
    name: str
    status: SplitStatus


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload in all clusters that have it."""

    key: Key
    parts: tuple[Part, ...]
    asked: int | None
    """What the hub asks for; None if it has no such workload, or is not asked."""

    @property
    def desired(self) -> int:
        """The replicas that all of them want."""
        return sum(part.status.desired for part in self.parts)

    @property
    def ready(self) -> int:
        """Those that are ready."""
        return sum(part.status.ready for part in self.parts)

    @property
    def on_demand(self) -> int:
        """Those that are ready on on-demand."""
        return sum(part.status.on_demand.ready for part in self.parts)

    @property
    def spot(self) -> int:
        """Those that are ready on spot."""
        return sum(part.status.spot.ready for part in self.parts)

    @property
    def short(self) -> bool:
        """Whether fewer are ready than the hub, or without one the clusters, ask for."""
        return self.ready < (self.desired if self.asked is None else self.asked)


@dataclass(frozen=True, slots=True)
class Together:
    """What the view shows."""

    workloads: tuple[Workload, ...]
    more: int
    """Workloads that are not shown: there are too many for one table."""
    missing: tuple[str, ...]
    """What cannot be shown, of which cluster, and why."""
    seen: int
    """Of how many clusters everything is seen."""
    hub: str
    """What people call the hub; empty without one."""

    @property
    def parts(self) -> list[Part]:
        """All workloads that are shown, each once a cluster."""
        return [part for one in self.workloads for part in one.parts]

    @property
    def at_rest(self) -> int:
        """How many of these are Steady."""
        return sum(part.status.state == State.STEADY for part in self.parts)

    @property
    def cover(self) -> int:
        """On-demand replicas in the place of spot."""
        return sum(part.status.cover for part in self.parts)

    @property
    def ready(self) -> int:
        """Ready replicas of all workloads that are shown."""
        return sum(one.ready for one in self.workloads)

    @property
    def desired(self) -> int:
        """The replicas that are wanted of them."""
        return sum(one.desired for one in self.workloads)

    @property
    def on_spot(self) -> float | None:
        """The share of ready replicas on spot."""
        spot, on_demand = (
            sum(one.spot for one in self.workloads),
            sum(one.on_demand for one in self.workloads),
        )
        return spot / (spot + on_demand) if spot + on_demand else None


class Clusters:
    """All clusters together."""

    def __init__(self, members: Sequence[Member], wishes: Wishes | None = None) -> None:
        self.members = tuple(members)
        self._wishes = wishes

    @property
    def change(self) -> tuple[object, ...]:
        """What is another value after each change of what is shown."""
        seen = ((one.model.last_change, one.model.view.missing) for one in self.members)
        hub = () if self._wishes is None else (self._wishes.changes(), tuple(self._wishes.missing()))
        return (*seen, *hub)

    def together(self) -> Together:
        """Return what there is now."""
        keys = sorted({key for one in self.members for key in one.model.statuses}, key=_order)
        workloads = tuple(
            Workload(key, tuple(self._parts(key)), self._asked(key)) for key in keys[:_MOST_WORKLOADS]
        )
        hub = "" if self._wishes is None else self._wishes.name
        seen = sum(not one.model.view.missing for one in self.members)
        return Together(workloads, len(keys) - len(workloads), tuple(self._missing()), seen, hub)

    def _parts(self, key: Key) -> Iterator[Part]:
        for number, one in enumerate(self.members):
            if (status := one.model.statuses.get(key)) is not None:
                yield Part(number, one.name, status)

    def _asked(self, key: Key) -> int | None:
        return None if self._wishes is None else self._wishes.replicas(key)

    def _missing(self) -> Iterator[str]:
        for one in self.members:
            yield from (f"{one.name}: {text}" for text in one.model.view.missing)
        if self._wishes is not None:
            yield from (f"{self._wishes.name}: {text}" for text in self._wishes.missing())


def _order(key: Key) -> tuple[str, str, str]:
    return key.namespace, key.name, key.kind

"""What the page shows, kept up to date: the status of each workload, what was seen of it, and what changed.

A `ClusterView` feeds it. Each change has a number, so that a browser that comes back is told what it has
missed. It decides nothing and writes nothing.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from splitter.core.names import Key
from splitter.core.split_status import SplitStatus
from splitter.plugin.core.savings import Saving, together
from splitter.plugin.dashboard.history import FLEET, Moment, Series
from splitter.plugin.dashboard.workload_status import counts_of, shown
from splitter.plugin.kube.cluster_view import ClusterView

_SAVED_EVERY = timedelta(seconds=10)


class Model:
    """All workloads that are shown."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """`now` tells the time."""
        self._now = now
        self._view: ClusterView | None = None
        self._versions: dict[Key, int] = {}  # of the resource that was read
        self._listeners: set[asyncio.Event] = set()
        self._sums = [0, 0, 0, 0]
        self._saved: tuple[datetime, Saving] | None = None
        self.opened = now()
        self.statuses: dict[Key, SplitStatus] = {}
        self.changes: dict[Key, int] = {}
        """When each workload changed last, as the number of the change."""
        self.series: dict[Key, Series] = {}
        self.fleet = Series(FLEET)
        self.last_change = 0
        self.membership = 0
        """Changes whenever a workload comes or goes."""

    @property
    def view(self) -> ClusterView:
        """The cluster. Raises RuntimeError before `look`."""
        if self._view is None:
            raise RuntimeError("nothing is looked at yet")
        return self._view

    def look(self, view: ClusterView) -> None:
        """Set the view that feeds the model; must be called before the first change."""
        self._view = view

    @property
    def now(self) -> datetime:
        """The time."""
        return self._now()

    def changed(self, key: Key | None) -> None:
        """Record a change of a workload, or of a node (None), and wake all listeners."""
        self.last_change += 1
        if key is not None:
            self.changes[key] = self.last_change
            self._read(key)
        for listener in self._listeners:
            listener.set()

    @property
    def saved(self) -> Saving:
        """What all have saved; added up anew every ten seconds."""
        now = self.now
        if self._saved is None or not timedelta() <= now - self._saved[0] < _SAVED_EVERY:
            usages = (one.usage for one in self.statuses.values() if one.usage is not None)
            self._saved = now, together(Saving(usage.at(now)) for usage in usages)
        return self._saved[1]

    def since(self, change: int) -> set[Key]:
        """Return the workloads that have changed since a change."""
        return {key for key, at in self.changes.items() if at > change and key in self.statuses}

    def keys(self) -> list[Key]:
        """Return all workloads, by namespace and name."""
        return sorted(self.statuses, key=lambda key: (key.namespace, key.name, key.kind))

    @contextmanager
    def listened(self) -> Iterator[asyncio.Event]:
        """Yield an event that each change sets, until the end of the block."""
        listener = asyncio.Event()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    @property
    def listeners(self) -> int:
        """How many wait for changes."""
        return len(self._listeners)

    def _read(self, key: Key) -> None:
        record = self.view.split(key)
        before = self.statuses.get(key)
        if record is None:
            self._add(before, -1)
            self.membership += before is not None
            for kept in (self.statuses, self.changes, self.series, self._versions):
                kept.pop(key, None)
            self._count()
            return
        if self._versions.get(key) == record.version:
            return  # one of its pods, or its node
        self._versions[key] = record.version
        status = shown(record.view.status)
        self.membership += before is None
        self.statuses[key] = status
        self._add(before, -1)
        self._add(status, +1)
        self.series.setdefault(key, Series()).saw(Moment(self.now, *counts_of(status)))
        self._count()

    def _add(self, status: SplitStatus | None, sign: int) -> None:
        if status is not None:
            self._sums = [
                total + sign * one for total, one in zip(self._sums, counts_of(status), strict=True)
            ]

    def _count(self) -> None:
        self.fleet.saw(Moment(self.now, *self._sums))

"""Watches a collection from a thread of its own: what is there now, and a call for each change.

`journey` and the benchmarks watch the twins (to see splitter's writes with the moment they were seen), the
Splits and the Events, through the sandbox's own follower. It only reads.
"""

import threading
from collections.abc import Callable
from typing import Any, Self

from lab.demo.promises import ReplicasWritten
from lab.sandbox import Api, Instant

JsonObject = dict[str, Any]


class Watch:
    """The objects of one collection, kept up to date between `__enter__` and `__exit__`.

    `changed(at, raw, deleted)` is called from the watching thread for everything seen, the first list
    included; it must be quick and must not raise.
    """

    def __init__(
        self, api: Api, path: str, changed: Callable[[Instant, JsonObject, bool], None] | None = None
    ) -> None:
        self._changed = changed
        self._objects: dict[str, JsonObject] = {}
        self._follower = api.follow(path, self._see)

    @property
    def objects(self) -> dict[str, JsonObject]:
        """Return what is there now, by name (names are unique only within one namespace)."""
        return dict(self._objects)

    def __enter__(self) -> Self:
        """Begin; everything that exists has been seen when this returns."""
        self._follower.start()
        self._follower.wait_for_first_list()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._follower.stop()

    def _see(self, at: Instant, raw: JsonObject, *, deleted: bool) -> None:
        name = raw["metadata"]["name"]
        if deleted:
            self._objects.pop(name, None)
        else:
            self._objects[name] = raw
        if self._changed is not None:
            self._changed(at, raw, deleted)


class ScaleLog:
    """Every change of `spec.replicas` of the Deployments it is shown; give `see` to a `Watch`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._replicas: dict[str, int] = {}
        self._writes: list[ReplicasWritten] = []

    def see(self, at: Instant, raw: JsonObject, deleted: bool) -> None:
        """Take one change of one Deployment."""
        name, replicas = raw["metadata"]["name"], int(raw["spec"].get("replicas", 1))
        with self._lock:
            if deleted:
                self._replicas.pop(name, None)
                return
            before = self._replicas.get(name)
            self._replicas[name] = replicas
            if before is not None and before != replicas:
                self._writes.append(ReplicasWritten(at, name, before, replicas))

    def writes(self) -> tuple[ReplicasWritten, ...]:
        """Return all changes so far, oldest first."""
        with self._lock:
            return tuple(self._writes)

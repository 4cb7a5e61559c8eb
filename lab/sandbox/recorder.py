"""Watches pods and nodes from threads of its own and stamps each change on both clocks.

A test opens it around what it does (`with sandbox.record("shop") as recorder:`), and asks
`recorder.timeline(...)` afterwards, or while it runs. It lists and then watches, resumes where a watch
broke off, and lists again when the server has forgotten (410); what vanished meanwhile is recorded as
deleted when that is noticed. It only reads, and it decides nothing.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Self

from lab.sandbox.api import Api, JsonObject
from lab.sandbox.instants import Instant
from lab.sandbox.recording import NodeChange, PodChange, PodSeen, Recording, read_node, read_pod
from lab.sandbox.timeline import Timeline


class Recorder:
    """Records from `__enter__` (which returns once everything present has been seen) to `__exit__`."""

    def __init__(self, api: Api, namespace: str | None = None) -> None:
        self._lock = threading.Lock()
        self._changes: list[PodChange | NodeChange] = []
        self._began = Instant.now()
        self._ended: Instant | None = None
        pods = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        self._watchers = (
            api.follow(pods, self._pod_changed),
            api.follow("/api/v1/nodes", self._node_changed),
        )

    def recording(self) -> Recording:
        """Return all that has been seen so far."""
        with self._lock:
            changes = tuple(sorted(self._changes, key=lambda change: change.at))
        return Recording(self._began, self._ended or Instant.now(), changes)

    def timeline(
        self,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        where: Callable[[PodSeen], bool] | None = None,
    ) -> Timeline:
        """Return the step functions of the pods that match all of namespace, labels and `where`."""
        return Timeline.of(self.recording(), namespace, labels, where=where)

    def __enter__(self) -> Self:
        """Begin; every pod and node that exists has been seen when this returns."""
        self._began = Instant.now()
        for watcher in self._watchers:
            watcher.start()
        for watcher in self._watchers:
            watcher.wait_for_first_list()
        return self

    def __exit__(self, *_: object) -> None:
        """End; what was recorded stays."""
        for watcher in self._watchers:
            watcher.stop()
        self._ended = Instant.now()

    def _pod_changed(self, at: Instant, raw: JsonObject, *, deleted: bool) -> None:
        change = PodChange(at, read_pod(raw), deleted)
        with self._lock:
            self._changes.append(change)

    def _node_changed(self, at: Instant, raw: JsonObject, *, deleted: bool) -> None:
        change = NodeChange(at, read_node(raw), deleted)
        with self._lock:
            self._changes.append(change)

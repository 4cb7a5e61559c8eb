"""Watches pods and nodes from threads of its own and stamps each change on both clocks.

A test opens it around what it does (`with sandbox.record("shop") as recorder:`), and asks
`recorder.timeline(...)` afterwards, or while it runs. It lists and then watches, resumes where a watch
broke off, and lists again when the server has forgotten (410); what vanished meanwhile is recorded as
deleted when that is noticed. It only reads, and it decides nothing.
"""

from __future__ import annotations

import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any, Self

from splitter.sandbox.errors import ApiError, SandboxError
from splitter.sandbox.instants import Instant
from splitter.sandbox.recording import NodeChange, PodChange, Recording, read_node, read_pod
from splitter.sandbox.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    import urllib3

    from splitter.sandbox.api import Api, JsonObject
    from splitter.sandbox.recording import PodSeen

_FIRST_LIST_DEADLINE_S = 30.0
_PAUSE_AFTER_FAULT_S = 0.2
_GONE = 410


class Recorder:
    """Records from `__enter__` (which returns once everything present has been seen) to `__exit__`."""

    def __init__(self, api: Api, namespace: str | None = None) -> None:
        self._lock = threading.Lock()
        self._changes: list[PodChange | NodeChange] = []
        self._began = Instant.now()
        self._ended: Instant | None = None
        pods = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        self._watchers = (
            _Watcher(api, pods, self._pod_changed),
            _Watcher(api, "/api/v1/nodes", self._node_changed),
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

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
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


class _Watcher:
    """One LIST and WATCH of one collection, for ever, in one thread."""

    def __init__(self, api: Api, path: str, tell: Callable[..., None]) -> None:
        self._api = api
        self._path = path
        self._tell = tell
        self._known: dict[str, JsonObject] = {}  # by uid; what a new list lacks has been deleted
        self._version = ""  # of the last thing seen; empty means: list first
        self._listed = threading.Event()
        self._stopping = threading.Event()
        self._open: urllib3.BaseHTTPResponse | None = None
        self._thread = threading.Thread(target=self._run, name=f"record {path}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait_for_first_list(self) -> None:
        if not self._listed.wait(_FIRST_LIST_DEADLINE_S):
            raise SandboxError(
                f"the API server did not list {self._path} within {_FIRST_LIST_DEADLINE_S:g} s."
            )

    def stop(self) -> None:
        self._stopping.set()
        response: Any = self._open
        if response is not None:
            with contextlib.suppress(Exception):  # it may end by itself at the same moment
                response.shutdown()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._version:
                    self._version = self._list()
                self._watch()
            except ApiError as refusal:
                if refusal.status == _GONE:
                    self._version = ""
                self._stopping.wait(_PAUSE_AFTER_FAULT_S)
            except Exception:  # noqa: BLE001 - a broken connection in any form: go on from where it broke
                self._stopping.wait(_PAUSE_AFTER_FAULT_S)

    def _list(self) -> str:
        answer = self._api.get(self._path)
        at = Instant.now()
        present = {raw["metadata"]["uid"]: raw for raw in answer.get("items") or []}
        for uid in set(self._known) - set(present):
            self._see(at, self._known[uid], deleted=True)
        for raw in present.values():
            self._see(at, raw, deleted=False)
        self._listed.set()
        return str(answer["metadata"]["resourceVersion"])

    def _watch(self) -> None:
        """Tell each event of one watch, from the last version seen, until the watch ends."""
        query = {"watch": "true", "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        with self._api.stream(self._path, query) as response:
            self._open = response
            rest = b""
            while self._version and not self._stopping.is_set():
                piece = response.read1()
                if not piece:
                    break
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    self._tell_event(json.loads(line))
        self._open = None

    def _tell_event(self, event: JsonObject) -> None:
        raw = event["object"]
        match event["type"]:
            case "ERROR":  # "too old resource version" comes as an event, not as a status
                self._version = ""
                return
            case "BOOKMARK":
                pass
            case kind:
                self._see(Instant.now(), raw, deleted=kind == "DELETED")
        self._version = str(raw["metadata"]["resourceVersion"])

    def _see(self, at: Instant, raw: JsonObject, *, deleted: bool) -> None:
        uid = raw["metadata"]["uid"]
        former = self._known.get(uid)
        if deleted:
            self._known.pop(uid, None)
        else:
            self._known[uid] = raw
            # A new list brings everything again; only what differs is a change.
            if former and former["metadata"]["resourceVersion"] == raw["metadata"]["resourceVersion"]:
                return
        self._tell(at, raw, deleted=deleted)

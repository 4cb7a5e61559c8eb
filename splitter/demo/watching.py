"""Watches a collection from a thread of its own: what is there now, and a call for each change.

`journey` and the benchmarks watch the twins (to see splitter's writes with the moment they were seen), the
Splits and the Events. It lists and then watches, resumes where a watch broke off, and lists again when the
server has forgotten (410). It only reads; the sandbox's own `Recorder` does the same for pods and nodes.
"""

from __future__ import annotations

import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any, Self

from splitter.demo.promises import ReplicasWritten
from splitter.sandbox import ApiError, Instant, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    import urllib3

    from splitter.sandbox import Api

JsonObject = dict[str, Any]

_FIRST_LIST_S = 30.0
_PAUSE_AFTER_FAULT_S = 0.2
_GONE = 410


class Watch:
    """The objects of one collection, kept up to date between `__enter__` and `__exit__`.

    `changed(at, raw, deleted)` is called from the watching thread for everything seen, the first list
    included; it must be quick and must not raise.
    """

    def __init__(
        self, api: Api, path: str, changed: Callable[[Instant, JsonObject, bool], None] | None = None
    ) -> None:
        self._api = api
        self._path = path
        self._changed = changed
        self._objects: dict[str, JsonObject] = {}
        self._version = ""
        self._listed = threading.Event()
        self._stopping = threading.Event()
        self._open: urllib3.BaseHTTPResponse | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)

    @property
    def objects(self) -> dict[str, JsonObject]:
        """Return what is there now, by name (names are unique only within one namespace)."""
        return dict(self._objects)

    def __enter__(self) -> Self:
        """Begin; everything that exists has been seen when this returns."""
        self._thread.start()
        if not self._listed.wait(_FIRST_LIST_S):
            raise SandboxError(f"the API server did not list {self._path} within {_FIRST_LIST_S:g} s.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""
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
                self._follow()
            except ApiError as refusal:
                if refusal.status == _GONE:
                    self._version = ""
                self._stopping.wait(_PAUSE_AFTER_FAULT_S)
            except Exception:  # noqa: BLE001 - a broken connection in any form: go on from where it broke
                self._stopping.wait(_PAUSE_AFTER_FAULT_S)

    def _list(self) -> str:
        answer = self._api.get(self._path)
        at = Instant.now()
        present = {raw["metadata"]["name"]: raw for raw in answer.get("items") or []}
        for name in set(self._objects) - set(present):
            self._see(at, self._objects[name], deleted=True)
        for raw in present.values():
            self._see(at, raw, deleted=False)
        self._listed.set()
        return str(answer["metadata"]["resourceVersion"])

    def _follow(self) -> None:
        query = {"watch": "true", "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        with self._api.stream(self._path, query) as response:
            self._open = response
            rest = b""
            while self._version and not self._stopping.is_set():
                piece = response.read1()
                if not piece:
                    break
                at = Instant.now()  # before parsing: a burst of events is read at one moment
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    self._event(at, json.loads(line))
        self._open = None

    def _event(self, at: Instant, event: JsonObject) -> None:
        raw = event["object"]
        if event["type"] == "ERROR":  # "too old resource version" comes as an event, not as a status
            self._version = ""
            return
        if event["type"] != "BOOKMARK":
            self._see(at, raw, deleted=event["type"] == "DELETED")
        self._version = str(raw["metadata"]["resourceVersion"])

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

    def see(self, at: Instant, raw: JsonObject, deleted: bool) -> None:  # noqa: FBT001 - a Watch calls it
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

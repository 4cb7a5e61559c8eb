"""Follows one collection of a sandbox from a thread of its own: every change, and the moment it was seen.

The recorder judges by it, the demo and the benchmarks look at twins, Splits and Events through it. It
lists and then watches, resumes where a watch broke off, and lists again when the server has forgotten
(410). It only reads.
"""

from __future__ import annotations

import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any, Protocol

from lab.sandbox.errors import ApiError, SandboxError
from lab.sandbox.instants import Instant

if TYPE_CHECKING:
    import urllib3

    from lab.sandbox.api import Api, JsonObject

_FIRST_LIST_DEADLINE_S = 30.0
_PAUSE_AFTER_FAULT_S = 0.2
_GONE = 410


class Tell(Protocol):
    """A function that is called with each change."""

    def __call__(self, at: Instant, raw: JsonObject, *, deleted: bool) -> None:
        """Take one change; called from the following thread, so it must be quick and must not raise."""


class Follower:
    """One LIST and WATCH of one collection, for ever, in one thread; the first list counts as changes."""

    def __init__(self, api: Api, path: str, tell: Tell) -> None:
        self._api = api
        self._path = path
        self._tell = tell
        self._known: dict[str, JsonObject] = {}  # by uid; what a new list lacks has been deleted
        self._version = ""  # of the last thing seen; empty means: list first
        self._listed = threading.Event()
        self._stopping = threading.Event()
        self._open: urllib3.BaseHTTPResponse | None = None
        self._thread = threading.Thread(target=self._run, name=f"follow {path}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wait_for_first_list(self) -> None:
        """Return when the first list has been reported. Raises SandboxError after 30 s."""
        if not self._listed.wait(_FIRST_LIST_DEADLINE_S):
            raise SandboxError(
                f"the API server did not list {self._path} within {_FIRST_LIST_DEADLINE_S:g} s."
            )

    def stop(self) -> None:
        """Stop; nothing is reported afterwards."""
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
        """Report each event of one watch, from the last version seen, until the watch ends."""
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
                    self._tell_event(at, json.loads(line))
        self._open = None

    def _tell_event(self, at: Instant, event: JsonObject) -> None:
        raw = event["object"]
        match event["type"]:
            case "ERROR":  # "too old resource version" comes as an event, not as a status
                self._version = ""
                return
            case "BOOKMARK":
                pass
            case kind:
                self._see(at, raw, deleted=kind == "DELETED")
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

"""The recorder goes on where a watch broke off, and lists again when the server has forgotten."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from queue import Queue
from typing import Any

from lab.sandbox import ApiError
from lab.sandbox.following import Follower, Tell
from lab.sandbox.recorder import Recorder
from lab.sandbox.recording import PodChange
from lab.sandbox.waiting import wait_until

JsonObject = dict[str, Any]
END = b""


def pod(name: str, version: int) -> JsonObject:
    """Return a raw pod."""
    return {
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": str(version)},
        "spec": {},
        "status": {"phase": "Running"},
    }


def event(kind: str, raw: JsonObject) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": kind, "object": raw}).encode() + b"\n"


class ScriptedResponse:
    """An open watch that says what the test puts into it."""

    def __init__(self) -> None:
        self.pieces: Queue[bytes | Exception] = Queue()

    def read1(self) -> bytes:
        """Return the next piece, or raise it."""
        piece = self.pieces.get(timeout=10)
        if isinstance(piece, Exception):
            raise piece
        return piece

    def shutdown(self) -> None:
        """End a read that waits in another thread."""
        self.pieces.put(END)


class ScriptedApi:
    """An API server with scripted lists and watches of pods, and no nodes."""

    def __init__(self, *lists: JsonObject) -> None:
        self.lists = list(lists)
        self.versions: list[str] = []
        self.watches: list[ScriptedResponse | ApiError] = []

    def get(self, path: str) -> JsonObject:
        """Return the next list."""
        return (
            self.lists.pop(0)
            if path.endswith("/pods")
            else {"items": [], "metadata": {"resourceVersion": "1"}}
        )

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str]) -> Iterator[ScriptedResponse]:
        """Open the next watch."""
        if not path.endswith("/pods"):
            yield ScriptedResponse()
            return
        self.versions.append(query["resourceVersion"])
        watch = self.watches.pop(0) if self.watches else ScriptedResponse()
        if isinstance(watch, ApiError):
            raise watch
        yield watch

    def follow(self, path: str, tell: Tell) -> Follower:
        """Return what follows a collection here."""
        return Follower(self, path, tell)  # type: ignore[arg-type]  # the script is no whole Api


def listed(version: int, *pods: JsonObject) -> JsonObject:
    """Return a raw list."""
    return {"items": list(pods), "metadata": {"resourceVersion": str(version)}}


def changes(recorder: Recorder) -> list[tuple[str, bool]]:
    """Return the names of the pods that changed, and whether they were deleted."""
    seen = recorder.recording().changes
    return [(change.pod.name, change.deleted) for change in seen if isinstance(change, PodChange)]


def record(api: ScriptedApi, expected: list[tuple[str, bool]], watches: int) -> None:
    """Run a recorder until it has seen what is expected and opened so many watches."""
    with Recorder(api) as recorder:  # type: ignore[arg-type]  # the script is no whole Api
        wait_until(
            lambda: changes(recorder) == expected and len(api.versions) >= watches,
            what=f"{expected}; seen {changes(recorder)}, watched {api.versions}",
            deadline_s=10,
        )


class TestResuming:
    """No change is lost, none is told twice."""

    def test_goes_on_from_the_last_version_seen(self) -> None:
        """A watch that ends is opened again from the last event's version, bookmarks included."""
        first = ScriptedResponse()
        api = ScriptedApi(listed(5, pod("a", 3)))
        api.watches = [first]
        bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "9"}})
        for piece in (event("ADDED", pod("b", 6)), bookmark, END):
            first.pieces.put(piece)
        record(api, [("a", False), ("b", False)], watches=2)
        assert api.versions == ["5", "9"]

    def test_a_broken_connection_is_no_news(self) -> None:
        """After a reset the watch goes on from the list's version without listing again."""
        first, second = ScriptedResponse(), ScriptedResponse()
        api = ScriptedApi(listed(5, pod("a", 3)))
        api.watches = [first, second]
        first.pieces.put(ConnectionResetError())
        second.pieces.put(event("MODIFIED", pod("a", 7)))
        record(api, [("a", False), ("a", False)], watches=2)
        assert api.versions == ["5", "5"]

    def test_lists_again_when_the_server_has_forgotten(self) -> None:
        """After 410 only differences are changes, and what the new list lacks has been deleted."""
        api = ScriptedApi(
            listed(5, pod("a", 3), pod("b", 4), pod("c", 5)),
            listed(20, pod("b", 4), pod("c", 12), pod("d", 15)),
        )
        api.watches = [ApiError(410, "Expired", "too old resource version")]
        expected = [("a", False), ("b", False), ("c", False), ("a", True), ("c", False), ("d", False)]
        record(api, expected, watches=2)
        assert api.versions == ["5", "20"]

    def test_forgetting_also_comes_as_an_event(self) -> None:
        """An ERROR event within the watch means the same as a 410."""
        first = ScriptedResponse()
        api = ScriptedApi(listed(5, pod("a", 3)), listed(20, pod("a", 3)))
        api.watches = [first]
        first.pieces.put(event("ERROR", {"code": 410, "message": "too old resource version"}))
        record(api, [("a", False)], watches=2)
        assert api.versions == ["5", "20"]

    def test_events_may_come_in_pieces(self) -> None:
        """Lines are put together, whatever pieces the network makes of them."""
        first = ScriptedResponse()
        api = ScriptedApi(listed(5))
        api.watches = [first]
        whole = event("ADDED", pod("a", 6)) + event("DELETED", pod("a", 7))
        for start in range(0, len(whole), 25):
            first.pieces.put(whole[start : start + 25])
        record(api, [("a", False), ("a", True)], watches=1)

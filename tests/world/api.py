"""The world's API server, asked through splitter's real client but for the wire; it counts what it is asked.

For a loop whose clock leaps (`leaping`): an answer takes no time unless `latency_s` says otherwise, and a
watch stays open until its time is over.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Literal

import orjson

from kube.raw import Raw
from leaping import passing
from splitter.kube.client import KIND_MISSING, ApiError, Client, Permit
from splitter.kube.paths import ResourcePath
from world import rights
from world.kinds import Ref, path_of, typed
from world.objects import Event, Objects
from world.requests import Reads, Write
from world.selectors import asked_for

Watches = Literal["stay", "end at once", "are too old", "break"]

_WATCH_S = 50.0
_DISCOVERY = {"versions": [{"version": "v1alpha1"}], "preferredVersion": {"version": "v1alpha1"}}


class Lines:
    """The lines of one watch: each as late as it is, in their order."""

    def __init__(self, lag_s: Callable[[], float]) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._lag_s = lag_s
        self._loop = asyncio.get_running_loop()
        self._last_s = self._loop.time()
        self._late: deque[bytes] = deque()  # timers of one moment run in any order

    def tell(self, line: bytes) -> None:
        """Tell a line, now or later."""
        self._last_s = max(self._last_s, self._loop.time() + self._lag_s())
        self._late.append(line)
        if self._last_s <= self._loop.time() and len(self._late) == 1:
            self._tell_next()
        else:
            self._loop.call_at(self._last_s, self._tell_next)

    def _tell_next(self) -> None:
        if self._late:
            self.queue.put_nowait(self._late.popleft())

    def end(self, bookmark: bytes) -> None:
        """End, with a bookmark unless it is empty: the next watch goes on from here, so nothing is left."""
        while self._late:
            self._tell_next()
        if bookmark:
            self.queue.put_nowait(bookmark)
        self.queue.put_nowait(None)


class Api(Client):
    """Objects by their paths, for one user."""

    def __init__(self, objects: Objects | None = None, user: str = "splitter") -> None:
        """Hold nothing."""
        self.objects = objects if objects is not None else Objects()
        self.user = user
        self.asked: list[tuple[float, str, str]] = []  # when, the verb, the path
        self.gone: set[str] = set()  # namespaces
        self.missing: set[str] = set()  # groups of kinds that nobody has installed
        self.forbidden: set[str] = set()  # plurals of which nothing may be asked
        self.largest_page = 0
        self.aggregated: dict[str, Callable[[], list[Raw]]] = {}  # who answers for a kind without objects
        self.watches: Watches = "stay"
        self.lease_fails_every = 0  # so-manieth request for the Lease times out; 0: none
        self.latency_s: Callable[[], float] = lambda: 0.0  # of each request
        self.lag_s: Callable[[], float] = lambda: 0.0  # of each line of a watch
        self.watch_s = 0.0  # so long each watch lasts; 0: as long as it asks for
        self.answers = True  # else it does what it is asked to, and no answer comes
        self.cut_off = False  # every request goes unanswered, and no watch tells anything
        self._about_lease = 0
        self._timeout_s = 10.0
        self._reads = Reads(self.objects)
        self._streams: list[tuple[str, asyncio.Queue[bytes | None]]] = []

    @property
    def server(self) -> str:
        """Its address, which is used by no one."""
        return "memory"

    def under(self, permit: Permit) -> "Api":
        """Write without a permit."""
        del permit
        return self

    async def close(self) -> None:
        """Have no connection to close."""

    async def settled(self, within_s: float) -> bool:
        """Nothing is under way."""
        del within_s
        return True

    def put(self, path: str, raw: Raw) -> Raw:
        """Hold an object as it is given."""
        return self.objects.put(path, raw)

    def delete_namespace(self, namespace: str) -> None:
        """Delete a namespace with its objects and Roles: no one may look there any more."""
        self.gone.add(namespace)
        for kind, there in self.objects.by_kind.items():
            for within, name in [key for key in there if key[0] == namespace]:
                self.objects.forget(path_of(kind, within, name))
        for collection, queue in self._streams:
            if f"/namespaces/{namespace}/" in collection:
                queue.put_nowait(None)

    # --- what was asked ---------------------------------------------------------------------------

    def rates(self, since_s: float) -> Counter[str]:
        """Count what was asked since then, by verb."""
        return Counter(verb for at_s, verb, _ in self.asked if at_s >= since_s)

    def lists(self, since_s: float) -> Mapping[str, list[float]]:
        """Return when each collection was listed since then, but for the Lease and what reconciles ask."""
        watched = {path for _, verb, path in self.asked if verb == "WATCH"}
        by_name: dict[str, list[float]] = {path: [] for path in watched}
        for at_s, verb, path in self.asked:
            if verb == "GET" and at_s >= since_s and path in watched:
                by_name[path].append(at_s)
        return by_name

    def _ask(self, verb: str, path: ResourcePath, query: Mapping[str, str]) -> None:
        where = str(path)
        # One collection may be followed by several watches.
        asked = "&".join([where, *(value for name, value in query.items() if name.endswith("Selector"))])
        self.asked.append((asyncio.get_running_loop().time(), verb, asked))
        if any(f"/namespaces/{namespace}/" in where for namespace in self.gone):
            raise ApiError(403, "Forbidden", "no Role here")
        if path.plural in self.forbidden:
            raise ApiError(403, "Forbidden", f"{path.plural} is forbidden")
        if any(path.api.startswith(f"/apis/{group}/") for group in self.missing):
            raise ApiError(404, KIND_MISSING, "the server could not find the requested resource")

    # --- requests ---------------------------------------------------------------------------------

    async def send(
        self,
        method: str,
        path: ResourcePath,
        body: Raw | None = None,
        *,
        patch: str = "",
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Raw:
        """Answer one request."""
        query = query or {}
        self._ask(method, path, query)
        await self._takes_time("/leases" in str(path), timeout_s or self._timeout_s)
        if not path.plural:
            return {"gitVersion": "v1.36.3"} if path.api == "/version" else dict(_DISCOVERY)
        if path.plural == "selfsubjectaccessreviews":
            namespace = (body or {})["spec"]["resourceAttributes"].get("namespace", "")
            return {"status": {"allowed": namespace not in self.gone}}
        ref = Ref(f"{path.api}/{path.plural}", path.namespace, path.name)
        rights.check(self.objects, self.user, method, ref, path.part)
        if ref.kind in self.aggregated:
            matches = asked_for(query.get("labelSelector", ""), "", ref.kind)
            there = (raw for raw in self.aggregated[ref.kind]() if matches(raw))
            items = [raw for raw in there if ref.namespace in {"", raw["metadata"].get("namespace")}]
            return {"metadata": {}, "items": items}
        if method == "GET":
            said = self._reads.answer(ref, path.part, query)
            self.largest_page = max(self.largest_page, len(said.get("items", ())))
        else:
            write = Write(self.objects, ref, path.part, query, self.user)
            said = write.answer(method, body or {}, patch)
            if not self.answers:
                raise ApiError(0, "NoAnswer", "timed out")
        answer: Raw = orjson.loads(orjson.dumps(said))  # an answer is its reader's own
        return answer

    async def _takes_time(self, is_about_lease: bool, timeout_s: float) -> None:
        self._about_lease += is_about_lease
        fails = is_about_lease and self.lease_fails_every and self._about_lease % self.lease_fails_every == 0
        if fails or self.cut_off:
            await passing(timeout_s)
            raise ApiError(0, "NoAnswer", "timed out")
        if (latency_s := self.latency_s()) > 0:
            await passing(latency_s)

    # --- watches ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def stream(
        self, path: ResourcePath, query: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Answer a watch: as long as it asks for, unless `watches` says otherwise."""
        del silence_s
        self._ask("WATCH", path, query)
        if self.cut_off:
            await passing(10.0)
            raise ApiError(0, "NoAnswer", "timed out")
        if self.watches != "stay":
            yield self._ill(self.watches)
            return
        ref = Ref(f"{path.api}/{path.plural}", path.namespace, "")
        rights.check(self.objects, self.user, "WATCH", ref, "")
        matches = asked_for(query.get("labelSelector", ""), query.get("fieldSelector", ""), ref.kind)
        if query.get("resourceVersion", "0") == "0":  # it begins with all that is there
            there = self.objects.all(ref.kind, ref.namespace)
            missed: Iterable[Event] | None = [Event(ref, None, raw, 0) for raw in there]
        else:
            missed = self.objects.since(ref.kind, int(query["resourceVersion"]))
        if missed is None:
            yield self._ill("are too old")
            return
        lines = Lines(self.lag_s)

        def follower(event: Event) -> None:
            if ref.namespace in {"", event.ref.namespace} and (line := _line(event, matches)) is not None:
                lines.tell(line)

        for event in missed:
            follower(event)
        if query.get("sendInitialEvents") == "true":
            lines.tell(self._bookmark(ref.kind, annotations={"k8s.io/initial-events-end": "true"}))
        entry = (str(path), lines.queue)
        self._streams.append(entry)
        stop = self.objects.follow(ref.kind, follower)
        lasts_s = self.watch_s or float(query.get("timeoutSeconds", _WATCH_S))
        bookmarks = query.get("allowWatchBookmarks") == "true"
        ending = asyncio.get_running_loop().call_later(
            lasts_s, lambda: lines.end(self._bookmark(ref.kind) if bookmarks else b"")
        )
        try:
            yield self._lines(lines.queue)
        finally:
            stop()
            ending.cancel()
            self._streams.remove(entry)

    def _bookmark(self, kind: str, **said: Mapping[str, str]) -> bytes:
        metadata = {"resourceVersion": str(self.objects.version), **said}
        return orjson.dumps({"type": "BOOKMARK", "object": typed(kind, {"metadata": metadata})})

    def end_watches(self) -> None:
        """End all watches at once, as an API server that is replaced does."""
        for _, queue in self._streams:
            queue.put_nowait(None)

    @staticmethod
    async def _ill(how: Watches) -> AsyncIterator[bytes]:
        if how == "are too old":
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "too old resource version",
                "reason": "Expired",
                "code": 410,
            }
            yield orjson.dumps({"type": "ERROR", "object": status})
        if how == "break":
            raise ApiError(0, "NoAnswer", "the connection was reset")

    async def _lines(self, queue: "asyncio.Queue[bytes | None]") -> AsyncIterator[bytes]:
        while (line := await queue.get()) is not None:
            if not self.cut_off:
                yield line


def _line(event: Event, matches: Callable[[Raw], bool]) -> bytes | None:
    """Return how a watch tells of a change: what enters its selector is added, what leaves it deleted."""
    before = event.old is not None and matches(event.old)
    after = not event.deleted and matches(event.new)
    if not before and not after:
        return None
    change = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
    shown = event.new
    if not after and not event.deleted and event.old is not None:  # as it was when it was last selected
        version = event.new["metadata"]["resourceVersion"]
        shown = {**event.old, "metadata": {**event.old["metadata"], "resourceVersion": version}}
    return orjson.dumps({"type": change, "object": shown})

"""An API server in memory, asked through the real client but for the wire; it counts what it is asked.

For a loop whose clock leaps (`leaping`): an answer takes no time, and a watch stays open until it is told.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Literal

import orjson

from kube.raw import Raw
from leaping import passing
from splitter.kube.client import ApiError, Client, Permit
from splitter.kube.paths import ResourcePath

Watches = Literal["stay", "end at once", "are too old", "break"]


class Api(Client):
    """Objects by their paths."""

    def __init__(self) -> None:
        """Hold nothing."""
        self.objects: dict[str, Raw] = {}
        self.asked: list[tuple[float, str, str]] = []  # when, the verb, the path
        self.gone: set[str] = set()  # namespaces
        self.watches: Watches = "stay"
        self.lease_fails_every = 0  # so-manieth request for the Lease times out; 0: none
        self._about_lease = 0
        self._timeout_s = 10.0
        self._version = itertools.count(1000)
        self._streams: list[tuple[str, asyncio.Queue[bytes | None]]] = []

    @property
    def server(self) -> str:
        """Its address, which nobody uses."""
        return "memory"

    def under(self, permit: Permit) -> "Api":
        """Write without a permit."""
        del permit
        return self

    async def settled(self, within_s: float) -> bool:
        """Nothing is under way."""
        del within_s
        return True

    def put(self, path: str, raw: Raw) -> Raw:
        """Hold an object, one version on, and tell the watches."""
        known = path in self.objects
        metadata = {**raw["metadata"], "resourceVersion": str(next(self._version))}
        self.objects[path] = raw = {**raw, "metadata": metadata}
        self._tell(path, "MODIFIED" if known else "ADDED", raw)
        return raw

    def _tell(self, path: str, kind: str, raw: Raw) -> None:
        for collection, queue in self._streams:
            if collection in _collections(path):
                queue.put_nowait(orjson.dumps({"type": kind, "object": raw}))

    def delete_namespace(self, namespace: str) -> None:
        """Delete a namespace with its objects and Roles: nobody may look there any more."""
        self.gone.add(namespace)
        for path in [path for path in self.objects if f"/namespaces/{namespace}/" in path]:
            del self.objects[path]
        for collection, queue in self._streams:
            if f"/namespaces/{namespace}/" in collection:
                queue.put_nowait(None)

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

    def _ask(self, verb: str, path: ResourcePath, query: Mapping[str, str]) -> str:
        where = str(path)
        # One collection may be followed by several watches.
        asked = "&".join([where, *(value for name, value in query.items() if name.endswith("Selector"))])
        self.asked.append((asyncio.get_running_loop().time(), verb, asked))
        if any(f"/namespaces/{namespace}/" in where for namespace in self.gone):
            raise ApiError(403, "Forbidden", "no Role here")
        return where

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
        del patch
        where = self._ask(method, path, query or {})
        if "/leases" in where:
            self._about_lease += 1
            if self.lease_fails_every and self._about_lease % self.lease_fails_every == 0:
                await passing(timeout_s or self._timeout_s)
                raise ApiError(0, "NoAnswer", "timed out")
        if method == "GET":
            return self._read(where, query or {})
        body = body or {}
        if where.endswith("selfsubjectaccessreviews"):
            namespace = body["spec"]["resourceAttributes"].get("namespace", "")
            return {"status": {"allowed": namespace not in self.gone}}
        if method == "DELETE":
            if "dryRun" in body:  # options in a body are all that counts
                return {}
            self._tell(where, "DELETED", self.objects.pop(where))
            return {}
        if method == "POST":
            where = f"{where}/{body['metadata'].get('name') or body['metadata']['generateName']}"
        dry = "dryRun" in (query or {})
        made = _patched(self.objects.get(where.removesuffix("/status"), _new(where)), body)
        return made if dry else self.put(where.removesuffix("/status"), made)

    def _read(self, where: str, query: Mapping[str, str]) -> Raw:
        if where in self.objects:
            return self.objects[where]
        if "limit" not in query:
            raise ApiError(404, "NotFound", where)
        items = [
            raw
            for path, raw in self.objects.items()
            if where in _collections(path) and _matches(raw, query.get("labelSelector", ""))
        ]
        return {"metadata": {"resourceVersion": str(next(self._version))}, "items": items}

    @asynccontextmanager
    async def stream(
        self, path: ResourcePath, query: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Answer a watch: it lasts for 50 s, as a real one does, unless `watches` says otherwise."""
        del silence_s
        where = self._ask("WATCH", path, query)
        if self.watches != "stay":
            yield self._ill(self.watches)
            return
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        entry = (where, queue)
        self._streams.append(entry)
        asyncio.get_running_loop().call_later(50.0, queue.put_nowait, None)
        try:
            yield self._lines(queue, query.get("labelSelector", ""))
        finally:
            self._streams.remove(entry)

    @staticmethod
    async def _ill(how: Watches) -> AsyncIterator[bytes]:
        if how == "are too old":
            status = {"code": 410, "reason": "Expired", "message": "too old"}
            yield orjson.dumps({"type": "ERROR", "object": status})
        if how == "break":
            raise ApiError(0, "NoAnswer", "the connection was reset")

    async def _lines(self, queue: asyncio.Queue[bytes | None], selector: str) -> AsyncIterator[bytes]:
        while (line := await queue.get()) is not None:
            if _matches(orjson.loads(line)["object"], selector):
                yield line


@cache
def _collections(path: str) -> tuple[str, str]:
    """Return where an object is listed: in its namespace, and in all of them."""
    own = path.rpartition("/")[0]
    group, count, rest = own.partition("/namespaces/")
    return own, f"{group}/{rest.partition('/')[2]}" if count else own


def _matches(raw: Raw, selector: str) -> bool:
    """Whether an object has the label that splitter selects by, as far as this server understands it."""
    value = raw["metadata"].get("labels", {}).get("splitter.io/split", "")
    if not selector:
        return True
    return value not in {"", "twin", "parked"} if "notin" in selector else value == "twin"


def _new(path: str) -> Raw:
    namespace = path.partition("/namespaces/")[2].partition("/")[0]
    return {
        "metadata": {
            "name": path.rpartition("/")[2],
            "namespace": namespace,
            "uid": f"uid-{path}",
            "creationTimestamp": "2026-01-05T09:00:00Z",
            "generation": 1,
        }
    }


def _patched(raw: Any, body: Any) -> Any:  # noqa: ANN401 (any JSON)
    if not isinstance(raw, dict) or not isinstance(body, dict):
        return body
    merged = {**raw, **{key: _patched(raw.get(key), value) for key, value in body.items()}}
    return {key: value for key, value in merged.items() if value is not None}

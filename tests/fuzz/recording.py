"""An API server that has what it is given, takes writes, and remembers what it was asked, by whose right.

What is allowed is read from manifests, rbac.yaml and source-status.yaml: of the attacker's namespace what
splitter may do in each, of the whole cluster what a reconcile looks at. Bodies are looked at too: what is
written names no namespace and no owner of anybody else's.
"""

import asyncio
import copy
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import orjson
from aiohttp import web

from kube.raw import Raw, metadata
from kube.server import client_of
from rbac import rules
from splitter.kube.client import Client

PLANTED = "hunter2-planted"
"""Stands in values of the attacker's objects, and in what the API server says of them; in no log."""

_LISTS = frozenset({"horizontalpodautoscalers", "scaledobjects", "verticalpodautoscalers", "placements"})
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[a-z0-9.]+))/v[0-9a-z]+(?:/namespaces/(?P<namespace>[a-z0-9-]+))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[a-z0-9.-]+)(?P<part>/[a-z]+)?)?"
)
_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_REASONS = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 422: "Invalid"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    method: str
    path: str
    body: Any  # any JSON
    there: Raw | None  # what was there

    @property
    def is_report(self) -> bool:
        """Whether it is about what was done: a status or an Event."""
        return "/status" in self.path or "/events" in self.path

    @property
    def verb(self) -> str:
        """What rbac.yaml calls it."""
        match = _PATH.fullmatch(self.path.partition("?")[0])
        if self.method != "GET":
            return _WRITES[self.method]
        return "get" if match is not None and match["name"] else "list"


@cache
def _rights(role: str) -> frozenset[tuple[str, str, str]]:
    given = (*rules(), *rules("source-status.yaml"))
    roles = {role, f"{role}-source-status"}
    rights = (right for rule in given if rule.role in roles for right in rule.rights)
    return frozenset((right.group, right.resource, right.verb) for right in rights)


def objection(asked: Asked, namespace: str) -> str:
    """Say why a reconcile of a workload of this namespace must not ask for this; empty when it may."""
    match = _PATH.fullmatch(asked.path.partition("?")[0])
    if match is None:
        return "no path of the API"
    right = (match["group"] or "", f"{match['resource']}{match['part'] or ''}", asked.verb)
    if right not in _rights("splitter" if match["namespace"] else "splitter-cluster"):
        return f"no right {right}"
    if match["namespace"] not in {None, namespace}:
        return "another namespace"
    if match["resource"].startswith("mutating") and match["name"] != "splitter-placement":
        return "another policy"
    return _objection_to_body(asked, namespace, match["name"])


def _objection_to_body(asked: Asked, namespace: str, name: str | None) -> str:
    if not isinstance(asked.body, dict) or asked.method == "DELETE":
        return ""
    written = asked.body.get("metadata") or {}
    if written.get("namespace", namespace) != namespace:
        return "its body names another namespace"
    if name is not None and written.get("name", name) != name:
        return "its body names another object"
    # What is put back whole has the owners that its author gave it.
    known = [] if asked.there is None else asked.there["metadata"].get("ownerReferences") or []
    strange = [ref for ref in written.get("ownerReferences") or [] if ref not in known]
    if any(not ref["uid"].startswith(f"uid-{namespace}-") for ref in strange):
        return "its body names an owner of another namespace"
    return ""


@dataclass(slots=True)
class Recording:
    """An API server that has what it is given, takes writes or refuses them, and remembers all requests."""

    objects: dict[str, Raw] = field(default_factory=dict)
    lists: dict[str, list[Raw]] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    """Answers as they are sent: of what this process could not write."""
    lines: deque[bytes] = field(default_factory=deque)
    """What the next watch is told."""
    all_reported: asyncio.Event = field(default_factory=asyncio.Event)
    """A watch was opened when there was nothing more to tell."""
    refusals: deque[int] = field(default_factory=deque)
    """What the next writes are answered; 0, and none: they are taken."""
    asked: list[Asked] = field(default_factory=list)
    version: int = 1000

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        if request.query.get("watch"):
            return await self._watched(request)
        body = await request.read()
        there = self.objects.get(request.path.removesuffix("/status"))
        sent = orjson.loads(body) if body else None
        self.asked.append(Asked(request.method, request.raw_path, sent, copy.deepcopy(there)))
        return web.Response(**self._answered(request, sent), content_type="application/json")

    async def _watched(self, request: web.Request) -> web.StreamResponse:
        """Tell all lines, then that the version is too old: the list that comes next has everything."""
        response = web.StreamResponse()
        await response.prepare(request)
        if not self.lines:
            self.all_reported.set()
        while self.lines:
            line = self.lines.popleft()
            with suppress(ValueError, TypeError):
                self.lists.setdefault(request.path, []).append(orjson.loads(line)["object"])
            await response.write(line + b"\n")
        gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        await response.write(orjson.dumps({"type": "ERROR", "object": gone}) + b"\n")
        return response

    def _answered(self, request: web.Request, sent: Any) -> dict[str, Any]:  # noqa: ANN401 (any JSON)
        path = request.path
        last = path.rpartition("/")[2]
        if request.method == "GET":
            if path in self.texts:
                return {"body": self.texts[path]}
            raw = self.objects.get(path)
            if path in self.lists or (raw is None and last in _LISTS):
                raw = {"items": self.lists.get(path, []), "metadata": {"resourceVersion": "9"}}
            return _refused(404) if raw is None else {"body": orjson.dumps(raw)}
        if self.refusals and (status := self.refusals.popleft()):
            return _refused(status)
        if request.method == "DELETE" or last == "eviction":
            return {"body": b'{"kind":"Status","status":"Success"}'}
        return {"body": orjson.dumps(self._written(request, sent))}

    def _written(self, request: web.Request, sent: Raw) -> Raw:
        """Return what a write leaves, one version on, and keep it; a patch is merged into what was there."""
        path = request.path.removesuffix("/status")
        if request.method == "POST":
            path = f"{path}/{sent['metadata']['name']}"
        pieces = path.split("/")
        namespace = pieces[pieces.index("namespaces") + 1] if "namespaces" in pieces else ""
        self.version += 1
        there = self.objects.get(path, {})
        made = _merged(there, sent) if request.method == "PATCH" else copy.deepcopy(sent)
        uid = f"uid-{namespace}-{pieces[-1]}"
        own = metadata(pieces[-1], uid=uid, namespace=namespace, version=self.version)
        known = {name: there["metadata"][name] for name in ("uid", "creationTimestamp") if there}
        made["metadata"] = {**own, **made.get("metadata", {}), **known, "resourceVersion": str(self.version)}
        made.setdefault("spec", {})
        if "dryRun" not in request.query:
            self.objects[path] = made
        return made


def _merged(there: Raw, sent: Raw) -> Raw:
    """Return a merge patch applied (RFC 7386)."""
    made = dict(there)
    for name, value in sent.items():
        if value is None:
            made.pop(name, None)
            continue
        before = there.get(name)
        made[name] = (
            _merged(before if isinstance(before, dict) else {}, value) if isinstance(value, dict) else value
        )
    return made


def _refused(status: int) -> dict[str, Any]:
    """Answer as an API server does that quotes what it refuses."""
    words = f'web is invalid: spec.template: Invalid value: "{PLANTED}": must be another'
    answer = {"kind": "Status", "code": status, "reason": _REASONS[status], "message": words}
    return {"status": status, "body": orjson.dumps(answer)}


@asynccontextmanager
async def recorded(server: Recording) -> AsyncIterator[Client]:
    """Serve, and yield a client."""
    application = web.Application(client_max_size=8 * 1024**2)
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with client_of(f"http://{host}:{port}", 10) as client:
            yield client
    finally:
        await runner.cleanup()

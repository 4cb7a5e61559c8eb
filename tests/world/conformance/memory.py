"""The ground that is the world: an API server in memory, its controllers, and a clock that leaps."""

import json
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TypeVar

from leaping import LeapingLoop, passing
from splitter.kube.client import ApiError
from splitter.kube.paths import ResourcePath
from world.admission import Request
from world.api import Api
from world.conformance.ground import Change, Policy, Raw, Refused
from world.conformance.objects import FOLLOWED, KINDS
from world.objects import Event, Objects

Answer = TypeVar("Answer")

_PATCHES = {
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/json-patch+json": "json",
    "application/apply-patch+yaml": "apply",
}
_LOOK_S = 0.1
_TOLD_S = 1.0  # how long a watch is read


class Memory:
    """A namespace of a world of its own."""

    namespace = "scene-0"

    def __init__(self) -> None:
        self._loop = LeapingLoop()
        self._objects = Objects()
        self._api = Api(self._objects, user="admin")
        self._past: dict[str, list[Change]] = defaultdict(list)
        for kind in FOLLOWED:
            collection = KINDS[kind].collection("").replace("/namespaces/", "")
            self._objects.follow(collection, self._seen)
        self._run(self._begin())

    async def _begin(self) -> None:
        self._objects.put(f"/api/v1/namespaces/{self.namespace}", {"metadata": {}})

    def close(self) -> None:
        """End the world."""
        self._loop.close()

    def _run(self, action: Coroutine[object, object, Answer]) -> Answer:
        return self._loop.run_until_complete(action)

    def _seen(self, event: Event) -> None:
        if event.ref.namespace == self.namespace:
            self._past[event.ref.kind.rpartition("/")[2]].append(Change(event.new, event.deleted))

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        user: str = "",
    ) -> Raw:
        """Ask the API server in memory."""
        api = self._api if not user else Api(self._objects, user=user)
        try:
            where = ResourcePath.read(path)
        except ValueError:  # a name that no object can have
            raise Refused(422, "Invalid", path) from None
        sent = json.loads(json.dumps(body))
        try:
            return self._run(
                api.send(method, where, sent, patch=_PATCHES.get(content_type, ""), query=query or {})
            )
        except ApiError as refused:
            raise Refused(refused.status, refused.reason, refused.message) from None

    def past(self, plural: str) -> Sequence[Change]:
        """Return what the API server has told."""
        return tuple(self._past[plural])

    def watch(self, path: str, query: Mapping[str, str]) -> list[Raw]:
        """Read a watch for a moment."""
        return self._run(self._watched(ResourcePath.read(path), {"timeoutSeconds": str(_TOLD_S), **query}))

    async def _watched(self, path: ResourcePath, query: Mapping[str, str]) -> list[Raw]:
        async with self._api.stream(path, query, _TOLD_S) as lines:
            return [json.loads(line) async for line in lines]

    def until(self, look: Callable[[], bool], what: str, within_s: float) -> None:
        """Let the clock leap."""
        ends_s = self._loop.time() + within_s
        while not look():
            assert self._loop.time() < ends_s, f"waited {within_s:g} s for {what}; it did not come."
            self._run(passing(_LOOK_S))

    def elapse(self, seconds: float) -> None:
        """Let the clock leap."""
        self._run(passing(seconds))

    def add_nodes(
        self, count: int, labels: Mapping[str, str], taints: Sequence[Raw], pods: int
    ) -> tuple[str, ...]:
        """Add nodes."""
        raise NotImplementedError

    def silence(self, node: str) -> None:
        """Let a node fall silent."""
        raise NotImplementedError

    def hear(self, node: str) -> None:
        """Let a node be heard again."""
        raise NotImplementedError

    def vanish(self, node: str) -> None:
        """Take a node away."""
        raise NotImplementedError

    def admit(self, policy: Policy) -> None:
        """Add a rule."""
        where = f"/apis/{policy.group}/v1/{policy.resource}" if policy.group else f"/api/v1/{policy.resource}"

        def rule(request: Request) -> Raw | None:
            asked = request.ref.kind == where and not request.part
            if not asked or request.new is None or request.verb.upper() not in policy.operations:
                return None
            new: Raw = json.loads(json.dumps(request.new))
            if said := policy.judge(request.verb.upper(), new, request.old or {}):
                name = f"{policy.name}.{self.namespace}"
                denied = f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: {said}"
                raise ApiError(422, "Invalid", denied)
            return new

        self._objects.rules.append(rule)

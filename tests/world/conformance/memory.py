"""The ground that is the world: an API server in memory, its controllers, and a clock that leaps."""

import json
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import count
from typing import TypeVar

from leaping import LeapingLoop, passing
from splitter.kube.client import ApiError
from splitter.kube.paths import ResourcePath
from world.admission import Request
from world.api import Api
from world.cluster import Cluster
from world.conformance.ground import NODE_LABEL, SHARED, Change, Policy, Raw, Refused
from world.conformance.objects import FOLLOWED, KINDS
from world.controllers.kubelet import Timing
from world.kinds import NAMESPACES, NODES, PODS, Ref, path_of
from world.objects import Event
from world.pods import is_ready

Answer = TypeVar("Answer")

_PATCHES = {
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
_LOOK_S = 0.1
_SHARED_NODES = 12
_CPU = "8"  # of a node, as in the sandbox
_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
_TOPOLOGY = {_REGION: "sandbox", _ZONE: "sandbox-a"}
_TOLD_S = 1.0  # how long a watch is read


class Memory:
    """A namespace of a world of its own."""

    namespace = "scene-0"

    def __init__(self, seed: int = 0) -> None:
        self._loop = LeapingLoop()
        self._past: dict[str, list[Change]] = defaultdict(list)
        self._nodes = count()
        self._cluster = self._run(self._made(seed))
        self._objects = self._cluster.objects
        self._api = Api(self._objects, user="admin")
        self._running = self._cluster.running()
        self._run(self._running.__aenter__())

    async def _made(self, seed: int) -> Cluster:
        cluster = Cluster(seed, timing=Timing(start_s=0.2))
        for kind in FOLLOWED:
            collection = KINDS[kind].collection("").replace("/namespaces/", "")
            cluster.objects.follow(collection, self._seen)
        cluster.objects.put(path_of(NAMESPACES, "", self.namespace), {"metadata": {}})
        for number in range(_SHARED_NODES):
            cluster.add_node(f"shared-{number}", {NODE_LABEL: SHARED, **_TOPOLOGY}, cpu=_CPU)
        return cluster

    def close(self) -> None:
        """End the world."""
        self._run(self._running.__aexit__(None, None, None))
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

    def forgotten(self) -> tuple[str, str]:
        """Have all that has happened be forgotten."""
        version = str(self._objects.version)
        path = KINDS["ConfigMap"].collection(self.namespace)
        for name in ("before", "after"):
            self.request("POST", path, body={"metadata": {"name": name}})
        self._objects.compact()
        return path, version

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
        """Have machines join."""
        return tuple(self._run(self._added(labels, taints, pods)) for _ in range(count))

    async def _added(self, labels: Mapping[str, str], taints: Sequence[Raw], pods: int) -> str:
        name = f"own-{next(self._nodes)}"
        self._cluster.add_node(name, {**labels, **_TOPOLOGY}, taints, pods=pods, cpu=_CPU)
        return name

    def ail(self, pod: str) -> None:
        """Have a pod fail its probe."""
        self._cluster.machines.ill.add(self._uid(pod))
        self._cluster.kubelets.look_at()

    def heal(self, pod: str) -> None:
        """Have it pass again."""
        self._cluster.machines.ill.discard(self._uid(pod))
        self._cluster.kubelets.look_at()

    def _uid(self, pod: str) -> str:
        return str(self._objects.get(Ref(PODS, self.namespace, pod))["metadata"]["uid"])

    def silence(self, node: str) -> None:
        """Let a machine fall silent, until it is seen."""
        self._run(self._at_once(self._cluster.silence, node))
        self.until(lambda: not self._is_ready(node), f"{node} to be seen as silent", 120)

    def hear(self, node: str) -> None:
        """Let a machine be heard again."""
        self._run(self._at_once(self._cluster.speak, node))
        self.until(lambda: self._is_ready(node), f"{node} to be Ready", 120)

    def _is_ready(self, node: str) -> bool:
        return is_ready(self._objects.get(Ref(NODES, "", node)))

    def vanish(self, node: str) -> None:
        """Take a machine away."""
        self._run(self._at_once(self._cluster.vanish, node))

    async def _at_once(self, act: Callable[[str], None], node: str) -> None:
        act(node)

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
                what = f"{policy.resource}.{policy.group}" if policy.group else policy.resource
                denied = f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: {said}"
                raise ApiError(422, "Invalid", f'{what} "{request.ref.name}" is forbidden: {denied}')
            return new

        self._objects.rules.append(rule)

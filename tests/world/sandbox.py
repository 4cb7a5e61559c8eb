"""A sandbox in memory: what `lab.sandbox` and `lab.fixtures` do to a control plane is done to the world here.

Scripts are synchronous, as they are there: each request, and each wait, lets the world's loop run. Whoever
waits or asks for the time is answered by that loop, whose clock leaps.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from io import StringIO
from typing import Any, TypeVar

import orjson
import pytest

from lab.sandbox import Api, ApiError, Instant, PatchKind, Sandbox
from lab.sandbox.fleet import Fleet
from lab.sandbox.following import Follower, Tell
from lab.sandbox.nodes import NODES, Result
from leaping import LeapingLoop, passing
from splitter.kube.client import ApiError as Refused
from splitter.kube.paths import ResourcePath
from splitter.report.log import handler
from splitter.settings.loading import load_settings
from world import clock
from world.api import Api as MemoryApi
from world.cluster import Cluster
from world.controllers.kubelet import Timing
from world.kinds import Raw
from world.kubectl import Kubectl, json_patched
from world.objects import Event
from world.pods import is_ready
from world.process import compiling_once, splitting

Answer = TypeVar("Answer")
NAMESPACE, HOME = "shop-0", "splitter-system"  # of a test, and of splitter
_ASKED_S = 0.005  # of a request of the script
_REQUEST_S, _LAG_S = (0.001, 0.01), 0.02  # of splitter's own requests and watches
_LOGGER = logging.getLogger("splitter")
_PATCHES = {PatchKind.MERGE: "merge", PatchKind.STRATEGIC: "strategic", PatchKind.APPLY: "apply"}


class Wire(Api):
    """The API server in memory, asked as the real one is."""

    def __init__(self, world: "InMemory", user: str = "admin") -> None:
        self._world = world
        self._asked = MemoryApi(world.cluster.objects, user=user)
        self._asked.latency_s = lambda: _ASKED_S

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | bool] | None = None,
        body: object = None,
        content_type: str = "application/json",
        timeout_s: float = 0.0,
        warnings: list[str] | None = None,
    ) -> Raw:
        """Ask, and let the world go on meanwhile. Raises ApiError."""
        del timeout_s, warnings
        sent: Any = orjson.loads(orjson.dumps(body)) or {}
        if content_type == PatchKind.JSON:
            return self.request("PUT", path, query=query, body=json_patched(self.get(path), sent))
        where = ResourcePath.read(path)
        if method == "DELETE" and not where.name:
            for raw in self.list(path):
                with suppress(ApiError):  # it may go with another of them
                    self.request(method, f"{path}/{raw['metadata']['name']}", body=body)
            return {}
        said = {name: str(value) for name, value in (query or {}).items()}
        patch = _PATCHES.get(PatchKind(content_type), "") if method == "PATCH" else ""
        try:
            answer = self._world.run(self._asked.send(method, where, sent, patch=patch, query=said))
        except Refused as refused:
            raise ApiError(refused.status, refused.reason, refused.message) from None
        if where.plural == "pods" and where.part == "status":
            self._world.reported(answer)
        return answer

    def follow(self, path: str, tell: Tell) -> Follower:
        """Return what tells of every change at the moment of it."""
        return _Published(self, self._world, path, tell)

    def close(self) -> None:
        """Hold nothing."""


class _Published(Follower):
    def __init__(self, api: Api, world: "InMemory", path: str, tell: Tell) -> None:
        super().__init__(api, path, tell)
        where = ResourcePath.read(path)
        self._objects, self._of = world.cluster.objects, where.namespace
        self._kind = f"{where.api}/{where.plural}"
        self._end: Callable[[], None] = lambda: None

    def start(self) -> None:
        for raw in self._objects.all(self._kind, self._of):
            self._tell(Instant.now(), raw, deleted=False)
        self._end = self._objects.follow(self._kind, self._changed)

    def wait_for_first_list(self) -> None:
        """Have listed."""

    def stop(self) -> None:
        self._end()

    def _changed(self, event: Event) -> None:
        if self._of in {"", event.ref.namespace}:
            self._tell(Instant.now(), event.new, deleted=event.deleted)


class Machines(Fleet):
    """The world's machines, one after the other: a thread of its own would run the loop, too."""

    def __init__(self, world: "InMemory") -> None:
        super().__init__(world.api, world.check)
        self._world = world

    @staticmethod
    def _each(names: Sequence[str], write: Callable[[str], Result]) -> list[Result]:
        return [write(name) for name in names]

    def _register(self, names: Sequence[str]) -> tuple[str, ...]:
        for name in names:
            raw = orjson.loads(orjson.dumps(self._blueprints[name]))
            uid = f"uid-{name}-{self._world.cluster.objects.dice.getrandbits(32):08x}"
            raw["metadata"] |= {"uid": uid, "creationTimestamp": self._world.stamp()}
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": self._world.stamp()}
            raw["status"]["conditions"] = [ready]
            self._world.at_once(partial(self._world.cluster.objects.put, f"{NODES}/{name}", raw))
        return tuple(names)

    def _freeze(self, names: Sequence[str]) -> None:
        for name in names:
            self._world.at_once(partial(self._world.cluster.silence, name))

    def _thaw(self, names: Sequence[str]) -> None:
        for name in names:
            self._world.at_once(partial(self._world.cluster.speak, name))

    def _keep_leases(self, names: Sequence[str]) -> None:
        """Need no lease."""


class Process:
    """`splitter run` in the world's loop: it can be stopped, killed and started again."""

    def __init__(
        self, world: "InMemory", settings: Mapping[str, str], through: MemoryApi | None = None
    ) -> None:
        """Ask `through` an API, or through one of its own each time that it starts."""
        self._world = world
        self._through = through
        written = {f"SPLITTER_{name}": value for name, value in {"OWN_NAMESPACE": HOME, **settings}.items()}
        self._settings = load_settings(environment=written).model_dump(exclude_unset=True)
        self._life: AsyncExitStack | None = None
        self._log = StringIO()

    @property
    def running(self) -> bool:
        """Whether it lives."""
        return self._life is not None

    def start(self) -> None:
        """Start, and return when it follows the cluster."""
        made: Any = handler("text")
        made.setStream(self._log)
        self._handler: logging.Handler = made
        _LOGGER.addHandler(self._handler)
        _LOGGER.setLevel(logging.INFO)
        former, dice = self._world.cluster.api, self._world.cluster.objects.dice
        api = self._through or MemoryApi(self._world.cluster.objects)
        api.missing, api.cut_off = former.missing, False
        api.latency_s, api.lag_s = (lambda: dice.uniform(*_REQUEST_S)), (lambda: dice.uniform(0.0, _LAG_S))
        self._world.cluster.api = api
        self._life = AsyncExitStack()
        self._world.run(self._life.enter_async_context(splitting(self._world.cluster, **self._settings)))

    def stop(self) -> int:
        """End it."""
        life, self._life = self._life, None
        assert life is not None, "the controller does not run"
        self._world.run(life.aclose())
        _LOGGER.removeHandler(self._handler)
        _LOGGER.setLevel(logging.NOTSET)
        return 0

    def kill(self) -> None:
        """End it in the middle of whatever it does: nothing that it asks for from now on is answered."""
        self._world.cluster.api.cut_off = True
        self.stop()

    def check(self) -> None:
        """Find nothing: a fault of its own is raised when it ends."""

    def logged(self) -> int:
        """Return how long the log is."""
        return len(self._log.getvalue())

    def said(self, after: int = 0) -> str:
        """Return the log, whole or what was added after it was so long."""
        return self._log.getvalue()[after:]


class _AtOnce(LeapingLoop):
    """Does at once what others do in a thread: the clock would leap over it."""

    def run_in_executor(
        self, executor: object, func: Callable[..., Answer], *args: object
    ) -> asyncio.Future[Answer]:
        del executor
        done: asyncio.Future[Answer] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as fault:  # noqa: BLE001 - raised where it is waited for
            done.set_exception(fault)
        return done


class InMemory(Sandbox):
    """A world with what a sandbox offers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> None:
        self._loop = _AtOnce()
        self._others: list[Callable[[], object]] = []
        self.cluster = self.run(self._made(seed))
        self.api = Wire(self)
        self.fleet = Machines(self)
        self._running = self.cluster.running()
        self.run(self._running.__aenter__())
        self.run(self._timed(monkeypatch))
        monkeypatch.setattr(time, "sleep", self.elapse)
        compiling_once(monkeypatch)

    async def _made(self, seed: int) -> Cluster:
        cluster = Cluster(seed, timing=Timing(start_s=0.2))
        for name in ("default", "kube-system", HOME):
            cluster.objects.put(f"/api/v1/namespaces/{name}", {"metadata": {}})
        return cluster

    async def _timed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock.seconds_of_the_loop(monkeypatch)
        clock.instants_of_the_loop(monkeypatch)
        monkeypatch.setattr(time, "time", lambda: clock.START.timestamp() + self._loop.time())

    def run(self, action: Coroutine[object, object, Answer]) -> Answer:
        """Let the world go on until something is done."""
        return self._loop.run_until_complete(action)

    def at_once(self, act: Callable[[], Answer]) -> Answer:
        """Do something within the loop."""

        async def acting() -> Answer:
            return act()

        return self.run(acting())

    def reported(self, pod: Raw) -> None:
        """Have a pod stay ready, or not, as its status has just been written."""
        ill = self.cluster.machines.ill
        (ill.discard if is_ready(pod) else ill.add)(pod["metadata"]["uid"])

    def stamp(self) -> str:
        """Return the present as the API server writes it."""
        return self.at_once(clock.stamp)

    def elapse(self, seconds: float) -> None:
        """Let time pass, and do meanwhile what is done again and again."""
        self.run(passing(seconds))
        others, self._others = self._others, []  # what they wait for is their own
        for act in others:
            act()
        self._others = others

    @contextmanager
    def beside(self, act: Callable[[], object]) -> Iterator[None]:
        """Have something done at each look of a script that waits: some ten times a second."""
        self._others.append(act)
        try:
            yield
        finally:
            self._others.remove(act)

    def check(self) -> None:
        """Find nothing: a fault of a controller is raised at the end."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Do what kubectl does. Raises SandboxError."""
        return Kubectl(self.api, self.elapse).run(*arguments, stdin=stdin)

    def stop(self) -> None:
        """End the world."""
        self.run(self._running.__aexit__(None, None, None))
        left = asyncio.all_tasks(self._loop)  # of a process that a failed test has not stopped
        for task in left:
            task.cancel()
        self.run(asyncio.wait(left) if left else passing(0))
        self._loop.close()

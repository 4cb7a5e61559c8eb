"""Real machines, and on them the same Deployment twice: splitter's, and one that only prefers spot nodes.

`scenes` acts on a `Stage`; a `Segment` is what the users of both Services saw meanwhile.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Event

from lab.bench.compare.arena import SETTINGS
from lab.bench.compare.systems import PREFERRED
from lab.demo.controller import Controller
from lab.fixtures import web
from lab.fixtures.controller import install
from lab.fixtures.shop import JsonObject, Shape, Shop, manifest
from lab.sandbox import Between, Instant, Recorder, Sandbox, Timeline
from lab.sandbox.real.fleet import RealFleet
from lab.sandbox.real.traffic import Requests
from lab.sandbox.waiting import wait_until

N = 6
ON_DEMAND, SPOT = 2, 4
MACHINES = {"on-demand": 2, "spot": 3}
RATE = 200
GRACE_S = 6.0
ANNOTATIONS = {
    "splitter.io/on-demand-base": "2",
    "splitter.io/spot-percent": "100",
    "splitter.io/soak": "60s",
}
SPLITTER, PLAIN = "splitter", "plain"
SYSTEMS = (SPLITTER, PLAIN)

_LOOK_EVERY_S = 0.5
_SETTLE_S = 240.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One system in one segment: its requests, its pods, and what splitter said, with seconds since 1970."""

    requests: Requests
    timeline: Timeline
    said: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """What happened in one stretch of time; `event` is the moment from which seconds count."""

    name: str
    event: Instant
    between: Between
    seen: Mapping[str, Seen]


class Stage:
    """A control plane, real machines, splitter with its default settings."""

    def __init__(self, sandbox: Sandbox, controller: Controller, tell: Callable[[str], None]) -> None:
        self.sandbox = sandbox
        self.tell = tell
        self._controller = controller

    @property
    def machines(self) -> RealFleet:
        """The machines."""
        return self.sandbox.real

    @property
    def spot(self) -> tuple[str, ...]:
        """The names of the spot machines."""
        return self.machines.names("spot")

    def check(self) -> None:
        """Raise SandboxError when something that should run has ended."""
        self.sandbox.check()
        self._controller.check()

    def pass_until(self, since: Instant, seconds: float) -> None:
        """Let time pass until so many seconds after a moment: here it is what is measured."""
        while (left_s := since.monotonic_s + seconds - time.monotonic()) > 0:
            self.check()
            Event().wait(min(left_s, _LOOK_EVERY_S))

    def wait(self, look: Callable[[], bool], what: str, deadline_s: float = _SETTLE_S) -> bool:
        """Wait for a condition; say whether it came. That it did not is a result, not a failure."""
        until_s = time.monotonic() + deadline_s
        while not look():
            if time.monotonic() > until_s:
                self.tell(f"  waited {deadline_s:g} s for {what}; it did not come")
                return False
            self.check()
            Event().wait(_LOOK_EVERY_S)
        return True

    def drain(self, names: Sequence[str], timeout_s: float) -> None:
        """Drain machines at the same time, as far as it goes."""

        def drain(name: str) -> None:
            self.sandbox.kubectl("drain", name, "--ignore-daemonsets", f"--timeout={timeout_s:g}s")

        with ThreadPoolExecutor(len(names)) as drains:
            for done in [drains.submit(drain, name) for name in names]:
                if (fault := done.exception()) is not None:
                    self.tell(f"  {str(fault)[:200]}")

    @contextmanager
    def shops(self, name: str) -> Iterator["Shops"]:
        """Give each system a namespace; afterwards they are gone, and all machines well."""
        with ExitStack() as stack:
            by_name = {system: self._open(f"{name}-{system}") for system in SYSTEMS}
            recorder = stack.enter_context(self.sandbox.record())
            yield Shops(self, by_name, recorder)
        namespaces = [shop.namespace for shop in by_name.values()]
        self.sandbox.kubectl("delete", "namespace", *namespaces, "--wait=false")
        self.machines.restore(self.spot)
        self.sandbox.kubectl("wait", "--for=delete", *(f"ns/{each}" for each in namespaces), "--timeout=180s")

    def _open(self, namespace: str) -> Shop:
        self.sandbox.kubectl("create", "namespace", namespace)
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        wait_until(lambda: self.sandbox.api.find(account), what="the service account", deadline_s=30)
        shop = Shop(self.sandbox, namespace, self.check)
        shop.apply(web.service())
        return shop


class Shops:
    """Both systems' namespaces in one scene."""

    def __init__(self, stage: Stage, shops: Mapping[str, Shop], recorder: Recorder) -> None:
        self.stage = stage
        self.shops = shops
        self._recorder = recorder

    @property
    def splitter(self) -> Shop:
        """Splitter's."""
        return self.shops[SPLITTER]

    def each(self, act: Callable[[Shop], object]) -> None:
        """Have the users of both do the same, at the same moment."""
        with ThreadPoolExecutor(len(self.shops)) as users:
            list(users.map(act, self.shops.values()))

    def deploy(self) -> None:
        """Deploy as it was before anybody thought of spot."""
        self.each(lambda shop: shop.deploy(replicas=N, annotations=ANNOTATIONS, template=web.template()))

    def dress(self) -> None:
        """Have one user label the Deployment, and the other ask for spot nodes in the pod template."""
        wish = PREFERRED.dress(_undressed())["spec"]["template"]["spec"]["affinity"]
        self.shops[PLAIN].kubectl(
            *("patch", "deployment", "web", "--type=merge", "-p"),
            f'{{"spec":{{"template":{{"spec":{{"affinity":{json.dumps(wish)}}}}}}}}}',
        )
        self.splitter.label()
        self.wait_standing()

    def wait_standing(self, on_demand: int = ON_DEMAND, spot: int = SPOT) -> bool:
        """Wait until splitter's stands as asked for and the other is rolled out."""

        def stands() -> bool:
            shape, total = self.splitter.shape(), on_demand + spot
            return self.splitter.twins() == (on_demand, spot) and shape == Shape(on_demand, spot, total)

        split = self.stage.wait(stands, f"{on_demand} + {spot}")
        self.shops[PLAIN].wait_rolled_out()
        return split

    def set_up(self) -> None:
        """Deploy and dress, before a scene begins."""
        self.deploy()
        self.dress()

    def serving(self, count: int = N, deadline_s: float = 60.0) -> bool:
        """Wait until so many replicas are available in both, pods of dead machines left out."""

        def serve() -> bool:
            collected = [self._timeline(shop).available.at(Instant.now()) for shop in self.shops.values()]
            return min(collected) >= count

        return self.stage.wait(serve, f"{count} available replicas of both", deadline_s)

    @contextmanager
    def segment(self, name: str, into: list[Segment]) -> Iterator[Callable[[Instant], None]]:
        """Send requests to both as long as the block lasts; it may say from which moment seconds count."""
        began = Instant.now()
        moments = [began]
        with ExitStack() as stack:
            sending = {
                system: stack.enter_context(self.stage.machines.traffic(shop.namespace, "web", rate=RATE))
                for system, shop in self.shops.items()
            }
            self.stage.pass_until(began, 2)
            yield moments.append
            self.stage.pass_until(Instant.now(), 3)
            between = Between(began, Instant.now())
        seen = {
            system: Seen(
                sending[system].stop(), self._timeline(shop), _said(shop) if system == SPLITTER else ()
            )
            for system, shop in self.shops.items()
        }
        into.append(Segment(name, moments[-1], between, seen))

    def _timeline(self, shop: Shop) -> Timeline:
        return self._recorder.timeline(shop.namespace, {"app": "web"})


def _undressed() -> JsonObject:
    return manifest("web", N, template=web.template())


def _said(shop: Shop) -> tuple[tuple[float, str], ...]:
    collected = shop.sandbox.api.list(f"/apis/events.k8s.io/v1/namespaces/{shop.namespace}/events")
    ours = [raw for raw in collected if raw.get("reportingController") == "splitter.io/splitter"]
    return tuple(
        sorted((datetime.fromisoformat(raw["eventTime"]).timestamp(), raw["reason"]) for raw in ours)
    )


@contextmanager
def stage(tell: Callable[[str], None]) -> Iterator[Stage]:
    """Yield a running stage."""
    with Sandbox.start(progress=tell, real=True, node_monitor_grace_s=GRACE_S) as sandbox:
        for pool, count in MACHINES.items():
            sandbox.real.add(pool, count)  # type: ignore[arg-type]
        with Controller(install(sandbox), SETTINGS, sandbox.logs / "splitter.log") as controller:
            yield Stage(sandbox, controller, tell)

"""Where the systems meet: one control plane, the machines they share, and a namespace for each.

`World` lives for the whole comparison and owns the machines; an `Arena` is opened for each round, gives every
system a new namespace and a recorder that sees them all. It acts and looks; `rounds` knows the order.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from lab.bench.compare.scenario import IMAGE, ON_DEMAND_NODES, SPOT_NODES, N, Workload
from lab.bench.compare.systems import System
from lab.demo.controller import Controller
from lab.fixtures.controller import install
from lab.fixtures.shop import Shop, manifest
from lab.sandbox import Instant, Recorder, Sandbox, SandboxError, Timeline
from lab.sandbox.recording import PodSeen
from lab.sandbox.waiting import wait_until

# Only where to listen: two controllers of one machine must not ask for the same ports.
SETTINGS = {"SPLITTER_HTTP_PORT": "0", "SPLITTER_METRICS_PORT": "0"}

_LOOK_EVERY_S = 0.5  # what is measured comes from the recorder; looking more often would only cost CPU
_SETTLE_S = 240.0
_WRITERS = 16


class World:
    """The running sandbox, its machines and, where it takes part, splitter."""

    def __init__(self, sandbox: Sandbox, controller: Controller | None, tell: Callable[[str], None]) -> None:
        self.sandbox = sandbox
        self.tell = tell
        self._controller = controller
        self._spot = sandbox.fleet.names("spot")
        self._hurt = False

    def check(self) -> None:
        """Raise SandboxError when something that should run has ended."""
        self.sandbox.check()
        if self._controller is not None:
            self._controller.check()

    # --- what happens to the machines -------------------------------------------------------------

    def notice(self, deadline_s: float) -> Instant:
        """Announce that all spot machines will go, and return the moment right before."""
        self._hurt = True
        return self.sandbox.fleet.notice(self._spot, deadline_s=deadline_s)

    def take(self, *, pods_too: bool = True) -> Instant:
        """Have all spot machines vanish, and return the moment right before.

        `pods_too`: their pods are deleted right after their Nodes, without grace, as if whoever takes the
        machines tidied up after himself. Otherwise they stay behind, still Ready by their status, until
        Kubernetes' garbage collection finds them about a minute later, or somebody else does.
        """
        self._hurt = True
        pods = [
            pod for pod in self.sandbox.api.list("/api/v1/pods") if pod["spec"].get("nodeName") in self._spot
        ]
        began = self.sandbox.fleet.kill(self._spot)
        if pods_too:
            paths = [
                f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
                for pod in pods
            ]
            with ThreadPoolExecutor(_WRITERS) as writers:
                list(writers.map(self._delete_at_once, paths))
        return began

    def give_back(self) -> Instant:
        """Have new spot machines of the same names; return the moment right before."""
        began = Instant.now()
        self.sandbox.fleet.restore(self._spot)
        self._hurt = False
        return began

    def _delete_at_once(self, path: str) -> None:
        self.sandbox.api.delete(path, grace_period_s=0, missing_ok=True)

    # --- time -------------------------------------------------------------------------------------

    def pass_until(self, since: Instant, seconds: float) -> None:
        """Let time pass until so many seconds after a moment: here it is what is measured."""
        while (left_s := since.monotonic_s + seconds - time.monotonic()) > 0:
            self.check()
            threading.Event().wait(min(left_s, _LOOK_EVERY_S))

    def wait(self, look: Callable[[], bool], what: str, deadline_s: float) -> bool:
        """Wait for a condition; say whether it came. That it did not is a result, not a failure."""
        until_s = time.monotonic() + deadline_s
        while not look():
            if time.monotonic() > until_s:
                self.tell(f"  waited {deadline_s:g} s for {what}; it did not come")
                return False
            self.check()
            threading.Event().wait(_LOOK_EVERY_S)
        return True

    # --- rounds -----------------------------------------------------------------------------------

    @contextmanager
    def arena(self, name: str, systems: Sequence[System]) -> Iterator["Arena"]:
        """Open a round: namespaces and a recorder; afterwards the machines are well, the namespaces gone."""
        shops = {system: self._open(f"{name}-{system.key}") for system in systems}
        with self.sandbox.record() as recorder:
            yield Arena(self, shops, recorder)
        if self._hurt:
            self.give_back()
        namespaces = [shop.namespace for shop in shops.values()]
        self.sandbox.kubectl("delete", "namespace", *namespaces, "--wait=true", "--timeout=120s")

    def _open(self, namespace: str) -> Shop:
        self.sandbox.kubectl("create", "namespace", namespace)
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        wait_until(lambda: self.sandbox.api.find(account), what="the service account", deadline_s=30)
        return Shop(self.sandbox, namespace, self.check)


class Arena:
    """The namespaces of one round, by system, and what is seen of them."""

    def __init__(self, world: World, shops: dict[System, Shop], recorder: Recorder) -> None:
        self.world = world
        self.shops = shops
        self._recorder = recorder

    def deploy_undressed(self, workload: Workload) -> None:
        """Deploy the user's Deployment as it was before any of the systems was thought of."""
        for shop in self.shops.values():
            shop.apply(_manifest(workload, N))
        for shop in self.shops.values():
            shop.wait_rolled_out(workload.name)

    def dress(self, workload: Workload) -> None:
        """Have the user of each system ask for it, on the running Deployment."""
        for system, shop in self.shops.items():
            shop.apply(system.dress(_manifest(workload, N)))

    def set_up(self, *workloads: Workload) -> None:
        """Have each system run new Deployments: accepted while empty, then scaled to N, until all stands."""
        deployed = [(system, shop, each) for system, shop in self.shops.items() for each in workloads]
        for system, shop, each in deployed:
            shop.apply(system.dress(_manifest(each, 0)))
        wait_until(
            lambda: all(system.has_accepted(shop, each.name) for system, shop, each in deployed),
            what="every Deployment to be accepted",
            deadline_s=_SETTLE_S,
            check=self.world.check,
        )
        for _, shop, each in deployed:
            shop.scale(N, each.name)
        if not self.wait_until_standing(*workloads):
            raise SandboxError("A round cannot begin: not every Deployment stands as it should.")

    def set_image(self, workload: Workload, image: str) -> None:
        """Have each user roll out an image."""
        for shop in self.shops.values():
            shop.kubectl("set", "image", f"deployment/{workload.name}", f"web={image}")

    def wait_until_standing(
        self, *workloads: Workload, systems: Sequence[System] = (), deadline_s: float = _SETTLE_S
    ) -> bool:
        """Wait until the Deployments of all (or the named) systems are as these mean them to be."""
        asked = systems or tuple(self.shops)
        return self.world.wait(
            lambda: all(
                system.stands(self.shops[system], each.name) for system in asked for each in workloads
            ),
            "every Deployment to stand",
            deadline_s,
        )

    def wait_until_rolled(self, workload: Workload, image: str) -> bool:
        """Wait until N replicas serve an image in each namespace, and no pod that has a node has another."""
        return self.world.wait(
            lambda: all(_is_rolled(shop, workload, image) for shop in self.shops.values()),
            "every Deployment to be rolled out",
            _SETTLE_S,
        )

    def wait_until_serving(self, workload: Workload, deadline_s: float = _SETTLE_S) -> bool:
        """Wait until N replicas are ready in each namespace, wherever."""
        return self.world.wait(
            lambda: all(_serving(shop, workload) >= N for shop in self.shops.values()),
            f"{N} ready replicas of every Deployment",
            deadline_s,
        )

    def timeline(
        self, system: System, workload: Workload, where: Callable[[PodSeen], bool] | None = None
    ) -> Timeline:
        """Return what was recorded of a system's pods."""
        return self._recorder.timeline(self.shops[system].namespace, {"app": workload.name}, where=where)


@contextmanager
def world(
    systems: Sequence[System], tell: Callable[[str], None], *, keep_logs: bool = False
) -> Iterator[World]:
    """Yield a running world; splitter is installed and runs only when it takes part."""
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox.start(progress=tell))
        if keep_logs:
            sandbox.keep_logs()
        sandbox.fleet.add("on-demand", ON_DEMAND_NODES)
        sandbox.fleet.add("spot", SPOT_NODES)
        controller = None
        if any(system.key == "splitter" for system in systems):
            log = sandbox.logs / "splitter.log"
            controller = stack.enter_context(Controller(install(sandbox), SETTINGS, log))
        yield World(sandbox, controller, tell)


def _manifest(workload: Workload, replicas: int) -> dict[str, object]:
    return manifest(
        workload.name,
        replicas,
        surge="25%",
        unavailable="25%",
        image=IMAGE,
        ready_after=f"{workload.ready_after_s}s",
        ends_after="1s",
    )


def _serving(shop: Shop, workload: Workload) -> int:
    shape = shop.shape(workload.name)
    return shape.on_demand + shape.spot


def _is_rolled(shop: Shop, workload: Workload, image: str) -> bool:
    bound = [pod for pod in shop.pods(workload.name) if pod["spec"].get("nodeName")]
    images = {pod["spec"]["containers"][0]["image"] for pod in bound}
    return images == {image} and _serving(shop, workload) >= N

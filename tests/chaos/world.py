"""What happens around splitter in a round: machines, users, control plane, and splitter's own processes.

`run` calls `begin` and `end` for each entry of the schedule, and `mend` when the round is over: then all
machines are well, everything runs, and all workloads are labelled. What it took away itself is kept in
`taken`, so that the judge can tell it from what splitter did.
"""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from chaos.judge import Taken, Terms
from chaos.proxy import FaultProxy
from chaos.schedule import EMERGENCIES, Entry, Event
from e2e.conftest import is_hurt
from e2e.controller import Controller
from e2e.shop import POOL, Shop
from splitter.bundled import bundled_path
from splitter.sandbox import Notice, Sandbox, SandboxError
from splitter.sandbox.fleet import NODES

CRD = "splits.splitter.io"
HOME = "splitter-system"
TEMPLATE_SET = "chaos-set"
_TEMPLATES = bundled_path("templates") / "default" / "deployment"
_STOPPED = {
    Event.MANAGER_STOPS: "kube-controller-manager",
    Event.SCHEDULER_STOPS: "kube-scheduler",
    Event.SERVER_STOPS: "kube-apiserver",
    Event.DATABASE_STOPS: "etcd",
}
# What only sends signals to processes, and waits for nobody.
SIGNALS = frozenset({*_STOPPED, Event.CRASH, Event.CRASH_BOTH, Event.PAUSE})
_NOTICES = {
    Event.NOTICE: Notice.TAINT,
    Event.CONDITION: Notice.CONDITION,
    Event.CORDON: Notice.CORDON,
}


@dataclass(frozen=True, slots=True)
class Cast:
    """A workload of the suite: its own, and what it asks splitter for."""

    namespace: str
    least: int
    surge: int
    unavailable: int
    base: int = 0
    spot_percent: int = 100
    template: str = ""

    def annotations(self) -> dict[str, str]:
        """Return its policy as its user writes it."""
        found = {"on-demand-base": str(self.base), "spot-percent": str(self.spot_percent)}
        if self.template:
            found["template"] = self.template
        return {f"splitter.io/{key}": value for key, value in found.items()}

    def division(self, replicas: int) -> tuple[int, int]:
        """Return how many are wanted on on-demand and on spot; 50 % is halved, the odd one on on-demand."""
        above = replicas - self.base
        on_demand = self.base + (-(-above // 2) if self.spot_percent == 50 else 0)
        return on_demand, replicas - on_demand


CAST = (
    Cast("chaos-web", least=5, surge=2, unavailable=0, base=2),
    Cast("chaos-cart", least=4, surge=0, unavailable=1, base=1),
    Cast("chaos-search", least=4, surge=1, unavailable=1, spot_percent=50, template=TEMPLATE_SET),
)
_MORE = 4  # a workload is scaled between its least and so many more


@dataclass
class Part:
    """One workload as it is now, and between what it was in this round."""

    cast: Cast
    shop: Shop
    replicas: int
    least: int = 0
    most: int = 0
    rolled: bool = False
    image: int = 1

    def opens(self) -> None:
        """A round begins."""
        self.least = self.most = self.replicas
        self.rolled = False

    def scale(self, replicas: int) -> None:
        """Scale it as its user does."""
        self.least, self.most = min(self.least, replicas), max(self.most, replicas)
        self.replicas = replicas
        self.shop.scale(replicas)

    @property
    def terms(self) -> Terms:
        """What is promised to it in this round."""
        # As in any rollout: a new pod may be seen a millisecond before an old one goes.
        return Terms(
            self.cast.namespace,
            self.least,
            self.most,
            self.cast.surge,
            self.cast.unavailable,
            spare=int(self.rolled),
        )


@dataclass
class Member:
    """One of splitter's two processes, behind a proxy of its own."""

    name: str
    controller: Controller
    proxy: FaultProxy
    paused: bool = False


@dataclass
class World:
    """Everything that an event may touch."""

    sandbox: Sandbox
    parts: list[Part]
    members: list[Member]
    tell: Callable[[str], None]
    _nodes: dict[Entry, tuple[str, ...]] = field(default_factory=dict)
    _hurt: set[str] = field(default_factory=set)
    _pods: set[str] = field(default_factory=set)
    _stopped: set[str] = field(default_factory=set)
    _emergency: bool = False
    _choosing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def taken(self) -> Taken:
        """What this round took away."""
        return Taken(frozenset(self._hurt), frozenset(self._pods), self._emergency)

    def opens(self) -> None:
        """A round begins."""
        self._nodes, self._hurt, self._pods, self._emergency = {}, set(), set(), False
        for part in self.parts:
            part.opens()

    def begin(self, entry: Entry) -> None:
        """Do what an event is."""
        assert isinstance(entry.what, Event)
        self._emergency |= entry.what in EMERGENCIES
        part = self.parts[entry.which % len(self.parts)]
        match entry.what:
            case Event.NOTICE | Event.CONDITION | Event.CORDON:
                self.sandbox.fleet.notice(self._pick(entry), _NOTICES[entry.what])
            case Event.VANISH | Event.FLAP:
                self.sandbox.fleet.kill(self._pick(entry))
            case Event.ALL_VANISH:
                self.sandbox.fleet.kill(self._pick(entry, every=True))
            case Event.ON_DEMAND_VANISHES:
                self.sandbox.fleet.kill(self._pick(entry, pool="on-demand"))
            case Event.FALL_SILENT:
                self.sandbox.fleet.lose(self._pick(entry), seen_at_once=True)
            case Event.CRASH | Event.CRASH_BOTH | Event.PAUSE:
                self._strike_members(entry)
            case Event.MANAGER_STOPS | Event.SCHEDULER_STOPS | Event.SERVER_STOPS | Event.DATABASE_STOPS:
                self._signal(_STOPPED[entry.what], signal.SIGSTOP)
            case Event.CRD_REMOVED:
                self.sandbox.kubectl("delete", "crd", CRD, "--ignore-not-found", "--timeout=60s")
            case Event.SET_BROKEN:
                self.write_set(broken=True)
            case _:
                self._user_does(entry.what, part, entry.which)

    def end(self, entry: Entry) -> None:
        """Undo it, where it does not just pass."""
        if entry in self._nodes:
            self._nodes_end(entry)
        match entry.what:
            case Event.CRASH | Event.CRASH_BOTH | Event.PAUSE:
                self._revive()
            case Event.MANAGER_STOPS | Event.SCHEDULER_STOPS | Event.SERVER_STOPS | Event.DATABASE_STOPS:
                self._signal(_STOPPED[entry.what], signal.SIGCONT)
            case Event.CRD_REMOVED:
                self._apply_crd()
            case Event.SET_BROKEN:
                self.write_set(broken=False)
            case Event.RELABEL:
                self.parts[entry.which % len(self.parts)].shop.label()
            case _:
                pass

    def mend(self) -> None:
        """Make everything well again."""
        for name in tuple(self._stopped):
            self._signal(name, signal.SIGCONT)
        self._revive()
        self._apply_crd()
        self.write_set(broken=False)
        nodes = {raw["metadata"]["name"]: raw for raw in self.sandbox.api.list(NODES)}
        if hurt := [name for name in sorted(self._hurt) if name not in nodes or is_hurt(nodes[name])]:
            self.sandbox.fleet.restore(hurt)
        for part in self.parts:  # a command that was in the way of a fault may not have been carried out
            part.shop.label()
            part.shop.scale(part.replicas)
            part.shop.kubectl("set", "image", "deployment/web", f"web=web:{part.image}")

    def write_set(self, *, broken: bool) -> None:
        """Write the template set in its ConfigMap: the default one's text, or one that is no template."""
        texts = {
            f"deployment.{pool}.yaml.j2": (_TEMPLATES / f"{pool}.yaml.j2").read_text()
            for pool in ("on-demand", "spot")
        }
        if broken:
            texts["deployment.spot.yaml.j2"] = "{% if chaos %}"
        metadata = {
            "name": TEMPLATE_SET,
            "namespace": HOME,
            "labels": {"splitter.io/template-set": "enabled"},
            "annotations": {"splitter.io/namespaces": "chaos-*"},
        }
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": texts}
        path = f"/api/v1/namespaces/{HOME}/configmaps"
        if self.sandbox.api.find(f"{path}/{TEMPLATE_SET}") is None:
            self.sandbox.api.create(path, body)
        else:
            self.sandbox.api.patch(f"{path}/{TEMPLATE_SET}", {"data": texts})

    # --- machines ---------------------------------------------------------------------------------

    def _pick(self, entry: Entry, *, pool: str = "spot", every: bool = False) -> tuple[str, ...]:
        """Choose machines that are still well, and remember them; one on-demand machine always stays."""
        names = self.sandbox.fleet.names("spot" if pool == "spot" else "on-demand")
        keep = 0 if pool == "spot" else 1
        with self._choosing:
            well = [name for name in names if name not in self._hurt]
            chosen = tuple(well) if every else (well[entry.which % len(well)],) if len(well) > keep else ()
            self._nodes[entry] = chosen
            self._hurt |= set(chosen)
        return chosen

    def _nodes_end(self, entry: Entry) -> None:
        fleet, nodes = self.sandbox.fleet, self._nodes[entry]
        match entry.what:
            case Event.NOTICE | Event.CONDITION:
                fleet.kill(nodes)  # what was announced comes true
            case Event.CORDON:
                fleet.withdraw(nodes)
            case Event.FALL_SILENT:
                fleet.reconnect(nodes)
            case Event.FLAP:
                fleet.restore(nodes)
                fleet.kill(nodes)
            case _:
                fleet.restore(nodes)

    # --- users ------------------------------------------------------------------------------------

    def _user_does(self, event: Event, part: Part, which: int) -> None:
        shop = part.shop
        match event:
            case Event.SCALE:
                part.scale(part.cast.least + which // len(self.parts) % (_MORE + 1))
            case Event.IMAGE:
                part.image += 1
                part.rolled = True
                shop.kubectl("set", "image", "deployment/web", f"web=web:{part.image}")
            case Event.RELABEL:
                shop.unlabel()
            case Event.TWIN_EDITED:
                part.rolled = True
                self._gone_is_fine(shop, "set", "env", "deployment/web-spot", f"CHAOS={which}")
            case Event.TWIN_DELETED:
                twin = ("web-spot", "web-on-demand")[which // len(self.parts) % 2]
                pool = twin.removeprefix("web-")
                self._take(shop, lambda labels: labels.get(POOL) == pool)
                self._gone_is_fine(shop, "delete", "deployment", twin, "--wait=false")
            case Event.POD_DELETED:
                for name in self._take(shop, lambda _: True, most=1):
                    self._gone_is_fine(shop, "delete", "pod", name, "--wait=false")
            case _:
                self._gone_is_fine(shop, "delete", "split", "web", "--wait=false")

    def _take(self, shop: Shop, chosen: Callable[[Mapping[str, str]], bool], most: int = 1_000) -> list[str]:
        """Note pods as taken by a hand, before it takes them; return their names."""
        found = [pod for pod in shop.pods() if chosen(pod["metadata"].get("labels", {}))][:most]
        self._pods |= {pod["metadata"]["uid"] for pod in found}
        return [pod["metadata"]["name"] for pod in found]

    @staticmethod
    def _gone_is_fine(shop: Shop, *arguments: str) -> None:
        with suppress(SandboxError):  # it may not be there at this moment: nothing happens then
            shop.kubectl(*arguments)

    def _apply_crd(self) -> None:
        self.sandbox.kubectl("apply", "-f", str(bundled_path("manifests") / "crd.yaml"))
        self.sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{CRD}")

    # --- processes --------------------------------------------------------------------------------

    def _signal(self, name: str, number: signal.Signals) -> None:
        os.kill(self.sandbox.process_id(name), number)
        if number is signal.SIGSTOP:
            self._stopped.add(name)
        else:
            self._stopped.discard(name)

    def _strike_members(self, entry: Entry) -> None:
        living = [member for member in self.members if member.controller.running and not member.paused]
        if not living:
            return
        chosen = living if entry.what is Event.CRASH_BOTH else [living[entry.which % len(living)]]
        for member in chosen:
            if entry.what is Event.PAUSE:
                member.controller.pause()
                member.paused = True
            else:
                member.controller.kill()

    def _revive(self) -> None:
        """Have both processes run; one that is started under fire may take its time."""
        for member in self.members:
            if member.paused and member.controller.running:
                member.controller.resume()
            member.paused = False
            if not member.controller.running:
                member.controller.begin()

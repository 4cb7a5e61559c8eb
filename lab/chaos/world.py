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
from pathlib import Path

from lab.chaos.judge import Taken
from lab.chaos.proxy import FaultProxy
from lab.chaos.schedule import EMERGENCIES, MACHINES_GO, Entry, Event
from lab.chaos.storm import Storm
from lab.chaos.workload import NEVER, SOON, TEMPLATE_SET, Deployed, Part
from lab.checkout import MANIFESTS, ROOT
from lab.fixtures.controller import Controller
from lab.fixtures.nodes import is_hurt
from lab.fixtures.shop import POOL
from lab.sandbox import Notice, Sandbox, SandboxError
from lab.sandbox.nodes import NODES

CRD = "splits.splitter.io"
HOME = "splitter-system"
_TEMPLATES = ROOT / "templates" / "default" / "deployment"
_SCHEDULER = "kube-scheduler"
_STOPPED = {
    Event.MANAGER_STOPS: "kube-controller-manager",
    Event.SCHEDULER_STOPS: _SCHEDULER,
    Event.SERVER_STOPS: "kube-apiserver",
    Event.DATABASE_STOPS: "etcd",
}
# Killed, and started again at its end, when the number of the event is odd.
_KILLED = {Event.SERVER_STOPS, Event.DATABASE_STOPS}
_MACHINES = MACHINES_GO | {Event.NODE_STORM}
# What only ends, stops and starts processes, and waits for no API server.
SIGNALS = frozenset({*_STOPPED, Event.CRASH, Event.CRASH_BOTH, Event.PAUSE})
_NOTICES = {
    Event.NOTICE: Notice.TAINT,
    Event.CONDITION: Notice.CONDITION,
    Event.CORDON: Notice.CORDON,
}


_MORE = 4  # a workload is scaled between its least and so many more
CLOCK_JUMPS_S = (40.0, -40.0, 600.0, -600.0, 3600.0, -3600.0)


@dataclass
class Member:
    """One of splitter's two processes, behind a proxy of its own."""

    name: str
    controller: Controller
    proxy: FaultProxy
    clock: Path
    """The file that says how far its clock is set forward."""
    port: int
    """Of its metrics."""
    paused: bool = False

    def set_clock(self, offset_s: float) -> None:
        """Set the clock of its machine."""
        self.clock.write_text(str(offset_s), encoding="utf-8")


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
    _killed: set[str] = field(default_factory=set)
    was_down: bool = False
    """In this round the API server, or its database, was killed: for a while nobody answered."""
    _storm: Storm | None = None
    _emergency: bool = False
    _choosing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def taken(self) -> Taken:
        """What this round took away."""
        return Taken(frozenset(self._hurt), frozenset(self._pods), self._emergency)

    def opens(self) -> None:
        """A round begins."""
        self._nodes, self._hurt, self._pods, self._emergency = {}, set(), set(), False
        self.was_down = False
        for part in self.parts:
            part.opens()

    def takes(self, *nodes: str) -> None:
        """Note machines that go for other reasons than an event, before they do."""
        with self._choosing:
            self._hurt |= set(nodes)
        self._emergency = True

    def begin(self, entry: Entry) -> None:
        """Do what an event is."""
        assert isinstance(entry.what, Event)
        self._emergency |= entry.what in EMERGENCIES
        part = self.parts[entry.which % len(self.parts)]
        match entry.what:
            case Event.CRASH | Event.CRASH_BOTH | Event.PAUSE:
                self._strike_members(entry)
            case Event.MANAGER_STOPS | Event.SCHEDULER_STOPS | Event.SERVER_STOPS | Event.DATABASE_STOPS:
                self._stop(entry)
            case Event.CRD_REMOVED:
                self.sandbox.kubectl("delete", "crd", CRD, "--ignore-not-found", "--timeout=60s")
            case Event.SET_BROKEN:
                self.write_set(broken=True)
            case Event.CLOCK_JUMPS:
                self._set_clocks(entry.which)
            case _ if entry.what in _MACHINES:
                self._nodes_begin(entry)
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
                self._go_on(_STOPPED[entry.what])
            case Event.CRD_REMOVED:
                self._apply_crd()
            case Event.SET_BROKEN:
                self.write_set(broken=False)
            case Event.CLOCK_JUMPS:
                self._set_clocks_right()
            case Event.NODE_STORM:
                self._end_storm()
            case Event.RELABEL:
                self.parts[entry.which % len(self.parts)].face.label()
            case Event.NEVER_READY:
                self.parts[entry.which % len(self.parts)].starts(SOON)
            case _:
                pass

    def mend(self) -> None:
        """Make everything well again."""
        for name in _STOPPED.values():
            self._go_on(name)
        self._set_clocks_right()
        self._revive()
        self._apply_crd()
        self.write_set(broken=False)
        self._end_storm()
        nodes = {raw["metadata"]["name"]: raw for raw in self.sandbox.api.list(NODES)}
        if hurt := [name for name in sorted(self._hurt) if name not in nodes or is_hurt(nodes[name])]:
            self.sandbox.fleet.restore(hurt)
        for part in self.parts:
            part.ready_after = SOON
            part.mend()

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

    def _nodes_begin(self, entry: Entry) -> None:
        fleet = self.sandbox.fleet
        match entry.what:
            case Event.NOTICE | Event.CONDITION | Event.CORDON:
                fleet.notice(self._pick(entry), _NOTICES[entry.what])
            case Event.VANISH | Event.FLAP:
                fleet.kill(self._pick(entry))
            case Event.ALL_VANISH:
                fleet.kill(self._pick(entry, every=True))
            case Event.ON_DEMAND_VANISHES:
                fleet.kill(self._pick(entry, pool="on-demand"))
            case Event.NODE_STORM:
                self._storm = Storm(self.sandbox.api)
                self._storm.begin()
            case _:
                fleet.lose(self._pick(entry), seen_at_once=True)

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

    def _end_storm(self) -> None:
        if self._storm is not None:
            self._storm.end()
            self._storm = None

    # --- users ------------------------------------------------------------------------------------

    def _user_does(self, event: Event, part: Part, which: int) -> None:
        face = part.face
        match event:
            case Event.SCALE:
                part.scale(part.cast.least + which // len(self.parts) % (_MORE + 1))
            case Event.IMAGE:
                part.roll()
            case Event.NEVER_READY:
                part.starts(NEVER)
            case Event.RELABEL:
                face.unlabel()
            case _:
                self._hand_does(event, part, which)

    def _hand_does(self, event: Event, part: Part, which: int) -> None:
        """Do what nobody should."""
        face = part.face
        match event:
            case Event.TWIN_EDITED:
                if twin := face.twin(0):
                    part.rolled = True
                    self._gone_is_fine(face, "set", "env", twin[0], f"CHAOS={which}")
            case Event.TWIN_DELETED:
                if twin := face.twin(which // len(self.parts)):
                    name, pool = twin
                    self._take(face, lambda labels: labels.get(POOL) == pool)
                    self._gone_is_fine(face, "delete", name, "--wait=false")
            case Event.POD_DELETED:
                for name in self._take(face, lambda _: True, most=1):
                    self._gone_is_fine(face, "delete", "pod", name, "--wait=false")
            case _:
                self._gone_is_fine(face, "delete", "split", face.split_name, "--wait=false")

    def _take(
        self, face: Deployed, chosen: Callable[[Mapping[str, str]], bool], most: int = 1_000
    ) -> list[str]:
        """Note pods as taken by a hand, before it takes them; return their names."""
        collected = [pod for pod in face.pods() if chosen(pod["metadata"].get("labels", {}))][:most]
        self._pods |= {pod["metadata"]["uid"] for pod in collected}
        return [pod["metadata"]["name"] for pod in collected]

    @staticmethod
    def _gone_is_fine(face: Deployed, *arguments: str) -> None:
        with suppress(SandboxError):  # it may not be there at this moment: nothing happens then
            face.shop.kubectl(*arguments)

    def _apply_crd(self) -> None:
        self.sandbox.kubectl("apply", "-f", str(MANIFESTS / "crd.yaml"))
        self.sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{CRD}")

    # --- processes --------------------------------------------------------------------------------

    def _set_clocks(self, which: int) -> None:
        """Set the clock of one process, or of both, by seconds to an hour, forward or back."""
        offset_s = CLOCK_JUMPS_S[which % len(CLOCK_JUMPS_S)]
        chosen = which // len(CLOCK_JUMPS_S) % (len(self.members) + 1)
        for member in self.members if chosen == len(self.members) else [self.members[chosen]]:
            member.set_clock(offset_s)

    def _set_clocks_right(self) -> None:
        for member in self.members:
            member.set_clock(0.0)

    def _stop(self, entry: Entry) -> None:
        assert isinstance(entry.what, Event)
        name = _STOPPED[entry.what]
        if entry.what in _KILLED and entry.which % 2:
            self.was_down = True
            self.sandbox.kill(name)
            self._killed.add(name)
        else:
            os.kill(self.sandbox.process_id(name), signal.SIGSTOP)
            self._stopped.add(name)

    def _go_on(self, name: str) -> None:
        """Have a program of the control plane run, if it does not."""
        if name == "kube-apiserver":
            self._go_on("etcd")  # without which it does not start
        if name in self._killed:
            self.sandbox.start_again(name)
            self._killed.discard(name)
        elif name in self._stopped:
            os.kill(self.sandbox.process_id(name), signal.SIGCONT)
        self._stopped.discard(name)

    def check(self) -> None:
        """Raise SandboxError when a program of the sandbox has ended by itself.

        But for the scheduler once nobody answered for a while: where it doubts what it knows of pods it ends,
        to be started again ("Scheduler cache is corrupted"), as its kubelet would.
        """
        try:
            self.sandbox.check()
        except SandboxError as fault:
            if not self.was_down or not str(fault).startswith(f"{_SCHEDULER} ended"):
                raise
            self.tell(f"starts {_SCHEDULER} again, which has ended by itself")
            self.sandbox.kill(_SCHEDULER)
            self.sandbox.start_again(_SCHEDULER)

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

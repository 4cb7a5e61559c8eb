"""The real machines of a sandbox: started, given notice, killed, lost and brought back.

A test calls it through `sandbox.real`. Unlike those of `Fleet` they run containers, and what happens on one
that dies ends with it. Notices are written on their Node objects like on any other.
"""

import itertools
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from lab.sandbox import credentials
from lab.sandbox.api import Api, JsonObject
from lab.sandbox.commands import KUBELET_LABEL, KUBELET_STOPPED
from lab.sandbox.errors import SandboxError
from lab.sandbox.instants import Instant
from lab.sandbox.machines import CAPACITY_LABEL, Pool
from lab.sandbox.nodes import LEASES, NODES, ZONES, Nodes, as_names
from lab.sandbox.ports import LOOPBACK
from lab.sandbox.processes import Child, Nursery, last_lines
from lab.sandbox.real.machine import MOST, Machine
from lab.sandbox.real.traffic import Traffic
from lab.sandbox.real.world import API_URL, World
from lab.sandbox.waiting import wait_until

_KUBELET = "real"
_SCRIPT = Path(__file__).parent / "machine.sh"
_GONE_DEADLINE_S = 30.0
_LOGS = ("machine.log", "kubelet.log", "containerd.log", "images.log")


class RealFleet(Nodes):
    """The real machines of one sandbox, by name; made by `Sandbox.start(real=True)`."""

    def __init__(
        self, api: Api, check: Callable[[], None], world: World, nursery: Nursery, identity: tuple[Path, str]
    ) -> None:
        super().__init__(api, check)
        self._world = world
        self._nursery = nursery
        self._ca_file, self._token = identity
        self._machines: dict[str, Machine] = {}
        self._running: dict[str, Child] = {}
        self._numbers = itertools.count(1)
        self._runs = itertools.count(1)
        self._lock = threading.Lock()

    def add(
        self,
        pool: Pool,
        count: int,
        *,
        zone: str | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[JsonObject] = (),
    ) -> tuple[str, ...]:
        """Start `count` machines and return their names once pods can be scheduled on all of them.

        Names count on: real-spot-0, real-spot-1, ... Labels, zones and taints are as those of `Fleet.add`.
        A machine has as much CPU and memory as this one. 2 s on an idle machine.
        Raises SandboxError with the last lines of its logs when one does not become Ready.
        """
        names = []
        for _ in range(count):
            number = next(self._numbers)
            if number > MOST:
                raise SandboxError(f"a sandbox has addresses for {MOST} real machines, and all are taken.")
            rank = len(self.names(pool))
            name = f"real-{pool}-{rank}"
            own = {
                "topology.kubernetes.io/region": "sandbox",
                "topology.kubernetes.io/zone": zone or ZONES[rank % len(ZONES)],
                CAPACITY_LABEL: pool,
                KUBELET_LABEL: _KUBELET,
                **(labels or {}),
            }
            self._machines[name] = Machine(number, name, own, taints)
            self._blueprints[name] = {"metadata": {"name": name, "labels": own}}
            names.append(name)
        return self._switch_on(names)

    def kill(self, names: str | Iterable[str]) -> Instant:
        """Have the machines vanish, their Node objects too. Return the moment right before.

        Their pods stay behind as objects, Ready as they were, until Kubernetes' pod garbage collection or
        somebody deletes them; nobody answers at their addresses.
        """
        names = as_names(names)
        began = self.lose(names)
        self._each(names, self._remove)
        return began

    def lose(self, names: str | Iterable[str]) -> Instant:
        """Have the machines vanish while their Node objects stay. Return the moment right before.

        Nobody answers there from then on, not even to refuse. The Nodes turn NotReady when the grace of the
        sandbox is over, where it has one. A label on them tells recorders at once that nobody is there.
        """
        names = self._known(names)
        began = Instant.now()
        self._each(names, self._switch_off)
        dead = {"metadata": {"labels": {KUBELET_LABEL: KUBELET_STOPPED}}}
        self._each(
            [name for name in names if self._api.find(f"{NODES}/{name}")],
            lambda name: self._patch(name, dead),
        )
        return began

    def hush(self, names: str | Iterable[str]) -> Instant:
        """Have the kubelets stop answering while their containers go on. Return the moment right before.

        The Nodes turn NotReady when the sandbox's grace is over, where it has one; requests are answered.
        """
        return self._signal(names, "kubelet", signal.SIGSTOP)

    def reconnect(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Have hushed kubelets answer again, on the same Node objects; return once they are Ready."""
        self._signal(names, "kubelet", signal.SIGCONT)
        self._wait_until_usable(as_names(names))
        return as_names(names)

    def fill(self, name: str, *, full: bool = True) -> None:
        """Have a machine's kubelet take its disk for full, or no more; its containers go on meanwhile.

        It says so on the Node (DiskPressure), takes no pods, and evicts those that it has, one every 10 s.
        """
        self._known([name])
        machine = replace(self._machines[name], full=full)
        for path, content in machine.files().items():
            (self._home(name) / path).write_text(content)
        os.kill(self._process(name, "kubelet"), signal.SIGTERM)

    def shut_down(self, names: str | Iterable[str]) -> Instant:
        """Have the system of machines shut down, as far as the kubelets know. Return the moment right before.

        They say so on their Nodes, and end their pods within 15 s without asking anybody. `kill` ends what
        is left.
        """
        return self._signal(names, "logind", signal.SIGUSR1)

    def _signal(self, names: str | Iterable[str], program: str, number: signal.Signals) -> Instant:
        names = self._known(names)
        processes = [self._process(name, program) for name in names]
        began = Instant.now()
        for pid in processes:
            os.kill(pid, number)
        return began

    def restore(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Start machines anew under the same names; return once they are Ready.

        Nothing of the old ones stays, containers neither.
        """
        names = as_names(names)
        self.lose(names)
        self._each(names, self._remove)
        self._each(names, lambda name: self._api.delete(f"{LEASES}/{name}", missing_ok=True))
        self._each(names, self._wait_until_gone)
        return self._switch_on(names)

    @contextmanager
    def running(self, name: str, what: str, command: Sequence[str], *, log: Path) -> Iterator[Child]:
        """Run a program on a machine, outside of any pod, as long as the block lasts.

        `what` names it in messages. Beside the machine's own programs it finds those of this one.
        """
        self._known([name])
        child = self._world.run(what, list(command), log=log, inside=self._first_process(name))
        try:
            yield child
        finally:
            self._nursery.end_one(child)

    @contextmanager
    def traffic(
        self,
        namespace: str,
        service: str,
        *,
        rate: int = 200,
        timeout_s: float = 2,
        machine: str | None = None,
    ) -> Iterator[Traffic]:
        """Send `rate` requests a second to a Service as long as the block lasts, in four ways in turn.

        Without an answer within `timeout_s` one has failed. They come from a machine, the first of the
        on-demand ones unless told otherwise, that must not die meanwhile. The Service has one port, and
        answers at / with status 200.
        """
        raw = self._api.get(f"/api/v1/namespaces/{namespace}/services/{service}")["spec"]
        source = machine or self.names("on-demand")[0]
        log = self._world.logs / f"traffic-{next(self._runs)}.log"
        command = [
            "/run/programs/load",
            f"-service={raw['clusterIP']}:{raw['ports'][0]['port']}",
            f"-endpoints={namespace}/{service}",
            f"-api={API_URL}",
            f"-called={LOOPBACK}",
            "-ca=/run/machine/ca.crt",
            "-token=/run/machine/token",
            f"-rate={rate}",
            f"-timeout={timeout_s:g}s",
        ]
        with self.running(source, "traffic", command, log=log) as child:
            traffic = Traffic(child, log)
            yield traffic
            traffic.stop()

    def _switch_on(self, names: Sequence[str]) -> tuple[str, ...]:
        self._each(names, self._start)
        try:
            self._wait_until_usable(names)
        except SandboxError as fault:
            end = "\n".join(
                f"{name}/{log}:\n{last_lines(self._home(name) / log, 5)}" for name in names for log in _LOGS
            )
            raise SandboxError(f"{fault} The logs end:\n{end}") from fault
        return tuple(names)

    def _start(self, name: str) -> None:
        machine, home = self._machines[name], self._home(name)
        for path, content in machine.files().items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(content)
        shutil.copyfile(self._ca_file, home / "ca.crt")
        credentials.write_private(home / "token", self._token)
        for of, kubelet_of in (("kubelet", name), ("kube-proxy", "")):
            credentials.write_kubeconfig(
                home / f"{of}.kubeconfig",
                url=API_URL,
                ca_file=self._ca_file,
                user="real-nodes",
                token=self._token,
                called=LOOPBACK,
                kubelet_of=kubelet_of,
            )
        command = ["sh", str(_SCRIPT), str(self._world.programs), str(home), *machine.arguments()]
        child = self._world.run(name, command, log=home / "machine.log")
        with self._lock:
            self._running[name] = child

    def _switch_off(self, name: str) -> None:
        with self._lock:
            child = self._running.pop(name, None)
        if child is None:
            return
        first = self._first_process_of(child)
        # A system that ends refuses connections for some 0.1 s. One that vanishes is silent.
        unplug = ["ip", "link", "delete", "eth0"]
        self._world.call(f"unplugging {name}", unplug, inside=first)
        self._nursery.end_one(child)
        wait_until(
            lambda: not Path(f"/proc/{first}/root").exists(),
            what=f"the processes of {name} to be gone",
            deadline_s=_GONE_DEADLINE_S,
        )
        shutil.rmtree(self._home(name))

    def _home(self, name: str) -> Path:
        return self._world.home / name

    def _first_process(self, name: str) -> int:
        with self._lock:
            child = self._running.get(name)
        if child is None:
            raise SandboxError(f"machine {name} does not run; `restore` brings it back.")
        return self._first_process_of(child)

    def _process(self, name: str, program: str) -> int:
        """Return a machine's own process that runs a program; containers have namespaces of their own."""
        here = Path(f"/proc/{self._first_process(name)}/ns/pid").readlink()
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended since
                if (path / "comm").read_text().strip() == program and (path / "ns/pid").readlink() == here:
                    return int(path.name)
        raise SandboxError(f"machine {name} runs no {program}. Its logs are in {self._home(name)}.")

    @staticmethod
    def _first_process_of(child: Child) -> int:
        """Return a machine's first process: the only child of unshare, which is the only one of nsenter."""
        pid = child.process.pid
        for _ in range(2):
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        return pid

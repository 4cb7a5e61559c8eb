"""One control plane on loopback, from the first port to the last killed process.

The command line, the demo and the tests call `Sandbox.start`. It asks `build` for the programs, takes
ports, starts etcd, the API server and then controller manager, scheduler and KWOK (`commands`), waits
until each says that it is ready, and hands out a kubeconfig, an Api, a Fleet and Recorders. On the way out,
whatever the way (the end of the `with`, an exception, Ctrl-C, SIGTERM, kill -9 of this process), every
child is ended. It must never touch ~/.kube or a cluster of the user's.
"""

import atexit
import contextlib
import fcntl
import os
import shutil
import signal
import ssl
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from lab.sandbox import build, commands, credentials, upstream
from lab.sandbox.api import Api
from lab.sandbox.errors import ApiError, SandboxError
from lab.sandbox.fleet import Fleet
from lab.sandbox.karpenter import Karpenter
from lab.sandbox.metrics_server import MetricsServer
from lab.sandbox.ports import HeldPorts
from lab.sandbox.processes import Child, Nursery, output_of
from lab.sandbox.real.build import real_nodes
from lab.sandbox.real.fleet import RealFleet
from lab.sandbox.real.world import World
from lab.sandbox.recorder import Recorder
from lab.sandbox.waiting import wait_until

_PREFIX = "splitter-sandbox-"
_OWNER = "owner.lock"
_KEPT = "kept"
# A start takes about 5 s on 2 idle cores; a loaded CI machine was seen to take ten times as long.
_START_DEADLINE_S = 120.0
# Between making its directory and locking it, a sandbox that is being born looks dead.
_NEWBORN_S = 60.0
_YEAR_S = 365 * 24 * 3600
_HTTP_OK = 200


def _silence(_line: str) -> None:
    """Drop a line of progress."""


class Sandbox:
    """A running control plane; ends with the `with` block, or with `stop`.

    `kubeconfig` is the administrator's (its context is called "splitter-sandbox"), `url` the API server's
    address, `api` a connection as administrator, `fleet` the machines, `home` the directory of its files,
    `karpenter` the autoscaler and `real` the real machines, where they were asked for.

    Example:
        with Sandbox.start(progress=print) as sandbox:
            sandbox.fleet.add("spot", 3)
            print(sandbox.kubectl("get", "nodes"))

    """

    api: Api
    fleet: Fleet
    url: str
    kubeconfig: Path

    def __init__(self, home: Path, progress: Callable[[str], None]) -> None:
        self.home = home
        self.logs = home / "logs"
        self._progress = progress
        self._nursery = Nursery()
        self._commands: dict[str, tuple[list[str], str | Path]] = {}
        self._ports = HeldPorts()
        self._kubectl = Path()
        self._failed = False
        self._stopped = False
        self._karpenter: Karpenter | None = None
        self._real: RealFleet | None = None
        self._former_sigterm: Any = None
        # Held as long as this process lives, however it ends: how the next start knows a dead one's files.
        self._owner = (home / _OWNER).open("w")
        fcntl.flock(self._owner, fcntl.LOCK_EX)

    @classmethod
    def start(
        cls,
        *,
        progress: Callable[[str], None] = _silence,
        root: Path | None = None,
        node_monitor_grace_s: float | None = None,
        karpenter: bool = False,
        real: bool = False,
        requests_at_once: int | None = None,
    ) -> Self:
        """Start a control plane and return it when it serves, schedules and runs its controllers.

        Takes about 5 s; the first time ever the programs are built (minutes, told through `progress`).
        Its files lie in a new directory under `root`, by default the system's temporary directory.
        `node_monitor_grace_s`: after how many seconds without a heartbeat a node counts as lost (Kubernetes'
        own default is 50 s); left out, none ever does, and heartbeats are rare.
        `karpenter`: have it buy machines for pending pods, once `karpenter.offer` has said which there are.
        `real`: have room for real machines, which `sandbox.real` starts.
        `requests_at_once`: how many the API server serves at the same time (Kubernetes' own default is 600);
        left out, more than any test sends.
        Raises SandboxError with the last lines of the log when a process does not come up.
        """
        programs = build.programs(progress)
        autoscaler = upstream.built(upstream.KARPENTER, progress) if karpenter else None
        machines = real_nodes(progress) if real else None
        parent = root or Path(tempfile.gettempdir())
        sweep(parent)
        sandbox = cls(Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent)), progress)
        atexit.register(sandbox.stop)
        sandbox._catch_sigterm()
        try:
            sandbox._come_up(programs, node_monitor_grace_s, requests_at_once)
            if autoscaler:
                sandbox._add_karpenter(autoscaler)
            if machines:
                sandbox._add_world(machines)
        except BaseException:
            sandbox.keep_logs()
            sandbox.stop()
            raise
        return sandbox

    def _come_up(
        self, programs: build.Programs, node_monitor_grace_s: float | None, requests_at_once: int | None
    ) -> None:
        began_s = time.monotonic()
        layout = commands.Layout(self.home, *(self._ports.take() for _ in range(5)))
        layout.logs.mkdir()
        self.url, self._etcd_url = layout.url, layout.etcd_url
        self._kubectl = programs.kubectl
        tokens = credentials.make_tokens(layout.token_file)
        stages = self.home / "stages.yaml"
        stages.write_bytes(resources.files("lab.sandbox").joinpath("stages.yaml").read_bytes())

        self._run("etcd", commands.etcd(programs, layout))
        # An API server that starts before etcd answers gives up under load instead of trying again.
        self._until_etcd_answers()

        self._run("kube-apiserver", commands.kube_apiserver(programs, layout, requests_at_once))
        self._until("the API server's certificate", lambda: credentials.is_whole(layout.ca_file))
        self.api = Api(layout.url, layout.ca_file, tokens["admin"])
        for user, token in tokens.items():
            credentials.write_kubeconfig(
                layout.kubeconfig(user), url=layout.url, ca_file=layout.ca_file, user=user, token=token
            )
        self._apiserver_port, self._real_nodes_token = layout.apiserver_port, tokens["real-nodes"]
        self._admin_token = tokens["admin"]
        self.kubeconfig = layout.kubeconfig("admin")
        self._ca_file = layout.ca_file
        self._until("the API server", self._api_is_ready)

        manager = commands.kube_controller_manager(programs, layout, node_monitor_grace_s)
        self._run("kube-controller-manager", manager)
        self._run("kube-scheduler", commands.kube_scheduler(programs, layout))
        self._run("kwok", commands.kwok(programs, layout, stages, node_monitor_grace_s))
        self._until(
            "the scheduler", lambda: _answers_ok(f"{layout.scheduler_url}/readyz", layout.scheduler_ca_file)
        )
        # What every pod needs before it may be created, and the last things the controllers make.
        self._until("the default service account", lambda: self._exists("serviceaccounts/default"))
        self._until("the root certificate's ConfigMap", lambda: self._exists("configmaps/kube-root-ca.crt"))
        self.fleet = Fleet(self.api, self.check)
        self._progress(f"the sandbox serves at {self.url} after {time.monotonic() - began_s:.1f} s")

    def _add_karpenter(self, files: upstream.Files) -> None:
        self._karpenter = Karpenter(self.api, self.check)
        self._karpenter.install(files.kinds)
        self._run(
            "karpenter", commands.karpenter(files.program), kubeconfig=self.home / "karpenter.kubeconfig"
        )

    def _add_world(self, programs: Path) -> None:
        world = World(self._nursery, programs, self.logs, self.home / "real")
        world.start(self._apiserver_port)
        identity = (self._ca_file, self._real_nodes_token)
        self._real = RealFleet(self.api, self.check, world, self._nursery, identity)

    def add_metrics_server(self) -> MetricsServer:
        """Have metrics-server serve metrics.k8s.io, and return it; before there are machines.

        KWOK, which tells it what is used, is started anew and would not know those of before as its own.
        """
        program = upstream.built(upstream.METRICS_SERVER, self._progress).program
        own = self.home / "metrics-server"
        usage = own.with_suffix(".yaml")
        usage.write_bytes(resources.files("lab.sandbox").joinpath("usage.yaml").read_bytes())
        port, kubelets_port = self._ports.take(), self._ports.take()
        self.kill("kwok")
        kwok, kubeconfig = self._commands["kwok"]
        self._run("kwok", [*kwok, *commands.kwok_telling(usage, kubelets_port)], kubeconfig)
        self._run("metrics-server", commands.metrics_server(program, own, port, kubelets_port))
        added = MetricsServer(self.api, self.check)
        added.register(port)
        return added

    def _run(self, name: str, command: list[str], kubeconfig: str | Path = os.devnull) -> None:
        self._commands[name] = (command, kubeconfig)
        # HOME: none of them shall read or write a dot file of the user's.
        environment = {**os.environ, "HOME": str(self.home), "KUBECONFIG": str(kubeconfig)}
        self._nursery.start(name, command, log=self.logs / f"{name}.log", environment=environment)

    def _until(self, what: str, look: Callable[[], bool]) -> None:
        wait_until(look, what=what, deadline_s=_START_DEADLINE_S, check=self.check)

    def _until_etcd_answers(self) -> None:
        self._until("etcd", lambda: _answers_ok(f"{self._etcd_url}/health"))

    def _api_is_ready(self) -> bool:
        try:
            return "ok" in self.api.request("GET", "/readyz").get("text", "")
        except SandboxError:  # refuses connections, or says 500 or 403 while it is still starting
            return False

    def _exists(self, what: str) -> bool:
        try:
            return self.api.find(f"/api/v1/namespaces/default/{what}") is not None
        except ApiError:
            return False

    def check(self) -> None:
        """Raise SandboxError when a process of the sandbox has exited unexpectedly."""
        self._nursery.check()

    @property
    def karpenter(self) -> Karpenter:
        """The autoscaler. Raises SandboxError when there is none."""
        if self._karpenter is None:
            raise SandboxError("this sandbox has no Karpenter; start it with Sandbox.start(karpenter=True).")
        return self._karpenter

    @property
    def real(self) -> RealFleet:
        """The real machines. Raises SandboxError when there is no room for any."""
        if self._real is None:
            raise SandboxError(
                "this sandbox has no room for real nodes; start it with Sandbox.start(real=True)."
            )
        return self._real

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The process ids of everything that the sandbox runs."""
        return tuple(child.process.pid for child in self._nursery.children)

    def process_id(self, name: str) -> int:
        """Return the process id of one program, such as "kube-controller-manager"."""
        return self._child(name).process.pid

    def kill(self, name: str) -> None:
        """Kill one program, as a crash does. Its written data stays."""
        self._nursery.end_one(self._child(name))

    def start_again(self, name: str) -> None:
        """Start a program that was killed, as it was started, and return at once.

        The API server waits for etcd first: it gives up where etcd does not answer. Raises SandboxError when
        etcd does not come up.
        """
        if name == "kube-apiserver":
            self._until_etcd_answers()
        self._run(name, *self._commands[name])

    def _child(self, name: str) -> Child:
        named = next((child for child in self._nursery.children if child.name == name), None)
        if named is None:
            raise SandboxError(f"the sandbox runs no {name}.")
        return named

    def record(self, namespace: str | None = None) -> Recorder:
        """Return a recorder of pods (of one namespace, or all) and nodes; use it in a `with`."""
        return Recorder(self.api, namespace)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as administrator and return what it prints.

        Raises SandboxError with kubectl's own complaint when it fails, and when it does not end in 5 minutes.
        """
        command = [str(self._kubectl), f"--kubeconfig={self.kubeconfig}", *arguments]
        environment = {**os.environ, "HOME": str(self.home)}
        return output_of(command, environment, what=f"kubectl {' '.join(arguments)}", stdin=stdin)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Return a kubeconfig that acts as a service account, with its rights and no more.

        The account must exist. The token is good for a year, which no sandbox lives.
        """
        answer = self.api.create(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": _YEAR_S},
            },
        )
        return credentials.write_kubeconfig(
            self.home / f"{namespace}.{name}.kubeconfig",
            url=self.url,
            ca_file=self._ca_file,
            user=name,
            token=answer["status"]["token"],
            namespace=namespace,
        )

    def as_kubelet(self, node: str) -> Api:
        """Return a connection as the kubelet of a node: it may change its own Node, and no other."""
        return Api(self.url, self._ca_file, self._admin_token, kubelet_of=node)

    def keep_logs(self) -> None:
        """Keep the logs after the end; for a test that failed."""
        self._failed = True

    def stop(self) -> None:
        """End every process and remove the files; safe to call twice. Never raises."""
        if self._stopped:
            return
        self._stopped = True
        self._nursery.end()
        self._ports.release()
        atexit.unregister(self.stop)
        self._release_sigterm()
        if hasattr(self, "api"):
            self.api.close()
        if self._failed:
            (self.home / _KEPT).touch()
            shutil.rmtree(self.home / "etcd", ignore_errors=True)
            self._progress(f"the logs of the sandbox are kept in {self.logs}")
        else:
            shutil.rmtree(self.home, ignore_errors=True)
        self._owner.close()

    def __enter__(self) -> Self:
        """Return the running sandbox."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything; keep the logs when the block failed (Ctrl-C and exit() are no failures)."""
        if isinstance(fault, Exception):
            self.keep_logs()
        self.stop()

    def _catch_sigterm(self) -> None:
        # Unhandled, SIGTERM ends Python without running any `finally`. On Linux the kernel would still end
        # the children; elsewhere nobody would, and the files would stay.
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._former_sigterm = signal.signal(signal.SIGTERM, _exit_on_signal)

    def _release_sigterm(self) -> None:
        if self._former_sigterm is None or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is _exit_on_signal:
            signal.signal(signal.SIGTERM, self._former_sigterm)


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _answers_ok(url: str, ca_file: Path | None = None) -> bool:
    try:
        trust = ssl.create_default_context(cafile=ca_file)
        # No proxies: the environment's proxy has no business with loopback.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
        )
        with opener.open(url, timeout=5) as answer:
            return bool(answer.status == _HTTP_OK)
    except OSError:  # URLError, a certificate not yet there, a refused connection
        return False


def sweep(parent: Path) -> None:
    """Remove the files of sandboxes whose process was killed, except logs that were kept on purpose."""
    for home in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), (home / _OWNER).open("r+") as owner:
            age_s = time.time() - os.fstat(owner.fileno()).st_mtime
            if (home / _KEPT).exists() or age_s < _NEWBORN_S:
                continue
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails when its owner lives
            shutil.rmtree(home, ignore_errors=True)

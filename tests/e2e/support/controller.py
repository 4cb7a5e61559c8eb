"""`splitter run` as its own process, with the rights of its own service account and no more."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from e2e.support.planted import verify_kept
from e2e.support.warm import Warm
from splitter.bundled import bundled_path
from splitter.sandbox import Sandbox, SandboxError
from splitter.sandbox.processes import Nursery, last_lines
from splitter.sandbox.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
# Minutes become seconds, so that a whole outage with its return fits into a test. The grace stays longer
# than a pod needs to start on a busy machine: a slow start is no shortage.
SHORT = {
    "SOAK_S": "3",
    "VANISHED_NODE_WAIT_S": "1",
    "MEMBER_RESTARTS_PER_HOUR": "1000",
    "SOAK_MAX_S": "5",
    "GRACE_S": "15",
    "CALM_S": "5",
    "RESET_S": "15",
    "BURST_S": "2",
    "FAST_S": "2",
    "RELEASE_S": "2",
    "SETTLE_S": "2",
    "STEP_INTERVAL_S": "1",
    "STEP_FRACTION": "0.5",
    "LOOK_AGAIN_S": "5",
    "RELIEF_INTERVAL_S": "1",
    "RELIEF_CYCLE_S": "8",
}
_STARTED = "watching:"
_START_DEADLINE_S = 60.0
_STOP_DEADLINE_S = 30.0


def environment(home: Path, kubeconfig: Path | None, **settings: str) -> dict[str, str]:
    """Return the environment of a splitter that sees nothing of the user's own."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ}
    ours = {f"SPLITTER_{name}": value for name, value in {"HTTP_PORT": "0", "METRICS_PORT": "0"}.items()}
    ours |= {f"SPLITTER_{name}": value for name, value in settings.items()}
    # Behind a gateway without TLS it would read all of the system's certificates, twice, 0.08 s of CPU each.
    trust = {"SSL_CERT_FILE": os.devnull}
    values = {"HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **trust, **kept, **ours}
    return values if kubeconfig is None else {**values, "KUBECONFIG": str(kubeconfig)}


def install(sandbox: Sandbox) -> Path:
    """Apply CRD, RBAC and the policy on its account, and return the kubeconfig of splitter's account.

    So whatever a controller does in any test, it does under the policy that limits its account.
    """
    manifests = ("crd.yaml", "rbac.yaml", "placeholder.yaml", "admission/own-account.yaml")
    files = [f"--filename={bundled_path('manifests') / manifest}" for manifest in manifests]
    try:
        sandbox.kubectl("apply", *files)
    except SandboxError:
        sandbox.keep_logs()
        raise
    crds = ("crd/splits.splitter.io", "crd/placements.splitter.io")
    sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", *crds)
    return sandbox.service_account_kubeconfig("splitter-system", "splitter")


class Controller:
    """One controller process at a time; it can be stopped, killed and started again.

    `launcher` is a file that is started instead of `splitter run`, with `reported` in its environment. With
    `cold` it is started from nothing, as a container is: for whoever measures it.
    """

    def __init__(
        self,
        kubeconfig: Path,
        home: Path,
        settings: Mapping[str, str],
        *,
        launcher: Path | None = None,
        cold: bool = False,
        reported: Mapping[str, str] | None = None,
    ) -> None:
        self.log = home / "splitter.log"
        self._environment = {**environment(home, kubeconfig, **settings), **(reported or {})}
        self._launcher = launcher
        self._cold = cold or launcher is not None
        self._nursery = Nursery()
        self._process: subprocess.Popen[bytes] | Warm | None = None

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start, and return when it follows the cluster."""
        said = self.said().count(_STARTED)
        self.begin()
        wait_until(
            lambda: self.said().count(_STARTED) > said,
            what="splitter to start",
            deadline_s=_START_DEADLINE_S,
            check=self.check,
        )

    def begin(self) -> None:
        """Start, and return at once."""
        if not self._cold:
            self._process = Warm(["run"], self._environment, ROOT, self.log, self.log)
            return
        starts = ["-m", "splitter", "run"] if self._launcher is None else [str(self._launcher)]
        child = self._nursery.start(
            "splitter",
            [sys.executable, *starts],
            log=self.log,
            environment=self._environment,
            directory=ROOT,
        )
        self._process = child.process

    @property
    def process_id(self) -> int:
        """Return its process id. Raises AssertionError when it does not run."""
        return self._running().pid

    def check(self) -> None:
        """Raise SandboxError with the end of the log when it should run and does not."""
        code = None if self._process is None else self._process.poll()
        if code is not None:
            raise SandboxError(f"splitter ended with code {code}. Its log ends:\n{self.last_said()}")

    def logged(self) -> int:
        """Return how long the log is, in bytes."""
        return self.log.stat().st_size if self.log.exists() else 0

    def said(self, after: int = 0) -> str:
        """Return the log, whole or what was added after it had so many bytes."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(after)
            return log.read().decode(errors="replace")

    def last_said(self, lines: int = 80) -> str:
        """Return the end of the log."""
        return last_lines(self.log, lines)

    def stop(self) -> int:
        """Ask it to end (SIGTERM) and return its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Have it stand still, with all its connections open (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        self._running().send_signal(number)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._running(), None
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            if (code := process.wait(_STOP_DEADLINE_S)) is not None:
                return code
        process.kill()
        raise AssertionError(f"splitter did not end within {_STOP_DEADLINE_S:g} s of {number.name}")

    def _running(self) -> "subprocess.Popen[bytes] | Warm":
        if self._process is None:
            raise AssertionError("the controller does not run")
        return self._process

    def end(self) -> None:
        """End whatever is left of it. Raises AssertionError when it has ever logged what it must not."""
        if self._process is not None:
            self._process.kill()
        self._process = None
        self._nursery.end()
        verify_kept("splitter's log", self.said().splitlines())

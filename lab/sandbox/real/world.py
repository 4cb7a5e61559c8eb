"""The namespaces in which the machines of one sandbox live, and the way from there to its API server.

`Sandbox.start(real=True)` makes one. All of it is in one user namespace, so any user may have it, as often
as wanted, with the same addresses; and in one PID namespace, so the kernel ends all of it with its first
process, which ends with us. Nothing is mounted and no interface appears outside. The control plane stays
outside: `forward.py` brings the machines to it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from lab.sandbox.errors import SandboxError
from lab.sandbox.processes import Child, Nursery, last_lines, output_of
from lab.sandbox.waiting import wait_until

GATEWAY = "10.77.0.1"
PREFIX = 24
API_PORT = 6443
API_URL = f"https://{GATEWAY}:{API_PORT}"
PODS = "10.78.0.0/16"

_TOOLS = {"unshare": "util-linux", "nsenter": "util-linux", "mount": "mount", "ip": "iproute2"}
SYSTEM_PATHS = ("/usr/sbin", "/sbin")  # where ip and nft lie, and where a user's PATH often does not lead
_HERE = Path(__file__).parent
_DEADLINE_S = 30.0
_NEW = ("--user", "--map-root-user", "--net", "--mount", "--pid", "--uts", "--ipc")
_NEW_PROCESS = ("--fork", "--mount-proc", "--kill-child")


def refusal() -> str | None:
    """Return why no real machine can run here and what to do, or None when they can run."""
    if sys.platform != "linux":
        return "real nodes need Linux: their machines are made of its namespaces."
    missing = [name for name in _TOOLS if _which(name) is None]
    if missing:
        packages = ", ".join(sorted({_TOOLS[name] for name in missing}))
        return f"real nodes need {', '.join(missing)}, and PATH has none. Install {packages}."
    # All that the world does and that a container or a policy may forbid.
    attempt = "ip link add world type bridge && mount -t tmpfs tmpfs /mnt && mount -t proc proc /proc"
    command = ["unshare", *_NEW, *_NEW_PROCESS, "sh", "-c", attempt]
    answer = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        return None
    said = answer.stderr.strip().splitlines()[-1:] or [f"code {answer.returncode}"]
    return (
        f"real nodes need a user namespace of their own, and this system refuses it ({said[0]}). Allow it: "
        "user.max_user_namespaces above 0, kernel.apparmor_restrict_unprivileged_userns=0, in a container "
        "--privileged."
    )


class World:
    """The namespaces; they end with the nursery that they were started in."""

    def __init__(self, nursery: Nursery, programs: Path, logs: Path, home: Path) -> None:
        self.programs = programs
        self.home = home
        self._nursery = nursery
        self.logs = logs
        self._holder = 0  # the process id of the first process of the world, as seen from here

    def start(self, apiserver_port: int) -> None:
        """Make the namespaces and bring the API server into them.

        Raises SandboxError when the system refuses, or when they are not there after 30 s.
        """
        if (reason := refusal()) is not None:
            raise SandboxError(reason)
        self.home.mkdir()
        ready = self.home / "ready"
        script = [str(_HERE / "world.sh"), str(self.programs), str(ready), GATEWAY, str(PREFIX)]
        child = self._start("world", ["unshare", *_NEW, *_NEW_PROCESS, "sh", *script])
        self._until("the world of the machines", ready.exists, child)
        # unshare has one child, and that is the first process there.
        pid = child.process.pid
        self._holder = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        arguments = [str(self._holder), GATEWAY, str(API_PORT), str(apiserver_port)]
        forward = self._start("forward", [sys.executable, "-I", "-S", str(_HERE / "forward.py"), *arguments])
        self._until("the way to the API server", lambda: "serving" in last_lines(forward.log), forward)

    def run(self, name: str, command: list[str], *, log: Path | None = None, inside: int = 0) -> Child:
        """Start a program in the world, or in the namespaces of the process `inside`, and return at once."""
        return self._start(name, [*_enter(inside or self._holder), *command], log=log)

    @staticmethod
    def call(what: str, command: list[str], *, inside: int) -> None:
        """Run a program in the namespaces of a process to its end. Raises SandboxError when it fails."""
        output_of([*_enter(inside), *command], _environment(), what=what)

    def _start(self, name: str, command: list[str], *, log: Path | None = None) -> Child:
        program = command[0] if command[0].startswith("/") else _which(command[0]) or command[0]
        return self._nursery.start(
            name, [program, *command[1:]], log=log or self.logs / f"{name}.log", environment=_environment()
        )

    @staticmethod
    def _until(what: str, look: Callable[[], bool], child: Child) -> None:
        wait_until(look, what=what, deadline_s=_DEADLINE_S, check=child.check)


def _enter(process: int) -> list[str]:
    # The user namespace is the world's own, whichever process it is; another cannot be entered twice.
    user = ["nsenter", f"--target={process}", "--user", "--preserve-credentials"]
    return [*user, "--net", "--mount", "--pid", "--uts", "--ipc"]


def _which(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_PATHS)))


def _environment() -> Mapping[str, str]:
    """Return what programs of the world may know: neither proxies nor anything else of the user's."""
    return {"PATH": os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_PATHS)), "HOME": "/"}

"""Real nodes: containers run on them, requests are answered, and nothing of them outlives the sandbox."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.sandbox import Sandbox, SandboxError
from lab.sandbox.real import images, world
from lab.sandbox.waiting import wait_until

REFUSED = world.refusal()
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(REFUSED is not None, reason=REFUSED or "")]

JsonObject = dict[str, Any]


@pytest.fixture(scope="module")
def real() -> Iterator[Sandbox]:
    """Yield a sandbox with two real machines, and one that KWOK plays."""
    with Sandbox.start(progress=print, real=True, node_monitor_grace_s=6) as running:
        running.real.add("on-demand", 1)
        running.real.add("spot", 1)
        running.fleet.add("spot", 1)
        yield running


def pod(name: str, node: str) -> JsonObject:
    """Return the manifest of a pod of the sandbox's own image on one node."""
    container = {
        "name": "web",
        "image": images.WEB[0],
        "imagePullPolicy": "Never",
        "env": [{"name": "POD", "value": name}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1},
    }
    spec = {"nodeName": node, "automountServiceAccountToken": False, "containers": [container]}
    return {"metadata": {"name": name}, "spec": spec}


def ready(sandbox: Sandbox, name: str) -> str:
    """Return a pod's address once it is Ready."""
    sandbox.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    return str(sandbox.api.get(f"/api/v1/namespaces/default/pods/{name}")["status"]["podIP"])


def ask(sandbox: Sandbox, machine: str, address: str, log: Path) -> str:
    """Return what a request from a machine is answered."""
    command = ["curl", "-s", "-m", "5", f"http://{address}:8080/"]
    with sandbox.real.running(machine, "curl", command, log=log) as curl:
        curl.process.wait(timeout=60)
    return log.read_text()


class TestRunning:
    """They are nodes like any other, and what runs on them is real."""

    def test_have_their_labels(self, real: Sandbox) -> None:
        """The scheduler and splitter find the pool, and the version is the one that was asked for."""
        nodes = {raw["metadata"]["name"]: raw for raw in real.api.list("/api/v1/nodes")}
        assert nodes["real-spot-0"]["metadata"]["labels"]["karpenter.sh/capacity-type"] == "spot"
        assert nodes["real-on-demand-0"]["metadata"]["labels"]["karpenter.sh/capacity-type"] == "on-demand"
        info = nodes["real-spot-0"]["status"]["nodeInfo"]
        assert info["kubeletVersion"] == nodes["spot-0"]["status"]["nodeInfo"]["kubeletVersion"]
        assert info["containerRuntimeVersion"].startswith("containerd://")

    def test_answer_requests_from_another_machine(self, real: Sandbox, tmp_path: Path) -> None:
        """A container listens at the pod's address, which the other machine reaches."""
        real.api.create("/api/v1/namespaces/default/pods", pod("far", "real-spot-0"))
        address = ready(real, "far")
        assert ask(real, "real-on-demand-0", address, tmp_path / "log").startswith("far ")
        real.kubectl("delete", "pod/far", "--timeout=60s")

    def test_silent_machine_is_noticed(self, real: Sandbox) -> None:
        """A machine that died answers no more; its Node turns NotReady, and comes back with a new one."""
        real.real.lose("real-spot-0")
        wait_until(lambda: not _is_ready(real, "real-spot-0"), what="the Node to be NotReady", deadline_s=60)
        real.real.restore("real-spot-0")
        assert _is_ready(real, "real-spot-0")
        real.api.create("/api/v1/namespaces/default/pods", pod("again", "real-spot-0"))
        ready(real, "again")
        real.kubectl("delete", "pod/again", "--timeout=60s")

    def test_unknown_names_are_refused(self, real: Sandbox) -> None:
        """A machine that KWOK plays is none of these."""
        with pytest.raises(SandboxError, match="no machine called spot-0"):
            real.real.kill("spot-0")


def _is_ready(sandbox: Sandbox, name: str) -> bool:
    conditions = sandbox.api.get(f"/api/v1/nodes/{name}")["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _namespaces_of(pids: set[int]) -> set[str]:
    collected = set()
    for pid in pids:
        try:
            collected.add(str(Path(f"/proc/{pid}/ns/user").readlink()))
        except OSError:  # it has ended, or is a zombie
            continue
    return collected


def _control_groups() -> set[Path]:
    """Return the control groups that are called as containers are."""
    return {path for path in Path("/sys/fs/cgroup").glob("**/*") if re.fullmatch("[0-9a-f]{64}", path.name)}


def _processes() -> set[int]:
    return {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}


class TestEnding:
    """Nothing is left running or mounted, whatever ends the sandbox."""

    @pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
    def test_by_a_signal(self, how: signal.Signals, tmp_path: Path) -> None:
        """The kernel ends kubelets and containers with the process that started them; mounts go with them."""
        body = (
            "import sys, pathlib, json\n"
            "from lab.sandbox import Sandbox\n"
            "from lab.sandbox.waiting import wait_until\n"
            "with Sandbox.start(root=pathlib.Path(sys.argv[1]), real=True) as sandbox:\n"
            "    sandbox.real.add('spot', 1)\n"
            "    sandbox.api.create('/api/v1/namespaces/default/pods', json.loads(sys.argv[2]))\n"
            "    sandbox.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=60s')\n"
            "    print(sandbox.process_id('world'), flush=True)\n"
            "    wait_until(lambda: None, what='a signal', deadline_s=300)\n"  # pause() may miss one
        )
        mounts, groups = Path("/proc/self/mounts").read_text(), _control_groups()
        command = [sys.executable, "-c", body, str(tmp_path), json.dumps(pod("web", "real-spot-0"))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout
            [world_namespace] = _namespaces_of({int(parent.stdout.readline())})
            own = {pid for pid in _processes() if _namespaces_of({pid}) == {world_namespace}}
            assert len(own) > 8  # containerd, its shim, kubelet, kube-proxy, two containers and more
            parent.send_signal(how)
            parent.wait(timeout=90)
        wait_until(lambda: not _namespaces_of(own) & {world_namespace}, what="their end", deadline_s=60)
        assert Path("/proc/self/mounts").read_text() == mounts
        assert _control_groups() <= groups
        if how is signal.SIGTERM:
            assert list(tmp_path.iterdir()) == []

"""A control plane that starts, serves, and leaves nothing behind, whatever ends it."""

import os
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest

from lab.sandbox import ApiError, Sandbox, SandboxError
from lab.sandbox.versions import kubernetes_version
from lab.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e


class TestServing:
    """What a caller gets."""

    def test_it_is_the_kubernetes_that_was_asked_for(self, sandbox: Sandbox) -> None:
        """The stamped version is reported by server and kubectl."""
        version = f"v{kubernetes_version()}"
        assert sandbox.api.get("/version")["gitVersion"] == version
        assert f"Client Version: {version}" in sandbox.kubectl("version")

    def test_the_context_has_its_own_name(self, sandbox: Sandbox) -> None:
        """Nobody mistakes it for a cluster of theirs, and only the owner can read the file."""
        assert sandbox.kubectl("config", "current-context").strip() == "splitter-sandbox"
        assert sandbox.kubeconfig.stat().st_mode & 0o077 == 0

    def test_kubectl_tells_its_complaint(self, sandbox: Sandbox) -> None:
        """A failing kubectl raises what it wrote on standard error."""
        with pytest.raises(SandboxError, match='namespaces "nowhere" not found'):
            sandbox.kubectl("get", "namespace", "nowhere")

    def test_kubectl_reads_standard_input(self, sandbox: Sandbox) -> None:
        """Manifests can be piped in."""
        manifest = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"piped"}}'
        assert "configmap/piped created" in sandbox.kubectl("apply", "-f", "-", stdin=manifest)

    def test_refusals_are_errors_with_a_status(self, sandbox: Sandbox) -> None:
        """The API's own word and number are kept."""
        with pytest.raises(ApiError) as refused:
            sandbox.api.get("/api/v1/namespaces/default/pods/nobody")
        assert (refused.value.status, refused.value.reason) == (404, "NotFound")

    def test_a_service_account_has_its_rights_and_no_more(self, sandbox: Sandbox, namespace: str) -> None:
        """RBAC is on: what is not granted is refused."""
        sandbox.kubectl("create", "serviceaccount", "reader", "-n", namespace)
        sandbox.kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods", "-n", namespace)
        account = f"{namespace}:reader"
        sandbox.kubectl(
            "create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={account}", "-n", namespace
        )
        kubeconfig = sandbox.service_account_kubeconfig(namespace, "reader")
        wait_until(  # the authorizer hears of a binding by a watch
            lambda: "No resources found" in _kubectl_as(sandbox, kubeconfig, "get", "pods"),
            what="the binding to count",
            deadline_s=60,
        )
        assert "Forbidden" in _kubectl_as(sandbox, kubeconfig, "get", "secrets")

    def test_a_kubelet_changes_its_own_node_only(self, sandbox: Sandbox) -> None:
        """As in a real cluster: the Node authorizer lets it patch any Node, NodeRestriction its own alone."""
        mine, other = sandbox.fleet.add("spot", 2)
        kubelet = sandbox.as_kubelet(mine)
        attributes = {"verb": "patch", "resource": "nodes", "name": other}
        review = {"spec": {"resourceAttributes": attributes}}
        answer = kubelet.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        assert answer["status"]["allowed"]
        labelled = {"metadata": {"labels": {"a": "b"}}}
        kubelet.patch(f"/api/v1/nodes/{mine}", labelled)
        tainted = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
        for node, change in ((other, labelled), (other, tainted), (mine, tainted)):
            with pytest.raises(ApiError, match="is not allowed to modify"):
                kubelet.patch(f"/api/v1/nodes/{node}", change)


def _kubectl_as(sandbox: Sandbox, kubeconfig: Path, *arguments: str) -> str:
    try:
        return sandbox.kubectl(f"--kubeconfig={kubeconfig}", *arguments) or "No resources found"
    except SandboxError as complaint:
        return str(complaint)


class TestSideBySide:
    """Several sandboxes do not disturb one another."""

    def test_two_start_in_parallel(self, sandbox: Sandbox) -> None:
        """A second one has ports, objects, machines, a grace and an end of its own.

        With the shorter grace, a node whose heartbeat stops turns NotReady by Kubernetes itself; the others
        stay Ready.
        """
        with Sandbox.start(node_monitor_grace_s=20) as impatient:
            assert impatient.url != sandbox.url
            lost, kept = impatient.fleet.add("spot", 2)
            impatient.fleet.lose(lost)
            impatient.kubectl("create", "namespace", "only-here")
            with pytest.raises(SandboxError, match="not found"):
                sandbox.kubectl("get", "namespace", "only-here")
            wait_until(
                lambda: _readiness(impatient, lost) == "Unknown", what=f"{lost} to be noticed", deadline_s=60
            )
            assert _readiness(impatient, kept) == "True"
        assert "Active" in sandbox.kubectl("get", "namespace", "default")


def _readiness(sandbox: Sandbox, node: str) -> str:
    conditions = sandbox.api.get(f"/api/v1/nodes/{node}")["status"]["conditions"]
    [ready] = [str(one["status"]) for one in conditions if one["type"] == "Ready"]
    return ready


def _alive(process_id: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class TestEnding:
    """Nothing is left running, and no files, except logs that somebody will want."""

    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
    def test_by_a_signal(self, how: signal.Signals, tmp_path: Path) -> None:
        """Ctrl-C, SIGTERM and kill -9 of the parent end every child; after the first two no file stays."""
        parent, process_ids = _start_in_a_child(tmp_path)
        assert all(map(_alive, process_ids))
        parent.send_signal(how)
        parent.wait(timeout=90)
        wait_until(lambda: not any(map(_alive, process_ids)), what="the children's end", deadline_s=60)
        if how is not signal.SIGKILL:
            assert list(tmp_path.iterdir()) == []

    def test_by_an_exception(self, tmp_path: Path) -> None:
        """A failing block ends the children and keeps the logs; the thread that started may have ended.

        The kernel tells of the end of a parent when the thread ends that forked: the sandbox lives on.
        """
        start = "threading.Thread(target=lambda: box.append(Sandbox.start(root=ROOT)))"
        script = f"""
            import threading; box = []
            thread = {start}
            thread.start(); thread.join()
            with box[0] as sandbox:
                sandbox.fleet.add("spot", 1)
                sandbox.check()
                print(*sandbox.process_ids)
                raise RuntimeError
        """
        answer = subprocess.run(
            [sys.executable, "-c", _script(tmp_path, script)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert answer.returncode == 1
        assert "RuntimeError" in answer.stderr
        process_ids = [int(word) for word in answer.stdout.split()]
        assert len(process_ids) == 5
        assert not any(map(_alive, process_ids))
        kept = {path.name for path in tmp_path.glob("splitter-sandbox-*/logs/*")}
        names = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
        assert kept == {f"{name}.log" for name in names}

    def test_a_process_that_dies_is_told(self, tmp_path: Path) -> None:
        """The error names the process and its log; what was asked for is no fault.

        What was written is still there when it is started again, and pods run again.
        """
        with Sandbox.start(root=tmp_path) as crashed:
            crashed.fleet.add("spot", 1)
            for name in ("kube-apiserver", "etcd"):
                before = crashed.process_id(name)
                crashed.kill(name)
                crashed.check()
                with pytest.raises(SandboxError, match=f"the sandbox runs no {name}"):
                    crashed.process_id(name)
                crashed.start_again(name)
                assert crashed.process_id(name) != before
                nodes = wait_until(partial(_names_of_nodes, crashed), what="an answer", deadline_s=60)
                assert nodes == ["spot-0"]
                crashed.kubectl("run", f"after-{name}", "--image=web")
                crashed.kubectl("wait", "--for=condition=Ready", f"pod/after-{name}", "--timeout=60s")
            os.kill(crashed.process_id("kwok"), signal.SIGKILL)
            with pytest.raises(SandboxError, match=r"kwok ended with code -9\. Its log, .*kwok\.log, ends:"):
                wait_until(lambda: None, what="the news", deadline_s=60, check=crashed.check)


def _names_of_nodes(sandbox: Sandbox) -> list[str] | None:
    try:
        return [raw["metadata"]["name"] for raw in sandbox.api.list("/api/v1/nodes")]
    except SandboxError:  # it is not up yet
        return None


def _script(root: Path, body: str) -> str:
    # A shell that starts the tests in the background has them ignore Ctrl-C, and children inherit that.
    head = (
        "import signal, pathlib\nfrom lab.sandbox import Sandbox\n"
        f"ROOT = pathlib.Path({str(root)!r})\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    )
    return head + textwrap.dedent(body)


def _start_in_a_child(root: Path) -> tuple["subprocess.Popen[str]", list[int]]:
    """Start a sandbox in a process of its own; return that process and the ids of the sandbox's children."""
    # Not by signal.pause(): a signal that comes between the print and it is heard after it, so never.
    body = """
        from lab.sandbox.waiting import wait_until
        with Sandbox.start(root=ROOT) as sandbox:
            print(*sandbox.process_ids, flush=True)
            wait_until(lambda: None, what="a signal", deadline_s=300)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", _script(root, body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout
    with parent.stdout:
        process_ids = [int(word) for word in parent.stdout.readline().split()]
    assert len(process_ids) == 5
    return parent, process_ids

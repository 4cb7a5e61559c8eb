"""A real Helm, and the Job that it waits for when it uninstalls.

Pods of the sandbox are simulated, so a Job never runs its command there (its pod completes all the same,
unless it is held). `play` runs it here instead, by hand: arguments, settings and service account are those of
the Job's own pod, and how it ended is written to the pod's status, as a kubelet would. From there on, Job
controller and Helm go their own way.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.support.terminal import Answer, Terminal
from lab.fixtures.shop import DEADLINE_S, JsonObject
from lab.sandbox import Sandbox, build
from lab.sandbox.waiting import wait_until
from splitter.bundled import bundled_path

CHART = bundled_path("manifests/helm/splitter")
RELEASE, NAMESPACE = "splitter", "splitter-system"
KEEP = "helm.sh/resource-policy"
UNINSTALL = ("uninstall", RELEASE, "--namespace", NAMESPACE)
# No notice: it says nothing about where a node is going.
_NO_NEW_PODS = "example.com/no-new-pods"


class Helm:
    """Somebody's shell with Helm in it, who may do everything."""

    def __init__(self, cluster: Sandbox | None, home: Path) -> None:
        self.home = home
        self._program = build.helm(print)
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        kubeconfig = str(cluster.kubeconfig) if cluster is not None else os.devnull
        self._environment = {**kept, "HOME": str(home), "KUBECONFIG": kubeconfig}

    def ask(self, *arguments: str) -> Answer:
        """Run Helm and return what it said, whatever it was."""
        with self.begin(*arguments) as running:
            out, err = running.communicate(timeout=DEADLINE_S)
            return subprocess.CompletedProcess(arguments, running.returncode, out, err)

    def __call__(self, *arguments: str) -> str:
        """Run Helm and return what it printed. Raises AssertionError with its complaint."""
        answer = self.ask(*arguments)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start Helm; what it says is in its pipes."""
        return subprocess.Popen(
            [self._program, *arguments],
            env=self._environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


class UninstallJob:
    """The Job of `helm uninstall`, from its pod on."""

    def __init__(self, cluster: Sandbox) -> None:
        self._cluster = cluster
        self._pods = f"/api/v1/namespaces/{NAMESPACE}/pods"

    @contextmanager
    def begun(self, helm: Helm) -> Iterator[subprocess.Popen[str]]:
        """Start `helm uninstall`, and yield it when the Job's pod is held.

        Before that the pod finds no node: on one the sandbox completes it within seconds.
        """
        fleet = self._cluster.fleet
        fleet.notice(fleet.names(), taint=_NO_NEW_PODS)
        with helm.begin(*UNINSTALL) as leaving:
            try:
                self.wait()
            finally:
                fleet.withdraw(fleet.names(), taint=_NO_NEW_PODS)
            yield leaving

    def wait(self) -> JsonObject:
        """Wait for the Job's pod, keep the sandbox from completing it, and return it."""

        def snapshot() -> JsonObject | None:
            pods = self._cluster.api.list(self._pods, labels="app.kubernetes.io/name=splitter-uninstall")
            return pods[0] if pods else None

        pod = wait_until(snapshot, what="the Job's pod", deadline_s=DEADLINE_S, check=self._cluster.check)
        held = {"metadata": {"annotations": {"sandbox.splitter.io/frozen": "true"}}}
        return self._cluster.api.patch(f"{self._pods}/{pod['metadata']['name']}", held)

    def play(self, home: Path, *, code: int) -> Answer:
        """Run what the pod would run, write down how it ended, and return what it said: `code` is how."""
        pod = self.wait()
        spec = pod["spec"]
        [container], [volume] = spec["containers"], [each for each in spec["volumes"] if "configMap" in each]
        [mount] = [each for each in container["volumeMounts"] if each["name"] == volume["name"]]
        config_map = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{volume['configMap']['name']}"
        for name, text in self._cluster.api.get(config_map)["data"].items():
            (home / name).write_text(text)
        arguments = [each.replace(mount["mountPath"], str(home)) for each in container["args"]]
        account = self._cluster.service_account_kubeconfig(NAMESPACE, spec["serviceAccountName"])
        answer = Terminal(account, home).splitter(*arguments)
        assert answer.returncode == code, answer.stdout + answer.stderr
        phase = "Succeeded" if answer.returncode == 0 else "Failed"
        self._cluster.api.patch(
            f"{self._pods}/{pod['metadata']['name']}/status", {"status": {"phase": phase}}
        )
        return answer

"""Karmada's own control plane: etcd and kube-apiserver of the sandbox, and Karmada's programs from `assets`.

No Deployment runs in it: of kube-controller-manager only namespaces, owners and roles are looked after. Its
API server's certificate vouches for the webhooks, too, since all of them are on 127.0.0.1.
"""

import base64
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from lab.federation.assets import Assets, placed
from lab.sandbox import Api, build, commands, credentials
from lab.sandbox.errors import SandboxError
from lab.sandbox.metrics_server import api_service, service_on_loopback
from lab.sandbox.ports import LOOPBACK, HeldPorts
from lab.sandbox.processes import Nursery, output_of
from lab.sandbox.waiting import wait_until

SYSTEM: Final = "karmada-system"
CLUSTERS: Final = "/apis/cluster.karmada.io/v1alpha1/clusters"
_CONTROLLERS: Final = "namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller"
_AGGREGATED: Final = {"namespace": SYSTEM, "name": "karmada-aggregated-apiserver"}
_RIGHTS: Final = "/apis/rbac.authorization.k8s.io/v1"
_DEADLINE_S: Final = 180.0
_ALONE: Final = ("--leader-elect=false", "--metrics-bind-address=0")
_ESTIMATORS: Final = "--insecure-skip-estimator-verify=true"
# The resource models count a large free node as few replicas (docs/how-to/karmada.md).
_MODELS_OFF: Final = "CustomizedClusterResourceModeling=false"
OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "webhook": ("--metrics-bind-address=0",),
    "controller-manager": (
        *_ALONE,
        "--cluster-status-update-frequency=10s",
        f"--feature-gates={_MODELS_OFF},Failover=true",
    ),
    "scheduler": (
        *_ALONE,
        "--enable-scheduler-estimator=true",
        _ESTIMATORS,
        f"--feature-gates={_MODELS_OFF}",
    ),
    # Its own looks are minutes apart.
    "descheduler": (*_ALONE, _ESTIMATORS, "--descheduling-interval=10s", "--unschedulable-threshold=20s"),
}
"""What Karmada's programs are started with, beside addresses and files."""


class Hub:
    """A running Karmada without members; ends with the `with` block."""

    def __init__(self, home: Path, assets: Assets, progress: Callable[[str], None]) -> None:
        """Start nothing yet: `start` does."""
        self.home = home
        self._assets, self._progress = assets, progress
        self._nursery, self._ports = Nursery(), HeldPorts()
        self._programs = build.programs(progress)
        self._layout = commands.Layout(home, *(self._ports.take() for _ in range(5)))
        self.kubeconfig = self._layout.kubeconfig("admin")

    def start(self) -> None:
        """Start everything, and return when clusters can be joined. Raises SandboxError."""
        layout, programs = self._layout, self._programs
        layout.logs.mkdir(parents=True)
        tokens = credentials.make_tokens(layout.token_file)
        self._run("etcd", commands.etcd(programs, layout))
        self._run("karmada-apiserver", commands.kube_apiserver(programs, layout))
        self._until("its certificate", lambda: credentials.is_whole(layout.ca_file))
        self.api = Api(layout.url, layout.ca_file, tokens["admin"])
        for user in ("admin", "system:kube-controller-manager"):
            credentials.write_kubeconfig(
                layout.kubeconfig(user), url=layout.url, ca_file=layout.ca_file, user=user, token=tokens[user]
            )
        self._until(
            "Karmada's API server", lambda: "ok" in self.api.request("GET", "/readyz").get("text", "")
        )
        manager = commands.kube_controller_manager(programs, layout, None)
        self._run("kube-controller-manager", [*manager, f"--controllers={_CONTROLLERS}"])
        for namespace in (SYSTEM, "karmada-cluster"):
            self.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        self._serve_kinds()
        for name in ("controller-manager", "scheduler", "descheduler"):
            self._karmada(name, *self._health())

    def _serve_kinds(self) -> None:
        """Have the API server know Karmada's kinds, and pass on what is asked of clusters."""
        webhook = self._ports.take()
        url = f"https://{LOOPBACK}:{webhook}"
        bundle = base64.b64encode(self._layout.ca_file.read_bytes()).decode()
        crds = self.home / "crds"
        shutil.copytree(self._assets.crds, crds)
        for patch in (crds / "patches").glob("*.yaml"):
            patch.write_text(placed(patch.read_text(encoding="utf-8"), url, bundle), encoding="utf-8")
        self.kubectl("apply", "--server-side", "-k", str(crds))
        port = self._ports.take()
        self._karmada(
            "aggregated-apiserver",
            f"--etcd-servers={self._layout.etcd_url}",
            f"--authentication-kubeconfig={self.kubeconfig}",
            f"--authorization-kubeconfig={self.kubeconfig}",
            "--authentication-skip-lookup",  # the API server has no certificate to show: `metrics_server`
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            "--permit-port-sharing=true",
            f"--cert-dir={self.home / 'aggregated'}",
            "--audit-log-path=",
        )
        self._let_ask_for_clusters()
        self.api.create(f"/api/v1/namespaces/{SYSTEM}/services", service_on_loopback(_AGGREGATED))
        group = api_service("v1alpha1.cluster.karmada.io", _AGGREGATED, port)
        self.api.create("/apis/apiregistration.k8s.io/v1/apiservices", group)
        certificates = self.home / "webhook"
        certificates.mkdir()
        shutil.copyfile(self._layout.ca_file, certificates / "tls.crt")
        shutil.copyfile(self._layout.signing_key, certificates / "tls.key")
        self.certificates = certificates
        self._until("clusters to be served", lambda: self.api.list(CLUSTERS) == [])
        address = (f"--bind-address={LOOPBACK}", f"--secure-port={webhook}")
        self._karmada("webhook", *address, f"--cert-dir={certificates}", *self._health())
        self.kubectl("apply", "-f", "-", stdin=self._assets.webhooks(url, bundle))

    def _let_ask_for_clusters(self) -> None:
        """Give the API server, which has no name there, the right to ask for clusters."""
        rules = [{"apiGroups": ["cluster.karmada.io"], "resources": ["*"], "verbs": ["*"]}]
        group = "rbac.authorization.k8s.io"
        role = {"kind": "ClusterRole", "name": "karmada-clusters", "apiGroup": group}
        nameless = {"kind": "User", "name": "system:anonymous", "apiGroup": group}
        metadata = {"metadata": {"name": role["name"]}}
        self.api.create(f"{_RIGHTS}/clusterroles", {**metadata, "rules": rules})
        binding = {**metadata, "roleRef": role, "subjects": [nameless]}
        self.api.create(f"{_RIGHTS}/clusterrolebindings", binding)

    def _karmada(self, name: str, *options: str) -> None:
        program = str(self._assets.program(f"karmada-{name}"))
        self._run(
            f"karmada-{name}", [program, f"--kubeconfig={self.kubeconfig}", *OPTIONS.get(name, ()), *options]
        )

    def _run(self, name: str, command: list[str]) -> None:
        environment = {**os.environ, "HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig)}
        self._nursery.start(name, command, log=self._layout.logs / f"{name}.log", environment=environment)

    def _health(self) -> tuple[str, ...]:
        return (f"--health-probe-bind-address={LOOPBACK}:{self._ports.take()}",)

    def check(self) -> None:
        """Raise SandboxError if one of its programs has ended."""
        self._nursery.check()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as Karmada's administrator. Raises SandboxError with its complaint."""
        command = [str(self._programs.kubectl), f"--kubeconfig={self.kubeconfig}", *arguments]
        environment = {**os.environ, "HOME": str(self.home)}
        return output_of(command, environment, what=f"kubectl {' '.join(arguments)}", stdin=stdin)

    def _until(self, what: str, look: Callable[[], bool]) -> None:
        def seen() -> bool:
            try:
                return look()
            except SandboxError:  # it is still starting
                return False

        wait_until(seen, what=what, deadline_s=_DEADLINE_S, check=self.check)
        self._progress(f"hub: {what}")

    def __enter__(self) -> Self:
        """Start it."""
        try:
            self.start()
        except BaseException:
            self._nursery.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all of its programs; the logs stay in `home`."""
        self._nursery.end()
        self._ports.release()
        self.api.close()

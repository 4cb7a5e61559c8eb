"""Two sandboxes as Karmada's members, in push mode, each with splitter and its estimator."""

import base64
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from lab.checkout import MANIFESTS, ROOT
from lab.federation.assets import Assets
from lab.federation.hub import CLUSTERS, SYSTEM, Hub
from lab.fixtures.controller import SHORT, Controller, environment, install
from lab.sandbox import Api, Sandbox
from lab.sandbox.ports import LOOPBACK, HeldPorts
from lab.sandbox.processes import Nursery
from lab.sandbox.waiting import wait_until

NAMES: Final = ("m1", "m2")
ESTIMATOR_PORT: Final = 10352
_SECRETS: Final = "karmada-cluster"
_READY_S: Final = 180.0


@dataclass(frozen=True, slots=True)
class Member:
    """One of them."""

    name: str
    sandbox: Sandbox
    controller: Controller

    @property
    def api(self) -> Api:
        """Return a connection as its administrator."""
        return self.sandbox.api


@dataclass(frozen=True, slots=True)
class Account:
    """As whom splitter acts in a member, and the folder of its processes."""

    name: str
    home: Path
    kubeconfig: Path


@dataclass(frozen=True, slots=True)
class Federation:
    """Karmada and its members, all of them Ready."""

    hub: Hub
    members: tuple[Member, ...]

    def check(self) -> None:
        """Raise SandboxError if a program has ended that should run."""
        self.hub.check()
        for member in self.members:
            member.sandbox.check()
            member.controller.check()

    def until(self, look: Callable[[], object], what: str, deadline_s: float = _READY_S) -> None:
        """Wait for something to be seen. Raises SandboxError if it is not."""
        wait_until(lambda: bool(look()), what=what, deadline_s=deadline_s, check=self.check)


@contextmanager
def federation(home: Path, assets: Assets, progress: Callable[[str], None]) -> Iterator[Federation]:
    """Run a Karmada with two members until the end of the block. Raises SandboxError."""
    with ExitStack() as stack:
        hub = stack.enter_context(Hub(home / "hub", assets, progress))
        nursery, ports = Nursery(), HeldPorts()
        stack.callback(nursery.end)
        stack.callback(ports.release)
        members = []
        for name in NAMES:
            sandbox = stack.enter_context(Sandbox.start(progress=progress))
            account = install(sandbox)
            sandbox.kubectl("apply", "-f", str(MANIFESTS / "source-status.yaml"))
            own = home / name
            own.mkdir()
            controller = Controller(account, own, SHORT)
            stack.callback(controller.end)
            controller.start()
            members.append(Member(name, sandbox, controller))
            port = ports.take()
            _estimate(hub, Account(name, own, account), nursery, port)
            _join(hub.api, name, sandbox)
        whole = Federation(hub, tuple(members))
        whole.until(lambda: _ready(hub.api) == set(NAMES), "both members to be Ready")
        yield whole


def _ready(hub: Api) -> set[str]:
    return {
        raw["metadata"]["name"]
        for raw in hub.list(CLUSTERS)
        for one in raw.get("status", {}).get("conditions") or []
        if one["type"] == "Ready" and one["status"] == "True"
    }


def _estimate(hub: Hub, of: Account, nursery: Nursery, port: int) -> None:
    """Run splitter's estimator of a member, where Karmada looks for it: behind a Service of that name."""
    settings = {
        "ESTIMATOR_CLUSTER": of.name,
        "ESTIMATOR_PORT": str(port),
        "ESTIMATOR_TLS": str(hub.certificates),
        "LISTEN_ADDRESS": LOOPBACK,
    }
    command = [sys.executable, "-m", "splitter", "estimator"]
    variables = environment(of.home, of.kubeconfig, **settings)
    nursery.start(
        f"estimator-{of.name}", command, log=of.home / "estimator.log", environment=variables, directory=ROOT
    )
    service = {
        "metadata": {"name": f"karmada-scheduler-estimator-{of.name}"},
        "spec": {
            "type": "ExternalName",
            "externalName": "localhost",
            "ports": [{"port": ESTIMATOR_PORT, "targetPort": port}],
        },
    }
    hub.api.create(f"/api/v1/namespaces/{SYSTEM}/services", service)


def _join(hub: Api, name: str, sandbox: Sandbox) -> None:
    """Do what `karmadactl join` does: an account in the member, and its token in the hub."""
    api, account = sandbox.api, "karmada"
    api.create("/api/v1/namespaces", {"metadata": {"name": _SECRETS}})
    api.create(f"/api/v1/namespaces/{_SECRETS}/serviceaccounts", {"metadata": {"name": account}})
    sandbox.kubectl(
        "create",
        "clusterrolebinding",
        account,
        "--clusterrole=cluster-admin",
        f"--serviceaccount={_SECRETS}:{account}",
    )
    secret = secret_of(sandbox.service_account_kubeconfig(_SECRETS, account))
    for each in (name, f"{name}-impersonator"):
        hub.create(f"/api/v1/namespaces/{_SECRETS}/secrets", {"metadata": {"name": each}, "data": secret})
    spec = {
        "id": api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"],
        "apiEndpoint": sandbox.url,
        "syncMode": "Push",
        "secretRef": {"namespace": _SECRETS, "name": name},
        "impersonatorSecretRef": {"namespace": _SECRETS, "name": f"{name}-impersonator"},
    }
    kind = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"}
    hub.create(CLUSTERS, {**kind, "metadata": {"name": name}, "spec": spec})


def secret_of(kubeconfig: Path) -> dict[str, str]:
    """Return the data of the Secret from which Karmada knows how to reach a member."""
    read = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    token = base64.b64encode(read["users"][0]["user"]["token"].encode()).decode()
    return {"token": token, "caBundle": read["clusters"][0]["cluster"]["certificate-authority-data"]}

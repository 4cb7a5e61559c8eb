"""One controller for all end-to-end tests, the machines it works with, and a namespace for each test."""

import itertools
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.controller import SHORT, Controller, install
from e2e.database import Database
from e2e.shop import DEADLINE_S, Shop
from e2e.terminal import Terminal
from splitter.sandbox import Sandbox
from splitter.sandbox.errors import SandboxError
from splitter.sandbox.fleet import NODES, Fleet
from splitter.sandbox.waiting import wait_until

_NUMBERS = itertools.count()
# A namespace goes when its pods have; what stood on machines that vanished is collected after a minute.
GOING_S = 180.0


@pytest.fixture(scope="session")
def kubeconfig(sandbox: Sandbox) -> Path:
    """Return the kubeconfig of splitter's own account, in a cluster where it is installed."""
    return install(sandbox)


@pytest.fixture(scope="session")
def controller(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """Yield the running controller that most tests share."""
    running = Controller(kubeconfig, tmp_path_factory.mktemp("controller"), SHORT)
    try:
        running.start()
        yield running
    finally:
        running.end()


@pytest.fixture(scope="session")
def machines(sandbox: Sandbox) -> Fleet:
    """Return 4 on-demand and 4 spot machines."""
    sandbox.fleet.add("on-demand", 4)
    sandbox.fleet.add("spot", 4)
    return sandbox.fleet


@pytest.fixture
def fleet(sandbox: Sandbox, machines: Fleet) -> Iterator[Fleet]:
    """Yield the machines, all well; what a test does to them is undone."""
    yield machines
    nodes = {raw["metadata"]["name"]: raw for raw in sandbox.api.list(NODES)}
    if hurt := [name for name in machines.names() if name not in nodes or is_hurt(nodes[name])]:
        machines.restore(hurt)


def is_hurt(raw: dict[str, Any]) -> bool:
    """Whether a Node bears a notice of any kind, or its machine is not well."""
    spec, conditions = raw["spec"], raw["status"].get("conditions", [])
    told = any(condition["type"] == "PreemptionScheduled" for condition in conditions)
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    going = "deletionTimestamp" in raw["metadata"]
    silent = raw["metadata"]["labels"].get("sandbox.splitter.io/kubelet") != "running"
    return bool(spec.get("taints")) or bool(spec.get("unschedulable")) or told or not ready or going or silent


@pytest.fixture
def shop(sandbox: Sandbox, controller: Controller, fleet: Fleet) -> Iterator[Shop]:
    """Yield a namespace of the test's own, looked after by the shared controller."""
    assert fleet.names("spot")
    yield from open_shop(sandbox, controller)


@pytest.fixture
def database(shop: Shop) -> Database:
    """Return the StatefulSet of the test's namespace."""
    return Database(shop)


def open_shop(sandbox: Sandbox, controller: Controller, name: str = "") -> Iterator[Shop]:
    """Make a namespace, and delete it afterwards."""
    namespace = name or f"shop-{next(_NUMBERS)}"
    sandbox.kubectl("create", "namespace", namespace)
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_until(lambda: sandbox.api.find(account), what="the service account", deadline_s=DEADLINE_S)

    def check() -> None:
        sandbox.check()
        controller.check()

    yield Shop(sandbox, namespace, check)
    sandbox.kubectl("delete", "namespace", namespace, "--wait=false")


def wait_alone(sandbox: Sandbox) -> None:
    """Wait until other tests' namespaces are gone: what is left in them is looked after too, and seen.

    Raises SandboxError with what the last of them still holds.
    """

    def going() -> list[Any]:
        found = sandbox.api.list("/api/v1/namespaces")
        return [raw for raw in found if "deletionTimestamp" in raw["metadata"]]

    try:
        wait_until(lambda: not going(), what="the end of other tests' namespaces", deadline_s=GOING_S)
    except SandboxError as late:
        for raw in going():
            name = raw["metadata"]["name"]
            late.add_note(f"{name}: {raw['status']}")
            late.add_note(sandbox.kubectl("get", "pods,deployments", "-n", name, "-o", "yaml"))
        raise


@pytest.fixture
def admin(sandbox: Sandbox, tmp_path: Path) -> Terminal:
    """Return the shell of somebody who may do everything."""
    return Terminal(sandbox.kubeconfig, tmp_path)


@pytest.fixture
def viewer(sandbox: Sandbox, shop: Shop, tmp_path: Path) -> Terminal:
    """Return the shell of somebody who may only look."""
    name = f"{shop.namespace}-viewer"
    shop.kubectl("create", "serviceaccount", "viewer")
    looks = ("get", "list", "watch")
    rules = [
        {"apiGroups": ["", "apps", "autoscaling", "splitter.io"], "resources": ["*"], "verbs": looks},
    ]
    api = "rbac.authorization.k8s.io"
    shop.apply({"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
    account = f"--serviceaccount={shop.namespace}:viewer"
    sandbox.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", account)
    path = f"/api/v1/namespaces/{shop.namespace}/serviceaccounts/viewer"
    wait_until(lambda: sandbox.api.find(path), what="the service account", deadline_s=DEADLINE_S)
    return Terminal(sandbox.service_account_kubeconfig(shop.namespace, "viewer"), tmp_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the log of each controller that a failed test used."""
    report = yield
    if report.failed:
        used = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Controller)]
        for controller in used:
            report.sections.append(("splitter's log", controller.last_said()))
    return report

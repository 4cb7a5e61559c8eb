"""One controller for all end-to-end tests, the machines it works with, and a namespace for each test."""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from e2e.support.account import api_of
from e2e.support.external_signals import Status
from e2e.support.mortal import Mortal
from e2e.support.terminal import Terminal
from lab.fixtures.controller import SHORT, Controller, install
from lab.fixtures.database import Database
from lab.fixtures.gateway import Gateway
from lab.fixtures.namespaces import open_shop
from lab.fixtures.nodes import is_hurt
from lab.fixtures.shop import DEADLINE_S, Shop
from lab.fixtures.stage import Stage, real_nodes, staged
from lab.sandbox import ApiError, Sandbox
from lab.sandbox.fleet import Fleet
from lab.sandbox.nodes import NODES
from lab.sandbox.waiting import wait_until


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


@pytest.fixture
def shop(sandbox: Sandbox, controller: Controller, fleet: Fleet) -> Iterator[Shop]:
    """Yield a namespace of the test's own, looked after by the shared controller."""
    assert fleet.names("spot")
    yield from open_shop(sandbox, controller)


@pytest.fixture
def database(shop: Shop) -> Database:
    """Return the StatefulSet of the test's namespace."""
    return Database(shop)


@pytest.fixture
def mortal(
    sandbox: Sandbox, controller: Controller, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mortal]:
    """Yield a controller of the test's own and a namespace; the shared one rests meanwhile."""
    assert fleet.names("spot")
    home = tmp_path_factory.mktemp("mortal")
    account = sandbox.service_account_kubeconfig("splitter-system", "splitter")
    if controller.running:
        controller.stop()
    with Gateway(account) as gateway:
        own = Controller(gateway.kubeconfig(home / "kubeconfig"), home, SHORT)
        try:
            own.start()
            for shop in open_shop(sandbox, own):
                yield Mortal(gateway, own, shop)
        finally:
            own.end()
            controller.start()


@pytest.fixture
def reported(sandbox: Sandbox) -> Iterator[Status]:
    """Yield cluster-autoscaler's status, not written yet."""
    status = Status(sandbox)
    yield status
    status.remove()


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
    kubeconfig = sandbox.service_account_kubeconfig(shop.namespace, "viewer")
    theirs = api_of(kubeconfig)

    def may_look() -> bool:
        try:
            return theirs.find(f"/apis/splitter.io/v1alpha1/namespaces/{shop.namespace}/splits") is not None
        except ApiError:  # the authorizer hears of a binding by a watch
            return False

    wait_until(may_look, what="the binding to count", deadline_s=DEADLINE_S)
    return Terminal(kubeconfig, tmp_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the log of each controller that a failed test used, and what became of its pods."""
    report = yield
    if report.failed:
        given = getattr(item, "funcargs", {}).values()
        shops = [getattr(value, "shop", value) for value in given]
        for shop in {shop.namespace: shop for shop in shops if isinstance(shop, Shop)}.values():
            report.sections.append((f"what does not run in {shop.namespace}", shop.not_running()))
        used = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Controller)]
        for controller in used:
            report.sections.append(("splitter's log", controller.last_said()))
    return report


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sandbox, Controller]]:
    """Yield machines that run containers, with a controller."""
    with real_nodes(tmp_path_factory.mktemp("real")) as running:
        yield running


@pytest.fixture
def stage(real: tuple[Sandbox, Controller]) -> Iterator[Stage]:
    """Yield those machines, and a namespace of the test's own; afterwards all machines are well."""
    with staged(*real) as stages:
        yield stages

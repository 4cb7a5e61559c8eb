"""What splitter stands on goes away under it: a namespace, the kind of its reports, a report."""

from collections.abc import Callable, Iterator

import pytest

from lab.fixtures.controller import Controller
from lab.fixtures.namespaces import GOING_S, open_shop, wait_alone
from lab.fixtures.shop import DEADLINE_S, Shop
from lab.sandbox import Sandbox
from lab.sandbox.waiting import wait_until
from splitter.bundled import bundled_path

pytestmark = pytest.mark.e2e

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2
NAMES = ("web", "cart")
CRD = "splits.splitter.io"


class Log:
    """What the controller says from now on."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._before = len(controller.said())

    def complaints(self, about: str = "") -> list[str]:
        """Return the warnings and errors that mention something."""
        lines = self._controller.said()[self._before :].splitlines()
        loud = [line for line in lines if " WARNING " in line or " ERROR " in line]
        return [line for line in loud if about in line]

    def tracebacks(self) -> int:
        """Return how many times it said more than a sentence."""
        return self._controller.said()[self._before :].count("Traceback")


@pytest.fixture
def log(controller: Controller) -> Log:
    """Return what the controller says in this test."""
    return Log(controller)


def split_both(shop: Shop) -> None:
    """Deploy and split two workloads."""
    for name in NAMES:
        shop.deploy(name, replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label(name)
    for name in NAMES:
        shop.wait_split(on_demand=1, spot=3, name=name)


class TestNamespace:
    @pytest.fixture
    def doomed(self, sandbox: Sandbox, controller: Controller, shop: Shop) -> Iterator[Shop]:
        """Yield a second namespace, which may be gone in the end."""
        wait_alone(sandbox)
        yield from open_shop(sandbox, controller, name=f"{shop.namespace}-doomed")

    def test_deleted(self, shop: Shop, doomed: Shop, log: Log) -> None:
        """It goes with all that was split there, without a flood in the log, and comes again as new.

        Meanwhile the other namespaces are looked after as ever.
        """
        split_both(doomed)
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        with shop.watch() as watched:
            doomed.kubectl("delete", "namespace", doomed.namespace, "--wait=false")
            shop.scale(REPLICAS + 1)
            shop.wait_split(on_demand=1, spot=4)
            path = f"/api/v1/namespaces/{doomed.namespace}"
            wait_until(
                lambda: doomed.sandbox.api.find(path) is None,
                what="the namespace to go",
                deadline_s=GOING_S,
            )
            assert watched.lowest() >= REPLICAS
        assert len(log.complaints(doomed.namespace)) <= len(NAMES), log.complaints(doomed.namespace)
        assert not log.tracebacks()
        doomed.sandbox.kubectl("create", "namespace", doomed.namespace)
        account = f"{path}/serviceaccounts/default"
        wait_until(
            lambda: doomed.sandbox.api.find(account), what="the service account", deadline_s=DEADLINE_S
        )
        split_both(doomed)


class TestKindOfTheReports:
    """The CRD is deleted, and all Splits with it, while splitter runs."""

    @pytest.fixture
    def crd(self, sandbox: Sandbox) -> Iterator[Callable[[], None]]:
        """Yield what brings the CRD back, where nobody else has Splits; it is back in any case afterwards."""
        wait_alone(sandbox)

        def apply() -> None:
            sandbox.kubectl("apply", "-f", str(bundled_path("manifests") / "crd.yaml"))
            sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{CRD}")

        yield apply
        apply()

    def test_deleted_and_applied_again(self, shop: Shop, crd: Callable[[], None], log: Log) -> None:
        """It says once what is missing and which file mends it; no pod is touched, and all comes back."""
        split_both(shop)
        pods = {name: shop.pod_uids(name) for name in NAMES}
        with shop.watch() as watched:
            shop.sandbox.kubectl("delete", "crd", CRD)
            shop.until(lambda: log.complaints("manifests/crd.yaml"), "the word about the CRD")
            shop.reported("WriteDenied")
            shop.deploy("other", replicas=1, ready_after="3s")  # time goes by
            crd()
            for name in NAMES:
                shop.until(
                    lambda name=name: shop.status(name).get("state") == "Steady",  # type: ignore[misc]
                    f"{name} to be reported on again",
                )
            assert watched.lowest() == watched.highest() == REPLICAS
        assert {name: shop.pod_uids(name) for name in NAMES} == pods
        assert len(log.complaints()) <= 1 + len(NAMES), log.complaints()
        assert not log.tracebacks()
        shop.unlabel()
        shop.wait_given_back()

    def test_scaled_meanwhile(self, shop: Shop, crd: Callable[[], None]) -> None:
        """Scaled while the kind was missing, it follows when that is back."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        with shop.watch() as watched:
            shop.sandbox.kubectl("delete", "crd", CRD)
            shop.scale(REPLICAS + 2)
            crd()
            shop.wait_split(on_demand=1, spot=5)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + 2 + SURGE

"""What splitter stands on goes away under it: a namespace, a report."""

from collections.abc import Iterator

import pytest

from lab.fixtures.namespaces import GOING_S, NAMESPACES, open_shop
from lab.fixtures.shop import DEADLINE_S, Shop
from lab.sandbox.waiting import wait_until
from world.sandbox import InMemory, Process

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2


class TestReport:
    """The Split is deleted in the middle."""

    def test_of_taking_over(self, shop: Shop) -> None:
        """It is written anew, and the take-over goes on, never below N."""
        shop.deploy(replicas=REPLICAS, surge=1, annotations=ASKED)
        with shop.watch() as watched:
            shop.label()
            for replicas in (1, 3):
                shop.until(lambda least=replicas: sum(shop.twins() or ()) >= least, "the middle")  # type: ignore[misc]
                shop.kubectl("delete", "split", "web", "--ignore-not-found")
            shop.wait_split(on_demand=1, spot=3)
            shop.until(lambda: shop.status().get("state") == "Steady", "the Split to say that all is steady")
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + 1
        shop.wait_no_strays()

    def test_of_giving_back(self, shop: Shop) -> None:
        """All is given back without it, and none is left."""
        shop.deploy(replicas=REPLICAS, surge=1, annotations=ASKED)
        before = shop.snapshot()
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        with shop.watch() as watched:
            shop.unlabel()
            for replicas in (3, 1, 0):
                shop.until(lambda most=replicas: sum(shop.twins() or (0,)) <= most, "the middle")  # type: ignore[misc]
                shop.kubectl("delete", "split", "web", "--ignore-not-found")
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + 1
        assert shop.snapshot() == before
        shop.wait_no_strays()


class Log:
    """What the controller says from now on."""

    def __init__(self, controller: Process) -> None:
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
def log(controller: Process) -> Log:
    """Return what the controller says in this test."""
    return Log(controller)


class TestNamespace:
    @pytest.fixture
    def doomed(self, sandbox: InMemory, controller: Process, shop: Shop) -> Iterator[Shop]:
        """Yield a second namespace, which may be gone in the end."""
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
        doomed.sandbox.api.create(NAMESPACES, {"metadata": {"name": doomed.namespace}})
        account = f"{path}/serviceaccounts/default"
        wait_until(
            lambda: doomed.sandbox.api.find(account), what="the service account", deadline_s=DEADLINE_S
        )
        split_both(doomed)


def split_both(shop: Shop) -> None:
    """Deploy and split two workloads."""
    for name in NAMES:
        shop.deploy(name, replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label(name)
    for name in NAMES:
        shop.wait_split(on_demand=1, spot=3, name=name)


NAMES = ("web", "cart")

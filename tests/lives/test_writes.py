"""How much splitter writes: nothing while nothing changes, and each twin once when a template changes.

All that one controller asks for goes through a gateway that notes it. `make bench` counts the same over
10 minutes and 50 workloads (`tests/bench/test_writes.py`).
"""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from lab.demo.watching import Watch
from lab.fixtures.controller import SHORT
from lab.fixtures.gateway import Write
from lab.fixtures.namespaces import open_shop
from lab.fixtures.shop import DEADLINE_S, Shop, Watched
from lab.sandbox.asked import Asked
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant
from lives.gateway import Gateway
from world.sandbox import NAMESPACE, InMemory, Process

WORKLOADS, REPLICAS, SURGE = 3, 4, 2
NAMES = [f"web{number}" for number in range(WORKLOADS)]
ASKED = {"splitter.io/on-demand-base": "1"}
# Every workload is looked at each second, event or not: so long holds as many such looks as 100 minutes do
# with the 300 s of an installation, and is longer than any time that SHORT sets.
RESYNC_S, QUIET_S = 1, 20
# A report is held back for 30 s at most: a controller that has written nothing for longer owes none.
SETTLED_S = 32


class Counted:
    """A shop, and what the one controller that looks after it writes."""

    def __init__(self, shop: Shop, gateway: Gateway) -> None:
        self.shop = shop
        self._gateway = gateway
        self._writes = self._others = 0
        self.start()

    def start(self) -> None:
        """Count from now on."""
        self._writes, self._others = len(self._gateway.writes), len(self._gateway.others)

    def outlast(self, seconds: float) -> None:
        """Let time pass, as long as the controller lives."""
        began = Instant.now().monotonic_s
        self.shop.until(lambda: Instant.now().monotonic_s > began + seconds, "time to pass")

    def settle(self, seconds: float = 5) -> None:
        """Wait until so long nothing was written: the last reports are behind the last moves.

        Whoever never stops writing never settles.
        """

        def written() -> int:
            return len(self._gateway.writes) + len(self._gateway.others)

        before, since = written(), Instant.now().monotonic_s

        def is_quiet() -> bool:
            nonlocal before, since
            if written() != before:
                before, since = written(), Instant.now().monotonic_s
            return Instant.now().monotonic_s > since + seconds

        self.shop.until(is_quiet, f"{seconds:g} s without a write", deadline_s=DEADLINE_S + 3 * seconds)
        self.start()

    @property
    def writes(self) -> list[Write]:
        """Return the writes to workloads, pods and Splits."""
        return self._gateway.writes[self._writes :]

    @property
    def everything(self) -> list[str]:
        """Return whatever was asked for that is no read, as text."""
        return [*map(str, self.writes), *self._gateway.others[self._others :]]

    def to_twins(self) -> Counter[str]:
        """Count the writes to each twin."""
        return Counter(
            write.rest.removeprefix("/")
            for write in self.writes
            if write.kind == "deployments" and write.rest.endswith(("-on-demand", "-spot"))
        )


@pytest.fixture
def counted(sandbox: InMemory, fleet: Fleet) -> Iterator[Counted]:
    """Yield a namespace and a controller that is counted."""
    assert fleet.names("spot")
    gateway = Gateway(sandbox.cluster.objects)
    own = Process(sandbox, {**SHORT, "RESYNC_S": str(RESYNC_S)}, gateway)
    own.start()
    for shop in open_shop(sandbox, own, NAMESPACE):
        yield Counted(shop, gateway)
    own.stop()


@pytest.fixture
def crowd(counted: Counted) -> Counted:
    """Return the namespace with 3 workloads, each split into 1 + 3, at rest."""
    for name in NAMES:
        counted.shop.deploy(name, replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        counted.shop.label(name)
    for name in NAMES:
        counted.shop.wait_split(on_demand=1, spot=3, name=name)
        counted.shop.wait_steady(name)
    counted.settle(SETTLED_S)
    return counted


def versions(shop: Shop) -> dict[str, str]:
    """Return the resourceVersion of each Deployment, ReplicaSet, pod and Split: all that was written."""
    content = json.loads(shop.kubectl("get", "deployments,replicasets,pods,splits", "-o", "json"))["items"]
    return {raw["metadata"]["uid"]: raw["metadata"]["resourceVersion"] for raw in content}


class TestNothing:
    """An unchanged cluster is looked at, and not written to."""

    def test_while_steady(self, crowd: Counted) -> None:
        """In 20 seconds with 20 looks at each of 3 workloads nothing is written, by anybody."""
        before = versions(crowd.shop)
        crowd.outlast(QUIET_S)
        assert crowd.everything == []
        assert versions(crowd.shop) == before

    def test_while_spot_is_away(self, crowd: Counted, fleet: Fleet) -> None:
        """Once on-demand covers, an outage that goes on is no news."""
        fleet.kill(fleet.names("spot"))
        for name in NAMES:
            crowd.shop.until(
                lambda name=name: crowd.shop.shape(name).on_demand == REPLICAS,  # type: ignore[misc]
                f"on-demand to hold all of {name}",
            )
        # Until then the cluster is not unchanged: Kubernetes collects the dead 40 to 60 s later. Those that
        # nobody has told to end yet as well.
        crowd.shop.until(
            lambda: not crowd.shop.has_terminating() and not crowd.shop.bound_to_vanished(),
            "the dead to be collected",
        )
        crowd.settle(SETTLED_S)
        crowd.outlast(QUIET_S)
        assert crowd.everything == []


class TestTemplate:
    """A change of the template is one write of each twin."""

    def test_of_several(self, crowd: Counted) -> None:
        """Three images change at once: six writes of twins, and no replica is missing or too many."""
        shop, asked = crowd.shop, Asked()
        sets = f"/apis/apps/v1/namespaces/{shop.namespace}/replicasets"
        with Watch(shop.sandbox.api, sets, asked.see), shop.record() as recorder:
            watched = [Watched(recorder, {"app": name}, asked) for name in NAMES]
            for name in NAMES:
                shop.set_image("web:2", name)
            for name in NAMES:
                shop.until(
                    lambda name=name: shop.images(name) == {"web:2": REPLICAS},  # type: ignore[misc]
                    f"web:2 everywhere in {name}",
                )
                shop.wait_split(on_demand=1, spot=3, name=name)
            assert min(each.lowest() for each in watched) >= REPLICAS
            assert max(each.highest_asked() for each in watched) <= REPLICAS + SURGE
        twins = [f"{name}-{pool}" for name in NAMES for pool in ("on-demand", "spot")]
        assert crowd.to_twins() == Counter(twins)

    def test_during_an_outage(self, counted: Counted, fleet: Fleet) -> None:
        """Spot is away: on-demand gets the new image without a dip, and spot has it when it returns."""
        shop = counted.shop
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        fleet.kill(fleet.names("spot"))
        shop.until(lambda: shop.shape().on_demand == REPLICAS, "on-demand to hold all")
        shop.until(lambda: shop.bound_to_vanished() == 0, "the dead to go")
        counted.settle()
        with shop.watch() as watched:
            shop.set_image("web:2")
            shop.until(lambda: shop.images()["web:2"] >= REPLICAS, "web:2 on on-demand")
            shop.until(lambda: set(shop.images()) == {"web:2"}, "web:2 to be asked of spot too")
            counted.settle()
            assert watched.lowest() >= REPLICAS
            # The one that stays asked for of spot finds no node, and takes no room from those that do.
            assert watched.highest_asked() <= REPLICAS + SURGE + 1
        with shop.watch() as watched:
            fleet.restore(fleet.names("spot"))
            shop.wait_split(on_demand=1, spot=3)
            assert shop.images() == {"web:2": REPLICAS}
            assert watched.lowest() >= REPLICAS

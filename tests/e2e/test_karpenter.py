"""A real autoscaler buys the machines, takes them back and gives them up; told by the recorded pods.

`make test-karpenter PYTEST=-s` also prints what was written on nodes, NodeClaims and pods, with times: the
figures of docs/how-to/karpenter.md.
"""

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import pytest

from e2e.support.chronicle import Chronicle
from lab.fixtures.controller import SHORT, Controller, install
from lab.fixtures.namespaces import open_shop, wait_alone
from lab.fixtures.shop import DEADLINE_S, Shop, Watched, manifest
from lab.sandbox import Between, Instant, Sandbox
from lab.sandbox.karpenter import NEVER, Karpenter
from lab.sandbox.machines import Pool
from lab.sandbox.nodes import NODES
from lab.sandbox.waiting import wait_until
from splitter.core.nodes.capacity import PRESETS

pytestmark = pytest.mark.karpenter

REPLICAS, SURGE = 4, 2
ON_DEMAND, SPOT = 1, 3
POOLS: tuple[Pool, ...] = ("on-demand", "spot")
# Three replicas fit on a machine of 4 CPUs, 100m of which are its own.
CPU = "1"
# Karpenter looks every 10 s, looks again 15 s later before it gives up a machine, and takes them in turn.
BY_CHOICE_DEADLINE_S = 180.0
# Where all have to stay, the budget lets Karpenter find a node for a minute in ten. It looks at budgets once
# more 15 s after it has found one, and acts a moment later.
SURGE_FIRST_OPENS_S, OPEN_S, LOOKS_AGAIN_S = 600.0, 60.0, 5.0


@pytest.fixture(scope="module")
def cloud() -> Iterator[Sandbox]:
    """Yield a cluster that has an autoscaler and no node."""
    with Sandbox.start(progress=print, karpenter=True) as running:
        yield running


@pytest.fixture(scope="module")
def controller(cloud: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """Yield the running controller that these tests share."""
    running = Controller(install(cloud), tmp_path_factory.mktemp("controller"), SHORT)
    try:
        running.start()
        yield running
    finally:
        running.end()


@pytest.fixture
def karpenter(cloud: Sandbox) -> Karpenter:
    """Return Karpenter with machines of both pools on offer, none bought, and none given up by choice."""
    for pool in POOLS:
        cloud.karpenter.offer(pool)
        cloud.karpenter.interrupt(cloud.karpenter.claims(pool))
    wait_until(
        lambda: not cloud.api.list(NODES) and not any(map(cloud.karpenter.claims, POOLS)),
        what="an empty cloud",
        deadline_s=DEADLINE_S,
    )
    return cloud.karpenter


@pytest.fixture
def shop(cloud: Sandbox, controller: Controller, karpenter: Karpenter) -> Iterator[Shop]:
    """Yield a namespace of the test's own; what was in it has gone before the next test begins."""
    assert not karpenter.claims("spot")
    yield from open_shop(cloud, controller)
    wait_alone(cloud)


def split(shop: Shop, evictions: str = "one-at-a-time", **budget: int | str) -> None:
    """Deploy a labelled application, perhaps with a budget of the user's; wait for split and guard."""
    asked = {"splitter.io/on-demand-base": str(ON_DEMAND), "splitter.io/evictions": evictions}
    app = manifest("web", REPLICAS, surge=SURGE, annotations=asked)
    app["metadata"]["labels"]["splitter.io/split"] = "enabled"
    app["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": CPU}
    if budget:
        spec = {"selector": {"matchLabels": {"app": "web"}}, **budget}
        shop.apply(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "web"},
                "spec": spec,
            }
        )
    shop.apply(app)
    shop.wait_split(ON_DEMAND, SPOT)
    guard = "web" if budget else "none" if evictions == "unguarded" else "web-guard keeps"
    shop.until(lambda: shop.status().get("guard", "").find(guard) >= 0, f"the guard to be {guard}")


@contextmanager
def observed(shop: Shop, title: str) -> Iterator[tuple[Watched, Chronicle]]:
    """Record the pods, and keep and print what is written on nodes and NodeClaims."""
    with shop.watch() as watched, Chronicle(shop.sandbox.api, shop.namespace) as chronicle:
        began = Instant.now()
        try:
            yield watched, chronicle
        finally:
            short_s = watched.timeline.seconds_below(REPLICAS, Between(began, Instant.now()))
            counts = f"{watched.lowest(began)} to {watched.highest(began)} replicas of {REPLICAS}"
            sys.stdout.write(f"\n{title}\n{chronicle.reported(began)}\n")
            sys.stdout.write(f"{title}: {counts}; fewer than {REPLICAS} for {short_s:.1f} s\n")


def test_pending_pods_bring_up_both_kinds_of_node(cloud: Sandbox, shop: Shop) -> None:
    """With no node at all, each twin gets machines of its kind, and they carry no label of another cloud."""
    assert cloud.api.list(NODES) == []
    with observed(shop, "From no node to a split application"):
        split(shop)
    nodes = {raw["metadata"]["name"]: raw["metadata"]["labels"] for raw in cloud.api.list(NODES)}
    for pod in shop.pods():
        labels = nodes[pod["spec"]["nodeName"]]
        assert labels["karpenter.sh/capacity-type"] == pod["metadata"]["labels"]["splitter.io/pool"]
    # Karpenter writes what a pod excludes by NotIn on the node it buys, with a value of its own making.
    foreign = {
        label.key
        for preset in PRESETS
        for label in (*preset.spot, *preset.on_demand)
        if preset.name != "karpenter"
    }
    assert foreign.isdisjoint(itertools.chain.from_iterable(nodes.values()))


@pytest.mark.parametrize(
    ("evictions", "budget", "floor"),
    [
        ("one-at-a-time", {}, REPLICAS - 1),
        ("surge-first", {}, REPLICAS),
        ("unguarded", {}, 0),
        ("one-at-a-time", {"minAvailable": REPLICAS}, REPLICAS),
        ("one-at-a-time", {"maxUnavailable": 1}, REPLICAS - 1),
    ],
    ids=str,
)
def test_an_interruption_costs_what_the_budget_allows(
    shop: Shop, karpenter: Karpenter, evictions: str, budget: dict[str, int], floor: int
) -> None:
    """When all spot machines are taken, on-demand is asked for at once, and the budget has Karpenter wait."""
    split(shop, evictions, **budget)
    karpenter.offer("spot", machines=0)
    with observed(shop, f"An interruption, {evictions}, {budget or 'no budget of a user'}") as (
        watched,
        chronicle,
    ):
        taken = karpenter.claims("spot")
        began = karpenter.interrupt(taken)
        shop.until(lambda: not taken.keys() & karpenter.claims("spot").keys(), "the spot machines to be gone")
        shop.until(lambda: shop.shape().on_demand == REPLICAS, "all replicas on on-demand")
        assert watched.lowest(began) >= floor
        assert watched.highest(began) <= REPLICAS + SURGE + SPOT
        deleted = chronicle.first("Node spot", "is being deleted")
        assert deleted <= chronicle.first("Node spot", "+ taint karpenter.sh/disrupted")
        if floor == REPLICAS:
            evicted = chronicle.first("Pod spot", "EvictionByEvictionAPI")
            assert chronicle.first("Deployment on-demand", f"asks for {REPLICAS}") < evicted


def test_capacity_returns_when_asked_for(shop: Shop, karpenter: Karpenter) -> None:
    """While spot is short, one replica stays pending; the first machine on offer is bought for it."""
    split(shop, minAvailable=REPLICAS)
    karpenter.offer("spot", machines=0)
    karpenter.interrupt(karpenter.claims("spot"))
    shop.until(
        lambda: shop.twins() == (REPLICAS, 1), "on-demand to cover, and one spot replica to be asked for"
    )
    shop.until(lambda: not karpenter.claims("spot"), "the spot machines to be gone")
    shop.until(lambda: shop.shape().on_demand == REPLICAS, "all replicas on on-demand")
    with observed(shop, "Spot is on offer again") as (watched, chronicle):
        began = Instant.now()
        karpenter.offer("spot")
        shop.wait_split(ON_DEMAND, SPOT)
        assert watched.lowest(began) >= REPLICAS
        assert watched.highest() <= REPLICAS + SURGE
        assert chronicle.first("NodeClaim spot", "appears") < chronicle.first(
            "Deployment on-demand", "asks for"
        )


def test_drift_stays_within_spot(shop: Shop, karpenter: Karpenter) -> None:
    """Machines that are replaced by others, one by one, cost no replica and no on-demand."""
    split(shop)
    with observed(shop, "Drift") as (watched, chronicle):
        former = karpenter.claims("spot")
        karpenter.offer("spot", cpu=8)
        shop.until(
            lambda: not former.keys() & karpenter.claims("spot").keys(),
            "the drifted machines to be replaced",
            BY_CHOICE_DEADLINE_S,
        )
        shop.wait_split(ON_DEMAND, SPOT)
        assert not chronicle.entries("Deployment on-demand", "asks for"), "on-demand was left alone"
        assert watched.lowest() >= REPLICAS - 1
    assert "lastLoss" not in shop.status()["memory"]["rebalance"]


@pytest.mark.parametrize(
    ("evictions", "floor", "deadline_s"),
    [
        ("one-at-a-time", REPLICAS - 1, BY_CHOICE_DEADLINE_S),
        ("surge-first", REPLICAS, SURGE_FIRST_OPENS_S + BY_CHOICE_DEADLINE_S),
    ],
    ids=str,
)
def test_consolidation_stays_within_spot(
    shop: Shop, karpenter: Karpenter, evictions: str, floor: int, deadline_s: float
) -> None:
    """A machine that Karpenter gives up by choice is left for another spot machine; nothing is charged."""
    split(shop, evictions)
    shop.scale(10)
    shop.wait_split(ON_DEMAND, 9)
    shop.scale(REPLICAS)
    shop.wait_split(ON_DEMAND, SPOT)
    spread = set(shop.nodes())
    with observed(shop, f"Consolidation, {evictions}") as (watched, chronicle):
        karpenter.offer("spot", consolidate_after="1s")
        shop.until(
            lambda: len(karpenter.claims("spot")) == 1,
            f"the replicas on {len(spread)} nodes to be put together",
            deadline_s,
        )
        shop.wait_split(ON_DEMAND, SPOT)
        assert not chronicle.entries("Deployment on-demand", "asks for"), "on-demand was left alone"
        assert watched.lowest() >= floor
        if evictions == "surge-first":  # it was found while the budget was open (docs/adr/0040)
            wanted = chronicle.first("NodeClaim spot", "(Underutilized)")
            uid = shop.deployment()["metadata"]["uid"]
            assert (wanted.wall_s + crc32(uid.encode())) % SURGE_FIRST_OPENS_S < OPEN_S + LOOKS_AGAIN_S
    karpenter.offer("spot", consolidate_after=NEVER)
    assert "lastLoss" not in shop.status()["memory"]["rebalance"]

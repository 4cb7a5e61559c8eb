"""A node that is hot by real use is relieved of a replica: with the right, and one more before one goes."""

from collections import Counter
from collections.abc import Iterator

import pytest

from e2e.support.admission import steadily
from e2e.support.mortal import Mortal
from lab.demo.watching import ScaleLog, Watch
from lab.fixtures.metrics_api import MetricsApi
from lab.fixtures.placed import POLICY, Placed, needs_placement
from lab.fixtures.shop import JsonObject, Shop, manifest
from lab.sandbox import Sandbox
from lab.sandbox.fleet import Fleet
from lab.sandbox.nodes import NODES
from splitter.bundled import bundled_path

N = 6
# Of the 8 CPUs of a machine: six replicas make it hot, and with four it is as cool as it has to be.
USED_M = 1200
# What each container of a namespace requests at least: replicas do, and placeholders do not.
AT_LEAST: JsonObject = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "at-least"},
    "spec": {"limits": [{"type": "Container", "min": {"cpu": "50m"}}]},
}

ZONE = "topology.kubernetes.io/zone"
# A machine without a replica would draw the new one, whatever is requested elsewhere.
ONE_EACH: JsonObject = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


@pytest.fixture
def metrics(sandbox: Sandbox) -> Iterator[MetricsApi]:
    """Yield the metrics of all nodes and pods."""
    with MetricsApi(sandbox) as serving:
        yield serving


@pytest.fixture
def right(sandbox: Sandbox) -> Iterator[str]:
    """Yield the file that gives splitter the right to read them; it is taken back."""
    path = str(bundled_path("manifests/relief.yaml"))
    yield path
    sandbox.kubectl("delete", "--ignore-not-found", "-f", path)


def piled(shop: Shop, fleet: Fleet, ready_after: str) -> str:
    """Have a workload split that asks for relief, with all its replicas on one machine; return that one."""
    full, *empty = fleet.names("spot")
    shop.sandbox.kubectl("cordon", *empty)
    app = manifest("web", N, annotations={"splitter.io/relief": "cpu=85"}, ready_after=ready_after)
    app["metadata"]["labels"]["splitter.io/split"] = "enabled"
    shop.apply(app)
    shop.wait_split(on_demand=0, spot=N)
    assert set(shop.nodes()) == {full}
    shop.sandbox.kubectl("uncordon", *empty)
    shop.wait_steady()
    return full


def pinned(name: str, node: str, cpu: str) -> JsonObject:
    """Return a pod that requests so much of one machine; its label `app` is its name up to the first dash."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name.partition("-")[0]}},
        "spec": {
            "affinity": {"nodeAffinity": required},
            "containers": [{"name": "c", "image": "c:1", "resources": {"requests": {"cpu": cpu}}}],
        },
    }


def drawn_to(shop: Shop) -> str:
    """Return the spot machine that the scheduler gives a pod that asks for as much as a replica."""
    asking = pinned("probe", "", "100m")
    asking["spec"] |= {"affinity": {}, "nodeSelector": {"karpenter.sh/capacity-type": "spot"}}
    shop.apply(asking)
    shop.kubectl("wait", "--for=condition=PodScheduled", "pod/probe", "--timeout=60s")
    node = shop.kubectl("get", "pod", "probe", "-o", "jsonpath={.spec.nodeName}")
    shop.kubectl("delete", "pod", "probe", "--grace-period=0", "--force")
    return node


def placeholders(shop: Shop) -> list[JsonObject]:
    """Return the placeholders in the namespace."""
    pods = f"/api/v1/namespaces/{shop.namespace}/pods"
    return shop.sandbox.api.list(pods, labels="splitter.io/placeholder")


def bound(shop: Shop) -> set[str]:
    """Return the names of the pods that the scheduler says it has bound."""
    events = shop.sandbox.api.list(f"/apis/events.k8s.io/v1/namespaces/{shop.namespace}/events")
    return {event["regarding"]["name"] for event in events if event["reason"] == "Scheduled"}


def costs(shop: Shop) -> list[str]:
    """Return the deletion costs on the workload's pods, and what is remembered of the user's."""
    annotations = [pod["metadata"].get("annotations") or {} for pod in shop.pods()]
    return [key for written in annotations for key in written if "deletion-cost" in key]


@pytest.mark.e2e
def test_a_hot_node_is_relieved(
    shop: Shop, fleet: Fleet, metrics: MetricsApi, right: str, sandbox: Sandbox
) -> None:
    """Without the right the Split says what is missing; with it a replica moves, and nobody misses one."""
    full = piled(shop, fleet, "3s")
    metrics.uses("web", USED_M)
    shop.reported("ReliefPaused", "splitter may not list nodes and pods of metrics.k8s.io")
    scales = ScaleLog()
    twins = f"/apis/apps/v1/namespaces/{shop.namespace}/deployments"
    with shop.watch() as watched, Watch(sandbox.api, twins, scales.see):
        sandbox.kubectl("apply", "-f", right)
        said = shop.reported("Relieved", "goes, the new replica is ready elsewhere")
        assert said.startswith(f"scale spot {N + 1} -> {N} (-1): web-")
        shop.until(lambda: Counter(shop.nodes())[full] < N, "a replica to leave the hot machine")
        # Given back in the middle of the second move: by what was written, for there is no third to wait for.
        shop.until(
            lambda: sum(write.after == N + 1 for write in scales.writes()) > 1,
            "a second move",
        )
        assert watched.lowest() == N
        assert watched.highest() <= N + 1
        shop.unlabel()
        shop.until(lambda: not shop.deployments() - {"web"}, "the workload to be given back")
        shop.wait_rolled_out()
        assert watched.lowest() == N
    assert costs(shop) == []


@pytest.mark.e2e
def test_a_new_replica_is_kept_off_the_hot_node(
    shop: Shop, fleet: Fleet, metrics: MetricsApi, right: str, sandbox: Sandbox
) -> None:
    """The hot machine is requested least, and draws every pod: but for a placeholder there, for seconds.

    Where the namespace does not admit it the move goes on without one, and the new replica is taken back.
    """
    spot = fleet.names("spot")
    app = manifest("web", len(spot), annotations={"splitter.io/relief": "cpu=85"}, ready_after="1s")
    app["metadata"]["labels"]["splitter.io/split"] = "enabled"
    app["spec"]["template"]["spec"]["topologySpreadConstraints"] = [ONE_EACH]
    shop.apply(app)
    shop.wait_split(on_demand=0, spot=len(spot))
    shop.wait_steady()
    assert sorted(shop.nodes()) == sorted(spot)
    hot = spot[0]
    for node in {*spot, *shop.nodes()} - {hot}:
        shop.apply(pinned(f"ballast-{node}", node, "6"))
    shop.apply(pinned("hog", hot, "10m"))
    metrics.uses("hog", 8 * 1000 - USED_M - 400)
    metrics.uses("web", USED_M)
    shop.wait_steady()
    assert drawn_to(shop) == hot
    shop.apply(AT_LEAST)
    sandbox.kubectl("apply", "-f", right)
    shop.reported("ReliefUndone", "goes, the new replica stands on a hot node, too")
    assert hot in shop.nodes()
    shop.until(lambda: "gets no hint: pods " in shop.status()["relief"]["message"], "it to be said")
    shop.kubectl("delete", "limitrange", "at-least")
    shop.reported("Relieved", "goes, the new replica is ready elsewhere")
    shop.until(lambda: hot not in shop.nodes(), "the replica to leave the hot machine")
    shop.until(
        lambda: any(name.startswith("web-placeholder-") for name in bound(shop)),
        "the scheduler to say that it has bound a placeholder",
    )
    shop.until(lambda: not placeholders(shop), "the placeholders to go")


@pytest.mark.e2e
def test_what_prefers_spot_comes_to_spot(
    shop: Shop, fleet: Fleet, metrics: MetricsApi, right: str, sandbox: Sandbox
) -> None:
    """Spot took nobody when the replicas were placed: when it does, they come, and nobody misses one."""
    spot = set(fleet.names("spot"))
    sandbox.kubectl("cordon", *spot)
    sandbox.kubectl("apply", "-f", right)
    wishes = {"relief": "cpu=85", "spot-affinity": "preferred", "soak": "5s"}
    annotations = {f"splitter.io/{name}": value for name, value in wishes.items()}
    app = manifest("web", N, annotations=annotations, ready_after="1s")
    app["metadata"]["labels"]["splitter.io/split"] = "enabled"
    shop.apply(app)
    shop.until(lambda: shop.twins() == (0, N), "all to be of the spot twin")
    shop.wait_steady()
    assert not spot & set(shop.nodes())
    metrics.uses("web", 100)
    shop.until(lambda: "no spot node has room" in shop.status()["relief"]["message"], "it to be said")
    with shop.watch() as watched:
        sandbox.kubectl("uncordon", *spot)
        said = shop.reported("Relieving", "is on-demand, and spot has had room for 5 s")
        assert said.startswith(f"scale spot {N} -> {N + 1} (+1): web-")
        shop.until(lambda: set(shop.nodes()) <= spot, "all to stand on spot")
        shop.until(lambda: shop.twins() == (0, N) and not costs(shop), "the last move to end")
        assert watched.lowest() == N
        assert watched.highest() <= N + 1
    moves = shop.status()["relief"]["moves"]
    assert [move["aim"] for move in moves] == ["spot"] * len(moves)


@pytest.mark.e2e
def test_replicas_that_crowd_one_node_are_spread(
    shop: Shop, fleet: Fleet, metrics: MetricsApi, right: str, sandbox: Sandbox
) -> None:
    """The other machines came later: its own constraint is kept again, and nobody misses a replica."""
    full, *empty = fleet.names("spot")
    sandbox.kubectl("cordon", *empty)
    app = manifest("web", 2, annotations={"splitter.io/relief": "cpu=85"}, ready_after="1s")
    app["metadata"]["labels"]["splitter.io/split"] = "enabled"
    app["spec"]["template"]["spec"]["topologySpreadConstraints"] = [ONE_EACH | {"nodeTaintsPolicy": "Honor"}]
    shop.apply(app)
    shop.wait_split(on_demand=0, spot=2)
    assert set(shop.nodes()) == {full}
    metrics.uses("web", 100)
    sandbox.kubectl("apply", "-f", right)
    with shop.watch() as watched:
        sandbox.kubectl("uncordon", *empty)
        said = shop.reported("Relieving", f"{full} holds 2 of its replicas and")
        assert said.startswith("scale spot 2 -> 3 (+1): web-")
        shop.reported("Relieved", "goes, the new replica is ready elsewhere")
        assert watched.lowest() == 2
        assert watched.highest() <= 3
    # It is told when the twin is lowered: who leaves has its cost until its ReplicaSet ends it.
    shop.until(lambda: not costs(shop), "the replica to leave")
    assert len(set(shop.nodes())) == 2
    assert [move["aim"] for move in shop.status()["relief"]["moves"]] == ["spread"]


@pytest.mark.campaign
def test_it_dies_at_each_write_of_a_move(
    mortal: Mortal, fleet: Fleet, metrics: MetricsApi, right: str, sandbox: Sandbox
) -> None:
    """Killed after each write, no replica is missing, one at most is too many, and none stays so."""
    shop = mortal.shop
    piled(shop, fleet, "500ms")
    sandbox.kubectl("apply", "-f", right)
    with shop.watch() as watched:
        metrics.uses("web", USED_M)
        mortal.dies_at(lambda write: write.kind != "events")
        mortal.until(lambda: shop.status().get("relief", {}).get("moves"), "a move")
        mortal.until(
            lambda: any("ended" in move for move in shop.status().get("relief", {}).get("moves", ())),
            "a move that has ended",
        )
        deaths = sum(write.fatal for write in mortal.gateway.writes)
        mortal.survives()
        assert deaths >= 4
        shop.annotate(relief="off")
        shop.until(lambda: shop.twins() == (0, N) and shop.shape().total == N and not costs(shop), "calm")
        assert watched.lowest() == N
        assert watched.highest() <= N + 1
        assert "lastLoss" not in shop.status()["rebalance"]


@pytest.fixture
def placement_policy(sandbox: Sandbox) -> Iterator[None]:
    """Have the API server place pods; in other tests it does not."""
    sandbox.kubectl("apply", "-f", POLICY)
    yield
    sandbox.kubectl("delete", "-f", POLICY)


@pytest.mark.e2e
@needs_placement
@pytest.mark.usefixtures("placement_policy")
def test_a_member_restarts_off_a_hot_node(
    shop: Shop, fleet: Fleet, metrics: MetricsApi, right: str, sandbox: Sandbox
) -> None:
    """Where its StatefulSet asks for that itself: one, in its own pool, and the others serve."""
    db = Placed(shop)
    db.create(0, {"splitter.io/relief": "cpu=85,restarts", "splitter.io/on-demand-base": "0"})
    db.label()
    shop.until(lambda: db.placed_by() == [] and steadily(db.is_mutated), "the policy to know it")
    db.scale(3)  # so that none has to move, which would keep all of them for an hour
    db.wait_placed([], [0, 1, 2])
    zones = {raw["metadata"]["name"]: raw["metadata"]["labels"][ZONE] for raw in sandbox.api.list(NODES)}
    of_zone = Counter(zones[node] for node in fleet.names("spot"))
    # The scheduler prefers the zone that has no member: there has to be a cool machine in it.
    hot = next(node for node in map(db.node_of, range(3)) if of_zone[zones[node]] > 1)
    [name] = [f"db-{k}" for k in range(3) if db.node_of(k) == hot]
    before = db.uids()
    shop.apply(pinned("hog", hot, "3"))
    metrics.uses("hog", 8 * 1000 - USED_M - 400)
    metrics.uses("db", USED_M)
    with db.watch() as watched:
        sandbox.kubectl("apply", "-f", right)
        said = shop.reported("Relieved", f"{name} has left", name="db")
        assert said.startswith(f"{name} has left {hot}, and is ready on spot-")
        assert watched.lowest() == 2
    assert db.is_placed([], [0, 1, 2])
    after = db.uids()
    assert {one for one in before if before[one] != after[one]} == {name}

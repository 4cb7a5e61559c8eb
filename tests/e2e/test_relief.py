"""A node that is hot by real use is relieved of a replica: with the right, and one more before one goes."""

from collections import Counter
from collections.abc import Iterator

import pytest

from lab.demo.watching import ScaleLog, Watch
from lab.fixtures.metrics_api import MetricsApi
from lab.fixtures.shop import JsonObject, Shop, manifest
from lab.sandbox import Sandbox
from lab.sandbox.fleet import Fleet
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

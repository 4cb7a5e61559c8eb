"""The view of a cluster: which pods are a workload's, who is told of a change, and what cannot be shown."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kube.server import client_of
from plugin.dashboard.paper_cluster import PaperCluster, node, pod, split
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.nodes.signals import assess
from splitter.plugin.kube.cluster_view import ClusterView
from world.server import served

WEB = Key(DEPLOYMENT, "shop", "web")
API = Key(DEPLOYMENT, "shop", "api")
WITHOUT_PODS = "replicas are not shown on their nodes"


def cluster() -> PaperCluster:
    """Return two workloads on two nodes."""
    made = PaperCluster()
    made.put("nodes", node("od-1", "on-demand"), node("spot-1", "spot"))
    made.put("splits", split("web"), split("api"))
    made.put("pods", pod("web", "web-0", "on-demand", "od-1"), pod("web", "web-1", "spot", "spot-1"))
    made.put("pods", pod("web", "web-2", "spot", None), pod("api", "api-0", "spot", "spot-1"))
    return made


@asynccontextmanager
async def viewed(made: PaperCluster, *only: Key) -> AsyncIterator[tuple[ClusterView, list[Key | None]]]:
    """Follow it, and note who was told of what."""
    changes: list[Key | None] = []
    async with served(made.api) as address, client_of(address) as client:
        view = ClusterView(client, ("shop",), assess, changes.append, lambda key: not only or key in only)
        async with view.followed():
            changes.clear()
            yield view, changes


class TestWorkloads:
    """A workload is its Split and the pods of its twins."""

    async def test_have_their_own_pods(self) -> None:
        """Those that are labelled with its name, wherever they stand."""
        async with viewed(cluster()) as (view, _):
            record = view.split(WEB)
            assert record is not None
            assert sorted(one.name for one in view.pods_of(record)) == ["web-0", "web-1", "web-2"]
            assert view.splits_on("spot-1") == {WEB: 1, API: 1}

    async def test_that_nobody_asked_for_are_not_shown(self) -> None:
        """Neither by name nor on a node."""
        async with viewed(cluster(), API) as (view, _):
            assert view.split(WEB) is None
            assert view.splits_on("spot-1") == {API: 1}


class TestChanges:
    """Every change names the workloads that it concerns."""

    async def test_of_a_pod(self) -> None:
        """Its own workload, and no other."""
        made = cluster()
        async with viewed(made) as (view, changes):
            view.pods.upsert(pod_of(made, "web-1", ready=False))
            assert changes == [WEB]

    async def test_of_a_node(self) -> None:
        """The page as a whole, and whoever has replicas there; a heartbeat is no change."""
        made = cluster()
        async with viewed(made) as (view, changes):
            made.put("nodes", node("spot-1", "spot"))
            view.nodes.upsert(made.find("nodes", "spot-1", ""))
            assert changes == []
            made.put("nodes", node("spot-1", "spot", going=True))
            view.nodes.upsert(made.find("nodes", "spot-1", ""))
            assert changes[0] is None
            assert set(changes[1:]) == {WEB, API}
            assert [one.facts.name for one in view.troubled_nodes()] == ["spot-1"]


class TestMissing:
    """What may not be read is said, and the rest is shown."""

    async def test_a_kind_that_is_refused(self) -> None:
        """Named with what is not shown for it."""
        made = cluster()
        made.api.forbidden.add("pods")
        async with viewed(made) as (view, _):
            assert view.missing == (f"these credentials may not list pods in namespace shop: {WITHOUT_PODS}",)
            assert (view.sees("pods"), view.sees("splits")) == (False, True)
            assert view.split(WEB) is not None

    async def test_nothing(self) -> None:
        """Where everything may be read."""
        async with viewed(cluster()) as (view, _):
            assert view.missing == ()


def pod_of(made: PaperCluster, name: str, *, ready: bool) -> dict[str, object]:
    """Return a pod of the cluster on paper as it is now, with another readiness, and a newer version."""
    old = made.find("pods", name)
    new = pod("web", name, "spot", old["spec"]["nodeName"], ready=ready)
    new["metadata"] |= {
        "uid": old["metadata"]["uid"],
        "creationTimestamp": old["metadata"]["creationTimestamp"],
    }
    new["metadata"]["resourceVersion"] = str(made.api.objects.version + 1)
    return new

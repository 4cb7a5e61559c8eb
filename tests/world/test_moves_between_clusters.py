"""Karmada lowers the count in one cluster and raises it in another at the same moment."""

from typing import Final

from leaping import passing
from world.cluster import POOL, Cluster
from world.kinds import DEPLOYMENTS, SPLITS, Raw
from world.process import splitting
from world.recorder import Recorder
from world.workloads import WEB, changed, deployment, moments, until

N: Final = 12
_GENERATION: Final = "resourcetemplate.karmada.io/generation"


def from_karmada(replicas: int, generation: str) -> Raw:
    """Return a Deployment as Karmada writes it into a member."""
    raw = deployment(replicas)
    raw["metadata"] |= {
        "labels": {"karmada.io/managed": "true", "splitter.io/split": "enabled"},
        "annotations": {_GENERATION: generation, "splitter.io/on-demand-base": "4"},
    }
    return raw


def scaled(cluster: Cluster, replicas: int, generation: str) -> None:
    """Have Karmada write another count."""

    def change(raw: Raw) -> None:
        raw["spec"]["replicas"] = replicas
        raw["metadata"]["annotations"][_GENERATION] = generation

    changed(cluster, WEB, change)


def states(cluster: Cluster) -> list[str]:
    """Return what the Splits say."""
    return [raw.get("status", {}).get("state", "") for raw in cluster.objects.all(SPLITS)]


async def test_linger_until_their_successors_may_be_ready() -> None:
    """A move is followed half a minute later; what a person scales is followed at once."""
    cluster = Cluster(1)
    for number in range(3):
        for pool in ("on-demand", "spot"):
            cluster.add_node(f"{pool}-{number}", {POOL: pool})
    async with cluster.running(), splitting(cluster):
        cluster.objects.create(DEPLOYMENTS, "shop", from_karmada(N, "2"), "karmada")
        await until(lambda: states(cluster) == ["Steady"] and len(cluster.ready()) == N, 900.0)
        recorder = Recorder(cluster, N, N + 3)
        scaled(cluster, 8, "2")
        began_s = moments()
        await passing(28.0)
        assert recorder.fewest == N
        assert "stay until" in str(cluster.objects.all(SPLITS)[0]["status"])
        recorder.least = 8
        await until(lambda: len(cluster.pods()) == 8, 30.0)
        assert moments() - began_s > 29.0
        recorder.least = 6
        scaled(cluster, 6, "3")
        await until(lambda: len(cluster.pods()) == 6, 10.0)
        scaled(cluster, N, "3")  # another cluster has lost its nodes
        await until(lambda: len(cluster.ready()) == N, 30.0)
        recorder.stop()
    assert not recorder.broken, recorder.broken[0]

"""The scheduler of the world prefers and spreads as Kubernetes 1.36 does."""

from collections import Counter

import pytest

from world.cluster import Cluster
from world.kinds import DEPLOYMENTS, Raw
from world.workloads import deployment, until

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


async def placed(spec: Raw, replicas: int, **zones: str) -> Counter[str]:
    """Return where pods with this spec come to, of nodes in these zones; some may come to none."""
    cluster = Cluster(1)
    for name, zone in zones.items():
        cluster.add_node(name, {ZONE: zone})
    raw = deployment(replicas)
    raw["spec"]["template"]["spec"] |= spec
    async with cluster.running():
        cluster.objects.create(DEPLOYMENTS, "shop", raw, "user")
        await until(
            lambda: (
                len(cluster.pods()) == replicas
                and all((pod.get("status") or {}).get("conditions") for pod in cluster.pods())
            )
        )
        return Counter(pod["spec"].get("nodeName", "") for pod in cluster.pods())


def constraint(key: str, unless: str = "DoNotSchedule", **fields: object) -> Raw:
    """Return a spec that spreads its own pods."""
    selector = {"matchLabels": {"app": "web"}}
    one = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": unless, "labelSelector": selector, **fields}
    return {"topologySpreadConstraints": [one]}


@pytest.mark.parametrize("unless", ["DoNotSchedule", "ScheduleAnyway"])
async def test_zones_are_spread(unless: str) -> None:
    """Whatever the number of nodes in each (podtopologyspread)."""
    on = await placed(constraint(ZONE, unless), 6, a1="a", a2="a", a3="a", b1="b")
    assert on["b1"] == 3


async def test_a_domain_that_is_missing() -> None:
    """With minDomains 3 of two nodes each takes maxSkew, and the others wait."""
    on = await placed(constraint(HOST, minDomains=3), 4, a1="a", a2="a")
    assert on == {"a1": 1, "a2": 1, "": 2}


async def test_preferred_nodes_are_taken() -> None:
    """Before those with fewer pods (nodeaffinity)."""
    term = {"key": ZONE, "operator": "In", "values": ["b"]}
    preferred = [{"weight": 100, "preference": {"matchExpressions": [term]}}]
    on = await placed({"affinity": {"nodeAffinity": {PREFERRED: preferred}}}, 6, a1="a", b1="b")
    assert on == {"b1": 6}


async def test_a_pod_prefers_to_be_without_others() -> None:
    """Though a node in a preferred zone is left for it (interpodaffinity)."""
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    affinity = {
        "nodeAffinity": {
            PREFERRED: [
                {
                    "weight": 50,
                    "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]},
                }
            ]
        },
        "podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": apart}]},
    }
    assert await placed({"affinity": affinity}, 2, a1="a", b1="b") == {"a1": 1, "b1": 1}

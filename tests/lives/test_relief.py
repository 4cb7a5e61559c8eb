"""A node that is hot by real use is relieved of a replica: with the right, and one more before one goes."""

from collections import Counter

from lab.fixtures.placed import Placed
from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox.fleet import Fleet
from lab.sandbox.nodes import NODES
from world.placement_policy import PlacementPolicy
from world.sandbox import InMemory


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


# Of the 8 CPUs of a machine: six replicas make it hot, and with four it is as cool as it has to be.
USED_M = 1200


ZONE = "topology.kubernetes.io/zone"


def test_a_member_restarts_off_a_hot_node(shop: Shop, fleet: Fleet, sandbox: InMemory) -> None:
    """Where its StatefulSet asks for that itself: one, in its own pool, and the others serve."""
    sandbox.at_once(lambda: PlacementPolicy(sandbox.cluster.objects))
    db = Placed(shop)
    db.create(0, {"splitter.io/relief": "cpu=85,restarts", "splitter.io/on-demand-base": "0"})
    db.label()
    shop.until(lambda: db.placed_by() == [] and db.is_mutated(), "the policy to know it")
    db.scale(3)  # so that none has to move, which would keep all of them for an hour
    db.wait_placed([], [0, 1, 2])
    zones = {raw["metadata"]["name"]: raw["metadata"]["labels"][ZONE] for raw in sandbox.api.list(NODES)}
    of_zone = Counter(zones[node] for node in fleet.names("spot"))
    # The scheduler prefers the zone that has no member: there has to be a cool machine in it.
    hot = next(node for node in map(db.node_of, range(3)) if of_zone[zones[node]] > 1)
    [name] = [f"db-{k}" for k in range(3) if db.node_of(k) == hot]
    before = db.uids()
    shop.apply(pinned("hog", hot, "3"))
    sandbox.cluster.metrics.uses |= {"hog": 8 * 1000 - USED_M - 400, "db": USED_M}
    with db.watch() as watched:
        sandbox.cluster.serve_metrics()
        said = shop.reported("Relieved", f"{name} has left", name="db")
        assert said.startswith(f"{name} has left {hot}, and is ready on spot-")
        assert watched.lowest() == 2
    assert db.is_placed([], [0, 1, 2])
    after = db.uids()
    assert {one for one in before if before[one] != after[one]} == {name}

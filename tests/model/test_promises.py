"""The judge of the stories itself: it counts as Kubernetes does, and as the promises say.

Each case is the end of a random life in which the judge was wrong and splitter was not.
"""

from dataclasses import replace

import pytest

from model.cluster import Cluster, Deployment, Pod, ReplicaSet, Split
from model.controllers import sync_deployment
from model.promises import CONTROLLER, Promises, destined
from splitter.core.replica import Pool
from stories.reported import BrokenPromiseError

TWIN = Deployment("web-on-demand", "uid-od", Pool.ON_DEMAND, "v2", 2, 0, 1, 1, observed_generation=1)


@pytest.fixture
def cluster() -> Cluster:
    """Return a paused source of 2 with a surge of 2, and a twin without pods."""
    made = Cluster(2, 2, 0)
    made.source.paused = True
    made.twins[Pool.ON_DEMAND] = replace(TWIN)
    for name, spot in (("od", False), ("spot", True)):
        made.add_node(name, spot=spot, slots=20)
    return made


def has(cluster: Cluster, pool: Pool, template: str, pods: int, spec: int, *, ready: bool) -> ReplicaSet:
    """Give a twin a ReplicaSet that asks for `spec` replicas and has so many pods."""
    twin = cluster.twins[pool]
    rs = cluster.make_replica_set(twin, template, spec)
    rs.desired_replicas = twin.replicas
    for number in range(pods):
        name = f"{rs.name}-{number}"
        node = "spot" if pool is Pool.SPOT else "od"
        pod = Pod(name, name, rs.uid, pool, template, 0, node, 0 if ready else None, label=pool)
        cluster.pods[name] = pod
    return rs


@pytest.mark.parametrize(("older_spec", "newest_spec"), [(2, 0), (3, 1)])
def test_a_roll_takes_what_was_never_seen_available(
    cluster: Cluster, older_spec: int, newest_spec: int
) -> None:
    """Pods that have become ready since the ReplicaSet's last status are cleaned away, after any scaling."""
    older = has(cluster, Pool.ON_DEMAND, "v1", 2, older_spec, ready=True)
    newest = has(cluster, Pool.ON_DEMAND, "v2", 1, newest_spec, ready=True)
    older.desired_replicas = newest.desired_replicas = older.max_replicas = newest.max_replicas = (
        older_spec + newest_spec
    )
    older.status_replicas, newest.status_replicas, newest.status_available = 2, 1, 1
    expected = destined(cluster)
    while sync_deployment(cluster, cluster.twins[Pool.ON_DEMAND]):
        assert destined(cluster).available >= expected.available
    assert older.spec == 0


def test_a_raise_keeps_no_pod_that_is_being_ended(cluster: Cluster) -> None:
    """The roll asked for one less before the count was raised; the pod has not gone yet (life 11660)."""
    older = has(cluster, Pool.ON_DEMAND, "v1", 3, 2, ready=True)
    older.desired_replicas, older.status_replicas, older.status_available = 3, 3, 3
    cluster.twins[Pool.ON_DEMAND].replicas = 5
    assert destined(cluster).available == 2


def test_a_roll_takes_no_more_than_that(cluster: Cluster) -> None:
    """What the status shows stays, but for what the strategy gives up."""
    older = has(cluster, Pool.ON_DEMAND, "v1", 2, 2, ready=True)
    has(cluster, Pool.ON_DEMAND, "v2", 0, 0, ready=True)
    older.status_replicas, older.status_available = 2, 2
    assert destined(cluster).available == 1


def test_a_twin_with_the_template_of_the_source_makes_another_replica_set(cluster: Cluster) -> None:
    """The label of the pool is in the template, and so in its hash: it adopts no pod of the source's."""
    own = cluster.make_replica_set(cluster.source, "v1", 1)
    twins = has(cluster, Pool.ON_DEMAND, "v1", 0, 1, ready=True)
    assert not set(own.hashes) & set(twins.hashes)


def one_more_than_before(cluster: Cluster, *, spot_is_ready: bool) -> None:
    """Have a controller make the eighth pod of two, while a shortage is known."""
    cluster.twins[Pool.SPOT] = replace(TWIN, name="web-spot", uid="uid-spot", pool=Pool.SPOT, replicas=6)
    has(cluster, Pool.SPOT, "v2", 6, 6, ready=spot_is_ready)
    cluster.split = Split(
        "uid-split", "uid-web", takes_over=True, status={"memory": {"rebalance": {"lost": True}}}
    )
    promises = Promises(cluster)
    with promises.step(CONTROLLER):
        has(cluster, Pool.ON_DEMAND, "v2", 2, 2, ready=False)


def test_a_loss_is_covered_beside_what_is_starting(cluster: Cluster) -> None:
    """A freeze has held 6 where 2 are wanted; they were lost, and are made anew beside their cover."""
    one_more_than_before(cluster, spot_is_ready=False)


def test_what_serves_is_no_reason_for_more(cluster: Cluster) -> None:
    """Beside 6 that are ready two more are too many."""
    with pytest.raises(BrokenPromiseError, match="8 pods, at most"):
        one_more_than_before(cluster, spot_is_ready=True)

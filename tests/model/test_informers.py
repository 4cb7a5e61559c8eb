"""Controllers that see late: they act on what they knew, and write nothing over what they do not know."""

import pytest

from model.cluster import Cluster
from model.controllers import actors, schedule, sync_deployment, sync_replica_set
from model.informers import LAG_S, Informers


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster with three ready replicas, of which all that there is has been told."""
    made = Cluster(3, 1, 0)
    made.informers = Informers(made)
    made.add_node("od", spot=False, slots=9)
    settle(made)
    made.now += 10
    settle(made)
    assert sum(map(made.serves, made.pods.values())) == 3
    return made


def settle(cluster: Cluster) -> None:
    """Let everybody act, and each watch tell what is new, until nothing changes."""
    while sum(act() for act in actors(cluster)):
        pass


def test_a_count_is_followed_when_it_is_seen(cluster: Cluster) -> None:
    """The status says so too: `observedGeneration` stays behind."""
    cluster.change_spec(cluster.source, replicas=5)
    assert not sync_deployment(cluster, cluster.source)
    assert cluster.source.observed_generation < cluster.source.generation
    cluster.now += LAG_S + 1
    assert sync_deployment(cluster, cluster.source)
    assert [rs.spec for rs in cluster.replica_sets.values()] == [5]
    assert cluster.source.observed_generation == cluster.source.generation


def test_a_replica_that_has_become_ready_unseen_goes_first(cluster: Cluster) -> None:
    """A ReplicaSet's controller takes one for not ready that is, and no more than its count says."""
    rs = next(iter(cluster.replica_sets.values()))
    late = next(iter(cluster.pods.values()))
    late.ready_since = None
    assert cluster.informers is not None
    assert cluster.informers.watches()[0]()
    late.ready_since, rs.spec = cluster.now, 2
    assert sync_replica_set(cluster, rs)
    assert [pod for pod in cluster.pods.values() if not pod.active] == [late]
    sync_replica_set(cluster, rs)
    assert sum(pod.active for pod in cluster.pods.values()) == 2


def test_a_node_that_is_gone_still_gets_pods(cluster: Cluster) -> None:
    """The scheduler binds to a node that it has not seen go."""
    rs = next(iter(cluster.replica_sets.values()))
    rs.spec = 4
    sync_replica_set(cluster, rs)
    cluster.vanish("od")
    assert schedule(cluster)
    assert {pod.node for pod in cluster.pods.values()} == {"od"}

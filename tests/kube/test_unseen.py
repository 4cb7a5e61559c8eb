"""Nodes that went while nobody looked: each pod speaks for itself alone, and a seen node for all."""

from typing import Any

import pytest

from kube.cached import cache, pod_on
from kube.raw import deployment, owner, replica_set, stateful_set
from splitter.core.nodes.facts import CapacityClass, Health, NodeState
from splitter.kube import parse
from splitter.kube.cache import Cache
from splitter.kube.records import PodRecord
from splitter.kube.unseen import as_the_pod_says, unseen


def known(pool: str) -> Cache:
    """Return a cache with a twin of a pool, and its ReplicaSet."""
    result = cache()
    labels = {"splitter.io/split": "twin", "splitter.io/pool": pool, "splitter.io/source": "web"}
    twin = f"web-{pool}"
    result.twins.upsert(
        deployment(twin, labels=labels, uid="uid-twin", ownerReferences=[owner("Deployment", "web")])
    )
    controller = {**owner("Deployment", twin), "uid": "uid-twin"}
    result.replica_sets.upsert(replica_set(uid="uid-rs", ownerReferences=[controller]))
    return result


def pod_of(owned: dict[str, Any], name: str = "web-1", **labels: str) -> PodRecord:
    """Return a pod on a node that is gone."""
    raw = pod_on("gone", name, 10)
    metadata = raw["metadata"]
    assert isinstance(metadata, dict)
    metadata |= {"ownerReferences": [owned], "labels": labels}
    return parse.pod(raw)


OF_THE_SET = {**owner("ReplicaSet", "web-1"), "uid": "uid-rs"}


def test_is_gone_and_of_no_kind() -> None:
    """Until a pod says more."""
    state = unseen("gone")
    assert (state.name, state.health, state.capacity) == ("gone", Health.GONE, CapacityClass.UNKNOWN)
    assert not state.is_spot


@pytest.mark.parametrize(("pool", "spot"), [("spot", True), ("on-demand", False)])
def test_was_of_the_pool_that_a_twins_pod_was_for(pool: str, *, spot: bool) -> None:
    """A spot twin's pods stand on spot."""
    result = known(pool)
    said = as_the_pod_says(unseen("gone"), pod_of(OF_THE_SET), result)
    assert said is not None
    assert (said.is_spot, said.health) == (spot, Health.GONE)


def test_is_of_no_kind_to_a_stranger() -> None:
    """Whose owner nobody knows, or is no twin's."""
    result = known("spot")
    for owned in ({**OF_THE_SET, "uid": "uid-else"}, owner("DaemonSet", "web")):
        assert as_the_pod_says(unseen("gone"), pod_of(owned), result) == unseen("gone")


def test_one_that_was_seen_is_as_it_was_seen() -> None:
    """Whatever a pod there says; and where none is there is none."""
    result = known("spot")
    pod = pod_of(OF_THE_SET)
    seen = NodeState("gone", "uid-node", CapacityClass.ON_DEMAND)
    assert as_the_pod_says(seen, pod, result) is seen
    assert as_the_pod_says(None, pod, result) is None


@pytest.mark.parametrize(
    ("name", "labels", "ordinals", "spot"),
    [
        ("db-3", {}, [0, 1], True),  # beyond those that are born on on-demand
        ("db-1", {}, [0, 1], False),
        ("db-1", {"splitter.io/pool": "spot"}, [0, 1], True),  # it was made for spot before that
        ("db-3", {}, None, False),  # split into twins: its own pods are nobody's
        ("db-x", {}, [0, 1], False),
    ],
)
def test_of_a_member_it_is_where_it_was_born(
    name: str, labels: dict[str, str], ordinals: list[int] | None, *, spot: bool
) -> None:
    """In placement mode, by its Split."""
    result = cache()
    source = stateful_set("db")
    result.sources.upsert(source)
    metadata = {"name": "db-sts", "namespace": "shop", "uid": "uid-split", "resourceVersion": "9"}
    spec: dict[str, Any] = {"source": {"kind": "StatefulSet", "name": "db"}}
    result.splits.upsert(
        {"metadata": metadata, "spec": spec if ordinals is None else {**spec, "onDemandOrdinals": ordinals}}
    )
    owned = {**owner("StatefulSet", "db"), "uid": source["metadata"]["uid"]}
    said = as_the_pod_says(unseen("gone"), pod_of(owned, name, **labels), result)
    assert said is not None
    assert said.is_spot is spot

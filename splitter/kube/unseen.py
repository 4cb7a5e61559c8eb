"""Guesses the kind of nodes that went while no splitter was running.

The cache finds them after its first complete lists, by the pods that are still bound to them; `observe` asks
here about each pod. Each speaks for itself alone: on one node stand pods of many tenants, and any may lie.
"""

from dataclasses import replace
from typing import Protocol

from splitter.core.names import ordinal_of
from splitter.core.nodes.facts import CapacityClass, NodeState
from splitter.core.nodes.signals import gone
from splitter.core.replica import Pool
from splitter.kube.records import PodRecord, ReplicaSetRecord, SourceRecord, SplitRecord, TwinRecord
from splitter.kube.store import Indexer

# No UID of the API server's begins so.
_UNSEEN = "unseen-"


class Shelves(Protocol):
    """What of the cache is looked at."""

    replica_sets: Indexer[ReplicaSetRecord]
    twins: Indexer[TwinRecord]
    sources: Indexer[SourceRecord]
    splits: Indexer[SplitRecord]


def unseen(name: str) -> NodeState:
    """Return the state of a node that is gone and was never seen."""
    return gone(NodeState(name, f"{_UNSEEN}{name}", CapacityClass.UNKNOWN))


def as_the_pod_says(state: NodeState | None, pod: PodRecord, indexers: Shelves) -> NodeState | None:
    """Return the node as this pod knew it: one that nobody has seen was of the pool that the pod was for."""
    if state is None or not state.uid.startswith(_UNSEEN) or not _was_for_spot(pod, indexers):
        return state
    return replace(state, capacity=CapacityClass.SPOT)


def _was_for_spot(pod: PodRecord, indexers: Shelves) -> bool:
    """Whether a pod is a spot twin's, or a member in placement mode that was meant for spot."""
    replica_set = indexers.replica_sets.get(pod.namespace, pod.owner_uid or "")
    owner_uid = (replica_set.controller_uid if replica_set else pod.owner_uid) or ""
    if (twin := indexers.twins.get(pod.namespace, owner_uid)) is not None:
        return twin.pool is Pool.SPOT
    source = indexers.sources.get(pod.namespace, owner_uid)
    split = indexers.splits.one("source", source.view.key) if source is not None else None
    ordinal = ordinal_of(pod.name.rpartition("-")[2])
    if split is None or split.spec.ordinals is None or ordinal is None:
        return False
    return pod.born is Pool.SPOT or ordinal not in split.spec.ordinals

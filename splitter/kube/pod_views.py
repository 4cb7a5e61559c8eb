"""Pods as the core sees them: each with what its node says about it.

A part of `observe`. A pod is bound to a node by name, and names are used again: here is decided whether the
node of that name is the one that runs the pod. Nothing here judges what follows from it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import assert_never

from splitter.core.model import ReplicaSetView
from splitter.core.nodes.facts import Health, NodeState, Tier
from splitter.core.nodes.fit import asks_for
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.kube.cache import Cache
from splitter.kube.records import NodeRecord, PodRecord, TwinRecord
from splitter.kube.unseen import as_the_pod_says

# A kubelet that registers reads the pods of its name, starts them, and has told of them long before.
BELIEVED_AFTER = timedelta(seconds=60)
_REMEMBERED = 4096


class PodViews:
    """Makes views of pods, for one observer."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._vanished_since: dict[str, datetime] = {}  # by the UID of the node: when it was first missed

    def of(self, record: PodRecord, now: datetime) -> Replica:
        """Return a pod with the status of its node."""
        node = self._cache.nodes.one("name", record.node) if record.node else None
        vanished = self._cache.vanished.get(record.node) if record.node and node is None else None
        vanished = as_the_pod_says(vanished, record, self._cache)
        state = self._cache.node_state(node, now) if node else vanished
        since = self._missed(vanished, now) if vanished is not None and not vanished.announced else None
        successor = ""
        before = self._cache.predecessors.get(node.uid) if node is not None else None
        if node is not None and before is not None and self._is_of_the_one_before(record, node, now):
            # The node that was lost, by its own UID: its loss was charged when it went, and is no new one.
            state, since, successor = as_the_pod_says(before, record, self._cache), node.created, node.uid
        return Replica(
            name=record.name,
            uid=record.uid,
            node_status=_node_status(record, state),
            node=record.node,
            node_uid=state.uid if state else None,
            on_spot=state is not None and state.is_spot,
            vanished=vanished is not None or bool(successor),
            vanished_since=since,
            successor=successor,
            voluntary=state is not None and state.voluntary,
            cordoned=state is not None and state.tier is Tier.CORDON,
            undated=state is not None and state.undated,
            hinted=state is not None and state.health is Health.HINTED,
            ready_since=record.ready_since,
            unready_since=record.unready_since,
            bound_since=record.bound_since,
            trouble=record.trouble,
            created=record.created,
            terminating=self._cache.is_ending(record),
            terminating_since=record.terminating_since,
            born=record.born,
            revision=record.revision,
            held_for=record.held_for,
            finished=record.finished,
            unschedulable_since=record.unschedulable_since,
            signal=state.signal if state else "",
            deadline=state.deadline if state else None,
            notice_s=state.notice_s if state else None,
            reclaim_s=state.reclaim_s if state else None,
            usual_notice_s=state.usual_notice_s if state else None,
            termination_s=record.termination_s,
            priority=record.priority,
            deletion_cost=record.deletion_cost,
            cost_before=record.cost_before,
            cost_at=record.cost_at,
            requests=record.requests,
        )

    def strays(self, twin: TwinRecord, replica_sets: Iterable[ReplicaSetView]) -> frozenset[str]:
        """Return the UIDs of its pods on nodes of the other pool that its template keeps new ones off."""
        spot = twin.pool is Pool.SPOT
        abroad = [pod for rs in replica_sets for pod in rs.pods if pod.node and pod.on_spot is not spot]
        nodes = {pod.uid: self._cache.nodes.one("name", pod.node) for pod in abroad}
        return frozenset(
            uid for uid, node in nodes.items() if node and not asks_for(twin.request, node.state)
        )

    @staticmethod
    def _is_of_the_one_before(record: PodRecord, node: NodeRecord, now: datetime) -> bool:
        """Whether a pod was bound to an earlier node of this name, and no kubelet has spoken of it since.

        Who did not see that one go believes the pod: to Kubernetes nothing is wrong with it, so nobody would
        ever let it go. Nor is one ever disbelieved for long: the clocks of kubelets are not ours.
        """
        if record.bound_since is None or record.bound_since >= node.created:
            return False
        said = max((at for at in (record.ready_since, record.unready_since) if at is not None), default=None)
        has_reported = said is not None and said >= node.created
        return not has_reported and now - node.created < BELIEVED_AFTER

    def _missed(self, vanished: NodeState, now: datetime) -> datetime:
        if len(self._vanished_since) > _REMEMBERED:
            del self._vanished_since[next(iter(self._vanished_since))]
        return self._vanished_since.setdefault(vanished.uid, now)


def _node_status(record: PodRecord, state: NodeState | None) -> NodeStatus:
    if record.node is None:
        return NodeStatus.UNBOUND
    if state is None:
        return NodeStatus.UNSEEN
    match state.health:
        case Health.DOOMED:
            return NodeStatus.DOOMED
        case Health.GONE:
            return NodeStatus.LOST
        case Health.HEALTHY | Health.HINTED:
            return NodeStatus.SOUND
        case _:
            assert_never(state.health)

"""Joins the cache's records into one Observation: everything a pass may know about one source.

The reconciler calls `observe` at the start of each pass. It looks up the standing of each pod's node,
reads live only what no watch tells us (a source whose label is gone; whether a foreign object has a
twin's name), and never decides.
"""

from collections.abc import Mapping
from datetime import datetime

from splitter.core.fit import PodRequest, Room, free_room
from splitter.core.model import (
    Key,
    Observation,
    PodView,
    Pool,
    ReplicaSetView,
    SourceView,
    Standing,
    Tie,
    TwinView,
)
from splitter.core.nodes import CapacityClass, Health, NodeState
from splitter.core.surface import LABEL_SPLIT, SPLIT_TWIN, twin_name
from splitter.kube import parse
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError, Client
from splitter.kube.records import PodRecord, ReplicaSetRecord, TwinRecord

# Fewer on-demand nodes than this prove nothing about our view when half of them are NotReady.
_FEW_NODES = 3


class Observer:
    """Makes Observations out of the cache."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache

    async def observe(self, key: Key, now: datetime) -> Observation:
        """Return what is known now. Raises ApiError when a live look-up fails."""
        cache = self._cache
        source = await self._source(key)
        split = cache.splits.one("source", key)
        twins = {
            record.pool: self._twin(record, now)
            for record in cache.twins.find("source", key)
            if source is None or record.source_uid in {source.uid, ""} or not record.deleting
        }
        namespace = cache.namespaces.one("name", key.namespace)
        spot = twins.get(Pool.SPOT)
        return Observation(
            key=key,
            now=now,
            source=source,
            split=split.view if split else None,
            replica_sets=self._replica_sets(source) if source else (),
            on_demand=twins.get(Pool.ON_DEMAND),
            spot=spot,
            taken_names=await self._taken_names(key) if source and not twins and split is None else (),
            fit_spot=self._fit(spot) if spot is not None else 0,
            blocked=self._blocked(spot),
            view_broken=self._view_broken(),
            namespace_annotations=namespace.annotations if namespace else {},
        )

    async def _source(self, key: Key) -> SourceView | None:
        """Return the labelled source from the cache, any other one live: no watch tells us of those."""
        record = self._cache.sources.one("key", key)
        if record is not None:
            return record.view
        try:
            raw = await self._client.get(f"/apis/apps/v1/namespaces/{key.namespace}/deployments/{key.name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return parse.source(raw).view

    async def _taken_names(self, key: Key) -> tuple[str, ...]:
        """Return the twins' names that an object which is not ours has already."""
        taken = []
        for pool in Pool:
            name = twin_name(key.name, pool)
            try:
                raw = await self._client.get(f"/apis/apps/v1/namespaces/{key.namespace}/deployments/{name}")
            except ApiError as error:
                if error.status == 404:
                    continue
                raise
            if raw["metadata"].get("labels", {}).get(LABEL_SPLIT) != SPLIT_TWIN:
                taken.append(name)
        return tuple(taken)

    def _replica_sets(self, source: SourceView) -> tuple[ReplicaSetView, ...]:
        found = []
        for record in self._cache.replica_sets.find("deployment", (source.key.namespace, source.key.name)):
            if source.uid in record.owner_uids and not record.deleting:
                found.append(self._replica_set(record, _tie(record, source)))
        return tuple(sorted(found, key=lambda view: view.name))

    def _replica_set(self, record: ReplicaSetRecord, tie: Tie = Tie.ATTACHED) -> ReplicaSetView:
        return ReplicaSetView(
            name=record.name,
            uid=record.uid,
            resource_version=str(record.version),
            template_hash=record.template_hash,
            spec_replicas=record.spec_replicas,
            status_replicas=record.status_replicas,
            available_replicas=record.available_replicas,
            created=record.created,
            template_labels=record.template_labels,
            tie=tie,
            pods=tuple(self._pod(pod) for pod in self._cache.pods.find("owner", record.uid)),
        )

    def _twin(self, record: TwinRecord, now: datetime) -> TwinView:
        del now
        owned = self._cache.replica_sets.find("controller", record.uid)
        return TwinView(
            pool=record.pool,
            name=record.name,
            uid=record.uid,
            resource_version=str(record.version),
            rendered_hash=record.rendered_hash,
            spec_replicas=record.spec_replicas,
            status_replicas=record.status_replicas,
            available_replicas=record.available_replicas,
            updated_replicas=record.updated_replicas,
            observed=record.observed,
            max_surge=record.max_surge,
            max_unavailable=record.max_unavailable,
            deleting=record.deleting,
            replica_sets=tuple(self._replica_set(rs) for rs in owned if not rs.deleting),
        )

    def _pod(self, record: PodRecord) -> PodView:
        node = self._cache.nodes.one("name", record.node) if record.node else None
        state = node.state if node else None
        vanished_uid = self._cache.vanished.get(record.node) if record.node and state is None else None
        return PodView(
            name=record.name,
            uid=record.uid,
            standing=_standing(record, state, vanished=vanished_uid is not None),
            node=record.node,
            node_uid=state.uid if state else vanished_uid,
            # A vanished node's class is forgotten with it; a twin's pods stand where its template says.
            on_spot=state.capacity is CapacityClass.SPOT if state else vanished_uid is not None,
            vanished=vanished_uid is not None,
            hinted=state is not None and state.health is Health.HINTED,
            ready_since=record.ready_since,
            created=record.created,
            terminating=record.terminating,
            finished=record.finished,
            unschedulable_since=record.unschedulable_since,
            signal=state.signal if state else "",
            deadline=state.deadline if state else None,
            deletion_cost=record.deletion_cost,
            cost_before=record.cost_before,
        )

    def _blocked(self, spot: TwinView | None) -> str:
        """Return why no replicas should return now: a hint on a spot node under this workload."""
        for pod in spot.pods if spot else ():
            if pod.hinted and pod.counts:
                return f"{pod.node}: {pod.signal}"
        return ""

    def _view_broken(self) -> bool:
        """Whether more than half of the on-demand nodes are NotReady: then our view is broken, not spot."""
        on_demand = [
            record.state for record in self._cache.nodes.values() if record.state.capacity is not CapacityClass.SPOT
        ]
        gone = sum(1 for state in on_demand if state.health is Health.GONE)
        return len(on_demand) >= _FEW_NODES and gone * 2 > len(on_demand)

    def _fit(self, spot: TwinView) -> int:
        """Return the replicas that the healthy spot nodes have room for (only looked up when it matters)."""
        going = any(pod.standing is not Standing.SOUND for pod in spot.pods if pod.counts)
        if not going and spot.spec_replicas == len([pod for pod in spot.pods if pod.available]):
            pass
        request = self._request(spot)
        if request is None:
            return 0
        return free_room(request, tuple(self._rooms()))

    def _request(self, spot: TwinView) -> PodRequest | None:
        del spot
        return None

    def _rooms(self) -> list[Room]:
        rooms = []
        for record in self._cache.nodes.values():
            if record.state.capacity is CapacityClass.SPOT and record.state.health is Health.HEALTHY:
                pods = [pod for pod in self._cache.pods.find("node", record.state.name) if not pod.finished]
                rooms.append(Room(record.state, _sum_of_requests(pods)))
        return rooms


def _sum_of_requests(pods: list[PodRecord]) -> Mapping[str, int]:
    used: dict[str, int] = {"pods": len(pods)}
    for pod in pods:
        for resource, amount in pod.requests:
            used[resource] = used.get(resource, 0) + amount
    return used


def _tie(record: ReplicaSetRecord, source: SourceView) -> Tie:
    if record.controller_uid == source.uid:
        return Tie.ATTACHED
    if all(key in record.labels for key in source.selector_keys):
        return Tie.RETURNING
    return Tie.PARKED


def _standing(record: PodRecord, state: NodeState | None, *, vanished: bool) -> Standing:
    if record.node is None:
        return Standing.UNBOUND
    if state is None:
        return Standing.LOST if vanished else Standing.UNSEEN
    match state.health:
        case Health.DOOMED:
            return Standing.DOOMED
        case Health.GONE:
            return Standing.LOST
        case _:
            return Standing.SOUND

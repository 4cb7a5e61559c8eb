"""Joins the cache's records into one Observation: everything a reconcile may know about one source.

The reconciler calls `observe` at the start of each reconcile. It looks up the status of each pod's node,
reads live only what no watch tells us (a source whose label is gone; its `related_objects`), and never
decides.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus

from splitter.core.causes import of_nodes
from splitter.core.desired.scheduling import ReservationRules
from splitter.core.labels_annotations import split_name
from splitter.core.limits import too_large
from splitter.core.model import (
    Attachment,
    Note,
    Observation,
    RelatedObjects,
    Rendered,
    ReplicaSetView,
    SourceView,
    TwinView,
    seconds_between,
)
from splitter.core.names import Key
from splitter.core.nodes.fit import PodRequest, count_headroom
from splitter.core.nodes.spot_supply import Blocked
from splitter.core.placeable import UNPLACEABLE_AGAIN_S
from splitter.core.placement.reservations import placeholder_manifest
from splitter.core.reasons import State
from splitter.core.replica import Pool, Replica, Trouble
from splitter.core.split_status import RebalanceState
from splitter.core.split_status.view import SplitView
from splitter.core.stateful import StatefulView
from splitter.kube import parse
from splitter.kube.cache import Cache
from splitter.kube.client import Allowing, ApiError
from splitter.kube.listed import Reader
from splitter.kube.members import members_of, rolls
from splitter.kube.orphans import as_counted, orphans_of
from splitter.kube.paths import workload
from splitter.kube.pod_views import BELIEVED_AFTER, PodViews
from splitter.kube.pool_fit import PoolFits
from splitter.kube.records import PodRecord, ReplicaSetRecord, SplitRecord, TwinRecord, few
from splitter.kube.related_objects import look_around
from splitter.kube.rivals import RivalFinder
from splitter.kube.workload_autoscalers import WorkloadAutoscalers

# A workload that is split may become one that we would refuse; who made it so may wait for the answer.
_LOOK_AGAIN_S = 300.0
# How old what is known of its namespace's autoscalers may be: for its first look, and for the others.
_FIRST_S, _AGAIN_S = 1.0, 60.0


class Observer:
    """Makes Observations out of the cache."""

    def __init__(self, client: Reader, cache: Cache, reservations: ReservationRules | None = None) -> None:
        self._client = client
        self._cache = cache
        self._pods = PodViews(cache)
        self._reservations = reservations  # what placeholders are made of, in placement mode
        self._autoscalers = WorkloadAutoscalers(client)
        self._rivals = RivalFinder(client, cache)
        self._pool_fits = PoolFits(cache, reservations)
        self._looked_around: dict[Key, tuple[datetime, RelatedObjects, int]] = {}

    async def observe(self, key: Key, now: datetime, reserved: int = 0) -> Observation:
        """Return what is known now. Raises ApiError when a live look-up fails.

        `reserved` counts the spot replicas that other workloads were given in the last seconds.
        """
        cache = self._cache
        split = cache.splits.one("source", key)
        view = split.view if split else None
        source = _of_mode(await self._source(key), split)
        records = {
            record.pool: record
            for record in cache.twins.find("source", key)
            # Those of a source that was re-created under this name are garbage, and collected soon.
            if source is None or record.source_uid in {source.uid, ""}
        }
        twins = {pool: self._twin(record, now) for pool, record in records.items()}
        namespace = cache.namespaces.one("name", key.namespace)
        spot = twins.get(Pool.SPOT)
        request = records[Pool.SPOT].request if spot is not None else self._held_request(source, split)
        refused = cache.spot_blocked(request, now) if request is not None else None
        unowned = orphans_of(cache, key, source, records.values())
        own = (*self._replica_sets(source, now), *self._hung(unowned.hung, now)) if source else ()
        members = [pod for holder in own if holder.first_ordinal is not None for pod in holder.pods]
        hinted = _hinted([*(spot.pods if spot else ()), *(pod for pod in members if pod.on_spot)])
        blocked = hinted or (refused.why if refused is not None else "")
        fits = request if _fit_matters(view, spot, blocked) else None
        around = RelatedObjects()
        if source is not None:
            around = await self._related(source, view, twins.values(), now)
            if split is None and (other := cache.splits.one("name", (key.namespace, split_name(key)))):
                around = replace(around, split_of=f"{other.source.kind}/{other.source.name}")
            around = await self._rivals.beside(around, source, view, records.values(), now)
        else:
            self._looked_around.pop(key, None)
            self._pool_fits.forget(key)
        return Observation(
            key=key,
            now=now,
            source=source,
            split=view,
            replica_sets=own,
            on_demand=twins.get(Pool.ON_DEMAND),
            spot=spot,
            related=around,
            fit_spot=self._fit(fits, source, reserved, now) if fits is not None else 0,
            blocked=blocked,
            signal_ends_at=self._signal_ends_at(
                key, [*members, *(pod for twin in twins.values() for pod in twin.pods)], refused, now
            ),
            orphans=tuple(self._pod(pod, now) for pod in unowned.pods),
            leaving=unowned.leaving,
            going=tuple(
                replace(view, held_by=unowned.holders[view.uid]) for view in self._hung(unowned.going, now)
            ),
            budgets=cache.budgets.of(key, split.uid) if split is not None else (),
            consolidates=cache.external_signals.consolidate(
                {pod.node for twin in twins.values() for pod in twin.pods if pod.node}
            ),
            unguardable=cache.budgets.unguardable(key, now),
            placeholders=self._placeholders(split, now) if split is not None else (),
            published=cache.placements.published(key.namespace, source.uid) if source is not None else None,
            published_nodes=cache.placements.knows_nodes(key.namespace),
            view_broken=cache.view_broken,
            namespace_annotations=namespace.annotations if namespace else {},
        )

    def with_pools(self, observed: Observation, rendered: Mapping[Pool, Rendered] | Note) -> Observation:
        """Return what was observed, and whether each pool can take the replicas of these twins (H19)."""
        twins = rendered if isinstance(rendered, Mapping) else None
        return replace(observed, pools=self._pool_fits.of(observed, twins))

    async def _source(self, key: Key) -> SourceView | None:
        """Return the labelled source from the cache, any other one live: no watch tells us of those."""
        record = self._cache.sources.one("key", key)
        if record is not None:
            return record.view
        with Allowing(HTTPStatus.NOT_FOUND):
            return parse.source(await self._client.get(workload(key))).view
        return None

    async def _related(
        self, source: SourceView, split: SplitView | None, twins: Collection[TwinView], now: datetime
    ) -> RelatedObjects:
        """Look around before a take-over; while it is split now and then, and never in an emergency."""
        key = source.key
        if split is None or not split.takes_over:
            # What was seen when it was split before, in the other mode perhaps, counts no longer. The first
            # rest after a take-over looks anew: an autoscaler may be aimed at a twin meanwhile.
            self._looked_around.pop(key, None)
            return await self._look_around(source, twins, now, _FIRST_S)
        looked = self._looked_around.get(key)
        due = looked is None or _is_old(looked[0], looked[1], now) or looked[2] < source.replicas
        placed = split.ordinals is not None
        # A placed member waits for what only a look around tells: that the policy is there again.
        at_rest = {State.STEADY, State.HELD, State.ROLLING} if placed else {State.STEADY}
        calm = split.status.state in at_rest and not any(twin.is_losing for twin in twins)
        # What placement must know from the beginning: who cannot be moved, because of its volumes.
        claims = source.stateful is not None and source.stateful.claim_templates
        volumes = placed and claims
        if due and (calm or (volumes and looked is None)):
            with suppress(ApiError):  # it is split already: the reconcile has more urgent business than this
                at_most_s = _FIRST_S if looked is None else _AGAIN_S
                around = await self._look_around(source, twins, now, at_most_s)
                looked = self._looked_around[key] = (now, around, source.replicas)
        return looked[1] if looked is not None else RelatedObjects()

    async def _look_around(
        self, source: SourceView, twins: Iterable[TwinView], now: datetime, at_most_s: float
    ) -> RelatedObjects:
        if too_large(source):  # it is refused for that, and nobody is asked about it
            return RelatedObjects()
        stateful = source.stateful is not None
        scaling = await self._autoscalers.of(source.key.namespace, now, at_most_s, resources=stateful)
        mounts = stateful or source.claims
        nodes = [node.state for node in self._cache.nodes.values()] if mounts else ()
        names = [twin.name for twin in twins]
        said = getattr(self._cache.namespaces.one("name", source.key.namespace), "annotations", {})
        return await look_around(self._client, source, scaling, nodes, names, annotations=said)

    def _placeholders(self, split: SplitRecord, now: datetime) -> tuple[Replica, ...]:
        """Return what holds room for a move of a workload in placement mode."""
        return tuple(self._pod(pod, now) for pod in self._pods_of(split.namespace, split.uid))

    def _pods_of(self, namespace: str, owner_uid: str) -> tuple[PodRecord, ...]:
        """Return the pods that say whose they are, of the owner's namespace and no other."""
        return self._cache.pods.find("owner", (namespace, owner_uid))

    def _signal_ends_at(
        self, key: Key, pods: Iterable[Replica], refused: Blocked | None, now: datetime
    ) -> datetime | None:
        """Return when time alone ends something that was heard: no event will tell."""
        pods = list(pods)
        nodes = {pod.node for pod in pods if pod.node is not None}
        times = (
            self._cache.silent_from(nodes, now),
            refused.until if refused is not None else None,
            self._cache.budgets.again_at(key, now),
            *(pod.vanished_since + BELIEVED_AFTER for pod in pods if pod.successor and pod.vanished_since),
        )
        return min((at for at in times if at is not None), default=None)

    def _replica_sets(self, source: SourceView, now: datetime) -> tuple[ReplicaSetView, ...]:
        if source.stateful is not None:
            return (self._itself(source, source.stateful, now),)
        records = [
            record
            for record in self._cache.replica_sets.find("deployment", (source.key.namespace, source.key.name))
            if (source.uid in record.owner_uids or not record.owner_uids) and not record.deleting
        ]
        views = [self._replica_set(record, now, _attachment(record, source)) for record in few(records)]
        return tuple(sorted(views, key=lambda view: view.name))

    def _hung(self, records: Iterable[ReplicaSetRecord], now: datetime) -> list[ReplicaSetView]:
        """Return ReplicaSets that are to go and leave their pods, with what they have in place of counts."""
        views = (self._replica_set(record, now, Attachment.PARKED) for record in records)
        return [as_counted(view) for view in views]

    def _itself(self, source: SourceView, stateful: StatefulView, now: datetime) -> ReplicaSetView:
        """Return a StatefulSet as the holder of its own pods."""
        pods = self._ordinal_pods(source.key, source.uid, now)
        counted = sum(pod.counts for pod in pods)
        return ReplicaSetView(
            name=source.key.name,
            uid=source.uid,
            resource_version=source.resource_version,
            template_hash=source.template_hash,
            spec_replicas=stateful.spec_replicas,
            status_replicas=counted if source.observed else max(counted, stateful.status_replicas),
            available_replicas=stateful.available_replicas,
            created=stateful.created,
            attachment=Attachment.PARKED,
            first_ordinal=stateful.first_ordinal,
            rolls=not source.observed
            or rolls(self._pods_of(source.key.namespace, source.uid), source.key.name, stateful),
            pods=pods,
        )

    def _ordinal_pods(self, key: Key, uid: str, now: datetime) -> tuple[Replica, ...]:
        members = members_of(self._pods_of(key.namespace, uid), key.name)
        return tuple(replace(self._pod(pod, now), ordinal=ordinal) for ordinal, pod in members)

    def _revisions(self, record: TwinRecord, first: int, now: datetime) -> tuple[ReplicaSetView, ...]:
        """Return a twin's pods by revision, as if each had a ReplicaSet; what a partition holds back is new.

        Until its controller has seen the last write nobody knows which revision is to be: then none is.
        """
        old: dict[str, list[Replica]] = {}
        new: list[Replica] = []
        revisions = {pod.uid: pod.revision for pod in self._pods_of(record.namespace, record.uid)}
        for pod in self._ordinal_pods(record.key, record.uid, now):
            held_back = pod.ordinal is not None and pod.ordinal - first < record.view.partition
            is_new = record.view.observed and (held_back or revisions[pod.uid] == record.revision)
            (new if is_new else old.setdefault(revisions[pod.uid], [])).append(pod)
        older = [
            _revision(record, name, name, sum(pod.counts for pod in pods), pods)
            for name, pods in sorted(old.items())
        ]
        left = max(0, record.view.spec_replicas - sum(rs.spec_replicas for rs in older))
        return (_revision(record, record.revision, record.view.template_hash, left, new), *older)

    def _replica_set(
        self, record: ReplicaSetRecord, now: datetime, attachment: Attachment = Attachment.ATTACHED
    ) -> ReplicaSetView:
        return replace(
            record.view,
            resource_version=str(record.version),
            attachment=attachment,
            orphaned=attachment is Attachment.PARKED and not record.owner_uids,
            pods=tuple(self._pod(pod, now) for pod in self._pods_of(record.namespace, record.uid)),
        )

    def _twin(self, record: TwinRecord, now: datetime) -> TwinView:
        view = record.view
        if view.first_ordinal is not None:
            replica_sets = self._revisions(record, view.first_ordinal, now)
            counted = sum(rs.status_replicas for rs in replica_sets)  # its status counts terminating ones too
            view = replace(
                view,
                status_replicas=counted if view.observed else max(counted, view.status_replicas),
                updated_replicas=replica_sets[0].status_replicas,
            )
        else:
            owned = self._cache.replica_sets.find("controller", (record.namespace, record.uid))
            replica_sets = tuple(self._replica_set(rs, now) for rs in few(owned) if not rs.deleting)
        made = self._cache.applied.mutated(record)
        return replace(
            view,
            resource_version=str(record.version),
            removed=self._cache.applied.removed(record, now),
            altered=made.changed if made is not None else (),
            added=made.added if made is not None else (),
            unanswered=made is None,
            excluded=self._excluded(record) if _waits_for_node(replica_sets) else None,
            strays=self._pods.strays(record, replica_sets),
            replica_sets=replica_sets,
        )

    def _excluded(self, record: TwinRecord) -> Trouble | None:
        """Return why no node of the pool takes a twin's pods; the walk ends at the first that would."""
        nodes = (node.state for node in self._cache.nodes.values())
        return of_nodes(record.request, nodes, spot=record.pool is Pool.SPOT)

    def _pod(self, record: PodRecord, now: datetime) -> Replica:
        return self._pods.of(record, now)

    def _held_request(self, source: SourceView | None, split: SplitRecord | None) -> PodRequest | None:
        """Return what a placeholder on spot asks for; None where there is none, or none can be made."""
        placed = split is not None and split.spec.ordinals is not None
        if source is None or self._reservations is None or not placed:
            return None
        manifest = json.loads(source.manifest_json)
        try:
            return parse.pod_request(placeholder_manifest(manifest, Pool.SPOT, self._reservations))
        except ValueError:  # of what asks for too much: the plan says it
            return None

    def _fit(self, request: PodRequest, source: SourceView | None, reserved: int, now: datetime) -> int:
        """Return the replicas that the healthy spot nodes have room for now; no more than all matter."""
        enough = source.replicas if source is not None else 0
        return count_headroom(request, self._cache.spot_headroom(now), reserved, enough)


def _is_old(at: datetime, seen: RelatedObjects, now: datetime) -> bool:
    """Whether a look around has to be taken again; sooner while nobody is moved because of it."""
    lasts_s = UNPLACEABLE_AGAIN_S if seen.unplaceable else _LOOK_AGAIN_S
    return seconds_between(at, now) >= lasts_s


def _of_mode(source: SourceView | None, split: SplitRecord | None) -> SourceView | None:
    """Return a source as its mode reads it: who is split by placement has no saved N, whatever it bears.

    An old export, a clone or a backup may bring the annotation of its days as twins.
    """
    placed = split is not None and split.spec.ordinals is not None
    if source is None or source.stateful is None or source.stateful.saved is None or not placed:
        return source
    stateful = replace(source.stateful, saved=None, left=0)
    return replace(source, replicas=stateful.spec_replicas, stateful=stateful)


def _revision(
    twin: TwinRecord, name: str, template_hash: str, spec: int, pods: Sequence[Replica]
) -> ReplicaSetView:
    return ReplicaSetView(
        name=name,
        uid=f"{twin.uid}/{name}",
        resource_version=str(twin.version),
        template_hash=template_hash,
        spec_replicas=spec,
        status_replicas=sum(pod.counts for pod in pods),
        available_replicas=sum(pod.ready for pod in pods),
        created=twin.created,
        pods=tuple(pods),
    )


def _waits_for_node(replica_sets: Iterable[ReplicaSetView]) -> bool:
    return any(pod.counts and pod.unschedulable_since is not None for rs in replica_sets for pod in rs.pods)


def _hinted(on_spot: Iterable[Replica]) -> str:
    """Return why no replicas should return now: a hint on a spot node under this workload."""
    for pod in on_spot:
        if pod.hinted and pod.counts:
            return f"{pod.node}: {pod.signal}"
    return ""


def _attachment(record: ReplicaSetRecord, source: SourceView) -> Attachment:
    if record.controller_uid == source.uid:
        return Attachment.ATTACHED
    if all(key in record.labels for key in source.selector_keys):
        return Attachment.RETURNING
    return Attachment.PARKED


def _fit_matters(split: SplitView | None, spot: TwinView | None, blocked: str) -> bool:
    """Whether `decide` may look at the room: the count walks all spot nodes, so not in each reconcile."""
    if blocked or spot is None:
        return bool(blocked)
    known = split.status.memory.rebalance if split is not None else RebalanceState()
    out = known.lost or (known.short_since is not None and not spot.spec_replicas)
    return out or spot.is_losing or bool(spot.strays)

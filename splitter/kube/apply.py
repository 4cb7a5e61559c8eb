"""The only writer: does the planner's actions, one after the other, and puts the answers in the cache.

The reconciler calls `apply` with one reconcile's actions. The first that fails ends the batch (the next
reconcile observes anew and plans again); a lost race (409, 422) is not an error but a reason to look again.
Every answer goes into the cache, so that the next reconcile sees what this one wrote. Field manager
`splitter` always; server-side apply for what is ours whole, small patches with a precondition for what is the
user's. It never decides whether to write, and sends nothing when this process does not lead: the client it is
given is under the permit of the lease (docs/adr/0021).
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from itertools import groupby
from typing import assert_never

from splitter.core import actions as do
from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER, LABEL_POOL, LABEL_SPLIT, split_name
from splitter.core.model import Note, Observation, Rendered, SourceView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.replica import Pool
from splitter.core.split_status import Condition, SplitStatus
from splitter.kube import paths, payloads
from splitter.kube.adoption import adopt, allowing_lost_races, expect_as_sent, expect_paused, patch_pod
from splitter.kube.availability import Availability
from splitter.kube.budgets import beside
from splitter.kube.cache import Cache
from splitter.kube.client import FORCED, OURS, Allowing, ApiError, Client, Json
from splitter.kube.dry_run import dry_run, dry_run_roll
from splitter.kube.letting_go import rehearse_letting_go
from splitter.kube.mutations import mutations
from splitter.kube.parse.pods import COST_BEFORE, DELETION_COST
from splitter.kube.paths import ResourcePath
from splitter.kube.placement_writer import PlacementWriter
from splitter.kube.rehearsal import Rehearsed


class Writer:
    """Writes for one process; nothing else in splitter changes the cluster."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        self._placement_writer = PlacementWriter(client, cache)
        self._availability = Availability(client, cache)
        self._unanswered: set[str] = set()  # UIDs of holders of which nobody knows if the last scale was done

    async def apply(
        self, observed: Observation, actions: tuple[do.Action, ...], written: list[do.Action] | None = None
    ) -> None:
        """Do the actions in order, and add each to `written` once it is answered.

        Those on pods are left out, and a budget that is raised beside what must not wait.

        Raises ApiError at the first failure. After it only raises are tried, and other pods' new owners: they
        must not wait for a template that the API server refuses, nor for the budget that comes first.
        """
        source, answered = observed.source, written if written is not None else []
        if source is None:
            return
        match actions:
            case (do.SetBudget(raised=True) as guard, *others) if any(map(do.must_not_wait, others)):
                rest = partial(self._apply, observed, source, answered, others)
                await beside(self._do(guard, observed, source), rest)
            case _:
                await self._apply(observed, source, answered, actions)

    async def _apply(
        self,
        observed: Observation,
        source: SourceView,
        answered: list[do.Action],
        actions: Sequence[do.Action],
    ) -> None:
        for on_pods, batch in groupby(enumerate(actions), key=lambda one: _is_on_pod(one[1])):
            if on_pods:  # they do not depend on each other, and a node may hold a hundred
                work = (self._do(action, observed, source) for _, action in batch)
                for one in await asyncio.gather(*work, return_exceptions=True):
                    if isinstance(one, BaseException):
                        raise one
                continue
            for place, action in batch:
                try:
                    await self._do(action, observed, source)
                except ApiError:
                    for other in filter(do.must_not_wait, actions[place + 1 :]):
                        with suppress(ApiError):
                            await self._do(other, observed, source)
                            answered.append(other)
                    raise
                answered.append(action)

    async def dry_run(self, observed: Observation, rendered: Mapping[Pool, Rendered]) -> Rehearsed:
        """Send the writes to come as a dry run; returns what was answered. Raises ApiError."""
        return await dry_run(self._client, observed, rendered)

    async def dry_run_roll(self, observed: Observation, rendered: Mapping[Pool, Rendered]) -> Note | None:
        """Send both twins as a dry run; returns why one would be refused. Raises ApiError."""
        return await dry_run_roll(self._client, observed, rendered)

    async def rehearse_letting_go(
        self, observed: Observation, rendered: Mapping[Pool, Rendered]
    ) -> Note | None:
        """Send what follows when pods are let go as a dry run; returns what would be refused."""
        return await rehearse_letting_go(self._client, observed, rendered)

    async def write_status(
        self, observed: Observation, status: SplitStatus, *, as_seen: bool = False
    ) -> None:
        """Replace the Split's status as last heard of (or seen). ApiError 404: it is gone, 409: changed."""
        body = {**payloads.split_identity(observed.key), "status": status.to_json()}
        known = self._cache.splits.get(observed.key.namespace, observed.split.uid) if observed.split else None
        if known is None:
            raise ApiError(HTTPStatus.NOT_FOUND, "NotFound", f"the Split of {observed.key} is gone")
        # Never onto a later Split of the same name: an apply to a status takes no notice of a UID.
        seen = observed.split.resource_version if observed.split is not None and as_seen else ""
        body["metadata"]["resourceVersion"] = seen or str(known.version)
        path = paths.splits(observed.key.namespace).of(split_name(observed.key), "status")
        self._cache.statuses.decided(known.uid, body["status"])
        self._cache.splits.upsert(await self._client.send("PATCH", path, body, patch="apply", query=FORCED))

    async def show_available(self, observed: Observation, shown: Condition) -> None:
        """Have the source's own status say how many replicas serve. Raises ApiError, but for a refusal."""
        if observed.source is not None:
            await self._availability.write(observed, observed.source, shown)

    async def post_event(self, namespace: str, body: Json) -> None:
        """Create an Event. Raises ApiError."""
        await self._client.send("POST", paths.events(namespace), body)

    async def repeat_event(self, namespace: str, name: str, series: Json) -> None:
        """Count on in an Event. Raises ApiError; 404: the API server has forgotten it."""
        await self._client.send("PATCH", paths.events(namespace).of(name), series, patch="merge")

    async def _do(  # noqa: C901, PLR0912 - one line for each kind of object
        self, action: do.Action, observed: Observation, source: SourceView
    ) -> None:
        match action:
            case do.EnsureSplit():
                await self._ensure_split(source, takes_over=action.takes_over)
            case do.DeleteSplit():
                async with self._placement_writer.published(source, None):
                    if observed.split is not None:
                        await self._delete(paths.split(source.key), observed.split.uid)
                        self._cache.splits.forget(observed.split.uid)
            case do.SetOwnershipMark() | do.SetPaused() | do.SaveReplicas() | do.ReleaseSource():
                await self._do_with_source(source, action)
            case do.Scale():
                await self._scale(observed, source, action)
            case do.ShowReplicas():
                shown: Json = {"spec": {"replicas": action.replicas}}
                path = paths.split(source.key)
                answer = await self._client.send("PATCH", path, shown, patch="merge", query=OURS)
                self._cache.splits.upsert(answer)
            case do.ApplyTwin():
                await self._apply_twin(source.key, action)
            case do.RestoreTemplate():
                await self._restore_template(source.key, action)
            case do.DeleteTwin():
                await self._delete(paths.workload(source.key, action.name), action.uid)
                self._cache.twins.forget(action.uid)
            case (
                do.PauseTwin()
                | do.LabelPod()
                | do.KeepRevision()
                | do.OrphanPods()
                | do.AdoptPods()
                | do.DeletePod()
            ):
                await adopt(self._client, self._cache, observed, source, action)
            case do.Park() | do.Reattach() | do.StripOwnershipMark() | do.RetryPods() | do.DeleteReplicaSet():
                await self._do_with_replica_set(action, source, observed)
            case do.HideAvailable():
                await self._availability.write(observed, source, None)
            case do.SetBudget():
                await self._cache.budgets.write(self._client, observed, source, action)
            case do.SetDeletionCost():
                await self._set_cost(source.key.namespace, action)
            case do.DeleteVanishedPod():
                await self._delete_vanished(source.key.namespace, action)
            case (
                do.PlaceOrdinals()
                | do.EvictPod()
                | do.DeleteUnboundPod()
                | do.CreatePlaceholder()
                | do.DeletePlaceholder()
            ):
                await self._place(observed, source, action)
            case _:
                assert_never(action)

    async def _place(self, observed: Observation, source: SourceView, action: do.PlacementAction) -> None:
        """Do what placement mode does; raises ApiError 429 when a budget refuses an eviction."""
        namespace = source.key.namespace
        match action:
            case do.PlaceOrdinals():
                await self._placement_writer.place(source, observed.split, action.ordinals)
            case do.EvictPod():
                path = paths.pods(namespace).of(action.pod, "eviction")
                await self._client.send("POST", path, payloads.eviction(namespace, action))
                self._cache.evicted(action.uid)
            case do.DeleteUnboundPod() | do.DeletePlaceholder():
                await self._delete(paths.pods(namespace).of(action.pod), action.uid)
                self._cache.pods.forget(action.uid)
            case do.CreatePlaceholder():
                if observed.split is not None:
                    made = payloads.placeholder(source, observed.split.uid, action)
                    answer = await self._client.send("POST", paths.pods(namespace), made, query=OURS)
                    self._cache.pods.upsert(answer)
            case _:
                assert_never(action)

    async def _do_with_source(
        self,
        source: SourceView,
        action: do.SetOwnershipMark | do.SetPaused | do.SaveReplicas | do.ReleaseSource,
    ) -> None:
        match action:
            case do.SetOwnershipMark():
                body: Json = {"metadata": {"annotations": {ANNOTATION_TAKEN_OVER: action.value}}}
            case do.SetPaused():
                paused = {"paused": True if action.paused else None}
                body = {"metadata": {"resourceVersion": action.resource_version}, "spec": paused}
            case do.SaveReplicas():
                body = payloads.saved_replicas(action)
            case do.ReleaseSource():
                body = payloads.released(await self._client.get(paths.workload(source.key)))
        await self._send_to_source(source, body)

    async def _do_with_replica_set(
        self,
        action: do.Park | do.Reattach | do.StripOwnershipMark | do.RetryPods | do.DeleteReplicaSet,
        source: SourceView,
        observed: Observation,
    ) -> None:
        replica_sets = paths.replica_sets(source.key.namespace)
        match action:
            case do.Park():
                twin = observed.twin(action.twin) if action.twin is not None else None
                body = payloads.parking(action, source, twin)
                await self._patch_replica_set(replica_sets.of(action.name), body, "strategic")
            case do.Reattach():
                owner = await self._client.get(paths.workload(source.key))
                if action.active:
                    expect_paused(owner)
                body = payloads.reattaching(action, owner)
                await self._patch_replica_set(replica_sets.of(action.name), body, "merge")
            case do.StripOwnershipMark() | do.RetryPods():
                await self._patch_replica_set(
                    replica_sets.of(action.name), payloads.annotating(action), "merge"
                )
            case do.DeleteReplicaSet():
                await self._delete(replica_sets.of(action.name), action.uid, action.resource_version)
                self._cache.replica_sets.forget(action.uid)

    async def _ensure_split(self, source: SourceView, *, takes_over: bool) -> None:
        body = payloads.reporting_split(source, takes_over=takes_over)
        answer = await self._client.send("PATCH", paths.split(source.key), body, patch="apply", query=FORCED)
        self._cache.splits.upsert(answer)

    async def _send_to_source(self, source: SourceView, body: Json) -> None:
        # The UID is a precondition: a source re-created under the same name is another one.
        body["metadata"]["uid"] = source.uid
        path = paths.workload(source.key)
        answer = await self._client.send("PATCH", path, body, patch="merge", query=OURS)
        if LABEL_SPLIT in answer["metadata"].get("labels", {}):
            self._cache.sources.upsert(answer)
        if "paused" in body.get("spec", {}):
            expect_as_sent(answer, paused=bool(body["spec"]["paused"]))

    async def _patch_replica_set(self, path: ResourcePath, body: Json, patch: str) -> None:
        answer = await self._client.send("PATCH", path, body, patch=patch, query=OURS)
        self._cache.replica_sets.upsert(answer)

    async def _apply_twin(self, key: Key, action: do.ApplyTwin) -> None:
        body = payloads.twin(action)
        path = paths.workload(key, body["metadata"]["name"])
        if action.resource_version is None:
            await self._must_be_free(path)
        answer = await self._client.send("PATCH", path, body, patch="apply", query=FORCED)
        self._cache.twin_applied(answer, mutations(body, answer))

    async def _restore_template(self, key: Key, action: do.RestoreTemplate) -> None:
        """Replace the whole template: a patch would leave what the bad one added."""
        path = paths.workload(key, action.twin)
        if key.kind == STATEFUL_SET:
            revisions = paths.controller_revisions(key.namespace)
            template = payloads.template_of_revision(await self._client.get(revisions.of(action.replica_set)))
        else:
            revision = await self._client.get(paths.replica_sets(key.namespace).of(action.replica_set))
            template = revision["spec"]["template"]
        live = await self._client.get(path)
        body = payloads.with_template(live, template, action.resource_version, tried=action.tried)
        answer = await self._client.send("PUT", path, body, query=OURS)
        self._cache.twin_applied(answer, mutations({"spec": {"template": template}}, answer))

    async def _must_be_free(self, path: ResourcePath) -> None:
        """Raise ApiError (AlreadyExists) when a twin to create is there: the apply would set it to 0.

        One of ours goes into the cache, and the next reconcile goes on with it. Created by an apply and not
        by a POST: fields of a POST belong to another owner, and later applies could not remove them.
        """
        existing: Json | None = None
        with Allowing(HTTPStatus.NOT_FOUND):
            existing = await self._client.get(path)
        if existing is None:
            return
        if LABEL_POOL in existing["metadata"].get("labels", {}):
            self._cache.twins.upsert(existing)
        name = existing["metadata"]["name"]
        message = f"{existing['kind']} {name} exists already; if it is not splitter's, rename or delete it"
        raise ApiError(HTTPStatus.CONFLICT, "AlreadyExists", message)

    async def _scale(self, observed: Observation, source: SourceView, action: do.Scale) -> None:
        """Scale that very holder: one that was made again under its name is another one."""
        if action.kind is do.HolderKind.STATEFUL_SET and action.name == source.key.name:
            await self._send_to_source(source, payloads.scaled_source(action, source.replicas))
            return
        holders = observed.replica_sets if action.kind is do.HolderKind.REPLICA_SET else observed.twins
        holder = next(holder for holder in holders if holder.name == action.name)
        metadata: Json = {"uid": holder.uid}
        if action.resource_version is not None or holder.uid in self._unanswered:
            metadata["resourceVersion"] = action.resource_version or holder.resource_version
        body: Json = {"metadata": metadata, "spec": {"replicas": action.replicas}}
        try:
            if action.kind is do.HolderKind.REPLICA_SET:
                where = paths.replica_sets(source.key.namespace)
                await self._patch_replica_set(where.of(action.name), body, "merge")
            else:
                path = paths.workload(source.key, action.name)
                sent = self._client.send("PATCH", path, body, patch="merge", query=OURS)
                self._cache.twins.upsert(await sent)
        except ApiError as error:
            if error.status == 0 or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                self._unanswered.add(holder.uid)  # it may be written: a raise from what was seen may lower it
            raise
        self._unanswered.discard(holder.uid)

    async def _set_cost(self, namespace: str, action: do.SetDeletionCost) -> None:
        annotations = {DELETION_COST: action.cost, COST_BEFORE: action.remember}
        body = {"metadata": {"uid": action.uid, "annotations": annotations}}
        await patch_pod(self._client, self._cache, paths.pods(namespace).of(action.pod), body)

    async def _delete_vanished(self, namespace: str, action: do.DeleteVanishedPod) -> None:
        """Delete the pod only when a live look-up says that its node is really not there.

        By force only when no node has that name: a successor's kubelet may be the old one, registered anew.
        """
        at_once = action.at_once
        with Allowing(HTTPStatus.NOT_FOUND):
            there = await self._client.get(paths.NODES.of(action.node))
            if there["metadata"]["uid"] != action.successor:
                return
            at_once = False
        body: Json = {"preconditions": {"uid": action.uid}, **({"gracePeriodSeconds": 0} if at_once else {})}
        path = paths.pods(namespace).of(action.pod)
        with allowing_lost_races():
            answer = await self._client.send("DELETE", path, body)
            if answer.get("kind") == "Pod" and not at_once:
                self._cache.pods.upsert(answer)
            else:
                self._cache.pods.forget(action.uid)

    async def _delete(self, path: ResourcePath, uid: str, resource_version: str | None = None) -> None:
        preconditions = {"uid": uid}
        if resource_version is not None:
            preconditions["resourceVersion"] = resource_version
        body = {"propagationPolicy": "Background", "preconditions": preconditions}
        with Allowing(HTTPStatus.NOT_FOUND):
            await self._client.send("DELETE", path, body)


def _is_on_pod(action: do.Action) -> bool:
    return isinstance(action, do.SetDeletionCost | do.DeleteVanishedPod | do.LabelPod | do.DeletePod)

"""The writes by which running pods change their owner: a part of the only writer (`apply`).

Each is done as planned and its answer goes into the cache; nothing here decides. Source: docs/adr/0037.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import assert_never

import orjson

from splitter.core.actions import (
    AdoptionAction,
    AdoptPods,
    DeletePod,
    KeepRevision,
    LabelPod,
    OrphanPods,
    PauseTwin,
)
from splitter.core.model import Observation, SourceView
from splitter.kube import paths
from splitter.kube.cache import Cache
from splitter.kube.client import OURS, ApiError, Client, Json
from splitter.kube.payloads import adopting, keeping, labelling


@contextmanager
def allowing_lost_races() -> Iterator[None]:
    """Go on behind the block if another client was faster: the next reconcile sees what is there."""
    try:
        yield
    except ApiError as error:
        if not error.is_lost_race:
            raise


async def adopt(
    client: Client, cache: Cache, observed: Observation, source: SourceView, action: AdoptionAction
) -> None:
    """Do one of these writes. Raises ApiError; 409: somebody wrote in between, or it was done before."""
    replica_sets = paths.replica_sets(source.key.namespace)
    match action:
        case PauseTwin():
            paused: Json = {"paused": True if action.paused else None}
            resumed: Json = {"metadata": {"resourceVersion": action.resource_version}, "spec": paused}
            path = paths.workload(source.key, action.name)
            cache.twins.upsert(await client.send("PATCH", path, resumed, patch="merge", query=OURS))
        case LabelPod():
            path = paths.pods(source.key.namespace).of(action.pod)
            await patch_pod(client, cache, path, labelling(source, action))
        case KeepRevision():
            made = keeping(source, action.name, await _template_of(client, source, action.replica_set))
            cache.replica_sets.upsert(await client.send("POST", replica_sets, made, query=OURS))
        case OrphanPods():
            precondition = {"uid": action.uid, "resourceVersion": action.resource_version}
            body: Json = {"propagationPolicy": "Orphan", "preconditions": precondition}
            answer = await client.send("DELETE", replica_sets.of(action.name), body)
            if "spec" in answer:  # it goes when the garbage collector has freed its pods
                cache.replica_sets.upsert(answer)
        case AdoptPods():
            twin = observed.twin(action.pool) if action.pool is not None else None
            owner = await client.get(paths.workload(source.key, twin.name if twin else source.key.name))
            expect_paused(owner)
            kept = owner
            if action.template_of is not None:
                kept = await client.get(replica_sets.of(action.template_of))
            made = adopting(source, action, owner, kept)
            cache.replica_sets.upsert(await client.send("POST", replica_sets, made, query=OURS))
        case DeletePod():
            await _delete_pod(client, cache, paths.pods(source.key.namespace).of(action.pod), action.uid)
        case _:
            assert_never(action)


async def _delete_pod(client: Client, cache: Cache, path: paths.ResourcePath, uid: str) -> None:
    """Delete that very pod, with the time that it is given to end. Raises ApiError."""
    with allowing_lost_races():
        answer = await client.send("DELETE", path, {"preconditions": {"uid": uid}})
        if "deletionTimestamp" in answer.get("metadata", {}):
            cache.pods.upsert(answer)
        else:
            cache.pods.forget(uid)


async def _template_of(client: Client, source: SourceView, replica_set: str | None) -> Json:
    """Return what has a template: a ReplicaSet, or the source, as the plan knew it."""
    if replica_set is not None:
        return await client.get(paths.replica_sets(source.key.namespace).of(replica_set))
    spec: Json = orjson.loads(source.manifest_json)["spec"]
    return {"metadata": {}, "spec": spec}


def expect_paused(owner: Json) -> None:
    """Raise ApiError (409) if a Deployment runs: it may have made a ReplicaSet of its own (H47)."""
    if not owner["spec"].get("paused"):
        name = owner["metadata"]["name"]
        raise ApiError(HTTPStatus.CONFLICT, "Conflict", f"{name} was resumed: its controller goes first")


def expect_as_sent(answer: Json, *, paused: bool) -> None:
    """Raise ApiError (403) if a policy or webhook keeps `spec.paused`: written again at once, it stays so."""
    if bool(answer["spec"].get("paused")) is not paused:
        message = (
            f"a mutating policy or webhook keeps spec.paused of {answer['metadata']['name']} at"
            f" {str(not paused).lower()}. Exempt splitter's account there"
            " (manifests/admission/keep-paused.yaml names one account)"
        )
        raise ApiError(HTTPStatus.FORBIDDEN, "Forbidden", message)


async def patch_pod(client: Client, cache: Cache, path: paths.ResourcePath, body: Json) -> None:
    """Patch a pod, unless it went by itself. Raises ApiError."""
    with allowing_lost_races():
        cache.pods.upsert(await client.send("PATCH", path, body, patch="merge", query=OURS))

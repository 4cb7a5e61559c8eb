"""Writes one Placement for each namespace from its Splits. A part of `apply`.

A policy inside the API server is evaluated once for each of its parameters, and converts the pod anew for
each. So it is given one for the whole namespace, found by name (docs/adr/0026). The Splits stay what counts;
this object is made of them, whole, at each write. It is written *before* a Split gets or loses its ordinals,
so what a Split says has been told, wherever the process ends. It never decides what to tell, and tells
nothing of a StatefulSet without a Split.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus

from splitter.admission.placement import NAME, PLACEMENT_KIND
from splitter.core.model import SourceView
from splitter.core.names import Key
from splitter.core.placeable import Runs, runs
from splitter.core.split_status.view import SplitView
from splitter.kube import paths
from splitter.kube.cache import Cache
from splitter.kube.client import FORCED, OURS, Allowing, Client, Json
from splitter.kube.payloads import placement_split
from splitter.kube.placement_cache import Sets
from splitter.kube.records import PlacementRecord, SplitRecord


class PlacementWriter:
    """Keeps the Placements in step with the Splits, for one writer."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._asked = defaultdict[str, dict[Key, Sets]](dict)  # what Splits are about to say

    async def place(self, source: SourceView, split: SplitView | None, ordinals: Sequence[int]) -> None:
        """Put these ordinals in force: tell the policy, then the Split. Raises ApiError."""
        body = placement_split(source, ordinals)
        async with self.published(source, ordinals):
            known = self._cache.splits.get(source.key.namespace, split.uid) if split is not None else None
            if known is not None:
                body["metadata"]["resourceVersion"] = str(known.version)
            path = paths.split(source.key)
            answer = await self._client.send("PATCH", path, body, patch="apply", query=FORCED)
            there = answer["spec"].get("onDemandOrdinals")
            if there is not None and set(there) != set(ordinals):
                # An apply leaves those that another manager of fields has written, too: a restore, an edit.
                version = {name: answer["metadata"][name] for name in ("uid", "resourceVersion")}
                body = {"metadata": version, "spec": {"onDemandOrdinals": list(ordinals)}}
                answer = await self._client.send("PATCH", path, body, patch="merge", query=OURS)
            self._cache.splits.upsert(answer)

    @asynccontextmanager
    async def published(self, source: SourceView, ordinals: Sequence[int] | None) -> AsyncIterator[None]:
        """Tell the policy these ordinals of a StatefulSet, None to end it; its Split is to be written within.

        Until the end everybody tells the same of it. Who waits for another's write is told of by the next one
        together with all who wait: each takes 100 ms where 500 are placed. Raises ApiError.
        """
        namespace = source.key.namespace
        asked = self._asked[namespace]
        asked[source.key] = {} if ordinals is None else {source.uid: (source.key.name, runs(ordinals))}
        try:
            async with self._locks[namespace]:
                await self._tell(source, stays=ordinals is not None)
            yield
        finally:
            asked.pop(source.key, None)

    async def _tell(self, source: SourceView, *, stays: bool) -> None:
        namespace = source.key.namespace
        there = self._cache.placements.of(namespace)
        known: Sets = there.sets if there is not None else {}
        wanted = self._sets(namespace, known)
        changed = known.get(source.uid) != wanted.get(source.uid)
        if not wanted and there is not None:
            await self._delete(namespace, there.uid)
        elif changed or (stays and not self._cache.placements.knows_nodes(namespace)):
            await self._write(namespace, wanted, there)

    def _sets(self, namespace: str, known: Sets) -> Sets:
        """Return what the Splits of the namespace say, or are about to say.

        Whoever may write a Split may name any owner: it is named only if its own watch shows it, or if it was
        named before, as one whose label is gone; and only by the Split of its own name.
        """
        asked = self._asked[namespace]
        by_uid: dict[str, tuple[str, Runs]] = {}
        for record in self._cache.splits.values():
            if record.namespace != namespace or record.source in asked or record.spec.ordinals is None:
                continue
            ranges = runs(record.spec.ordinals)
            owners = record.spec.owner_uids
            name = record.source.name
            named = [uid for uid in owners if known.get(uid, ("",))[0] == name or self._is_there(record, uid)]
            by_uid.update((uid, (name, ranges)) for uid in named)
        for sets in asked.values():
            by_uid.update(sets)
        return by_uid

    def _is_there(self, record: SplitRecord, uid: str) -> bool:
        there = self._cache.sources.get(record.namespace, uid)
        return there is not None and there.view.key == record.source

    async def _write(self, namespace: str, sets: Sets, there: PlacementRecord | None) -> None:
        path = paths.placements(namespace).of(NAME)
        labels = self._cache.placements.spot_labels(namespace)
        body = placement(namespace, sets, labels)
        if there is not None:  # who leads no more has not heard of what was told since
            body["metadata"]["resourceVersion"] = str(there.version)
        answer = await self._client.send("PATCH", path, body, patch="apply", query=FORCED)
        self._cache.placements.written(answer, labels)

    async def _delete(self, namespace: str, uid: str) -> None:
        path = paths.placements(namespace).of(NAME)
        with Allowing(HTTPStatus.NOT_FOUND):
            await self._client.send("DELETE", path, {"preconditions": {"uid": uid}})
        self._cache.placements.forget(uid)


def placement(namespace: str, sets: Sets, spot_labels: Collection[str] = ()) -> Json:
    """Return a Placement; it goes with the last StatefulSet that it names."""
    owners = [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": name,
            "uid": uid,
            "controller": False,
            "blockOwnerDeletion": False,
        }
        for uid, (name, _) in sets.items()
    ]
    published = {
        uid: {"name": name, "onDemandOrdinals": [{"first": first, "last": last} for first, last in ranges]}
        for uid, (name, ranges) in sets.items()
    }
    return {
        "apiVersion": "splitter.io/v1alpha1",
        "kind": PLACEMENT_KIND,
        "metadata": {"name": NAME, "namespace": namespace, "ownerReferences": owners},
        "spec": {"spotLabels": sorted(spot_labels), "statefulSets": published},
    }

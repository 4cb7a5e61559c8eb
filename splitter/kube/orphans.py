"""Finds pods that change their owner: those that have none now, and whether more will come.

A part of `observe`. A pod counts if it bears our labels for this workload, or was made by one of its
ReplicaSets in the last moment; a stranger's naked pod that only matches the selector never does. Nor does one
that the selector no longer matches, or whose pod-template-hash was overwritten: a user took it out, to look
at it, and no ReplicaSet will adopt it (H53). One that has finished is adopted by none either.
"""

import re
from collections.abc import Collection, Iterable

import orjson

from splitter.core.labels_annotations import kept_name, short_name
from splitter.core.model import SourceView
from splitter.core.names import DEPLOYMENT, Key
from splitter.kube.cache import Cache
from splitter.kube.parse.pods import label_selector
from splitter.kube.records import PodRecord, ReplicaSetRecord, TwinRecord


def orphans_of(
    cache: Cache, key: Key, source: SourceView | None, twins: Collection[TwinRecord]
) -> tuple[tuple[PodRecord, ...], bool]:
    """Return the pods of a Deployment that nobody controls, and whether there will be more of them."""
    if key.kind != DEPLOYMENT:
        return (), False
    records = cache.pods.find("labelled", (key.namespace, short_name(key.name)))
    labelled = [pod for pod in records if not pod.terminating and pod.revision]
    # Its ReplicaSet is gone, and the garbage collector has not got to the pod yet. A StatefulSet of the same
    # name has pods with these labels, too.
    owned = [pod for pod in labelled if pod.of_replica_set]
    dangling = any(cache.replica_sets.get(key.namespace, pod.owner_uid or "") is None for pod in owned)
    sets = _related(cache, key, twins)
    kept = (rs.view.name.removeprefix(kept_name(key.name, "")) for rs in sets)
    hashes = {*kept, *(one for rs in sets for one in rs.view.hashes)}
    unowned = (pod for pod in labelled if pod.owner_uid is None)
    let_go = [pod for pod in unowned if pod.revision in hashes or bears_its_hash(pod.name, pod.revision)]
    owners = {twin.uid for twin in twins} | ({source.uid} if source is not None else set())
    leaving = any(rs.deleting and rs.controller_uid in owners for rs in sets)
    return _selected(source, [*let_go, *_made_last(cache, key)]), dangling or leaving


def bears_its_hash(name: str, revision: str) -> bool:
    """Whether a pod is called as its ReplicaSet called it, by the hash that it still bears.

    >>> bears_its_hash("web-5d9c-x7k2p", "5d9c"), bears_its_hash("web-5d9c-x7k2p", "debug")
    (True, False)
    """
    return re.search(rf"-{re.escape(revision)}a*-[^-]+$", name) is not None


def _selected(source: SourceView | None, pods: Collection[PodRecord]) -> tuple[PodRecord, ...]:
    """Return the pods that the source's selector matches, and so those of its twins."""
    if source is None or not pods:
        return ()
    selector = orjson.loads(source.manifest_json)["spec"]["selector"]
    terms = label_selector(selector)
    return tuple(pod for pod in pods if all(term.matches(dict(pod.labels)) for term in terms))


def _related(cache: Cache, key: Key, twins: Collection[TwinRecord]) -> list[ReplicaSetRecord]:
    """Return the ReplicaSets of source and twins, parked ones and those that are going too."""
    sets = [*cache.replica_sets.find("deployment", (key.namespace, key.name))]
    for twin in twins:
        sets += cache.replica_sets.find("controller", (key.namespace, twin.uid))
    return sets


def _made_last(cache: Cache, key: Key) -> Iterable[PodRecord]:
    """Yield the pods without an owner that a ReplicaSet of the source made after all others were labelled."""
    prefix = kept_name(key.name, "")
    for rs in cache.replica_sets.find("deployment", (key.namespace, key.name)):
        if not rs.view.name.startswith(prefix):
            continue
        template_hash = rs.view.name.removeprefix(prefix)
        for pod in cache.pods.find("unowned", (key.namespace, template_hash)):
            made_by_it = pod.name.startswith(f"{key.name}-{template_hash}-")
            if made_by_it and not (pod.labelled_for or pod.terminating):
                yield pod

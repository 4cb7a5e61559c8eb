"""Finds pods that change their owner: those that have none now, and whether more will come.

A part of `observe`. A pod counts if it bears our labels for this workload, or was made by one of its
ReplicaSets in the last moment; a stranger's naked pod that only matches the selector never does. Nor does one
that the selector no longer matches, or whose pod-template-hash was overwritten: a user took it out, to look
at it, and no ReplicaSet will adopt it (H53). One that has finished is adopted by none either.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import orjson

from splitter.core.labels_annotations import kept_name, short_name
from splitter.core.limits import MAX_TERMS
from splitter.core.model import ReplicaSetView, SourceView
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.replica import Pool
from splitter.kube.cache import Cache
from splitter.kube.parse.pods import label_selector
from splitter.kube.records import PodRecord, ReplicaSetRecord, TwinRecord, few


@dataclass(frozen=True, slots=True)
class Unowned:
    """The pods of a Deployment without an owner, and the ReplicaSets that are to go and leave theirs."""

    pods: tuple[PodRecord, ...] = ()
    leaving: bool = False  # there will be more
    going: tuple[ReplicaSetRecord, ...] = ()  # controlled by source or twins
    holders: Mapping[str, Pool | None] = field(default_factory=dict)  # by their UID: whose they are
    hung: tuple[ReplicaSetRecord, ...] = ()  # parked, since they do not go


def orphans_of(cache: Cache, key: Key, source: SourceView | None, twins: Collection[TwinRecord]) -> Unowned:
    """Return the pods of a Deployment that nobody controls, and what is about to let go of more."""
    if key.kind != DEPLOYMENT:
        return Unowned()
    records = cache.pods.find("labelled", (key.namespace, short_name(key.name)))
    labelled = [pod for pod in records if not pod.terminating and pod.revision]
    # Its ReplicaSet is gone, and the garbage collector has not got to the pod yet. A StatefulSet of the same
    # name has pods with these labels, too.
    owned = [pod for pod in labelled if pod.of_replica_set]
    gone = cache.replica_sets.is_gone
    dangling = [pod for pod in owned if gone(key.namespace, pod.owner_uid or "", pod.version)]
    sets = _related(cache, key, twins)
    kept = (rs.view.name.removeprefix(kept_name(key.name, "")) for rs in sets)
    hashes = {*kept, *(one for rs in sets for one in rs.view.hashes)}
    unowned = (pod for pod in labelled if pod.owner_uid is None)
    let_go = [pod for pod in unowned if pod.revision in hashes or bears_its_hash(pod.name, pod.revision)]
    pools = {twin.uid: twin.pool for twin in twins}
    owners = {*pools, *([source.uid] if source is not None else [])}
    going = [rs for rs in sets if rs.deleting and rs.controller_uid in owners]
    for twin in twins:  # one that we have parked is its twin's still
        sets += cache.replica_sets.find("deployment", (key.namespace, twin.view.name))
    hung = [rs for rs in sets if rs.deleting and not rs.controller_uid and owners & set(rs.owner_uids)]
    return Unowned(
        pods=(*_selected(source, [*let_go, *_made_last(cache, key)]), *dangling),
        leaving=bool(dangling or going),
        going=tuple(going),
        holders={rs.uid: pools.get(rs.controller_uid or "") for rs in going},
        hung=tuple(few(hung)),
    )


def as_counted(view: ReplicaSetView) -> ReplicaSetView:
    """Return a ReplicaSet that acts on none of its pods with those that there are in place of its counts."""
    active = [pod for pod in view.pods if pod.counts]
    ready = sum(pod.ready_since is not None for pod in active)
    return replace(
        view, spec_replicas=len(active), status_replicas=len(active), available_replicas=ready, orphaned=False
    )


def bears_its_hash(name: str, revision: str) -> bool:
    """Whether a pod is called as its ReplicaSet called it, by the hash that it still bears.

    >>> bears_its_hash("web-5d9c-x7k2p", "5d9c"), bears_its_hash("web-5d9c-x7k2p", "debug")
    (True, False)
    """
    return re.search(rf"-{re.escape(revision)}a*-[^-]+$", name) is not None


def _selected(source: SourceView | None, pods: Collection[PodRecord]) -> tuple[PodRecord, ...]:
    """Return the pods that the source's selector matches, and so those of its twins; of a long one none.

    A workload with a selector over the limit is refused, and held if it is split; nothing of it is lowered.
    """
    if source is None or not pods or source.selector_terms > MAX_TERMS:
        return ()
    terms = label_selector(orjson.loads(source.manifest_json)["spec"]["selector"])
    labelled = ((pod, dict(pod.labels)) for pod in pods)
    return tuple(pod for pod, labels in labelled if all(term.matches(labels) for term in terms))


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

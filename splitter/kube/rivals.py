"""Finds what else would adopt a workload's pods, or end them, while they change their owner.

A controller adopts each pod without an owner that its selector takes, and ends what it has too many of.
ReplicaSets are in the cache already. The other kinds are listed only when pods are about to be let go; a list
serves all workloads of its namespace for a moment. Source: H82, docs/adr/0094.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from itertools import islice

import orjson

from splitter.core.desired.twin import pod_labels
from splitter.core.label_sets import LabelSets
from splitter.core.labels_annotations import kept_name
from splitter.core.limits import MAX_TERMS, too_large
from splitter.core.model import RelatedObjects, SourceView, seconds_between
from splitter.core.nodes.fit import MatchExpression
from splitter.core.replica import Pool
from splitter.core.split_status.view import SplitView
from splitter.kube import paths
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError
from splitter.kube.listed import Reader
from splitter.kube.packed import MAX_LABELS_BYTES
from splitter.kube.parse.fields import Raw
from splitter.kube.parse.pods import count_terms, label_selector
from splitter.kube.parse.statefulsets import selector_text
from splitter.kube.records import TEMPLATE_HASH, PodRecord, ReplicaSetRecord, TwinRecord, few

# Of one kind in one namespace that may select pods by labels that people write.
MAX_RIVALS = 2000
# Terms and values of all ReplicaSets that one look compares, and how many pods of a workload that all differ.
_MOST_COMPARED, _MOST_LABELLED = 1_000_000, 5_000
_TEXT_MAX = 200
# How old a list may be.
_FRESH_S = 1.0
_KINDS = (
    ("DaemonSet", paths.daemon_sets),
    ("StatefulSet", paths.stateful_sets),
    ("ReplicationController", paths.replication_controllers),
    ("Job", paths.jobs),
)
# The API server gives each Job a selector by its own UID, unless its author has written one.
_OWN_SELECTOR = frozenset({"controller-uid", "batch.kubernetes.io/controller-uid"})


@dataclass(frozen=True, slots=True)
class Rivals:
    """What else selects a workload's pods, in words, and why that is not known; empty: nothing."""

    rival: str = ""
    unread: str = ""


@dataclass(frozen=True, slots=True)
class _Selecting:
    """A controller of another kind than ReplicaSet, and what it selects."""

    who: str
    selector: tuple[MatchExpression, ...]
    text: str


@dataclass(slots=True)
class _Kept:
    """The controllers of one namespace, as of an instant."""

    at: datetime | None = None
    others: tuple[_Selecting, ...] = ()
    unread: str = ""
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class RivalFinder:
    """Looks for rivals, workload by workload."""

    def __init__(self, client: Reader, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        self._kept: defaultdict[str, _Kept] = defaultdict(_Kept)

    async def of(self, source: SourceView, twins: Collection[TwinRecord], now: datetime) -> Rivals:
        """Return who selects the pods of a Deployment, or of its twins. Raises ApiError."""
        kept = self._kept[source.key.namespace]
        async with kept.asking:  # others that ask meanwhile get the same answer
            if kept.at is None or not 0 <= seconds_between(kept.at, now) <= _FRESH_S:
                kept.others, kept.unread = await self._read(source.key.namespace)
                kept.at = now
        owners = {source.uid, *(twin.uid for twin in twins)}
        sets = [
            *self._cache.replica_sets.find("deployment", (source.key.namespace, source.key.name)),
            *(
                rs
                for twin in twins
                for rs in self._cache.replica_sets.find("controller", (source.key.namespace, twin.uid))
            ),
        ]
        pods = [pod for rs in sets for pod in self._cache.pods.find("owner", (rs.namespace, rs.uid))]
        alike = _labels(source, few(sets), pods)
        own = {rs.uid for rs in sets}
        rivals = [rs for rs in self._candidates(source.key.namespace, alike) if rs.uid not in own]
        selectors = [(rs, rs.selector) for rs in rivals if rs.controller_uid not in owners]
        sized = [(rs, selector, count_terms(selector)) for rs, selector in selectors]
        long = [rs for rs, _, size in sized if size > MAX_TERMS]
        unread = kept.unread or (_too_long(f"ReplicaSet {long[0].view.name}") if long else "")
        compared = [(rs, selector, size) for rs, selector, size in sized if size <= MAX_TERMS]
        unread = unread or _unknown(sets, pods)
        if sum(size for *_, size in compared) > _MOST_COMPARED:
            return Rivals(unread=f"the selectors of {len(compared)} ReplicaSets are too many to compare")
        for rs, selector, _ in compared:
            if _takes(selector, alike):
                return Rivals(_replica_set(rs), unread)
        for other in kept.others:
            if _takes(other.selector, alike):
                return Rivals(f"{other.who} (selector {other.text})", unread)
        return Rivals(unread=unread)

    async def beside(
        self,
        around: RelatedObjects,
        source: SourceView,
        split: SplitView | None,
        twins: Collection[TwinRecord],
        now: datetime,
    ) -> RelatedObjects:
        """Return what is around with the rivals for its pods: asked before it is split, and to let pods go.

        Raises ApiError before it is split. Later a missing answer counts as a rival.
        """
        taken = split is not None and split.takes_over
        lets_go = source.paused and twins and all(twin.view.paused for twin in twins)
        if source.stateful is not None or (taken and not lets_go) or too_large(source):
            return around
        try:
            rivals = await self.of(source, twins, now)
        except ApiError as error:
            if not taken:
                raise
            rivals = Rivals(unread=f"the API server answered: {error}")
        return replace(around, rival=rivals.rival, rivals_unread=rivals.unread)

    def _candidates(self, namespace: str, alike: LabelSets) -> Iterator[ReplicaSetRecord]:
        """Yield the ReplicaSets whose first label one of the pods has, and those that name none."""
        for pair in ("", *(f"{key}={text}" for key, text in sorted(alike.labels))):
            for rs in self._cache.replica_sets.find("selects", (namespace, pair)):
                if not rs.deleting:  # one that is being deleted adopts nothing
                    yield rs

    async def _read(self, namespace: str) -> tuple[tuple[_Selecting, ...], str]:
        """Return the other controllers of a namespace, and why some are not known."""
        collected: list[_Selecting] = []
        unread: list[str] = []
        for kind, where in _KINDS:
            path = where(namespace)
            try:
                number = 0
                async for page in self._client.pages(path):
                    taken = [one for raw in page["items"] if (one := _selecting(kind, raw)) is not None]
                    collected += (one for one in taken if one.selector)
                    number += len(taken)
                    if long := next((one for one in taken if not one.selector), None):
                        unread.append(_too_long(long.who))
                        break
                    if number > MAX_RIVALS:
                        unread.append(f"there are more than {MAX_RIVALS} {kind}s")
                        break
            except ApiError as error:
                if error.status == HTTPStatus.FORBIDDEN:
                    unread.append(f"splitter may not list {path.plural} (apply manifests/rbac.yaml)")
                elif error.status != HTTPStatus.NOT_FOUND:
                    raise
        return tuple(collected), " and ".join(unread)


def _selecting(kind: str, raw: Raw) -> _Selecting | None:
    """Return what one selects, without terms if these are too many; None of what adopts no pods."""
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    selector = spec.get("selector") or {}
    if kind == "ReplicationController":
        selector = {"matchLabels": selector}
    conditions = (raw.get("status") or {}).get("conditions") or ()
    ended = kind == "Job" and any(
        one["type"] in {"Complete", "Failed"} and one["status"] == "True" for one in conditions
    )
    by_itself = kind == "Job" and _OWN_SELECTOR & set(selector.get("matchLabels") or {})
    written = len(selector.get("matchLabels") or ()) + len(selector.get("matchExpressions") or ())
    if not written or ended or by_itself or "deletionTimestamp" in metadata:
        return None
    who = f"{kind} {metadata['name']}"
    terms = label_selector(selector) if written <= MAX_TERMS else ()
    if not terms or count_terms(terms) > MAX_TERMS:
        return _Selecting(who, (), "")
    return _Selecting(who, terms, selector_text(selector)[:_TEXT_MAX])


def _too_long(who: str) -> str:
    return f"the selector of {who} has more than {MAX_TERMS} terms and values"


def _unknown(sets: Iterable[ReplicaSetRecord], pods: Iterable[PodRecord]) -> str:
    """Say whose labels are too long to be kept, so that nobody knows what selects it; empty: nobody's."""
    who = [f"ReplicaSet {rs.view.name}" for rs in sets if rs.labels_unknown]
    who += [f"pod {pod.name}" for pod in pods if pod.labels.unknown]
    return f"the labels of {who[0]} are longer than {MAX_LABELS_BYTES // 1024} KiB" if who else ""


def _labels(source: SourceView, sets: Iterable[ReplicaSetRecord], pods: Iterable[PodRecord]) -> LabelSets:
    """Return the labels that its pods have, will have in a pool, or are given when they are made."""
    template = orjson.loads(source.manifest_json)["spec"]["template"].get("metadata") or {}
    active = [rs for rs in sets if rs.view.spec_replicas or rs.view.status_replicas]
    prefix = kept_name(source.key.name, "")
    hashes = [{TEMPLATE_HASH: one} for rs in active for one in rs.view.hashes] or [{}]
    given: list[Mapping[str, str]] = [{}, *(pod_labels(source.key.name, pool) for pool in Pool)]
    alike = LabelSets()
    alike.add(template.get("labels") or {}, *({**one, **more} for one in hashes for more in given))
    for rs in active:
        if not rs.view.name.startswith(prefix):
            alike.add(rs.view.template_labels, *given)
    distinct = {pod.labels for pod in pods if pod.labels and not pod.finished}
    for labels in islice(sorted(distinct), _MOST_LABELLED):
        alike.add(dict(labels), *given)
    return alike


def _takes(selector: tuple[MatchExpression, ...], alike: LabelSets) -> bool:
    """Whether a selector takes one of these pods; an empty one is none that a controller acts on."""
    return bool(selector and alike.selected((one.key, one.operator, one.values) for one in selector))


def _replica_set(rs: ReplicaSetRecord) -> str:
    terms = [{"key": one.key, "operator": one.operator, "values": one.values} for one in rs.selector]
    text = selector_text({"matchExpressions": terms})[:_TEXT_MAX]
    of = f" of Deployment {rs.owner_name}" if rs.owner_name else ""
    return f"ReplicaSet {rs.view.name}{of}, at {rs.view.spec_replicas} replicas (selector {text})"

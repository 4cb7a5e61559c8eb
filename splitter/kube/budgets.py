"""Follows the PodDisruptionBudgets of the watched namespaces, and writes splitter's own.

A part of the cache and of the only writer. Where they may not be read or written nothing is guarded; that is
said, and stops nothing. What a budget is for is `core.guard`'s affair.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

import orjson

from splitter.core.actions import SetBudget
from splitter.core.evictions import BudgetView
from splitter.core.labels_annotations import LABEL_SOURCE, guard_name, short_name
from splitter.core.limits import MAX_BUDGETS
from splitter.core.model import Observation, SourceView
from splitter.core.names import Key
from splitter.kube.client import FORCED, NOT_LEADING, OURS, ApiError, Client, Json
from splitter.kube.parse.fields import condition, count, identity, maybe_instant
from splitter.kube.paths import budgets
from splitter.kube.payloads import owned_by_split
from splitter.kube.records import Record
from splitter.kube.shares import Shares
from splitter.kube.store import Indexer
from splitter.kube.watch import Reflector

logger = logging.getLogger("splitter.budgets")

# After a refusal: rights, quotas and policies change seldom, and every reconcile would ask again.
_REFUSED = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY})
_AGAIN = timedelta(minutes=5)
# A deletion by UID: it is gone, or another one has the name.
_NO_LONGER_THERE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})
# After anything else: a webhook is away, or somebody was quicker.
_SOON = timedelta(seconds=5)
# Whoever may write budgets chooses how long they are; one that is longer counts as if it selected every pod.
_MAX_TERMS, _MAX_VALUES = 16, 48


async def beside(guard: Coroutine[Any, Any, None], others: Callable[[], Awaitable[None]]) -> None:
    """Send the budget, and right after it the others: no raise waits until the budget is answered."""
    first = asyncio.create_task(guard)
    try:
        await asyncio.sleep(0)  # it begins
        await others()
        await first
    finally:
        first.cancel()


@dataclass(frozen=True, slots=True)
class BudgetRecord(Record):
    """One PodDisruptionBudget, splitter's or a user's."""

    split_uid: str | None  # of the Split that controls it; None: a user's
    view: BudgetView
    left_of: str = ""  # of which workload it was, where no owner is left: out of a backup, or orphaned

    @property
    def weight(self) -> int:
        """As of any record."""
        terms = self.view.selector or ()
        return 2048 + sum(300 + sum(100 + len(value) for value in values) for _, _, values in terms)


class Budgets:
    """The budgets of all namespaces that are followed."""

    def __init__(self, enqueue: Callable[[str, str | None], None], shares: Shares | None = None) -> None:
        """`enqueue`: of a namespace, and the UID of the Split whose budget has changed; None: a user's."""
        self._enqueue = enqueue
        indexes: Mapping[str, Callable[[BudgetRecord], Hashable]] = {
            "users": lambda record: record.namespace if record.split_uid is None else None,
            "split": lambda record: (record.namespace, record.split_uid),
            "name": lambda record: (record.namespace, record.view.name),
        }
        self.indexer = Indexer(_budget, indexes, self._changed, shares=shares)
        self._reflectors: dict[str, Reflector] = {}
        self._refused: dict[Key, tuple[datetime, str]] = {}
        self._warned: set[str] = set()  # namespaces

    def reflector(self, client: Client, namespace: str) -> Reflector:
        """Return what follows them."""
        without = "evictions do not wait for replacements, unless a budget of your own says so"
        reflector = Reflector(client, budgets(namespace), self.indexer, without=without, awaited=True)
        self._reflectors[namespace] = reflector
        return reflector

    def of(self, key: Key, split_uid: str) -> tuple[BudgetView, ...]:
        """Return a workload's own, whoever's has its name, and all of the users' in its namespace.

        Of more than are compared one more than that (G17). Those of other workloads select other pods.
        `split_uid` is of the workload's Split.
        """
        namespace = key.namespace
        ours = self.indexer.find("split", (namespace, split_uid))
        named = self.indexer.find("name", (namespace, guard_name(key)))
        users = self.indexer.find("users", namespace)[: MAX_BUDGETS + 1]
        others = {record.uid: record for record in (*users, *named)}
        for record in ours:
            others.pop(record.uid, None)
        left = [others.pop(record.uid) for record in named if record.left_of == short_name(key.name)]
        return (
            *(replace(record.view, is_ours=True) for record in ours),
            # Whatever it keeps, it is written anew, with its owner.
            *(replace(record.view, is_ours=True, min_available=None) for record in left),
            *(record.view for record in others.values()),
        )

    def unguardable(self, key: Key, now: datetime) -> str:
        """Return why no budget of a workload can be written now; empty when one can."""
        if not self._follows(key.namespace):
            return "splitter may not read PodDisruptionBudgets here"
        return self._refused[key][1] if self.again_at(key, now) is not None else ""

    def again_at(self, key: Key, now: datetime) -> datetime | None:
        """Return when a write that was refused is tried again; None when none waits for that."""
        if key in self._refused and self._refused[key][0] <= now:
            del self._refused[key]
        return self._refused[key][0] if key in self._refused else None

    def _follows(self, namespace: str) -> bool:
        """Whether the budgets of a namespace are known; a broken watch is resumed at once."""
        followed = self._reflectors.get(namespace) or self._reflectors.get("")
        return followed is not None and followed.synced.is_set() and not followed.left_out

    async def write(
        self, client: Client, observed: Observation, source: SourceView, action: SetBudget
    ) -> None:
        """Write or delete our budget. A failure is remembered and reported, and stops nothing else.

        Raises ApiError only where this process may not write at all.
        """
        if observed.split is None:
            return
        key = source.key
        try:
            await self._send(client, source, observed.split.uid, action)
        except ApiError as error:
            if error.reason == NOT_LEADING:
                raise
            if action.min_available is None and error.status in _NO_LONGER_THERE:
                self.indexer.forget(action.uid)
                return
            lasts = error.status in _REFUSED
            what = (
                "may not write its PodDisruptionBudget"
                if lasts
                else "cannot write its PodDisruptionBudget now"
            )
            why = f"splitter {what}: {error.message or error}"
            self._refused[key] = observed.now + (_AGAIN if lasts else _SOON), why
            if key.namespace not in self._warned and "being terminated" not in error.message:
                self._warned.add(key.namespace)
                # The API server's own words may hold a value of a user's: they are in the Split.
                message = (
                    "evictions in %s do not wait for replacements: splitter %s (%d); the Split of %s says why"
                )
                logger.warning(message, key.namespace, what, error.status, key.name)
        else:
            self._refused.pop(key, None)
            self._warned.discard(key.namespace)

    async def _send(self, client: Client, source: SourceView, split_uid: str, action: SetBudget) -> None:
        where = budgets(source.key.namespace)
        path = where.of(action.name)
        if action.min_available is None:
            await client.send("DELETE", path, {"preconditions": {"uid": action.uid}})
            self.indexer.forget(action.uid)
            return
        body = budget(source, split_uid, action.min_available)
        if action.uid:
            body["metadata"]["uid"] = action.uid
            answer = await client.send("PATCH", path, body, patch="apply", query=FORCED)
        else:  # a stranger's of this name stays a stranger's
            answer = await client.send("POST", where, body, query=OURS)
        self.indexer.upsert(answer)

    def _changed(self, old: BudgetRecord | None, new: BudgetRecord | None) -> None:
        if old is not None and new is not None and _said(old) == _said(new):
            return  # its status
        if (record := new or old) is not None and (new is not None or self._follows(record.namespace)):
            self._enqueue(record.namespace, record.split_uid)  # else it may be there, and we may not see it


def _said(record: BudgetRecord) -> tuple[BudgetView, str | None, str]:
    return replace(record.view, healthy=0, refuses_since=None), record.split_uid, record.left_of


def _budget(raw: Mapping[str, Any]) -> BudgetRecord:
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    splits = [
        one["uid"]
        for one in metadata.get("ownerReferences") or ()
        if one.get("controller") and one.get("kind") == "Split"
    ]
    least = spec.get("minAvailable")
    allowed = condition(status, "DisruptionAllowed") or {}
    view = BudgetView(
        name=metadata["name"],
        uid=metadata["uid"],
        is_ours=False,
        min_available=least if isinstance(least, int) else None,
        selector=_selector(spec.get("selector")),
        says=next(
            (f"{name} {spec[name]}" for name in ("minAvailable", "maxUnavailable") if name in spec), ""
        ),
        healthy=count(status, "currentHealthy") + len(status.get("disruptedPods") or ()),
        refuses_since=maybe_instant(allowed["lastTransitionTime"])
        if allowed.get("status") == "False"
        else None,
    )
    left_of = "" if metadata.get("ownerReferences") else (metadata.get("labels") or {}).get(LABEL_SOURCE, "")
    return BudgetRecord(*identity(metadata), next(iter(splits), None), view, left_of)


def _selector(raw: Mapping[str, Any] | None) -> tuple[tuple[str, str, tuple[str, ...]], ...] | None:
    if raw is None:
        return None
    terms = [(key, "In", (value,)) for key, value in (raw.get("matchLabels") or {}).items()]
    expressions = raw.get("matchExpressions") or ()
    terms += [(one["key"], one["operator"], tuple(one.get("values") or ())) for one in expressions]
    if len(terms) > _MAX_TERMS or sum(len(values) for _, _, values in terms) > _MAX_VALUES:
        return ()
    return tuple(terms)


def budget(source: SourceView, split_uid: str, min_available: int) -> Json:
    """Return the one budget of a workload (G1): of the pods of both twins; it goes with its Split.

    An absolute number, since a percentage needs one controller behind all pods.
    """
    selector = orjson.loads(source.manifest_json)["spec"]["selector"]
    name = short_name(source.key.name)
    labels = {**(selector.get("matchLabels") or {}), LABEL_SOURCE: name}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": guard_name(source.key),
            "namespace": source.key.namespace,
            "labels": {LABEL_SOURCE: name},
            "ownerReferences": [owned_by_split(source, split_uid)],
        },
        "spec": {
            "minAvailable": min_available,
            "selector": {**selector, "matchLabels": labels},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }

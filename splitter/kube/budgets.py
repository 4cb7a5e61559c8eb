"""The PodDisruptionBudgets of all namespaces that are followed, and the writes of ours.

A part of the cache and of the only writer. Where they may not be read or written nothing is guarded; that is
said, and stops nothing. What a budget is for is `core.guard`'s affair.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

import orjson

from splitter.core.actions import SetBudget
from splitter.core.model import BudgetView, Observation, SourceView
from splitter.core.surface import LABEL_SOURCE, guard_name, short_name, split_name
from splitter.kube.client import FIELD_MANAGER, ApiError, Client, Json
from splitter.kube.paths import budgets
from splitter.kube.store import Shelf
from splitter.kube.watch import Reflector

logger = logging.getLogger("splitter.budgets")

_OURS = {"fieldManager": FIELD_MANAGER}
_FORCED = {**_OURS, "force": "true"}
# After a refusal: rights and policies change seldom, and every pass would ask again.
_AGAIN = timedelta(minutes=5)
_REFUSED = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY})
# Whoever may write budgets chooses how long they are; one that is longer counts as if it selected every pod.
_MAX_TERMS, _MAX_VALUES = 32, 256


@dataclass(frozen=True, slots=True)
class BudgetRecord:
    """One PodDisruptionBudget, of anybody's."""

    namespace: str
    uid: str
    version: int
    owner_uid: str | None  # who controls it
    view: BudgetView


class Budgets:
    """The budgets of all namespaces that are followed."""

    def __init__(self, wake: Callable[[str, str | None], None]) -> None:
        """`wake`: of a namespace, and the UID of the Split whose budget has changed; None: a user's."""
        self._wake = wake
        self.shelf = Shelf(_budget, {"namespace": lambda record: record.namespace}, self._changed)
        self._reflectors: dict[str, Reflector] = {}
        self._refused: dict[str, tuple[datetime, str]] = {}  # by namespace

    def reflector(self, client: Client, namespace: str) -> Reflector:
        """Return what follows them."""
        without = "evictions do not wait for replacements, unless a budget of your own says so"
        found = Reflector(client, budgets(namespace), self.shelf, without=without, awaited=True)
        self._reflectors[namespace] = found
        return found

    def of(self, namespace: str, split_uid: str) -> tuple[BudgetView, ...]:
        """Return those of a namespace, as one workload sees them; `split_uid` is its Split's."""
        found = self.shelf.find("namespace", namespace)
        return tuple(record.view if record.owner_uid != split_uid else _ours(record.view) for record in found)

    def unguardable(self, namespace: str, now: datetime) -> str:
        """Return why no budget of ours can be kept in a namespace; empty when it can."""
        if not self._follows(namespace):
            return "splitter may not read PodDisruptionBudgets here"
        until, why = self._refused.get(namespace, (now, ""))
        return why if now < until else ""

    def _follows(self, namespace: str) -> bool:
        followed = self._reflectors.get(namespace) or self._reflectors.get("")
        return followed is not None and followed.error is None and followed.synced.is_set()

    async def write(
        self, client: Client, observed: Observation, source: SourceView, action: SetBudget
    ) -> None:
        """Write or delete our budget; a refusal is remembered and said, and stops nothing else.

        Raises ApiError for what may go well at the next try.
        """
        namespace, now = source.key.namespace, observed.now
        if observed.split is None:
            return
        where = budgets(namespace)
        path = where.of(action.name)
        try:
            if action.min_available is None:
                await client.send("DELETE", path, {"preconditions": {"uid": action.uid}})
                self.shelf.forget(action.uid)
                return
            body = budget(source, observed.split.uid, action.min_available)
            if action.uid:
                body["metadata"]["uid"] = action.uid
                answer = await client.send("PATCH", path, body, patch="apply", query=_FORCED)
            else:  # a stranger's of this name stays a stranger's
                answer = await client.send("POST", where, body, query=_OURS)
            self.shelf.upsert(answer)
        except ApiError as error:
            if action.min_available is None and error.status == HTTPStatus.NOT_FOUND:
                self.shelf.forget(action.uid)
            elif error.status in _REFUSED and action.min_available is not None:
                why = f"splitter may not write PodDisruptionBudgets here ({error.status} {error.reason})"
                self._refused[namespace] = now + _AGAIN, why
                logger.warning("evictions in namespace %s do not wait for replacements: %s", namespace, why)
            else:  # the raises go out all the same (`apply`), and the next pass tries again
                raise

    def _changed(self, old: BudgetRecord | None, new: BudgetRecord | None) -> None:
        if old is not None and new is not None and (old.view, old.owner_uid) == (new.view, new.owner_uid):
            return  # its status
        if (record := new or old) is not None and (new is not None or self._follows(record.namespace)):
            self._wake(record.namespace, record.owner_uid)  # else it may be there, and we may not see it


def _ours(view: BudgetView) -> BudgetView:
    return BudgetView(view.name, view.uid, True, view.min_available, view.selector)  # noqa: FBT003


def _budget(raw: Mapping[str, Any]) -> BudgetRecord:
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    owners = [one["uid"] for one in metadata.get("ownerReferences") or () if one.get("controller")]
    least = spec.get("minAvailable")
    view = BudgetView(
        name=metadata["name"],
        uid=metadata["uid"],
        is_ours=False,
        min_available=least if isinstance(least, int) else None,
        selector=_selector(spec.get("selector")),
    )
    version = int(metadata["resourceVersion"])
    return BudgetRecord(metadata["namespace"], metadata["uid"], version, next(iter(owners), None), view)


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
    """Return the budget of a workload: of the pods of both twins, whoever made them; it goes with its Split.

    An absolute number, since a percentage needs one controller behind all pods.
    """
    selector = orjson.loads(source.manifest_json)["spec"]["selector"]
    name = short_name(source.key.name)
    owner = {
        "apiVersion": "splitter.io/v1alpha1",
        "kind": "Split",
        "name": split_name(source.key),
        "uid": split_uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    labels = {**(selector.get("matchLabels") or {}), LABEL_SOURCE: name}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": guard_name(source.key),
            "namespace": source.key.namespace,
            "labels": {LABEL_SOURCE: name},
            "ownerReferences": [owner],
        },
        "spec": {
            "minAvailable": min_available,
            "selector": {**selector, "matchLabels": labels},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }

"""Writes the condition `splitter.io/Available` of a source (H84). A part of the only writer.

The right to do so is optional. If it is missing, the log says so once a namespace, and writes are tried again
ever more seldom; nothing else waits for them. What the condition says is `core.availability`'s affair.
"""

import logging
from datetime import datetime, timedelta
from http import HTTPStatus

from splitter.core.labels_annotations import CONDITION_AVAILABLE, LABEL_SPLIT
from splitter.core.model import Observation, SourceView
from splitter.core.split_status import Condition
from splitter.kube import paths, payloads
from splitter.kube.cache import Cache
from splitter.kube.client import OURS, ApiError, Client

logger = logging.getLogger("splitter.availability")

_FIRST_S, _LONGEST_S = 10.0, 300.0
# It is gone, is another one, or has changed since: the next reconcile looks at it as it is.
_CHANGED = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})


class Availability:
    """The conditions of all sources, on their way to the API server."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        self._refused: dict[tuple[str, str], tuple[datetime, float]] = {}  # by kind and namespace

    async def write(self, observed: Observation, source: SourceView, shown: Condition | None) -> None:
        """Write it, or take it off. Raises ApiError, but not for what is forbidden or has changed."""
        where = source.key.kind, source.key.namespace
        again_at, waited_s = self._refused.get(where, (observed.now, 0.0))
        if again_at > observed.now:
            return
        body = payloads.availability(source, shown, observed.now)
        path = paths.workloads(source.key.kind, source.key.namespace).of(source.key.name, "status")
        try:
            answer = await self._client.send("PATCH", path, body, patch="strategic", query=OURS)
        except ApiError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                self._refuse(where, observed.now, waited_s)
            elif error.status not in _CHANGED:
                raise
            return
        self._refused.pop(where, None)
        if LABEL_SPLIT in answer["metadata"].get("labels", {}):
            self._cache.sources.upsert(answer)

    def _refuse(self, where: tuple[str, str], now: datetime, waited_s: float) -> None:
        if where not in self._refused:
            kind, namespace = where
            message = (
                "without the condition %s on %ss in %s: splitter may not patch their status"
                " (apply manifests/source-status.yaml). Karmada shows none of their replicas"
            )
            logger.warning(message, CONDITION_AVAILABLE, kind, namespace)
        wait_s = min(_LONGEST_S, max(_FIRST_S, 2 * waited_s))
        self._refused[where] = now + timedelta(seconds=wait_s), wait_s

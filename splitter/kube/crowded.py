"""Holds back the namespaces that are over their share of memory, and reads them again once they hold less.

`views` asks whether anything may be decided in a namespace; the others go on. `operator` runs the one
`Crowded`. Nothing here counts: that is `shares`. Source: docs/adr/0106.
"""

import asyncio
import logging
import time

from splitter.kube.asks import Enqueue
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError, Client
from splitter.kube.paths import budgets, pods, replica_sets
from splitter.kube.watch import Reflector

logger = logging.getLogger("splitter.cache")

_LOOK_S = 5.0
# Who fills a namespace and empties it, again and again, waits longer each time: all of it is read.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 60.0, 3600.0


class Crowded:
    """Looks after the namespaces that are, or were, over their share."""

    def __init__(self, client: Client, cache: Cache, enqueue: Enqueue) -> None:
        """`enqueue`: asks for a reconcile of each workload of a namespace that is known whole again."""
        self._client = client
        self._cache = cache
        self._enqueue = enqueue
        self._waits: dict[str, tuple[float, float]] = {}  # until when, and for how long, by the namespace
        self._reading = ""  # the namespace that is being read again

    def blocks(self, namespace: str) -> bool:
        """Whether nothing may be decided in a namespace, for it is not known whole."""
        return namespace in self._cache.shares.over or namespace == self._reading

    async def run(self) -> None:
        """Look again until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            for namespace in sorted(self._cache.shares.over):
                until_s, _ = self._waits.get(namespace, (0.0, 0.0))
                if self._cache.shares.eased(namespace) and time.monotonic() >= until_s:
                    await self._look(namespace)

    async def _look(self, namespace: str) -> None:
        _, waited_s = self._waits.get(namespace, (0.0, _FIRST_WAIT_S / 2))
        wait_s = min(_LONGEST_WAIT_S, 2 * waited_s)
        self._waits[namespace] = time.monotonic() + wait_s, wait_s
        over = self._cache.shares.over
        self._reading = namespace
        over.discard(namespace)
        try:
            await self._read(namespace)
        except ApiError as error:
            over.add(namespace)
            logger.debug("namespace %s cannot be listed: %s", namespace, error)
        finally:
            self._reading = ""
        if namespace not in over:
            logger.info("namespace %s is looked after from now on", namespace)
            for key in self._cache.workloads():
                if key.namespace == namespace:
                    self._enqueue(key, urgent=False)

    async def _read(self, namespace: str) -> None:
        """Read a namespace once, beside its watches. Raises ApiError."""
        client, cache = self._client, self._cache
        read = [
            Reflector(client, pods(namespace), cache.pods),
            Reflector(client, replica_sets(namespace), cache.replica_sets),
            Reflector(client, budgets(namespace), cache.budgets.indexer, without="nothing is guarded"),
        ]
        for reflector in (*read, *cache.written_in(client, namespace)):
            await reflector.list_once()

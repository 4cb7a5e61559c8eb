"""Events on their way to the API server, never in a pass's way.

The reconciler tells it the notes of each pass; one task posts them. The same sentence is not said again
within ten minutes, and when more wait than can be posted the oldest are dropped: an Event is a courtesy,
the Split's status and the log have it too.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from socket import gethostname
from typing import Any

from splitter.core.model import Note, SourceView
from splitter.kube.apply import Writer
from splitter.kube.client import ApiError
from splitter.report.events import Said, event

logger = logging.getLogger("splitter.events")

_WAITING = 2_000


class Herald:
    """Posts Events."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._said = Said()
        self._waiting: deque[tuple[str, dict[str, Any]]] = deque(maxlen=_WAITING)
        self._something = asyncio.Event()
        self._instance = gethostname()

    def tell(self, source: SourceView, notes: Sequence[Note], now: datetime) -> None:
        """Have the notes posted that were not said lately."""
        loud = [note for note in notes if not note.quiet]
        for note in self._said.due(source.key, loud, now):
            self._waiting.append((source.key.namespace, event(source, note, now, self._instance)))
            self._something.set()

    async def run(self) -> None:
        """Post what waits, until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            await self.flush()

    async def flush(self) -> None:
        """Post everything that waits now; what is refused is logged and dropped."""
        while self._waiting:
            namespace, body = self._waiting.popleft()
            try:
                await self._writer.post_event(namespace, body)
            except ApiError as error:
                going = "being terminated" in error.message
                level = logging.DEBUG if going else logging.WARNING
                logger.log(level, "event in %s not written: %s", namespace, error)

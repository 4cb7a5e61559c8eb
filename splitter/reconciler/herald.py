"""Events on their way to the API server, never in a pass's way.

The reconciler tells it the notes of each pass; one task posts them. The same sentence is not said again in
each pass (`report.events`), and when more wait than can be posted the oldest are dropped: an Event is a
courtesy, the Split's status and the log have it too.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from socket import gethostname
from typing import Any

from splitter.core.model import Key, Note, SourceView
from splitter.kube.apply import Writer
from splitter.kube.client import ApiError
from splitter.report.events import DONE_S, Said, event

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

    def tell(
        self, source: SourceView, now: datetime, done: Sequence[Note], standing: Sequence[Note] = ()
    ) -> Sequence[Note]:
        """Have those posted, of what was done and what stands, that were not said lately; return them."""
        due = [
            *self._said.due(source.key, [note for note in done if not note.quiet], now, DONE_S),
            *self._said.due(source.key, [note for note in standing if not note.quiet], now),
        ]
        for note in due:
            self._post(source.key, source.uid, note, now)
        return due

    def tell_about(self, key: Key, uid: str, note: Note, now: datetime) -> None:
        """Have one note posted about what is no workload, unless it was said lately."""
        for due in self._said.due(key, [note], now, DONE_S):
            self._post(key, uid, due, now)

    def _post(self, key: Key, uid: str, note: Note, now: datetime) -> None:
        self._waiting.append((key.namespace, event(key, uid, note, now, self._instance)))
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

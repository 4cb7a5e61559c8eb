"""Sends Events to the API server without delaying a reconcile.

The reconciler tells it the notes of each reconcile; one task posts them. The same sentence is not said again
in each reconcile (`report.events`); said again later it is counted on in the Event that says it already, as a
series, until the API server has forgotten that one. While an emergency goes on nothing is posted. When more
wait than can be posted the oldest are dropped, of the namespace that has most: an Event is a courtesy, the
Split's status and the log have it too.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from socket import gethostname
from typing import Any

from splitter.core.model import Note, SourceView
from splitter.core.names import Key
from splitter.kube.apply import Writer
from splitter.kube.client import NOT_LEADING, ApiError
from splitter.reconciler.fair import FairQueue
from splitter.report import metrics
from splitter.report.events import DONE_S, Said, event, renewed, series

logger = logging.getLogger("splitter.events")

_WAITING = 4_000
# Events that may still be there to be counted on; about 2 KB each.
_REMEMBERED = 4_000
# Events take a tenth of the time, so fewer go out while the API server is slow; but one a second.
_PAUSE, _LONGEST_PAUSE_S = 9.0, 1.0
# It has been forgotten, or we may not patch it: then it is a new Event.
_ANEW = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN})

_Sentence = tuple[str, str, str]  # an object's UID, the reason, the words


@dataclass(slots=True)
class _Letter:
    """One Event: how often it was said, when last, and whether the API server has it."""

    namespace: str
    body: dict[str, Any]
    last: datetime
    count: int = 1
    there: bool = False


class EventRecorder:
    """Posts Events."""

    def __init__(self, writer: Writer, calm: Callable[[], Awaitable[None]]) -> None:
        self._writer = writer
        self._calm = calm
        self._said = Said()
        self._letters: OrderedDict[_Sentence, _Letter] = OrderedDict()
        self._waiting: FairQueue[_Sentence, _Letter] = FairQueue()
        self._something = asyncio.Event()
        self._instance = gethostname()

    def tell(
        self, source: SourceView, now: datetime, done: Sequence[Note], node_status: Sequence[Note] = ()
    ) -> Sequence[Note]:
        """Have those posted, of what was done and what stands, that were not said lately; return them."""
        due = [
            *self._said.due(source.key, [note for note in done if not note.quiet], now, DONE_S),
            *self._said.due(source.key, [note for note in node_status if not note.quiet], now),
        ]
        for note in due:
            self._post(source.key, source.uid, note, now)
        return due

    def tell_about(self, key: Key, uid: str, note: Note, now: datetime) -> None:
        """Have one note posted about what is no workload, unless it was said lately."""
        for due in self._said.due(key, [note], now, DONE_S):
            self._post(key, uid, due, now)

    def _post(self, key: Key, uid: str, note: Note, now: datetime) -> None:
        sentence = (uid, note.reason.value, note.message)
        letter = self._letters.get(sentence)
        if letter is None:
            letter = _Letter(key.namespace, event(key, uid, note, now, self._instance), now)
            self._letters[sentence] = letter
        else:
            letter.count, letter.last = letter.count + 1, now
        self._letters.move_to_end(sentence)
        self._waiting.put(letter.namespace, sentence, letter)
        if len(self._letters) > _REMEMBERED:
            self._letters.popitem(last=False)
        if len(self._waiting) > _WAITING:
            self._waiting.drop()
            metrics.events_total.labels("dropped").inc()
        self._something.set()

    async def run(self) -> None:
        """Post what waits, until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            while self._waiting:
                await self._calm()
                began = time.monotonic()
                await self._post_next()
                await asyncio.sleep(pause_s(time.monotonic() - began))

    async def flush(self) -> None:
        """Post everything that waits now."""
        while self._waiting:
            await self._post_next()

    async def _post_next(self) -> None:
        """Post the oldest; what is refused is logged and dropped."""
        if not self._waiting:
            return
        sentence, letter = self._waiting.pop()
        try:
            outcome = await self._send(letter)
        except ApiError as error:
            outcome = "refused"
            self._letters.pop(sentence, None)
            going = "being terminated" in error.message
            level = logging.DEBUG if going or error.reason == NOT_LEADING else logging.WARNING
            logger.log(level, "event in %s not written: %s", letter.namespace, error)
        metrics.events_total.labels(outcome).inc()

    async def _send(self, letter: _Letter) -> str:
        """Count on in the Event if the API server has it, else create it; returns what was done."""
        if letter.there:
            try:
                name = letter.body["metadata"]["name"]
                await self._writer.repeat_event(letter.namespace, name, series(letter.count, letter.last))
            except ApiError as error:
                if error.status not in _ANEW:
                    raise
                letter.body = renewed(letter.body, letter.last)
                letter.count, letter.there = 1, False
            else:
                return "repeated"
        again = series(letter.count, letter.last) if letter.count > 1 else {}
        await self._writer.post_event(letter.namespace, {**letter.body, **again})
        letter.there = True
        return "created"


def pause_s(took_s: float) -> float:
    """Return how long to post nothing after an Event that took so long.

    >>> pause_s(0.01), pause_s(0.1), pause_s(30.0)
    (0.09, 0.9, 1.0)
    """
    return min(_LONGEST_PAUSE_S, _PAUSE * took_s)

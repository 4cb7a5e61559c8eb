"""Kubernetes Events about a source, from the notes of a reconcile, and about a template set.

The EventRecorder asks `due` which notes to say now, and has `kube.apply` post what `event` builds, or count
on with `series` in an Event that says the very same already. Source of the form: events.k8s.io/v1, and
kubernetes/enhancements KEP-383 for series.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from splitter.core.model import Note, seconds_between
from splitter.core.names import Key

STANDING_S = 1800.0
"""What still stands is said again before the API server forgets its Event (its default: an hour)."""
DONE_S = 60.0
"""The same write twice within this time is one piece of news; later, it has happened again."""
_REMEMBERED = 10_000
_NOTE = 1024  # the API server refuses a longer one


class Said:
    """Remembers what was said, so that it is not said in each reconcile."""

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[Key, str, str], datetime] = OrderedDict()

    def due(self, key: Key, notes: Sequence[Note], now: datetime, repeat_s: float = STANDING_S) -> list[Note]:
        """Return the notes that were not said in the last `repeat_s` seconds, and remember them as said.

        As much of each as an Event can say: an API server's answer may quote a megabyte of a tenant's.
        """
        due_notes = []
        for note in map(_cut, notes):
            sentence = (key, note.reason.value, note.about or note.message)
            last = self._said.get(sentence)
            if last is not None and seconds_between(last, now) < repeat_s:
                continue
            self._said[sentence] = now
            self._said.move_to_end(sentence)
            due_notes.append(note)
        while len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        return due_notes


def _cut(note: Note) -> Note:
    if max(len(note.message), len(note.about)) <= _NOTE:
        return note
    return replace(note, message=note.message[:_NOTE], about=note.about[:_NOTE])


def event(key: Key, uid: str, note: Note, now: datetime, instance: str) -> dict[str, Any]:
    """Return one Event object about the object that a key names."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": _a_name(key.name), "namespace": key.namespace},
        "eventTime": _micro_time(now),
        "reportingController": "splitter.io/splitter",
        "reportingInstance": instance[:128],
        "action": note.reason.value,
        "reason": note.reason.value,
        "note": note.message[:_NOTE],
        "type": "Warning" if note.warning else "Normal",
        "regarding": {
            "apiVersion": "v1" if key.kind == "ConfigMap" else "apps/v1",
            "kind": key.kind,
            "namespace": key.namespace,
            "name": key.name,
            "uid": uid,
        },
    }


def renewed(body: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return the same Event as a new object, for the API server has forgotten the old one."""
    name = _a_name(body["regarding"]["name"])
    return {**body, "metadata": {**body["metadata"], "name": name}, "eventTime": _micro_time(now)}


def series(count: int, last: datetime) -> dict[str, Any]:
    """Return the part of an Event that says how often (2 or more) it was said, and when last."""
    return {"series": {"count": count, "lastObservedTime": _micro_time(last)}}


def _a_name(of: str) -> str:
    return f"{of[:200].rstrip('-.')}.{uuid4().hex[:16]}"


def _micro_time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

"""Writes on the Lease which workload has held up a process: the next leader leaves it alone for a while.

The thread that watches the event loop (`reconciler.watchdog`) writes it, by a connection of its own, while
that loop does not turn; `operator` reads it when this process leads. It is an annotation of our own Lease:
nothing else that splitter's account may write outlives a process and needs no object of a user. Whoever may
write the Lease decides who leads anyway; what it says is checked all the same, and there are at most MOST of
them. Source: H83, docs/adr/0105.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson

from splitter.core.model import seconds_between
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key
from splitter.kube.client import ApiError, Json
from splitter.kube.connect import connect
from splitter.kube.lease import NAME, Api
from splitter.kube.parse.fields import UNREADABLE, count, instant
from splitter.kube.paths import leases

ANNOTATION = "splitter.io/held-up"
MOST = 16
# For how long it is left alone: after the first time, and at most. Twice as long after each further time.
_REST_S, _LONGEST_REST_S = 60.0, 3600.0
# After this it is as if it had never held up a process.
_FORGOTTEN_S = 24 * 3600.0
_MOST_TIMES = 10
_MOST_BYTES = 16 * 1024
_TRIES = 3
_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class HeldUp:
    """A workload that has held up a process: how often, and when last."""

    key: Key
    at: datetime
    times: int = 1

    def rest_s(self, now: datetime) -> float:
        """Return for how many seconds from now it is left alone; 0: it is not. Clocks may differ."""
        lasts_s = min(_LONGEST_REST_S, _REST_S * 2.0 ** (self.times - 1))
        return min(lasts_s, max(0.0, lasts_s - seconds_between(self.at, now)))


def held_up(lease: Json, now: datetime) -> tuple[HeldUp, ...]:
    """Return which workloads a Lease names, the last one first; what cannot be read is left out."""
    text = ((lease.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION) or "[]"
    try:
        entries = list(orjson.loads(text))[:MOST] if len(text) <= _MOST_BYTES else []
    except UNREADABLE:
        return ()
    read = [one for raw in entries if (one := _entry(raw)) is not None]
    return tuple(one for one in read if abs(seconds_between(one.at, now)) < _FORGOTTEN_S)


async def write_down_anew(kubeconfig: Path | None, context: str | None, namespace: str, key: Key) -> HeldUp:
    """Do what `write_down` does by a connection of its own. Raises ApiError, or SplitterError."""
    client = await connect(kubeconfig, context, _TIMEOUT_S, connections=1)
    try:
        return await write_down(client, namespace, key)
    finally:
        await client.close()


async def write_down(api: Api, namespace: str, key: Key) -> HeldUp:
    """Write that a workload holds up this process. Raises ApiError where that cannot be written."""
    path = leases(namespace).of(NAME)
    for left in reversed(range(_TRIES)):
        lease = await api.send("GET", path, timeout_s=_TIMEOUT_S)
        now = datetime.now(UTC)
        known = {one.key: one for one in held_up(lease, now)}
        before = known.pop(key, None)
        this = HeldUp(key, now, min(_MOST_TIMES, before.times + 1) if before is not None else 1)
        annotations = {
            **(lease["metadata"].get("annotations") or {}),
            ANNOTATION: orjson.dumps([_written(one) for one in (this, *known.values())][:MOST]).decode(),
        }
        changed = {**lease, "metadata": {**lease["metadata"], "annotations": annotations}}
        try:
            await api.send("PUT", path, changed, timeout_s=_TIMEOUT_S)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT or not left:
                raise  # else it was renewed, or taken, in between
        else:
            return this
    raise AssertionError  # the last try returns or raises


def _entry(raw: Mapping[str, Any]) -> HeldUp | None:
    try:
        key = Key(raw["kind"], raw["namespace"], raw["name"])
        this = HeldUp(key, instant(raw["at"]), max(1, min(count(raw, "times"), _MOST_TIMES)))
    except UNREADABLE:
        return None
    return this if key.kind in {DEPLOYMENT, STATEFUL_SET} else None


def _written(one: HeldUp) -> Json:
    return {
        "kind": one.key.kind,
        "namespace": one.key.namespace,
        "name": one.key.name,
        "times": one.times,
        "at": one.at.isoformat(),
    }

"""Elects the one process that writes: a Lease of our own, since the client's election cannot be used.

`operator` runs one `Election` beside the watches; `client` asks it, as the `Permit` of all writes, before
each of them. Whoever holds the Lease leads. The holder renews it, and stops writing when it has not managed
to for two thirds of the Lease's duration, counted from before it sent the last renewal that succeeded; the
others take it when they have seen no renewal for the whole duration, counted from after they saw the last.
So a third of the duration lies between the last write of one and the first of the next, whatever the clocks
of the two say: nobody compares the other's time with its own. Every write to the Lease carries the
resourceVersion that was read, and every request ends in time.

The fields are those that client-go writes (k8s.io/client-go/tools/leaderelection). This never decides what is
done with the leadership, and knows no workload.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Protocol

from splitter.kube.client import ApiError, Json
from splitter.kube.paths import ResourcePath, leases

logger = logging.getLogger("splitter.lease")

NAME = "splitter"
# Shares of the duration. With 12 s: renewed every 2 s, given up after 8 s, looked at by the others every
# second, so that a clean stop is noticed at once; one small GET a second is all that a standby costs.
_RENEW_WITHIN, _RENEW_EVERY, _LOOK_EVERY = 2 / 3, 1 / 6, 1 / 12
# Standbys do not ask in step.
_JITTER = (0.8, 1.2)
# The duration of a Lease that was let go, as client-go writes it.
_RELEASED_S = 1
_RELEASE_WITHIN_S = 2.0
_TRIES = 3
_LOOKS = 12
_SHORTEST_WAIT_S = 0.05


class Api(Protocol):
    """What an election needs of a client."""

    async def send(
        self, method: str, path: ResourcePath, body: Json | None = None, *, timeout_s: float | None = None
    ) -> Json:
        """Send one request; raises ApiError, status 0 when there is no answer within `timeout_s`."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The Lease as it was read or written last."""

    raw: Json
    since_s: float
    """Our own clock's time when this renewal was first seen."""

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.raw.get("spec") or {}

    @property
    def holder(self) -> str:
        return self.spec.get("holderIdentity") or ""


def lease_clock() -> float:
    """Return seconds that only grow, and go on while the machine sleeps where there is such a clock (Linux).

    CLOCK_MONOTONIC stands still in a suspended machine: a leader that wakes up would believe in its lease.
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Election:
    """Takes part in the election; `leading` and `left_s` answer at once, from the clock."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        identity: str,
        duration_s: int,
        *,
        clock: Callable[[], float] = lease_clock,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        dice: Callable[[float, float], float] = random.uniform,
        reconnected: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self.identity = identity
        self._api = api
        self._namespace = namespace
        self._duration_s = duration_s
        self._clock = clock
        self._now = now
        self._dice = dice
        # Called when the API server answers after it has not: with whether it was away for so long that
        # somebody else may have led meanwhile.
        self._reconnected = reconnected
        self._answered_s = clock()
        self._seen: _Seen | None = None
        self._renewed_s: float | None = None  # when the last renewal that succeeded was sent; None: standby
        self._error: ApiError | None = None
        self._said = ""
        self._gained, self._lost = asyncio.Event(), asyncio.Event()
        self.answered = False

    @property
    def leading(self) -> bool:
        """Whether this process may write now."""
        return self.left_s() > 0

    @property
    def lease(self) -> Json:
        """The Lease as it was read or written last; empty before."""
        return self._seen.raw if self._seen is not None else {}

    @property
    def leader(self) -> str:
        """Who held the Lease when it was last seen; empty: nobody."""
        return self._seen.holder if self._seen is not None else ""

    def left_s(self) -> float:
        """Return how long a write sent now may take: until others may take the Lease. 0: do not send it."""
        if self._renewed_s is None or self._clock() >= self._renewed_s + self._renew_within_s:
            return 0.0
        return self._renewed_s + self._duration_s - self._clock()

    async def gained(self) -> None:
        """Wait until this process leads."""
        await self._gained.wait()

    async def lost(self) -> None:
        """Wait until it does not lead any more."""
        await self._lost.wait()

    async def run(self) -> None:
        """Look, take and renew until cancelled."""
        while True:
            wait_s = await self.step()
            await asyncio.sleep(wait_s)

    async def step(self) -> float:
        """Do what is due now; return after how many seconds the next step is. Never raises ApiError."""
        self._give_up_if_late()
        began_s = self._clock()
        try:
            await (self._look() if self._renewed_s is None else self._renew())
        except ApiError as error:
            self._tell_error(error)
        else:
            if self._error is not None and self._error.status == 0:
                self._reconnected(self._clock() - self._answered_s >= self._renew_within_s)
            # From before it was sent, as a renewal counts: who has lost the lead was away for long.
            self.answered, self._error, self._answered_s = True, None, began_s
        self._give_up_if_late()
        return self._wait_s()

    async def release(self) -> bool:
        """Stop leading, and let the others know at once. Call it when no write is under way any more."""
        if self._renewed_s is None:
            return False
        self._renewed_s = None  # before the Lease is free, not after
        self._lost.set()
        self._gained.clear()
        try:
            async with asyncio.timeout(_RELEASE_WITHIN_S):
                return await self._let_go()
        except (ApiError, TimeoutError) as error:
            logger.warning("the lease could not be released, the others wait for its end: %s", error)
            return False

    # --- steps ------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Read the Lease, and take it when it is free."""
        await self._read()
        seen = self._seen
        if seen is not None and not self._is_free(seen):
            self._tell(f"standing by: {seen.holder} leads")
            return
        await self._take()

    async def _renew(self) -> None:
        for _ in range(_TRIES):
            try:
                await self._write(self._record())
            except ApiError as error:
                if error.status not in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
                    raise
            else:
                return
            # Written by somebody, deleted by somebody, or by ourselves with an answer that got lost.
            await self._read()
            if self.leader not in {"", self.identity}:
                self._lose(f"{self.leader} has taken the lease")
                return

    async def _take(self) -> None:
        before = self.leader
        try:
            await self._write(self._record())
        except ApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                return  # another one was faster: the next look says who
            raise
        took_over = f", after {before}" if before not in {"", self.identity} else ""
        self._tell(f"leading as {self.identity}{took_over}")
        self._lost.clear()
        self._gained.set()

    async def _let_go(self) -> bool:
        for _ in range(2):
            seen = self._seen
            if seen is None or seen.holder != self.identity:
                return False
            # Without a holder, as client-go leaves it.
            spec = {key: value for key, value in seen.spec.items() if key != "holderIdentity"}
            stamp = _stamp(self._now())
            spec |= {"leaseDurationSeconds": _RELEASED_S, "renewTime": stamp, "acquireTime": stamp}
            try:
                await self._put({**seen.raw, "spec": spec})
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                await self._read()  # a renewal of ours, cut off when we were told to leave, arrived
                continue
            logger.info("the lease is released")
            return True
        return False

    # --- the Lease --------------------------------------------------------------------------------

    @property
    def _path(self) -> ResourcePath:
        return leases(self._namespace)

    @property
    def _renew_within_s(self) -> float:
        return self._duration_s * _RENEW_WITHIN

    def _timeout_s(self) -> float:
        """Return how long a request may take: two attempts fit, and a leader's end with its time."""
        half = self._renew_within_s / 2
        if self._renewed_s is None:
            return half
        return max(_SHORTEST_WAIT_S, min(half, self._renewed_s + self._renew_within_s - self._clock()))

    async def _read(self) -> None:
        """Read the Lease. A deleted one counts as last seen, so deleting it makes nobody leader."""
        try:
            raw = await self._api.send("GET", self._path.of(NAME), timeout_s=self._timeout_s())
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            if self._seen is not None:
                self._seen = _Seen(_without_version(self._seen.raw), self._seen.since_s)
            return
        self._see(raw)

    def _see(self, raw: Json) -> None:
        """Remember the Lease; only another spec is a renewal, whoever touched its annotations."""
        before = self._seen
        is_renewal = before is None or before.spec != (raw.get("spec") or {})
        self._seen = _Seen(raw, self._clock() if before is None or is_renewal else before.since_s)

    def _is_free(self, seen: _Seen) -> bool:
        if seen.holder in {"", self.identity}:
            return True
        duration_s = seen.spec.get("leaseDurationSeconds") or self._duration_s
        return bool(self._clock() >= seen.since_s + duration_s)

    def _record(self) -> Json:
        """Return the Lease with us as its holder from now on."""
        stamp = _stamp(self._now())
        seen = self._seen
        spec: Json = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._duration_s,
            "acquireTime": stamp,
            "renewTime": stamp,
            "leaseTransitions": 0,
        }
        if seen is None:
            return _lease(self._namespace, spec)
        transitions = seen.spec.get("leaseTransitions") or 0
        if seen.holder == self.identity:
            spec |= {"acquireTime": seen.spec.get("acquireTime") or stamp, "leaseTransitions": transitions}
        else:
            spec |= {"leaseTransitions": transitions + 1}
        return {**seen.raw, "spec": {**seen.spec, **spec}}

    async def _write(self, lease: Json) -> None:
        """Write the Lease as ours: from here on we lead, counted from before it was sent."""
        began = self._clock()
        await self._put(lease)
        self._renewed_s = began

    async def _put(self, lease: Json) -> None:
        known = "resourceVersion" in lease["metadata"]
        method, path = ("PUT", self._path.of(NAME)) if known else ("POST", self._path)
        if not known:
            lease = _lease(self._namespace, lease["spec"])
        self._see(await self._api.send(method, path, lease, timeout_s=self._timeout_s()))

    # --- ends and waits ---------------------------------------------------------------------------

    def _give_up_if_late(self) -> None:
        if self._renewed_s is not None and not self.leading:
            why = f": {self._error}" if self._error is not None else ""
            self._lose(f"the lease was not renewed within {self._renew_within_s:.0f} s{why}")

    def _lose(self, why: str) -> None:
        self._renewed_s = None
        self._gained.clear()
        self._lost.set()
        self._said = ""
        logger.warning("not leading any more: %s", why)

    def _wait_s(self) -> float:
        low, high = _JITTER
        if self._renewed_s is not None:
            late = self._clock() - self._renewed_s >= self._duration_s * _RENEW_EVERY
            share = _LOOK_EVERY if late else _RENEW_EVERY  # the last renewal failed: sooner
            left_s = self._renewed_s + self._renew_within_s - self._clock()
            return max(_SHORTEST_WAIT_S, min(left_s, self._duration_s * share * self._dice(low, high)))
        wait_s = self._duration_s * _LOOK_EVERY * self._dice(low, high)
        seen = self._seen
        if seen is not None and seen.holder:
            duration_s = seen.spec.get("leaseDurationSeconds") or self._duration_s
            until_free_s = seen.since_s + duration_s - self._clock()
            if until_free_s > 0:
                wait_s = min(wait_s, until_free_s)
        return max(_SHORTEST_WAIT_S, wait_s)

    def _tell(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            logger.info("%s", sentence)

    def _tell_error(self, error: ApiError) -> None:
        if self._error is None or self._error.status != error.status:
            logger.warning("the lease %s/%s: %s", self._namespace, NAME, error)
        self._error = error


async def leading_elsewhere(client: Api, namespace: str) -> str | None:
    """Return who renews the Lease right now, or None when nobody does or the Lease cannot be read.

    Told by two looks and not by the holder's clock: takes as long as a renewal may, when there is a holder.
    Raises ApiError when the API server does not answer.
    """
    path = leases(namespace).of(NAME)
    first: Json | None = None
    for _ in range(_LOOKS):
        try:
            spec = (await client.send("GET", path)).get("spec") or {}
        except ApiError as error:
            if error.status in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
                return None
            raise
        holder = spec.get("holderIdentity")
        if not holder:
            return None
        if first is not None and spec != first:
            return str(holder)
        first = spec
        await asyncio.sleep(spec.get("leaseDurationSeconds", 1) / _LOOKS)
    return None


def _lease(namespace: str, spec: Json) -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": spec,
    }


def _without_version(raw: Json) -> Json:
    metadata = {key: value for key, value in raw["metadata"].items() if key != "resourceVersion"}
    return {**raw, "metadata": metadata}


def _stamp(now: datetime) -> str:
    """Return a time as Kubernetes' MicroTime: in UTC, with microseconds.

    >>> _stamp(datetime(2026, 1, 2, 3, 4, 5, 6, UTC))
    '2026-01-02T03:04:05.000006Z'
    """
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

"""Answers the kubelet's probes, /healthz and /readyz, each with a body that a person can read.

`operator` starts it and shows it a snapshot of all checks about once a second; the answers come from a thread
of their own, so that they also come, and say why, while the event loop is stuck. What is checked is decided
elsewhere (`reconciler.health_checks`). Nothing here knows a cluster.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from splitter.report.discretion import without_values
from splitter.report.serving import LOOPBACK, Answer, Request, listen

# The event loop turns many times a second; a large list may hold it for some.
_STUCK_S = 30.0
# What is older than this is said to be so.
_OLD_S = 3.0
_LOOP = "event-loop"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `age_s`: how old the news is that it rests on."""

    name: str
    message: str
    live: bool = True
    """Whether going on makes sense; false: only a new process helps."""
    ready: bool = True
    """Whether this process could lead now."""
    age_s: float | None = None


class Health:
    """The last snapshot, and the two answers made of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown: tuple[float, tuple[Check, ...]] = (clock(), ())
        self.held_up_by = ""
        """The workload that keeps the event loop from turning, where `reconciler.watchdog` has found one."""

    @property
    def shown_s(self) -> float:
        """The clock's time at the last snapshot."""
        return self._shown[0]

    def show(self, checks: Sequence[Check]) -> None:
        """Take a snapshot; called by the event loop itself, about once a second."""
        self._shown = (self._clock(), tuple(checks))

    def answer(self, path: str) -> tuple[HTTPStatus, dict[str, object]] | None:
        """Return the status and the body of a probe, None for another path. May be called by any thread."""
        if path not in {"/healthz", "/readyz"}:
            return None
        shown_s, checks = self._shown
        age_s = self._clock() - shown_s
        is_turning = age_s <= _STUCK_S
        message = f"has not turned for {age_s:.0f} s" if age_s > _OLD_S else "turns"
        if self.held_up_by:
            message += f": {self.held_up_by} holds it up"
        loop = Check(_LOOP, message, live=is_turning, ready=is_turning, age_s=age_s)
        results = [(check, check.live if path == "/healthz" else check.ready) for check in (loop, *checks)]
        if path == "/readyz" and not checks:
            results.append((Check("start", "has not begun"), False))
        good = all(ok for _, ok in results)
        body: dict[str, object] = {
            "ok": good,
            "checks": {check.name: _shown(check, ok, age_s) for check, ok in results},
        }
        return HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, body


def _shown(check: Check, ok: bool, late_s: float) -> dict[str, object]:  # noqa: FBT001 (its only call)
    age = {} if check.age_s is None else {"age_s": round(check.age_s, 1)}
    late = f" ({late_s:.0f} s ago)" if late_s > _OLD_S and check.name != _LOOP else ""
    return {"ok": ok, "message": without_values(check.message) + late, **age}


def serve(health: Health, port: int, address: str = LOOPBACK) -> int:
    """Answer probes in a thread that ends with the process; return the port (0: any). Raises OSError."""

    def answer(request: Request) -> Answer:
        results = health.answer(request.path)
        status, body = results or (HTTPStatus.NOT_FOUND, {"ok": False, "paths": ["/healthz", "/readyz"]})
        return Answer(status, "application/json", json.dumps(body, indent=2).encode() + b"\n")

    return listen("probes", port, answer, address=address)

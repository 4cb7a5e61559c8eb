"""The floor of a return: a client that brings spot back within N + S, and decides nothing else.

splitter promises never to hold more than N + S replicas by choice, and never less than N, so its floor keeps
both: raise spot by what there is room for, wait until that is available and has been for the soak, lower
on-demand by as much, go on. The soak is the user's wish; it probes nothing. Source: docs/adr/0067.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from typing import Any

from lab.bench.crowd import DEPLOYMENTS, SETTINGS, Crowd
from lab.sandbox.errors import SandboxError

SURGE = 0.25
"""maxSurge of each workload (`lab.bench.crowd.deployment`)."""
SOAK_S = float(SETTINGS["SPLITTER_SOAK_S"])
"""What splitter is told beside it."""
_WRITERS = 16
_LOOK_S = 0.01


@dataclass(slots=True)
class _Returning:
    """What one workload was asked for last."""

    on_demand: int
    spot: int
    there_s: float | None = None
    """Since when it is there, of the monotonic clock."""


class Return:
    """Brings spot back everywhere, step by step."""

    def __init__(self, here: Crowd, soak_s: float = SOAK_S) -> None:
        """Lower every spot twin to its first step: at once, while no spot node is there."""
        self._soak_s = soak_s
        size = here.size
        self._here = here
        self._most = size.replicas + ceil(size.replicas * SURGE)
        self._left = {name: _Returning(size.replicas, self._step(size.replicas)) for name in here.names}
        with ThreadPoolExecutor(_WRITERS) as writers:
            list(writers.map(lambda name: self._scale(name, "spot", self._left[name].spot), here.names))

    def play(self, check: Callable[[], None]) -> None:
        """Go on until every workload stands as wanted. Raises SandboxError when that takes too long."""
        never_set = threading.Event()
        until_s = time.monotonic() + self._here.size.settle_s
        with ThreadPoolExecutor(_WRITERS) as writers:
            while self._left:
                due = [name for name, asked in self._left.items() if self._is_due(name, asked)]
                list(writers.map(self._go_on, due))
                check()
                if time.monotonic() > until_s:
                    raise SandboxError(f"{len(self._left)} workloads did not return in time.")
                if not due:
                    never_set.wait(_LOOK_S)

    def _step(self, on_demand: int) -> int:
        """Return how many spot replicas there is room for beside so many on on-demand."""
        return min(self._here.size.replicas - self._here.size.base, self._most - on_demand)

    def _is_due(self, name: str, asked: _Returning) -> bool:
        objects = self._here.deployments.objects
        counts = (("on-demand", asked.on_demand), ("spot", asked.spot))
        if not all(_stands(objects[f"{name}-{pool}"], count) for pool, count in counts):
            return False
        now_s = time.monotonic()
        asked.there_s = asked.there_s or now_s
        return now_s - asked.there_s >= self._soak_s or self._next(asked) == (asked.on_demand, asked.spot)

    def _next(self, asked: _Returning) -> tuple[int, int]:
        on_demand = max(self._here.size.base, self._here.size.replicas - asked.spot)
        return on_demand, self._step(on_demand)

    def _go_on(self, name: str) -> None:
        asked = self._left[name]
        on_demand, spot = self._next(asked)
        if (on_demand, spot) == (asked.on_demand, asked.spot):
            del self._left[name]
            return
        self._left[name] = _Returning(on_demand, spot)
        self._scale(name, "on-demand", on_demand)
        if spot != asked.spot:
            self._scale(name, "spot", spot)

    def _scale(self, name: str, pool: str, replicas: int) -> None:
        body = {"spec": {"replicas": replicas}}
        self._here.sandbox.api.patch(f"{DEPLOYMENTS}/{name}-{pool}/scale", body)


def _stands(raw: dict[str, Any], replicas: int) -> bool:
    status = raw.get("status", {})
    counts = {status.get(count, 0) for count in ("replicas", "availableReplicas")}
    seen = status.get("observedGeneration") == raw["metadata"]["generation"]
    return seen and raw["spec"]["replicas"] == replicas and counts == {replicas}

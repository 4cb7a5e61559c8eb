"""One event loop, one API server and one client for all examples.

What a reconcile asks for, takes and says is claimed here, of every reconcile.
"""

import asyncio
import logging
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest

from cpu import cpu_below
from fuzz.attacker import EVIL, SETTINGS, Attacked, allow_placement, nodes, vanished
from fuzz.recording import PLANTED, Asked, Recording, objection, recorded
from splitter import reconciler
from splitter.assembly import renderer_of
from splitter.core import planner
from splitter.core.names import Key
from splitter.core.plan import Plan
from splitter.kube.budgets import Budgets
from splitter.render.bounded import BoundedRenderer
from splitter.report.log import handler

# A reconcile may look around, do a dry run and write (docs/limits.md). Beside those: the volumes of members.
MOST_REQUESTS = 100
MOST_CPU_S, MOST_BYTES = 1.0, 100 * 1024**2
_MEMORY = Path("/proc/self")


class Lab:
    """What all examples have in common."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.server = Recording()
        self._context = recorded(self.server)
        self.client = self.loop.run_until_complete(self._context.__aenter__())
        self.renderer = BoundedRenderer(renderer_of(SETTINGS))
        self.reached: Counter[object] = Counter()
        """The steps and the actions of all plans."""
        self._log = StringIO()
        self._handler = handler("text")
        assert isinstance(self._handler, logging.StreamHandler)
        self._handler.setStream(self._log)
        logging.getLogger("splitter").addHandler(self._handler)
        logging.getLogger("splitter").setLevel(logging.INFO)
        self._patch = pytest.MonkeyPatch()

        def plan(*given: object) -> Plan:
            planned = planner.plan(*given)  # type: ignore[arg-type]
            self.reached.update(
                [planned.step, *map(type, (*planned.actions, *planned.retries, *planned.let_go))]
            )
            return planned

        self._patch.setattr(reconciler, "plan", plan)
        self._patch.setattr(Budgets, "_follows", lambda *_: True)  # nothing is watched here

    def close(self) -> None:
        """End the server, and the process that renders what is large."""
        self._patch.undo()
        logging.getLogger("splitter").removeHandler(self._handler)
        self.renderer.close()
        self.loop.run_until_complete(self._context.__aexit__(None, None, None))
        self.loop.close()

    def attacked(self, count: int = 3, *, placed: bool = True) -> Attacked:
        """Return splitter before a server without workloads, with so many nodes."""
        for kept in (
            self.server.objects,
            self.server.lists,
            self.server.texts,
            self.server.refusals,
            self.server.lines,
        ):
            kept.clear()
        self._log.seek(0)
        self._log.truncate()
        if placed:
            allow_placement(self.server)
        result = Attacked(self.client, self.server, self.renderer)
        for raw in nodes(count):
            result.cache.nodes.upsert(raw)
        result.cache.nodes.upsert(vanished())
        result.cache.nodes.remove(vanished())
        return result

    def passed(self, attacked: Attacked, key: Key) -> list[Asked]:
        """Do one reconcile, and claim what is promised of each; return what was asked, the report with it."""
        self.server.asked.clear()
        before = reset_peak()
        with cpu_below(MOST_CPU_S):
            self.loop.run_until_complete(attacked.passed(key))
            took = peak() - before
        assert took < MOST_BYTES, f"{took} bytes"
        passed = len(self.server.asked)
        volumes = [one for one in self.server.asked if one.verb == "get" and "/persistentvolume" in one.path]
        others = passed - len(volumes)
        assert others <= MOST_REQUESTS, f"{key}: {others} requests"
        assert len(volumes) <= 2 * 250, f"{key}: {len(volumes)} requests for volumes"
        self.server.refusals.clear()
        self.loop.run_until_complete(attacked.said())
        wrong = [(why, one.method, one.path) for one in self.server.asked if (why := objection(one, EVIL))]
        assert not wrong, f"{key}: {wrong}"
        assert PLANTED not in self.log
        return list(self.server.asked)

    @property
    def log(self) -> str:
        """What splitter has logged, as it stands in its log."""
        return self._log.getvalue()


def reset_peak() -> int:
    """Have the high-water mark of memory begin anew; return what is held now, in bytes (Linux, proc(5))."""
    (_MEMORY / "clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """Return the most memory that was held since then, in bytes."""
    text = (_MEMORY / "status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) * 1024

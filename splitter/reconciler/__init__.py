"""One key at a time: observe, plan, apply, report, look again later.

Workers take keys from the queue; each pass is level-triggered and looks at everything about one
workload. This is the only place that asks for the time, and the only one that may use the writer.
What fails is logged once, with what to do, and tried again with growing delay; nothing is ever given
up, and a pass that lost a race simply runs again.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from socket import gethostname

import orjson

from splitter.core.errors import SplitterError
from splitter.core.handover import Step
from splitter.core.model import Key, Note, Observation, Pool, Rendered
from splitter.core.plan import Plan, PolicyInForce, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.kube.apply import Writer
from splitter.kube.client import ApiError
from splitter.kube.observe import Observer
from splitter.reconciler.board import StatusBoard
from splitter.reconciler.queue import WorkQueue
from splitter.render import Renderer
from splitter.report import metrics
from splitter.report.events import Said, event
from splitter.report.status import build

logger = logging.getLogger("splitter.reconciler")

# A lost race is looked at again at once; other failures ever later, up to this.
_RETRY_S, _RETRY_MAX_S = 0.5, 60.0
# No answer, lost races and throttling mend themselves: the next pass says what is.
_NOBODYS_BUSINESS = frozenset({0, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})
# A replica given to spot is bound within this time or shows as Pending by itself.
_PROMISE_S = 10.0


class Reconciler:
    """Runs passes."""

    def __init__(
        self,
        queue: WorkQueue,
        observer: Observer,
        writer: Writer,
        renderer: Renderer,
        rules: Rules,
        resync_s: float,
    ) -> None:
        self._queue = queue
        self._observer = observer
        self._writer = writer
        self._renderer = renderer
        self._rules = rules
        self._resync_s = resync_s
        self._board = StatusBoard(writer)
        self._said = Said()
        self._failures: dict[Key, int] = {}
        self._promises: deque[tuple[float, Key, int]] = deque()
        self._instance = gethostname()

    async def run(self, workers: int) -> None:
        """Work until cancelled; statuses still posted are written at the end."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._board.run())
                for _ in range(workers):
                    group.create_task(self._work())
        finally:
            await asyncio.shield(asyncio.wait_for(self._board.flush(), timeout=5))

    async def _work(self) -> None:
        while True:
            key = await self._queue.take()
            metrics.queue_keys.set(len(self._queue))
            try:
                await self._pass(key)
                self._failures.pop(key, None)
            except ApiError as error:
                self._failed(key, error)
            except Exception:
                metrics.errors_total.labels("bug").inc()
                logger.exception("a pass failed, this is a bug of splitter's: workload=%s", key)
                self._queue.add_after(key, self._delay_s(key))
            finally:
                self._queue.done(key)

    async def _pass(self, key: Key) -> None:
        began = time.perf_counter()
        now = datetime.now(UTC)
        observed = self._board.overlay(await self._observer.observe(key, now, self._promised(key)))
        in_force = policy_in_force(observed, self._rules.defaults)
        found = plan(observed, in_force, self._render(observed, in_force), self._rules)
        try:
            await self._writer.apply(observed, found.actions)
        except ApiError as error:
            await self._report_failure(observed, found, in_force, error)
            raise
        self._promise(key, observed, found)
        await self._report(observed, found, in_force)
        took_s = time.perf_counter() - began
        metrics.reconcile_seconds.observe(took_s)
        level = logging.INFO if found.actions else logging.DEBUG
        logger.log(
            level,
            "reconciled workload=%s state=%s reason=%s actions=%d took_ms=%.0f message=%s",
            key,
            found.state,
            found.verdict.reason,
            len(found.actions),
            took_s * 1000,
            found.verdict.message,
        )
        if found.step is not Step.NOTHING:
            self._queue.add_after(key, min(found.wake_after_s or self._resync_s, self._resync_s))

    def _render(self, observed: Observation, in_force: PolicyInForce) -> Mapping[Pool, Rendered] | Note:
        """Render both twins; a template that fails is a Note, and nothing rolls."""
        if observed.source is None:
            return Note(Reason.GIVEN_BACK, "the source is gone")
        manifest = orjson.loads(observed.source.manifest_json)
        try:
            return {pool: self._renderer.render(manifest, pool, in_force.policy) for pool in Pool}
        except SplitterError as error:
            return Note(error.reason, error.message, warning=True)

    async def _report(self, observed: Observation, found: Plan, in_force: PolicyInForce) -> None:
        status = build(observed, found, in_force, written=True)
        if observed.split is not None:
            self._board.post(observed, status)
        if found.actions:
            metrics.decisions_total.labels(found.verdict.reason.value).inc()
        if observed.split is not None and observed.source is not None:
            metrics.show(observed.key, status)
        notes = (*found.notes, *(in_force.problems if found.step is not Step.NOTHING else ()))
        await self._say(observed, notes)

    async def _say(self, observed: Observation, notes: tuple[Note, ...]) -> None:
        if observed.source is None:
            return
        for note in self._said.due(observed.key, notes, observed.now):
            body = event(observed.source, note, observed.now, self._instance)
            try:
                await self._writer.post_event(observed.key.namespace, body)
            except ApiError as error:
                logger.warning("event of %s not written: %s", observed.key, error)

    async def _report_failure(
        self, observed: Observation, found: Plan, in_force: PolicyInForce, error: ApiError
    ) -> None:
        """Show a refusal of the API server where people look; a lost race is nobody's business."""
        if error.status in _NOBODYS_BUSINESS or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return
        message = f"the API server refused a write: {error.message or error}"
        note = Note(Reason.WRITE_DENIED, message, warning=True)
        refused = Plan(found.step, found.state, note)
        if observed.split is not None:
            self._board.post(observed, build(observed, refused, in_force, written=False))
        await self._say(observed, (note,))

    def _failed(self, key: Key, error: ApiError) -> None:
        if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
            self._queue.add_after(key, 0.05)  # somebody wrote in between: observe anew
            return
        metrics.errors_total.labels(str(error.status)).inc()
        delay_s = self._delay_s(key)
        logger.warning("pass failed workload=%s retry_s=%.1f because=%s", key, delay_s, error)
        self._queue.add_after(key, delay_s)

    def _delay_s(self, key: Key) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return float(min(_RETRY_MAX_S, _RETRY_S * 2 ** min(failures - 1, 10)))

    def _promised(self, key: Key) -> int:
        """Count the spot replicas given to others just now: two must not jump into the same hole."""
        horizon = time.monotonic() - _PROMISE_S
        while self._promises and self._promises[0][0] < horizon:
            self._promises.popleft()
        return sum(count for _, other, count in self._promises if other != key)

    def _promise(self, key: Key, observed: Observation, found: Plan) -> None:
        spot = observed.spot
        raised = sum(
            getattr(action, "replicas", 0) - spot.spec_replicas
            for action in found.actions
            if spot is not None and getattr(action, "name", "") == spot.name
        )
        if raised > 0:
            self._promises.append((time.monotonic(), key, raised))

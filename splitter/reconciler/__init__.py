"""Reconciles one key at a time: observe, plan, apply, report, requeue.

Workers take keys from the queue; each reconcile is level-triggered and looks at everything about one
workload. This is the only place that asks for the time, and the only one that may use the writer.
What fails is logged once, with what to do, and tried again with growing delay; nothing is ever given
up, and a reconcile that lost a race simply runs again.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus

from splitter.core.actions import Action, DeleteUnboundPod, DeleteVanishedPod, EvictPod, must_not_wait
from splitter.core.conditions import objection_to
from splitter.core.handover import Step
from splitter.core.model import Note, Observation
from splitter.core.names import Key
from splitter.core.placeable import EvictionRefusal
from splitter.core.plan import (
    Plan,
    PolicyInForce,
    Rules,
    as_written,
    begins,
    remembered,
    unseen,
)
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.split_status import Restart
from splitter.core.twins.move_limit import keeps_turn
from splitter.kube.apply import Writer
from splitter.kube.client import KIND_MISSING, NOT_LEADING, ApiError
from splitter.kube.observe import Observer
from splitter.kube.views import Views
from splitter.reconciler.answers import is_reconciling, is_refusal
from splitter.reconciler.events import EventRecorder
from splitter.reconciler.hot_nodes import Unwatched, Watch, with_move_written
from splitter.reconciler.losses import Losses, can_wait
from splitter.reconciler.others import Others
from splitter.reconciler.queue import WorkQueue
from splitter.reconciler.rehearsals import Rehearsals
from splitter.reconciler.rendering import Rendering
from splitter.reconciler.status_writer import StatusWriter
from splitter.reconciler.template_validation import TemplateValidation
from splitter.render.bounded import BoundedRenderer
from splitter.report import metrics
from splitter.report.log import reconcile_fields
from splitter.report.status import build

logger = logging.getLogger("splitter.reconciler")

# A lost race is looked at again at once; other failures ever later, up to this.
_RETRY_S, _RETRY_MAX_S = 0.5, 60.0
_URGENT_RETRIES = 4  # after so many failures the delay of what must not wait grows no more: 8 s
# More lost races than this in a row are no races, and are said.
_RACE_S, _RACES = 0.025, 6
# Without the kind of its reports nothing goes on: looked at again after this.
_KIND_MISSING_S = 10.0
# What only takes pods away is looked at again after this, while others are still to be raised.
_CALMER_S = 0.5
# And after this, while others are still to come: each new pod tells of itself some four times, and each look
# takes time from them. A node that goes is answered at once all the same.
_HELD_S = 2.0
# What is still to be said at the end: a second's worth of statuses. A successor waits for the lease so long.
_LAST_WORDS_S = 1.0
# What a reconcile knows of twins that take long to render, until they are there.
_RENDERING = Note(Reason.TEMPLATE_INVALID, "its twins are being rendered", quiet=True)


class Reconciler:
    """Runs reconciles."""

    def __init__(
        self,
        queue: WorkQueue,
        observer: Observer,
        writer: Writer,
        renderer: BoundedRenderer,
        *,
        rules: Rules,
        resync_s: float,
        relief: Watch | None = None,
        views: Views | None = None,
        moving: Iterable[Key] = (),
    ) -> None:
        """Take over from the last leader: those it was `moving` keep their turn until they are reconciled."""
        self._queue = queue
        self._observer = observer
        self._writer = writer
        self._rendering = Rendering(renderer, queue.add)
        self._rules = rules
        self._resync_s = resync_s
        self._views = views or Views()
        self._status_writer = StatusWriter(writer, queue.calm, queue.add_after)
        self._recorder = EventRecorder(writer, queue.calm)
        self._validation = TemplateValidation(renderer, self._recorder)
        self.validate_template_set = self._validation.validate_template_set
        self._failures: dict[Key, int] = {}
        self._others = Others(rules.max_concurrent_moves, time.monotonic, queue.ranking)
        self._rehearsals = Rehearsals(writer, rules, self._others.moving)
        self._losses = Losses(time.monotonic)
        self._relief: Watch = relief or Unwatched()
        for key in moving:
            self._others.moves(key, still=True)
        self._refused: dict[Key, EvictionRefusal] = {}  # lost by a restart, which asks once more
        self._restarts = dict[Key, tuple[Restart, ...]]()  # as last decided: a Split may not be writable

    async def run(self, workers: int, emergency_workers: int) -> None:
        """Work until cancelled; statuses still posted are written at the end."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._status_writer.run())
                group.create_task(self._recorder.run())
                group.create_task(self._validation.run())
                group.create_task(self._relief.run())
                for _ in range(workers):
                    group.create_task(self._work(only_urgent=False))
                for _ in range(emergency_workers):
                    group.create_task(self._work(only_urgent=True))
        finally:
            self._rendering.end()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_S):
                    await self._status_writer.flush()
                    await self._recorder.flush()

    async def _work(self, *, only_urgent: bool) -> None:
        while True:
            key = await self._queue.take(only_urgent=only_urgent)
            try:
                if self._views.is_current(key.namespace):  # else it comes again when it is
                    await self._reconcile(key)
                self._failures.pop(key, None)
                self._queue.answered(key)
            except ApiError as error:
                self._failed(key, error)
            except Exception:
                metrics.errors_total.labels("bug").inc()
                logger.exception("a reconcile failed, this is a bug of splitter's: workload=%s", key)
                self._queue.add_after(key, self._delay_s(key))
            finally:
                self._queue.done(key)

    async def _reconcile(self, key: Key) -> None:
        if self._others.waits(key):
            self._enqueue_others()  # a turn may have ended by time: it goes to whose it is, this one or not
        began = time.perf_counter()
        now = datetime.now(UTC)
        observed = replace(
            self._status_writer.overlay(await self._observer.observe(key, now, self._others.reserved(key))),
            others_moving=self._others.moving(key),
            refused=self._refused.get(key),
            restarts=self._restarts.get(key, ()),
            hot_nodes=self._relief.view(key),
        )
        observed = self._rehearsals.known(observed)
        in_force = policy_in_force(observed, self._rules.defaults)
        self._queue.ranking.saw(observed, in_force.policy)
        decided = await self._decided(observed, in_force)
        if decided is None:
            return  # the key comes again with its twins
        observed, planned = decided
        self._take_note(key, planned)
        self._losses.saw(observed)
        self._relief.saw(observed, in_force, planned)
        hurried = can_wait(planned) and self._queue.hurried()
        if hurried or self._losses.hold(key, planned):
            self._status_writer.post(observed, remembered(planned, observed))
            self._queue.rest(key, _CALMER_S if hurried else _HELD_S)
            return
        written: list[Action] = []
        try:
            await self._count_ends(observed, planned)
            observed = await with_move_written(self._status_writer, observed, planned)
            await self._writer.apply(observed, (*planned.actions, *planned.retries, *planned.let_go), written)
        except ApiError as error:
            planned = self._uncounted(observed, planned, error)
            self._tell_moves(observed, planned, written)
            if self._goes_on(observed, planned, error):
                self._status_writer.post(observed, remembered(planned, observed))
                self._queue.add_after(key, 0.0)  # the next reconcile says what it waits for
                return
            if begins(planned):
                self._others.moves(key, still=False)  # it did not begin: others may
                self._enqueue_others()
            self._report_failure(observed, planned, in_force, error)
            self._try_soon(key, planned)
            raise
        if planned.raises and (waited_s := self._queue.waited_s(key)) is not None:
            metrics.reacted(planned.verdict.reason, waited_s)
        self._reserve_spot(key, observed, planned)
        reported = self._report(observed, planned, in_force)
        took_s = time.perf_counter() - began
        metrics.reconcile_seconds.observe(took_s)
        level = logging.INFO if planned.actions or reported else logging.DEBUG
        if any(note.warning and note.reason is planned.verdict.reason for note in reported):
            level = logging.WARNING  # somebody must act; said as seldom as its Event
        logger.log(level, "reconciled", extra=reconcile_fields(key, planned, took_s))
        # Who waits to be taken over is woken: looking around for a thousand of them has its price.
        if planned.step is not Step.NOTHING and not (
            planned.step is Step.CONSIDER and self._others.waits(key)
        ):
            self._queue.add_after(key, min(planned.requeue_after_s or self._resync_s, self._resync_s))

    def _take_note(self, key: Key, planned: Plan) -> None:
        """Remember whether a workload is moved or waits for that, and wake those whose turn it is."""
        still = keeps_turn(planned, had=self._others.has_turn(key))
        self._others.moves(key, still=still, waits=planned.verdict.cause is VerdictCause.TURN)
        self._enqueue_others()

    def _enqueue_others(self) -> None:
        for key in self._others.grant_turns():
            self._queue.add(key)
        if (following := self._others.next_turn()) is not None:
            self._queue.add_after(*following)

    async def _decided(
        self, observed: Observation, in_force: PolicyInForce
    ) -> tuple[Observation, Plan] | None:
        """Return what to do, after a dry run if new. While twins are rendered only a loss is answered."""
        key = observed.key
        twins = await self._rendering.twins_in_time(observed, in_force.policy)
        if twins is not None:
            observed = self._observer.with_pools(observed, twins)
        planned = plan(observed, in_force, _RENDERING if twins is None else twins, self._rules)
        if twins is None:
            planned = as_written(replace(planned, actions=planned.urgent), observed, planned.raises)
            return (observed, planned) if planned.raises else None
        if isinstance(twins, Mapping):
            observed, planned = await self._rehearsals.rehearsed(observed, in_force, twins, planned)
        if (failing := self._views.failing_for(key.namespace)) is not None:
            planned = unseen(planned, observed, f"{failing.path} cannot be followed: {failing.error}")
        return observed, planned

    def _goes_on(self, observed: Observation, planned: Plan, error: ApiError) -> bool:
        """Whether a write that was refused is no failure: a hint, or an eviction that a budget holds up."""
        unhinted = self._relief.is_unhinted(observed.key, planned, error)
        return unhinted or self._is_refused_eviction(observed, planned, error)

    def _is_refused_eviction(self, observed: Observation, planned: Plan, error: ApiError) -> bool:
        """Whether a PodDisruptionBudget answered: not a failure, but a reason to wait."""
        evicted = next((one for one in planned.actions if isinstance(one, EvictPod)), None)
        # Of a pod under two budgets the answer is a 500.
        refused = error.status == HTTPStatus.TOO_MANY_REQUESTS or "PodDisruptionBudget" in error.message
        if evicted is None or not refused:
            return False
        detail = error.message or "too many requests"
        self._refused[observed.key] = EvictionRefusal(evicted.uid, detail, observed.now)
        return True

    async def _count_ends(self, observed: Observation, planned: Plan) -> None:
        """Remember which pods are to end before that is asked for, here and in the Split (P17).

        So every leader knows of all that were, whenever the last one stopped; and one that was overtaken ends
        nobody. Raises ApiError then.
        """
        if planned.rebalance is None:
            return
        if _ends(planned) and set(planned.rebalance.restarts) - set(observed.rebalance.restarts):
            # With the move that it is the end of: the rests of relief follow from it.
            relief = planned.relief or observed.reported.relief
            counted = replace(remembered(planned, observed), relief=relief)
            # Relief is by choice: whom nobody could remember is not ended.
            surely = planned.verdict.cause is VerdictCause.RELIEF
            await self._status_writer.write(observed, counted, surely=surely)
        self._restarts[observed.key] = planned.rebalance.restarts

    def _uncounted(self, observed: Observation, planned: Plan, error: ApiError) -> Plan:
        """Return the plan without an end that has surely not been; without an answer it may have."""
        if planned.rebalance is None or _ends(planned) != 1 or not is_refusal(error):
            return planned
        kept = tuple(one for one in planned.rebalance.restarts if one.at < observed.now)
        self._restarts[observed.key] = kept
        return replace(planned, rebalance=replace(planned.rebalance, restarts=kept))

    def _report(self, observed: Observation, planned: Plan, in_force: PolicyInForce) -> Sequence[Note]:
        """Show what was done and why; return what was said that had not been said lately."""
        if planned.actions:
            metrics.workloads.decided(observed.key, planned.verdict.reason.value)
        objection = objection_to(planned)
        why = objection.reason.value if objection is not None and observed.source is not None else ""
        metrics.workloads.refuse(observed.key, why)
        if observed.source is None:
            self._rehearsals.forget(observed.key)
            self._refused.pop(observed.key, None)
            self._restarts.pop(observed.key, None)
            metrics.workloads.forget(observed.key)
            return ()
        if observed.split is not None and not planned.untouched:
            status = build(observed, planned, in_force, written=True)
            self._status_writer.post(observed, status, planned.shown)
            metrics.show(observed, status)
            metrics.workloads.trouble(observed.key, [note.reason.value for note in planned.troubles])
        elif planned.step in {Step.NOTHING, Step.CLEAN_UP}:
            metrics.workloads.unsplit(observed.key)
        problems = in_force.problems if planned.step is not Step.NOTHING else ()
        objections = (planned.objection,) if planned.objection is not None else ()
        is_done = planned.actions and objection is not planned.verdict
        done, stands = (planned.notes, ()) if is_done else ((), planned.notes)
        still_true = (*stands, *planned.troubles, *planned.barred, *planned.advice, *objections, *problems)
        return self._recorder.tell(observed.source, observed.now, done, still_true)

    def _tell_moves(self, observed: Observation, planned: Plan, written: Sequence[Action]) -> None:
        """Tell the moves of a batch that ended early which were written; what was not says nothing."""
        if observed.source is not None:
            done = as_written(planned, observed, written).notes
            self._recorder.tell(
                observed.source, observed.now, [note for note in done if note.move is not None]
            )

    def _report_failure(
        self, observed: Observation, planned: Plan, in_force: PolicyInForce, error: ApiError
    ) -> None:
        """Show a refusal of the API server where people look; a lost race is nobody's business.

        Either way what was seen is remembered: the next try may find no trace of a loss any more.
        """
        if is_reconciling(error):
            self._status_writer.post(observed, remembered(planned, observed))
            return
        note = Note(
            Reason.WRITE_DENIED, f"the API server refused a write: {error.message or error}", warning=True
        )
        if observed.split is not None:
            refused = replace(planned, verdict=note, actions=(), notes=())
            status = build(observed, refused, in_force, written=False)
            self._status_writer.post(observed, status, planned.shown)
        if observed.source is not None:
            self._recorder.tell(observed.source, observed.now, (), (note,))

    def _failed(self, key: Key, error: ApiError) -> None:
        if error.reason == NOT_LEADING:
            # The term is over: whoever leads now looks at everything anew.
            logger.debug("not leading workload=%s", key)
            self._queue.add_after(key, _RETRY_S)
            return
        if error.reason == KIND_MISSING or "custom resource definition is terminating" in error.message:
            # The reflector has said so, once; and no event will tell of the day it is back.
            logger.debug("no Splits workload=%s because=%s", key, error)
            self._queue.add_after(key, _KIND_MISSING_S)
            return
        if error.is_lost_race and self._failures.get(key, 0) < _RACES:
            # Somebody wrote in between: observe anew, at once and then ever later.
            races = self._failures[key] = self._failures.get(key, 0) + 1
            self._queue.add_after(key, _RACE_S * 2**races)
            return
        if error.status == HTTPStatus.FORBIDDEN and "being terminated" in error.message:
            logger.debug("the namespace is going workload=%s because=%s", key, error)
            self._queue.add_after(key, _RETRY_MAX_S)
            return
        metrics.errors_total.labels(str(error.status)).inc()
        delay_s = self._delay_s(key)
        logger.warning("reconcile failed workload=%s retry_s=%.1f because=%s", key, delay_s, error)
        self._queue.add_after(key, delay_s)

    def _try_soon(self, key: Key, planned: Plan) -> None:
        """Let no loss, and no pod without an owner, wait for a minute until a write is tried again."""
        if any(map(must_not_wait, planned.actions)):
            self._failures[key] = min(self._failures.get(key, 0), _URGENT_RETRIES)

    def _delay_s(self, key: Key) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return float(min(_RETRY_MAX_S, _RETRY_S * 2 ** min(failures - 1, 10)))

    def _reserve_spot(self, key: Key, observed: Observation, planned: Plan) -> None:
        spot = observed.spot
        raised = sum(
            one.replicas - one.was for one in planned.raises if spot is not None and one.name == spot.name
        )
        self._others.reserve_spot(key, raised, observed.fit_spot)


def _ends(planned: Plan) -> int:
    return sum(isinstance(one, EvictPod | DeleteVanishedPod | DeleteUnboundPod) for one in planned.actions)

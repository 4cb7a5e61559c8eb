"""One key at a time: observe, plan, apply, report, look again later.

Workers take keys from the queue; each pass is level-triggered and looks at everything about one
workload. This is the only place that asks for the time, and the only one that may use the writer.
What fails is logged once, with what to do, and tried again with growing delay; nothing is ever given
up, and a pass that lost a race simply runs again.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus

from splitter.core.actions import (
    Action,
    DeleteUnboundPod,
    DeleteVanishedPod,
    EvictPod,
    SetDeletionCost,
)
from splitter.core.handover import Step
from splitter.core.model import Note, Observation, Pool, Rendered
from splitter.core.names import Key
from splitter.core.placeable import EvictionRefusal, Restart
from splitter.core.plan import (
    Plan,
    PolicyInForce,
    Rules,
    as_written,
    begins,
    half_rolled,
    held_back,
    rolls,
    unseen,
)
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.rebalance import RebalanceState
from splitter.core.turns import keeps_turn
from splitter.kube.apply import Writer
from splitter.kube.client import KIND_MISSING, NOT_LEADING, ApiError
from splitter.kube.observe import Observer
from splitter.kube.views import Views
from splitter.reconciler.board import StatusBoard
from splitter.reconciler.herald import Herald
from splitter.reconciler.inspection import Inspection
from splitter.reconciler.others import Others
from splitter.reconciler.queue import WorkQueue
from splitter.reconciler.rendering import Rendering
from splitter.render.bounded import BoundedRenderer
from splitter.report import metrics
from splitter.report.log import pass_fields
from splitter.report.status import build, remembered

logger = logging.getLogger("splitter.reconciler")

# A lost race is looked at again at once; other failures ever later, up to this.
_RETRY_S, _RETRY_MAX_S = 0.5, 60.0
# More lost races than this in a row are no races, and are said.
_RACE_S, _RACES = 0.025, 6
# Without the kind of its reports nothing goes on: looked at again after this.
_KIND_MISSING_S = 10.0
# Deletion costs are for a scale-down to come: they wait so long while somebody else waits to be raised.
_CALMER_S = 0.5
# What is still to be said at the end: a second's worth of statuses. A successor waits for the lease so long.
_LAST_WORDS_S = 1.0
# What a pass knows of twins that take long to render, until they are there.
_RENDERING = Note(Reason.TEMPLATE_INVALID, "its twins are being rendered", quiet=True)


class Reconciler:
    """Runs passes."""

    def __init__(
        self,
        queue: WorkQueue,
        observer: Observer,
        writer: Writer,
        renderer: BoundedRenderer,
        *,
        rules: Rules,
        resync_s: float,
        views: Views | None = None,
        moving: Iterable[Key] = (),
    ) -> None:
        """Take over from the last leader: those it was `moving` keep their turn until their first pass."""
        self._queue = queue
        self._observer = observer
        self._writer = writer
        self._rendering = Rendering(renderer, queue.add)
        self._rules = rules
        self._resync_s = resync_s
        self._views = views or Views()
        self._board = StatusBoard(writer, queue.calm, queue.add_after)
        self._herald = Herald(writer, queue.calm)
        self._inspection = Inspection(renderer, self._herald)
        self.inspect = self._inspection.inspect
        self._acceptable: dict[Key, tuple[str, ...]] = {}  # renderings that the API server would take
        self._failures: dict[Key, int] = {}
        self._others = Others(rules.max_concurrent_moves, time.monotonic)
        for key in moving:
            self._others.moves(key, still=True)
        self._refused: dict[Key, EvictionRefusal] = {}  # lost by a restart, which asks once more
        self._restarts: dict[Key, tuple[Restart, ...]] = {}  # as last decided: a Split may not be writable

    async def run(self, workers: int, emergency_workers: int) -> None:
        """Work until cancelled; statuses still posted are written at the end."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._board.run())
                group.create_task(self._herald.run())
                group.create_task(self._inspection.run())
                for _ in range(workers):
                    group.create_task(self._work(only_urgent=False))
                for _ in range(emergency_workers):
                    group.create_task(self._work(only_urgent=True))
        finally:
            self._rendering.end()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_S):
                    await self._board.flush()
                    await self._herald.flush()

    async def _work(self, *, only_urgent: bool) -> None:
        while True:
            key = await self._queue.take(only_urgent=only_urgent)
            try:
                if self._views.is_current(key.namespace):  # else it comes again when it is
                    await self._pass(key)
                self._failures.pop(key, None)
                self._queue.answered(key)
            except ApiError as error:
                self._failed(key, error)
            except Exception:
                metrics.errors_total.labels("bug").inc()
                logger.exception("a pass failed, this is a bug of splitter's: workload=%s", key)
                self._queue.add_after(key, self._delay_s(key))
            finally:
                self._queue.done(key)

    async def _pass(self, key: Key) -> None:
        if self._others.waits(key):
            self._wake_others()  # a turn may have ended by time: it goes to whose it is, this one or not
        began = time.perf_counter()
        now = datetime.now(UTC)
        observed = replace(
            self._board.overlay(await self._observer.observe(key, now, self._others.promised(key))),
            others_moving=self._others.moving(key),
            refused=self._refused.get(key),
            restarts=self._restarts.get(key, ()),
        )
        in_force = policy_in_force(observed, self._rules.defaults)
        decided = await self._decided(observed, in_force)
        if decided is None:
            return  # the key comes again with its twins
        observed, found = decided
        self._take_note(key, found)
        if self._can_wait(found) and self._queue.hurried():
            self._board.post(observed, remembered(observed, found))
            self._queue.add_after(key, _CALMER_S)
            return
        written: list[Action] = []
        try:
            await self._count_ends(observed, found)
            await self._writer.apply(observed, found.actions, written)
        except ApiError as error:
            found = self._uncounted(observed, found, error)
            self._tell_moves(observed, found, written)
            if self._is_refused_eviction(observed, found, error):
                self._board.post(observed, remembered(observed, found))
                self._queue.add_after(key, 0.0)  # the next pass says what it waits for
                return
            if begins(found):
                self._others.moves(key, still=False)  # it did not begin: others may
                self._wake_others()
            self._report_failure(observed, found, in_force, error)
            raise
        if found.raises and (waited_s := self._queue.waited_s(key)) is not None:
            metrics.reacted(found.verdict.reason, waited_s)
        self._promise(key, observed, found)
        told = self._report(observed, found, in_force)
        took_s = time.perf_counter() - began
        metrics.reconcile_seconds.observe(took_s)
        level = logging.INFO if found.actions or told else logging.DEBUG
        if any(note.warning and note.reason is found.verdict.reason for note in told):
            level = logging.WARNING  # somebody must act; said as seldom as its Event
        logger.log(level, "reconciled", extra=pass_fields(key, found, took_s))
        # Who waits to be taken over is woken: looking around for a thousand of them has its price.
        if found.step is not Step.NOTHING and not (found.step is Step.CONSIDER and self._others.waits(key)):
            self._queue.add_after(key, min(found.wake_after_s or self._resync_s, self._resync_s))

    def _take_note(self, key: Key, found: Plan) -> None:
        """Remember whether a workload is moved or waits for that, and wake those whose turn it is."""
        still = keeps_turn(found, had=self._others.has_turn(key))
        self._others.moves(key, still=still, waits=found.verdict.reason is Reason.WAITING_FOR_TURN)
        self._wake_others()

    def _wake_others(self) -> None:
        for key in self._others.wake():
            self._queue.add(key)
        if (following := self._others.next_turn()) is not None:
            self._queue.add_after(*following)

    async def _decided(
        self, observed: Observation, in_force: PolicyInForce
    ) -> tuple[Observation, Plan] | None:
        """Return what to do, rehearsed where it is new. While twins are rendered only a loss is answered."""
        key = observed.key
        twins = await self._rendering.twins_in_time(observed, in_force.policy)
        found = plan(observed, in_force, _RENDERING if twins is None else twins, self._rules)
        if twins is None:
            found = as_written(replace(found, actions=found.urgent), observed, found.raises)
            return (observed, found) if found.raises else None
        if isinstance(twins, Mapping) and begins(found):
            denied = await self._writer.rehearse(observed, twins)
            observed = replace(observed, denied=denied, others_moving=self._others.moving(key))
            found = plan(observed, in_force, twins, self._rules)
        elif isinstance(twins, Mapping) and self._is_unrehearsed(observed, twins, found):
            denied = await self._writer.rehearse_roll(observed, twins)
            found = found if denied is None else held_back(found, denied, self._rules.look_again_s)
            self._acceptable[key] = _hashes(twins) if denied is None else ()
        if (failing := self._views.failing_for(key.namespace)) is not None:
            found = unseen(found, observed, f"{failing.path} cannot be followed: {failing.error}")
        return observed, found

    @staticmethod
    def _can_wait(found: Plan) -> bool:
        """Whether all that is to be written prepares a scale-down of doomed pods: one write for each."""
        return bool(found.actions) and all(isinstance(one, SetDeletionCost) for one in found.actions)

    def _is_unrehearsed(self, observed: Observation, twins: Mapping[Pool, Rendered], found: Plan) -> bool:
        """Whether nobody knows yet if the API server takes twins that are rolled now, or wait for a rollout.

        Before the first twin of a roll it is asked anew, whenever it was asked last. The author of a template
        set is told at once; the user whose rollout it would hold may come weeks later.
        """
        known = self._acceptable.get(observed.key) == _hashes(twins)
        if rolls(found):
            return not (known and half_rolled(observed, twins))
        return found.verdict.reason is Reason.TEMPLATE_SET_CHANGED and not known

    def _is_refused_eviction(self, observed: Observation, found: Plan, error: ApiError) -> bool:
        """Whether a PodDisruptionBudget answered: not a failure, but a reason to wait."""
        evicted = next((one for one in found.actions if isinstance(one, EvictPod)), None)
        # Of a pod under two budgets the answer is a 500.
        refused = error.status == HTTPStatus.TOO_MANY_REQUESTS or "PodDisruptionBudget" in error.message
        if evicted is None or not refused:
            return False
        detail = error.message or "too many requests"
        self._refused[observed.key] = EvictionRefusal(evicted.uid, detail, observed.now)
        return True

    async def _count_ends(self, observed: Observation, found: Plan) -> None:
        """Remember which pods are to end before that is asked for, here and in the Split.

        So every leader knows of all that were, whenever the last one stopped; and one that was overtaken ends
        nobody. Raises ApiError then.
        """
        if found.rebalance is None:
            return
        known = observed.split.rebalance if observed.split is not None else {}
        if _ends(found) and set(found.rebalance.restarts) - set(RebalanceState.from_json(known).restarts):
            await self._board.write(observed, remembered(observed, found))
        self._restarts[observed.key] = found.rebalance.restarts

    def _uncounted(self, observed: Observation, found: Plan, error: ApiError) -> Plan:
        """Return the plan without an end that has surely not been; without an answer it may have."""
        if found.rebalance is None or _ends(found) != 1 or not _is_refusal(error):
            return found
        kept = tuple(one for one in found.rebalance.restarts if one.at < observed.now)
        self._restarts[observed.key] = kept
        return replace(found, rebalance=replace(found.rebalance, restarts=kept))

    def _report(self, observed: Observation, found: Plan, in_force: PolicyInForce) -> Sequence[Note]:
        """Show what was done and why; return what was said that had not been said lately."""
        if found.actions:
            metrics.decided(observed.key, found.verdict.reason)
        objection = found.verdict if found.state is State.REFUSED else found.objection
        metrics.show_refusal(observed.key, objection if observed.source is not None else None)
        if observed.source is None:
            self._acceptable.pop(observed.key, None)
            self._refused.pop(observed.key, None)
            self._restarts.pop(observed.key, None)
            metrics.forget(observed.key)
            return ()
        if observed.split is not None and not found.untouched:
            status = build(observed, found, in_force, written=True)
            self._board.post(observed, status)
            metrics.show(observed, status)
            metrics.show_troubles(observed.key, found.troubles)
        elif found.step in {Step.NOTHING, Step.CLEAN_UP}:
            metrics.unsplit(observed.key)
        problems = in_force.problems if found.step is not Step.NOTHING else ()
        objections = (found.objection,) if found.objection is not None else ()
        done, stands = (
            (found.notes, ()) if found.actions and objection is not found.verdict else ((), found.notes)
        )
        standing = (*stands, *found.troubles, *found.advice, *objections, *problems)
        return self._herald.tell(observed.source, observed.now, done, standing)

    def _tell_moves(self, observed: Observation, found: Plan, written: Sequence[Action]) -> None:
        """Tell the moves of a batch that ended early which were written; what was not says nothing."""
        if observed.source is not None:
            done = as_written(found, observed, written).notes
            self._herald.tell(observed.source, observed.now, [note for note in done if note.move is not None])

    def _report_failure(
        self, observed: Observation, found: Plan, in_force: PolicyInForce, error: ApiError
    ) -> None:
        """Show a refusal of the API server where people look; a lost race is nobody's business.

        Either way what was seen is remembered: the next try may find no trace of a loss any more.
        """
        if _is_passing(error):
            self._board.post(observed, remembered(observed, found))
            return
        note = Note(
            Reason.WRITE_DENIED, f"the API server refused a write: {error.message or error}", warning=True
        )
        if observed.split is not None:
            refused = replace(found, verdict=note, actions=(), notes=())
            self._board.post(observed, build(observed, refused, in_force, written=False))
        if observed.source is not None:
            self._herald.tell(observed.source, observed.now, (), (note,))

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
        if _is_lost_race(error) and self._failures.get(key, 0) < _RACES:
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
        logger.warning("pass failed workload=%s retry_s=%.1f because=%s", key, delay_s, error)
        self._queue.add_after(key, delay_s)

    def _delay_s(self, key: Key) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return float(min(_RETRY_MAX_S, _RETRY_S * 2 ** min(failures - 1, 10)))

    def _promise(self, key: Key, observed: Observation, found: Plan) -> None:
        spot = observed.spot
        raised = sum(
            one.replicas - one.was for one in found.raises if spot is not None and one.name == spot.name
        )
        self._others.promise(key, raised, observed.fit_spot)


def _hashes(twins: Mapping[Pool, Rendered]) -> tuple[str, ...]:
    return tuple(twins[pool].hash for pool in Pool)


def _is_lost_race(error: ApiError) -> bool:
    """Whether somebody wrote in between, or the object is another one by now (a foreign UID is a 422)."""
    if error.status == HTTPStatus.UNPROCESSABLE_ENTITY:
        return "UID" in error.message or "uid" in error.message
    return error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}


def _ends(found: Plan) -> int:
    return sum(isinstance(one, EvictPod | DeleteVanishedPod | DeleteUnboundPod) for one in found.actions)


def _is_refusal(error: ApiError) -> bool:
    """Whether the API server has surely not done what it was asked for; a pod under two budgets is a 500."""
    clear = HTTPStatus.BAD_REQUEST <= error.status < HTTPStatus.INTERNAL_SERVER_ERROR
    return clear or "PodDisruptionBudget" in error.message


def _is_passing(error: ApiError) -> bool:
    """Whether it mends itself, so that the next pass says what is: no answer, a race, throttling."""
    if error.reason in {"AlreadyExists", KIND_MISSING}:
        return False  # somebody's object has the name of one of ours, or somebody deleted our CRD
    brief = (
        error.status in {0, HTTPStatus.TOO_MANY_REQUESTS} or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    )
    return brief or _is_lost_race(error)

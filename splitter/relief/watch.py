"""Looks at real use while workloads ask for relief, and tells their reconciles which nodes are hot.

One for each term of a leader. The reconciler tells it of each workload that it has reconciled (`saw`), and
takes along what is known when it reconciles one that asks (`view`). While none asks nothing is read, kept or
computed. The decision is `decide`'s, over the whole cluster; a move is its workload's reconcile.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from splitter.core.actions import CreatePlaceholder
from splitter.core.desired.scheduling import ReservationRules
from splitter.core.hot_nodes import HotNodes, LeavingReplica
from splitter.core.labels_annotations.policy import SpotAffinity
from splitter.core.model import Observation, seconds_between
from splitter.core.names import Key
from splitter.core.placement.relief import is_asked, why_none_leaves
from splitter.core.plan import Plan, PolicyInForce, Rules
from splitter.core.reasons import State
from splitter.core.relief.model import SKEW_S, Amounts, Tuning
from splitter.core.relief.thresholds import thresholds_of
from splitter.core.split_status import ReliefMove
from splitter.kube.cache import Cache
from splitter.kube.client import NOT_LEADING, ApiError
from splitter.kube.listed import Reader
from splitter.kube.quotas import lacks_room
from splitter.kube.real_use import Queries, RealUse, real_use, used_by_prometheus
from splitter.relief.cluster import (
    ClusterLooks,
    KnownWorkload,
    member_loads,
    replica_loads,
    spread_loads,
)
from splitter.relief.decide import Relief, relieve
from splitter.relief.loads import Cluster, PastMove, WorkloadLoad
from splitter.relief.look import WantedMove
from splitter.report import metrics
from splitter.settings import Settings

logger = logging.getLogger("splitter.relief")

# Of so many hot nodes is said why nothing leaves them.
_LEFT_MAX = 3
_NO_HINT = "the scheduler gets no hint"
# What the API server says of a refused hint; a Split has room for more than one sentence.
_WHY_MAX = 200
# A reader that hangs is asked again at the next look.
_LONGEST_READ_S = 30.0


class HotNodesWatch:
    """What is known of real use, and of those who ask for relief."""

    def __init__(
        self,
        reader: Reader,
        cache: Cache,
        enqueue: Callable[[Key], None],
        *,
        measure: Callable[[], Awaitable[RealUse]],
        tuning: Tuning,
        interval_s: float,
        reservations: ReservationRules | None = None,
    ) -> None:
        """Know nothing yet. `measure` reads real use; `interval_s`: seconds between two looks.

        `reservations` tell which nodes are of which pool; without them no member is restarted.
        """
        self._reader = reader
        self._cache = cache
        self._looks_at = ClusterLooks(cache)
        self._enqueue = enqueue
        self._tuning = tuning
        self._interval_s = interval_s
        self._measure = measure
        self._reservations = reservations
        self._known: dict[Key, KnownWorkload] = {}
        self._views: dict[Key, HotNodes] = {}
        self._last = Relief()
        self._looks = 0  # in a row that were not paused
        self._blind = 0  # looks in a row that said nothing
        self._asked = asyncio.Event()

    def view(self, key: Key) -> HotNodes:
        """Return what is known for one workload."""
        return self._views.get(key, HotNodes())

    def saw(self, observed: Observation, in_force: PolicyInForce, planned: Plan) -> None:
        """Take note of a workload that was reconciled."""
        key, source = observed.key, observed.source
        thresholds = thresholds_of(in_force.policy.relief) if source is not None else None
        remembered = planned.relief or observed.reported.relief
        asked = source is not None and is_asked(observed, source, in_force.policy)
        if source is None or not (observed.twins or asked) or (thresholds is None and not remembered.moves):
            self._known.pop(key, None)
            self._views.pop(key, None)
            return
        moves = tuple(
            PastMove(
                one.at,
                key,
                one.node_uid,
                self._end_of(one, remembered.current, observed.now),
                one.to_node_uid,
                one.taken_back,
                one.aim,
                one.stand if one.ended is not None and one.taken_back else "",
            )
            for one in remembered.moves
            if seconds_between(observed.now, one.at) < SKEW_S  # of the future is what somebody made up
        )
        busy = "" if planned.state is State.STEADY and source.max_surge else planned.verdict.reason.value
        replicas = () if thresholds is None else replica_loads(observed)
        members = member_loads(observed, source, self._reservations) if asked else ()
        if asked:
            busy = busy or why_none_leaves(observed, source, planned.rebalance or observed.rebalance)
        load = WorkloadLoad(key, thresholds, replicas or tuple(one for one, _ in members), busy)
        if in_force.policy.spot_affinity is SpotAffinity.PREFERRED and source.stateful is None:
            soak_s = (planned.rebalance or observed.rebalance).soak(in_force.policy.soak_s)
            load = replace(load, spot_soak_s=soak_s)
        load = replace(load, restarts=source.stateful is not None and not asked)
        asks = {twin.pool: twin.spreads for twin in self._cache.twins.find("source", key)}
        self._known[key] = KnownWorkload(
            load,
            moves,
            members,
            one_a_node=bool(source.one_a_node),
            spreads=spread_loads(observed, asks),
        )
        view = self.view(key)
        if (left := view.leaves) is not None:
            if remembered.current is not None:
                left = None  # it is begun, and not again before the next look
            elif _hints(planned):
                left = replace(left, keep_off=())  # asked for once
            self._views[key] = replace(view, leaves=left)
        if thresholds is not None:
            self._asked.set()

    def is_unhinted(self, key: Key, planned: Plan, error: ApiError) -> bool:
        """Whether a hint was refused, or nobody knows: then the scheduler is given none, and that is said."""
        if not _hints(planned) or error.reason == NOT_LEADING:
            return False
        why = f"{_NO_HINT}: {error.message[:_WHY_MAX] or error}"
        self._views[key] = replace(self.view(key), unhinted=why)
        return True

    def _end_of(self, move: ReliefMove, current: ReliefMove | None, now: datetime) -> datetime | None:
        """Return when a move ended; None while it goes on. None goes on for longer than moves may take."""
        latest = move.at + timedelta(seconds=2 * self._tuning.cycle_s)
        if move is current and now <= latest:
            return None
        return min(move.ended or latest, now)

    async def run(self) -> None:
        """Look at real use, as often as the settings say, while a workload asks for relief."""
        while True:
            await self._asked.wait()
            try:
                await self._look(await self._read(), datetime.now(UTC))
            except Exception:
                metrics.errors_total.labels("bug").inc()
                logger.exception("a look at real use failed, this is a bug of splitter's; it is taken again")
            if not any(one.load.thresholds is not None for one in self._known.values()):
                self._asked.clear()
                self._last, self._looks, self._views = Relief(), 0, {}
                metrics.relief(0, paused=False)
            await asyncio.sleep(self._interval_s)

    async def _read(self) -> RealUse:
        try:
            async with asyncio.timeout(_LONGEST_READ_S):
                return await self._measure()
        except TimeoutError:
            return RealUse(missing=f"the source of real use did not answer within {_LONGEST_READ_S:.0f} s")

    async def _look(self, used: RealUse, now: datetime) -> None:
        cluster = self._looks_at.look(self._known.values(), used, now)
        if used.missing:
            answer = Relief(paused=used.missing)
        else:
            past = tuple(move for one in self._known.values() for move in one.moves)
            # In a thread: thousands of replicas take a second, and a notice waits for nothing here.
            answer = await asyncio.to_thread(relieve, cluster, self._last, past, self._tuning)
        blind = bool(answer.paused) and answer.paused != cluster.alarm
        self._blind = self._blind + 1 if blind else 0
        if blind and self._looks and self._blind < self._tuning.samples:
            # One answer that does not come ends no move and nothing that was measured, and begins no move.
            self._views = {key: replace(view, leaves=None) for key, view in self._views.items()}
            return
        self._last, self._looks = answer, 0 if blind else self._looks + 1
        metrics.relief(len(answer.hot), paused=bool(answer.paused))
        leaving = {one.workload: await self._leaving(one, cluster) for one in answer.moves}
        hot = frozenset(answer.hot)
        for key, one in self._known.items():
            if one.load.thresholds is None:
                continue
            before = self._views.get(key)
            last = before.unhinted if before is not None else ""  # which is said until the next move
            leaves, unhinted = leaving.get(key, (None, last))
            moving = any(move.ended is None for move in one.moves)
            stands_on = sorted(hot & {replica.node for replica in one.load.replicas})
            view = HotNodes(
                paused=answer.paused if blind else "",
                known=self._looks >= self._tuning.samples,
                hot=tuple(stands_on),
                avoid=frozenset(answer.avoid),
                leaves=leaves,
                unhinted=unhinted,
                left=_left(answer, stands_on, cluster),
                crowded=_crowded(leaves, before if moving else None),
                badly_placed=answer.badly_placed.get(key, ""),
            )
            self._views[key] = view
            if before is None or leaves is not None or moving or _differs(before, view):
                self._enqueue(key)

    async def _leaving(self, wanted: WantedMove, cluster: Cluster) -> tuple[LeavingReplica, str]:
        """Return the replica that is to leave, and why no hint is given for it, where that is so."""
        # A member gets no hint: its twin would be all pods of its StatefulSet.
        known = self._known.get(wanted.workload)
        keep_off = wanted.keep_off if known is not None and not known.members else ()
        unhinted = ""
        if keep_off:
            asked = _requests_of(wanted.pod_uid, cluster)
            why = await lacks_room(self._reader, wanted.workload.namespace, len(keep_off), asked)
            keep_off, unhinted = ((), f"{_NO_HINT}: {why}") if why else (keep_off, "")
        leaves = LeavingReplica(
            wanted.pod_uid, wanted.why, wanted.aim, keep_off, wanted.crowded, wanted.stand
        )
        return leaves, unhinted


def watch_of(
    settings: Settings, rules: Rules, reader: Reader, cache: Cache, enqueue: Callable[[Key], None]
) -> HotNodesWatch:
    """Return what looks at real use, at the source that the settings name."""
    measure = partial(real_use, reader, settings.watch_namespaces)
    if settings.relief_source == "prometheus":
        queries = Queries(
            settings.relief_node_cpu_query,
            settings.relief_node_memory_query,
            settings.relief_pod_cpu_query,
            settings.relief_pod_memory_query,
        )
        address, namespaces = settings.relief_prometheus, settings.watch_namespaces
        measure = partial(used_by_prometheus, address, queries, namespaces)
    interval_s = settings.tuning.relief_interval_s
    return HotNodesWatch(
        reader,
        cache,
        enqueue,
        measure=measure,
        tuning=rules.relief,
        interval_s=interval_s,
        reservations=rules.reservations,
    )


def _left(answer: Relief, stands_on: Sequence[str], cluster: Cluster) -> str:
    """Return why nothing leaves the hot nodes of a workload, in words that stay the same while it is so."""
    if cluster.alarm:
        return cluster.alarm
    return "; ".join([why for why in answer.left if why.partition(": ")[0] in stands_on][:_LEFT_MAX])


def _differs(before: HotNodes, after: HotNodes) -> bool:
    return replace(before, avoid=after.avoid, leaves=after.leaves, crowded=after.crowded) != after


def _crowded(leaves: LeavingReplica | None, before: HotNodes | None) -> frozenset[str]:
    """Return where a replica that is moved to be spread may not stay: as its move was chosen."""
    known = leaves or before
    return known.crowded if known is not None else frozenset()


def _hints(planned: Plan) -> bool:
    """Whether it creates placeholders of relief."""
    return any(isinstance(one, CreatePlaceholder) and one.node for one in planned.actions)


def _requests_of(pod_uid: str, cluster: Cluster) -> Amounts:
    replicas = (one for workload in cluster.workloads for one in workload.replicas)
    return next((one.requests for one in replicas if one.uid == pod_uid), Amounts())

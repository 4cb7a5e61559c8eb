"""The move of one replica in the reconciles of its workload: make before break.

`planner` begins a move where the workload is Steady and `splitter.relief` wants a replica elsewhere; `steps`
goes on with it, or ends it for anything that is more important. What goes on stands in the Split's status, so
that a crash at any write changes nothing: an extra replica that no move claims is surplus, and `decide`
lowers it. Source: R53, docs/adr/0063.
"""

from dataclasses import replace
from math import inf

from splitter.core.actions import Action, Scale, SetDeletionCost
from splitter.core.division import base_replicas
from splitter.core.handover import Step as HandoverStep
from splitter.core.holders import holder_of
from splitter.core.holders.holder import available_of, is_rolling
from splitter.core.hot_nodes import Aim, HotNodes, LeavingReplica
from splitter.core.model import Move, Note, Observation, TwinView, seconds_between
from splitter.core.plan import POLL_S, Plan, PlanInput
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.rebalance import Decision
from splitter.core.relief.model import SKEW_S
from splitter.core.relief.move import Moving, Newcomer, Step, StepTaken, next_step
from splitter.core.relief.thresholds import thresholds_of
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status import TEXT_MAX, ReliefMove, ReliefStatus
from splitter.core.twins import hints, replica_moves
from splitter.core.twins.other_pool import in_other_pool, leaving
from splitter.core.twins.relief_status import (
    created_since,
    has_rival,
    is_calm,
    is_outdated,
    is_refused,
    remembering,
    replica_of,
    why_not_begun,
)
from splitter.core.twins.write_order import OUR_COST, ordered

# A raise without an answer may still come to pass; what was asked so long ago was done, or never is.
_UNANSWERED_S = 60.0
_HOT, _TOO_LONG = "stands on a hot node, too", "it took too long"


def without_extra(move: ReliefMove, twin: TwinView) -> TwinView:
    """Return a twin as it is without the extra replica of a move: what `decide` is to look at."""
    extra = twin.pool.value == move.pool and twin.spec_replicas == move.replicas + 1
    return replace(twin, spec_replicas=move.replicas) if extra else twin


# --- a move that begins -----------------------------------------------------------------------------


def begun(this: PlanInput, planned: Plan) -> Plan:
    """Return the plan, or where it is Steady and a replica is to leave its node, the raise before that.

    The move is written into the status before the raise (`Reconciler`). Before it come the placeholders that
    keep the new replica off hot nodes; nothing is remembered of these, since they show themselves.
    """
    observed = this.observed
    wanted = _wanted(this) if is_calm(planned) and observed.reported.relief.current is None else None
    if wanted is None:
        return planned
    twin, pod = replica_of(observed, wanted)
    if twin is None or pod is None or pod.node is None or pod.node_uid is None:
        return planned
    if (hinted := _hinted(this, planned, wanted, twin, pod)) is not None:
        return hinted
    created = [one.created for one in twin.pods if one.created is not None]
    spec = twin.spec_replicas
    going_on = ReliefMove(
        at=observed.now,
        pool=twin.pool.value,
        pod=pod.name,
        pod_uid=pod.uid,
        node=pod.node,
        node_uid=pod.node_uid,
        replicas=spec,
        newer_than=max(created, default=observed.now),
        raised=True,
        aim=wanted.aim,
    )
    # What goes without a hint says nothing of where one with a hint would come.
    going_on = replace(going_on, stand="" if _is_unhinted(observed, going_on) else wanted.stand)
    more = Move(twin.pool, spec, spec + 1)
    note = Note(
        Reason.RELIEVING,
        f"{more}: {pod.name} is to leave, {wanted.why}",
        move=more,
        cause=VerdictCause.RELIEF,
    )
    # Said before the raise: of one that nobody remembers, `decide` would think that it covers a loss.
    state = planned.rebalance
    if state is not None and twin.pool is Pool.ON_DEMAND:
        state = replace(state, decided=spec + 1)
    return replace(
        planned,
        state=State.MOVING,
        verdict=note,
        notes=(note,),
        actions=(Scale(replica_moves.kind_of_twins(observed), twin.name, spec, spec + 1, None),),
        relief=remembering(this, going_on),
        rebalance=state,
        voluntary=wanted.aim is Aim.POOL,
        requeue_after_s=POLL_S,
    )


def _wanted(this: PlanInput) -> LeavingReplica | None:
    """Return who leaves now: a pod in the other pool, or by real use, where that is asked for."""
    hot = this.observed.hot_nodes if thresholds_of(this.policy.relief) is not None else None
    asked = [hot.leaves] if hot is not None and hot.leaves is not None else []
    strays = (leaving(twin, pods[0]) for twin, pods, waits in in_other_pool(this) if not waits)
    return next((one for one in (*strays, *asked) if not why_not_begun(this, one)), None)


def _hinted(
    this: PlanInput, planned: Plan, wanted: LeavingReplica, twin: TwinView, pod: Replica
) -> Plan | None:
    """Return the plan with the hint that comes before a raise; None: it is given, or there is none."""
    missing = hints.asked(this, twin.pool, wanted)
    if not missing and not hints.are_waited_for(this.observed):
        return None
    why = f"{pod.name} is to leave, {wanted.why}; placeholders are to keep the new replica off hot nodes"
    return replace(
        planned,
        verdict=Note(Reason.RELIEVING, why, cause=VerdictCause.RELIEF),
        actions=missing,
        requeue_after_s=POLL_S,
    )


# --- a move that goes on ------------------------------------------------------------------------------


def proceeded(
    this: PlanInput, move: ReliefMove, decision: Decision, on_demand: TwinView, spot: TwinView
) -> Plan | ReliefStatus:
    """Return what is done of a move now; or, where it is over, what to remember of it.

    `decision` is what the division wants of both twins as they are without the extra replica (these).
    """
    observed = this.observed
    twin = _twin_of(observed, move)
    if twin is None:
        return _ended(this, move, "its twin is gone", taken_back=True)
    busy = _busy(this, move, twin, decision, (on_demand.spec_replicas, spot.spec_replicas))
    moving = _moving(this, move, twin, busy)
    step = next_step(moving, this.rules.relief.cycle_s)
    if step.step is Step.RAISE and not observed.waits.past(move.at, _UNANSWERED_S):
        step = StepTaken(Step.WAIT, twin.spec_replicas, why="it is not known yet whether its twin was raised")
    if step.step is Step.RAISE:  # it was not raised: begun anew, if there still is a cause
        return _ended(this, move, "it was not begun", taken_back=False)
    if step.step is Step.WAIT and move.raised and moving.spec == moving.wanted and _is_settled(twin):
        return _ended(this, move, "another replica went in its place", taken_back=True)
    if step.step is Step.DONE:
        to = next((pod for pod in created_since(move, twin.pods) if not step.taken_back), None)
        # What else ends a move passes by itself, and says nothing of where the next replica would be placed.
        undone = step.taken_back and not busy and moving.spec == moving.wanted
        undone |= move.aim is Aim.POOL and busy == _TOO_LONG  # as with a long minReadySeconds, each time
        vain = (undone or move.taken_back or is_refused(observed)) and not _is_unhinted(observed, move)
        return _ended(this, move, step.why, taken_back=step.taken_back, to=to, vain=vain)
    if step.taken_back and not _is_vain(move, moving.newcomer):
        move = replace(move, stand="")
    return _written(this, move, decision, twin, step)


def _is_vain(move: ReliefMove, new: Newcomer | None) -> bool:
    """Whether a new replica that is taken back came where the next one would come, too.

    That it found no node, was not ready in time or came to a hot node passes, but for what the move is for.
    """
    if move.aim is Aim.POOL or new is None:
        return True
    return bool(new.misplaced) and (move.aim is Aim.COOL or new.misplaced != _HOT)


def _busy(
    this: PlanInput, move: ReliefMove, twin: TwinView, decision: Decision, specs: tuple[int, int]
) -> str:
    """Return what is more important than a move; empty while nothing is."""
    observed, hot = this.observed, this.observed.hot_nodes
    base = base_replicas(this.source.replicas, this.policy)
    # Nor is one believed that begins in the future.
    old = observed.waits.past(move.at, 2 * this.rules.relief.cycle_s)
    old |= seconds_between(move.at, observed.now) < -SKEW_S
    held = ""
    if move.aim is not Aim.POOL:
        asked = hot is not None and thresholds_of(this.policy.relief) is not None
        held = hot.paused if hot is not None and asked else "relief is not asked for any more"
    reasons = (
        (bool(held), held),
        (this.source.max_surge < 1, "its maxSurge is 0"),
        (this.policy.freeze or this.policy.dry_run, "its counts are to stay as they are"),
        (observed.view_broken, "too many nodes are not ready"),
        (any(one.is_losing for one in observed.twins), "a node under it is going or gone"),
        (decision.state.lost and specs != (base, this.source.replicas - base), "spot was lost"),
        ((decision.on_demand, decision.spot) != specs, "its counts are changed"),
        (is_outdated(this) or any(map(is_rolling, observed.twins)), "it is rolled out"),
        (len(created_since(move, twin.pods)) > 1, "other replicas of it were replaced meanwhile"),
        (is_refused(observed), "its pods are refused"),
        (old, _TOO_LONG),
    )
    return next((why for holds, why in reasons if holds), "")


def _twin_of(observed: Observation, move: ReliefMove) -> TwinView | None:
    return next((twin for twin in observed.twins if twin.pool.value == move.pool), None)


def _is_unhinted(observed: Observation, move: ReliefMove) -> bool:
    """Whether nothing kept the new replica off hot nodes, where something should: with a hint it may help."""
    return move.aim is Aim.COOL and observed.hot_nodes is not None and bool(observed.hot_nodes.unhinted)


def _is_raised(move: ReliefMove, twin: TwinView) -> bool:
    """Whether the twin was raised for a move: it is remembered, or seen."""
    return move.raised or twin.spec_replicas > move.replicas


def _moving(this: PlanInput, move: ReliefMove, twin: TwinView, busy: str) -> Moving:
    now, hot = this.observed.now, this.observed.hot_nodes or HotNodes()
    pods = [pod for pod in twin.pods if pod.counts]
    leaving = next((pod for pod in pods if pod.uid == move.pod_uid), None)
    first = next(iter(created_since(move, twin.pods)), None)
    newcomer = None
    if first is not None:
        unready_s = 0.0 if first.available or first.created is None else seconds_between(first.created, now)
        # The scheduler has no room for it: waiting would have a node bought for it. For a base it may be.
        unplaced = first.node_status is NodeStatus.UNBOUND and first.unschedulable_since is not None
        to_base = move.aim is Aim.POOL and twin.pool is Pool.ON_DEMAND
        waited_s = inf if unplaced and not to_base else unready_s
        # Where it is not known yet which nodes are hot, it is not ready for what follows.
        known = hot.known or move.aim is Aim.POOL
        newcomer = Newcomer(
            first.uid, first.available and known, _misplaced(move, first, twin, hot), waited_s
        )
    marked = next(
        (pod.uid for pod in pods if pod.deletion_cost == OUR_COST and pod.cost_before is not None), ""
    )
    ready = available_of(pods, twin.available_replicas)
    if newcomer is not None and first is not None and first.available and not newcomer.ready:
        ready -= 1
    return Moving(
        wanted=move.replicas,
        spec=twin.spec_replicas,
        ready=ready,
        leaving=leaving.uid if leaving is not None else "",
        newcomer=newcomer,
        raised=_is_raised(move, twin),
        marked=marked,
        busy=busy,
    )


def _misplaced(move: ReliefMove, new: Replica, twin: TwinView, hot: HotNodes) -> str:
    """Return why the new replica may not stay where it stands; empty where it may, or has no node yet."""
    if new.node is None:
        return ""
    if move.aim is Aim.POOL:
        return "stands in the other pool, too" if new.uid in twin.strays else ""
    if move.aim is Aim.SPOT and not new.on_spot:
        return "stands on on-demand, too"
    if move.aim is Aim.SPREAD and (new.node in hot.crowded or new.node_uid == move.node_uid):
        return "stands where it is spread no better"
    is_hot = new.node in hot.avoid or new.node_uid == move.node_uid
    return _HOT if is_hot else ""


def _is_settled(twin: TwinView) -> bool:
    """Whether its controller and its ReplicaSets have removed what was above the spec."""
    counted = sum(pod.counts for pod in twin.pods)
    return twin.observed and not holder_of(twin).lags and counted <= twin.spec_replicas


def _written(this: PlanInput, move: ReliefMove, decision: Decision, twin: TwinView, step: StepTaken) -> Plan:
    """Return the plan with the write of one step; the extra replica is nobody's surplus meanwhile."""
    observed = this.observed
    actions: tuple[Action, ...] = ()
    note = Note(
        Reason.RELIEVING, f"{move.pod} is to leave {move.node}: {step.why}", cause=VerdictCause.RELIEF
    )
    pod = next((one for one in twin.pods if one.uid == step.pod), None)
    if step.step is Step.MARK and pod is not None:
        actions = ordered(this, (), keeps=pod.uid)  # which takes our cost off any other pod
        if not actions and not has_rival(twin.pods, pod):
            actions = (SetDeletionCost(pod.name, pod.uid, OUR_COST, remember=pod.deletion_cost or ""),)
    lowered = Scale(
        replica_moves.kind_of_twins(observed),
        twin.name,
        twin.spec_replicas,
        step.replicas,
        twin.resource_version,
    )
    may_lower = (
        step.step is Step.LOWER
        and twin.observed
        and not holder_of(twin).lags
        and replica_moves.may_lower(observed, this.source, {twin.name: step.replicas}, twin)
    )
    if may_lower:
        actions = ordered(this, (lowered,), keeps=step.pod)
    notes: tuple[Note, ...] = ()
    if lowered in actions:
        less = Move(twin.pool, twin.spec_replicas, step.replicas)
        reason = Reason.RELIEF_UNDONE if step.taken_back else Reason.RELIEVED
        goes = f"{pod.name if pod is not None else 'a replica'} goes"
        note = Note(
            reason,
            f"{less}: {goes}, {step.why}",
            warning=step.taken_back,
            move=less,
            cause=VerdictCause.RELIEF,
        )
        notes = (note,)
    raised = _is_raised(move, twin)
    remembered = remembering(this, replace(move, raised=raised, taken_back=step.taken_back))
    # With the extra one: else a crash would have it taken for the cover of a loss.
    held = observed.on_demand.spec_replicas if observed.on_demand is not None else None
    if held is not None and move.pool == Pool.ON_DEMAND.value and not raised:
        held = max(held, move.replicas + 1)
    return Plan(
        HandoverStep.RUN,
        State.MOVING,
        note,
        actions,
        notes,
        wanted_on_demand=decision.on_demand,
        wanted_spot=decision.spot,
        rebalance=replace(decision.state, decided=held),
        relief=remembered,
        voluntary=move.aim is Aim.POOL,
        requeue_after_s=POLL_S,
    )


def _ended(
    this: PlanInput,
    move: ReliefMove,
    why: str,
    *,
    taken_back: bool,
    to: Replica | None = None,
    vain: bool = False,
) -> ReliefStatus:
    now = this.observed.now
    # What was taken back on purpose stays so, whatever its last step looks like.
    over = replace(
        move,
        ended=now,
        taken_back=taken_back or move.taken_back,
        to_node_uid=(to.node_uid or "") if to is not None else "",
        stand=move.stand if vain else "",
    )
    status = remembering(this, over)
    return replace(status, message=f"{move.pod} was to leave {move.node}: {why}"[:TEXT_MAX])


def broken_off(this: PlanInput, over: ReliefStatus) -> Note | None:
    """Return what to say of a move that ended otherwise than it was meant to, and was not said yet."""
    before, last = this.observed.reported.relief.current, over.moves[-1]
    if before is None or not last.taken_back or before.taken_back:
        return None
    message = f"{over.message}; it stays, and its workload rests"
    return Note(Reason.RELIEF_UNDONE, message, warning=True)

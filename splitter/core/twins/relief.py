"""The move of one replica off a hot node, in the reconciles of its workload: one more, wait, one less.

`planner` begins a move where the workload is Steady and `core.relief` wants a replica elsewhere; `steps` goes
on with it, or ends it for anything that is more important. What goes on stands in the Split's status, so that
a crash at any write changes nothing: an extra replica that no move claims is surplus, and `decide` lowers it.
Source: R53, docs/adr/0063.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from math import inf

from splitter.core.actions import Action, Scale, SetDeletionCost
from splitter.core.floor import is_rolling
from splitter.core.handover import Step as HandoverStep
from splitter.core.hot_nodes import HotNodes
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Move, NodeStatus, Note, Observation, PodView, Pool, TwinView, seconds_between
from splitter.core.plan import POLL_S, Plan, PlanInput
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.rebalance import Decision
from splitter.core.relief.move import Moving, Newcomer, Step, StepTaken, next_step
from splitter.core.relief.thresholds import thresholds_of
from splitter.core.split_status import TEXT_MAX, ReliefMove, ReliefStatus
from splitter.core.split_status.relief import HOT_NODES_MAX, MOVES_MAX
from splitter.core.twins import replica_moves
from splitter.core.twins.write_order import OUR_COST, ordered

# Clocks differ a little; a move of the future is what somebody made up.
_SKEW_S = 30.0
# A raise without an answer may still come to pass; what was asked so long ago was done, or never is.
_UNANSWERED_S = 60.0


def current(observed: Observation) -> ReliefMove | None:
    """Return the move that goes on, as the Split remembers it."""
    return observed.reported.relief.current


def without_extra(observed: Observation, move: ReliefMove, twin: TwinView) -> TwinView:
    """Return a twin as it is without the extra replica of a move: what `decide` is to look at."""
    extra = twin.pool.value == move.pool and twin.spec_replicas == move.replicas + 1
    return replace(twin, spec_replicas=move.replicas) if extra and observed.twin(twin.pool) else twin


# --- a move that begins -----------------------------------------------------------------------------


def begun(this: PlanInput, planned: Plan) -> Plan:
    """Return the plan, or where it is Steady and a replica is to leave a hot node, the raise before that.

    The move is written into the status before the raise (`Reconciler`).
    """
    observed, policy = this.observed, this.policy
    wanted = observed.hot_nodes.leaves if observed.hot_nodes is not None else None
    if wanted is None or planned.state is not State.STEADY or planned.actions or current(observed):
        return planned
    if planned.step is not HandoverStep.RUN or thresholds_of(policy.relief) is None or _unfit(this):
        return planned
    pairs = [(twin, pod) for twin in observed.twins for pod in twin.pods if pod.uid == wanted.pod_uid]
    if not pairs:
        return planned
    twin, pod = pairs[0]
    if not pod.available or pod.node is None or pod.node_uid is None or _rival(twin.pods, pod):
        return planned
    most = policy.spot_max if twin.pool is Pool.SPOT else policy.on_demand_max
    if most is not None and twin.spec_replicas >= most:
        return planned
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
    )
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
        relief=_remembering(this, going_on),
        rebalance=state,
        requeue_after_s=POLL_S,
    )


def _unfit(this: PlanInput) -> str:
    """Return why no move of this workload begins; empty where one may."""
    observed, source, policy = this.observed, this.source, this.policy
    if source.stateful is not None:
        return "a StatefulSet removes pods by their ordinals, so it cannot be relieved of a certain one"
    if policy.freeze or policy.dry_run:
        return "the counts stay as they are (splitter.io/freeze, splitter.io/dry-run)"
    if source.max_surge < 1:
        return "its maxSurge is 0, so there is no room for one more"
    if _is_outdated(this):
        return "a new template waits to be rolled out"
    if replica_moves.surge_headroom_beside(observed, source) < 1:
        return "there is no room for one more now"
    return ""


def _is_outdated(this: PlanInput) -> bool:
    """Whether a twin has another template than is rendered now, or nothing can be rendered."""
    rendered = this.rendered
    return isinstance(rendered, Note) or any(
        one.rendered_hash != rendered[one.pool].hash for one in this.observed.twins
    )


def _rival(pods: Sequence[PodView], leaving: PodView) -> bool:
    """Whether another pod bears a deletion cost that is as low as ours: a ReplicaSet might take that one."""
    costs = (one.deletion_cost for one in pods if one.counts and one.uid != leaving.uid)
    return any(cost is not None and _is_low(cost) for cost in costs)


def _is_low(cost: str) -> bool:
    try:
        return int(cost) <= int(OUR_COST)
    except ValueError:
        return False  # which Kubernetes counts as 0


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
    busy = _busy(this, move, decision, on_demand, spot)
    moving = _moving(this, move, twin, busy)
    step = next_step(moving, this.rules.relief.cycle_s)
    if step.step is Step.RAISE and seconds_between(move.at, observed.now) < _UNANSWERED_S:
        step = StepTaken(Step.WAIT, twin.spec_replicas, why="it is not known yet whether its twin was raised")
    if step.step is Step.RAISE:  # it was not raised: begun anew, if there still is a cause
        return _ended(this, move, "it was not begun", taken_back=False)
    if step.step is Step.WAIT and move.raised and moving.spec == moving.wanted and _is_settled(twin):
        return _ended(this, move, "another replica went in its place", taken_back=True)
    if step.step is Step.DONE:
        to = next((pod for pod in _new(twin, move) if not step.taken_back), None)
        return _ended(this, move, step.why, taken_back=step.taken_back, to=to)
    return _written(this, move, decision, twin, step)


def _busy(this: PlanInput, move: ReliefMove, decision: Decision, on_demand: TwinView, spot: TwinView) -> str:
    """Return what is more important than a move; empty while nothing is."""
    observed, hot = this.observed, this.observed.hot_nodes
    specs = on_demand.spec_replicas, spot.spec_replicas
    # Nor is one believed that begins in the future.
    old = not -_SKEW_S <= seconds_between(move.at, observed.now) <= 2 * this.rules.relief.cycle_s
    held = (
        "relief is not asked for any more"
        if hot is None or thresholds_of(this.policy.relief) is None
        else hot.paused
    )
    reasons = (
        (bool(held), held),
        (this.source.max_surge < 1, "its maxSurge is 0"),
        (this.policy.freeze or this.policy.dry_run, "its counts are to stay as they are"),
        (observed.view_broken, "too many nodes are not ready"),
        (any(twin.is_losing for twin in observed.twins), "a node under it is going or gone"),
        (decision.state.lost, "spot was lost"),
        ((decision.on_demand, decision.spot) != specs, "its counts are changed"),
        (_is_outdated(this) or any(is_rolling(twin) for twin in observed.twins), "it is rolled out"),
        (len(_new(_twin_of(observed, move), move)) > 1, "other replicas of it were replaced meanwhile"),
        (any(rs.refused for twin in observed.twins for rs in twin.replica_sets), "its pods are refused"),
        (old, "it took too long"),
    )
    return next((why for holds, why in reasons if holds), "")


def _twin_of(observed: Observation, move: ReliefMove) -> TwinView | None:
    return observed.on_demand if move.pool == Pool.ON_DEMAND.value else observed.spot


def _new(twin: TwinView | None, move: ReliefMove) -> list[PodView]:
    """Return the pods that were created after the move was begun: the new replica, if it is alone."""
    return [
        pod
        for pod in (twin.pods if twin is not None else ())
        if pod.counts
        and pod.uid != move.pod_uid
        and pod.created is not None
        and pod.created > move.newer_than
    ]


def _moving(this: PlanInput, move: ReliefMove, twin: TwinView, busy: str) -> Moving:
    now, hot = this.observed.now, this.observed.hot_nodes or HotNodes()
    pods = [pod for pod in twin.pods if pod.counts]
    leaving = next((pod for pod in pods if pod.uid == move.pod_uid), None)
    first = next(iter(_new(twin, move)), None)
    newcomer = None
    if first is not None:
        unready_s = 0.0 if first.available or first.created is None else seconds_between(first.created, now)
        # The scheduler has no room for it: waiting would have a node bought for it.
        waited_s = inf if first.node_status is NodeStatus.UNBOUND and first.unschedulable_since else unready_s
        is_hot = first.node is not None and (first.node in hot.avoid or first.node_uid == move.node_uid)
        # Where it is not known yet which nodes are hot, it is not ready for what follows.
        newcomer = Newcomer(first.uid, first.available and hot.known, is_hot, waited_s)
    marked = next(
        (pod.uid for pod in pods if pod.deletion_cost == OUR_COST and pod.cost_before is not None), ""
    )
    ready = min(sum(pod.available for pod in pods), twin.available_replicas)
    if newcomer is not None and first is not None and first.available and not newcomer.ready:
        ready -= 1
    return Moving(
        wanted=move.replicas,
        spec=twin.spec_replicas,
        ready=ready,
        leaving=leaving.uid if leaving is not None else "",
        newcomer=newcomer,
        raised=move.raised or twin.spec_replicas > move.replicas,
        marked=marked,
        busy=busy,
    )


def _is_settled(twin: TwinView) -> bool:
    """Whether its controller and its ReplicaSets have removed what was above the spec."""
    counted = sum(pod.counts for pod in twin.pods)
    return twin.observed and not replica_moves.lags(twin) and counted <= twin.spec_replicas


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
        if not actions and not _rival(twin.pods, pod):
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
        and not replica_moves.lags(twin)
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
    raised = move.raised or twin.spec_replicas > move.replicas
    remembered = _remembering(this, replace(move, raised=raised, taken_back=step.taken_back))
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
        requeue_after_s=POLL_S,
    )


def _ended(
    this: PlanInput, move: ReliefMove, why: str, *, taken_back: bool, to: PodView | None = None
) -> ReliefStatus:
    now = this.observed.now
    # What was taken back on purpose stays so, whatever its last step looks like.
    over = replace(
        move,
        ended=now,
        taken_back=taken_back or move.taken_back,
        to_node_uid=(to.node_uid or "") if to is not None else "",
    )
    status = _remembering(this, over)
    return replace(status, message=f"{move.pod} was to leave {move.node}: {why}"[:TEXT_MAX])


def broken_off(this: PlanInput, over: ReliefStatus) -> Note | None:
    """Return what to say of a move that ended otherwise than it was meant to, and was not said yet."""
    before, last = current(this.observed), over.moves[-1]
    if before is None or not last.taken_back or before.taken_back:
        return None
    message = f"{over.message}; it stays, and its workload rests"
    return Note(Reason.RELIEF_UNDONE, message, warning=True)


def _remembering(this: PlanInput, move: ReliefMove) -> ReliefStatus:
    """Return what to remember with this move as the last one: what still counts, and no more than fits."""
    known = this.observed.reported.relief
    kept = [one for one in _counting(this, known) if one.ended is not None]
    return replace(known, moves=(*kept, move)[-MOVES_MAX:])


# --- what is said --------------------------------------------------------------------------------------


def reported(this: PlanInput, planned: Plan) -> Plan:
    """Return the plan with how relief stands, for the status; and with why it pauses, for people."""
    observed, policy = this.observed, this.policy
    known = planned.relief or observed.reported.relief
    if thresholds_of(policy.relief) is None:
        if known == ReliefStatus():
            return planned
        kept = ReliefStatus(moves=_counting(this, known))
        return replace(planned, relief=kept)
    note = _state_of(this, planned, policy)
    hot = observed.hot_nodes.hot if observed.hot_nodes is not None else ()
    status = ReliefStatus(
        note.reason.value, note.message[:TEXT_MAX], tuple(hot[:HOT_NODES_MAX]), _counting(this, known)
    )
    warned = (note,) if note.warning else ()
    return replace(planned, relief=status, advice=(*planned.advice, *warned))


def _counting(this: PlanInput, known: ReliefStatus) -> tuple[ReliefMove, ...]:
    counts_s = max(this.rules.relief.rest_s, this.rules.relief.cycle_s)
    horizon = this.observed.now - timedelta(seconds=counts_s)
    return tuple(one for one in known.moves if one.ended is None or one.ended >= horizon)


def _state_of(this: PlanInput, planned: Plan, policy: Policy) -> Note:
    hot = this.observed.hot_nodes
    paused = "the settings give no source of real use (relief_source)" if hot is None else hot.paused
    unfit = _unfit(this) if this.source.stateful is not None or this.source.max_surge < 1 else ""
    if unfit or paused:
        # What its kind does not allow is nobody's fault: a Namespace may ask for all that is in it.
        return Note(Reason.RELIEF_PAUSED, f"relief pauses: {unfit or paused}", warning=not unfit)
    if planned.verdict.cause is VerdictCause.RELIEF:
        return Note(Reason.RELIEVING, planned.verdict.message)
    if hot is None or not hot.known:
        return Note(Reason.NODES_COOL, "real use is being measured; nothing is known yet")
    if hot.hot:
        names = ", ".join(hot.hot[:HOT_NODES_MAX])
        left = f"; {hot.left}" if hot.left else ""
        return Note(Reason.NODES_HOT, f"its replicas stand on hot nodes ({names}){left}")
    return Note(Reason.NODES_COOL, f"none of its replicas stands on a hot node ({policy.relief})")

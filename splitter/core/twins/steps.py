"""The step of a split workload: create missing twins, set counts, roll templates.

The planner calls `run` while the label is there and nothing is attached (H28):
one batch of writes towards the first of these that is not so. While anything parked has pods, MAKE and
BREAK move replicas (`replica_moves`); afterwards `rebalance.decide` owns the counts, and a template is
rolled only when there is no count to write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from splitter.core import actions as do
from splitter.core.division import base_replicas
from splitter.core.handover import Step
from splitter.core.holders import floor_in_roll, holder_of
from splitter.core.labels_annotations import kept_name, twin_name
from splitter.core.model import Attachment, Note, Rendered, TwinView
from splitter.core.plan import POLL_S, Plan, PlanInput
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.rebalance import Cause, Decision, decide, losses
from splitter.core.rebalance.inputs import rebalance_input
from splitter.core.replica import Pool, ReplicaState
from splitter.core.split_status import HANDED_OVER, RebalanceState, ReliefStatus
from splitter.core.twins import alone, move_limit, relief, replica_moves
from splitter.core.twins.rollout import Circumstances, last_available, next_roll, partition_of
from splitter.core.twins.steady import settled
from splitter.core.twins.write_order import ordered


def run(this: PlanInput) -> Plan:
    """Twins exist, counts are right, templates are current: one batch towards the first that is not (H60)."""
    observed = this.observed
    missing = [pool for pool in Pool if observed.twin(pool) is None]
    if missing:
        return _create_twins(this, missing)
    on_demand, spot = observed.on_demand, observed.spot
    if on_demand is None or spot is None or on_demand.deleting or spot.deleting:
        return Plan(Step.RUN, State.MOVING, alone.waiting(this), alone.covering(this), requeue_after_s=POLL_S)
    if not replica_moves.at_zero((), observed.attached_as(Attachment.PARKED)):
        counted = _hand_over(this, on_demand, spot)
    else:
        counted = _handed_over(this, _rebalance(this, on_demand, spot))
    if counted.verdict.cause is VerdictCause.RELIEF:
        return counted  # a roll that is due ends the move first
    if counted.actions or isinstance(this.rendered, Note):
        return settled(_with_template_problem(this, counted), on_demand, spot)
    return _trimmed(this, settled(_roll(this, counted, on_demand, spot, this.rendered), on_demand, spot))


def _trimmed(this: PlanInput, plan: Plan) -> Plan:
    """Delete the oldest parked ReplicaSets beyond the source's own limit when nothing else is due (H28, H48).

    Each foreign unpause leaves one more, and the Deployment controller no longer clears them away. Those that
    keep the template of pods that run stay whatever the limit says: the pods go back with it.
    """
    parked = this.observed.attached_as(Attachment.PARKED)
    if plan.actions or not replica_moves.at_zero((), parked):
        return plan
    running = {
        kept_name(this.source.key.name, pod.revision) for twin in this.observed.twins for pod in twin.pods
    }
    kept = (rs for rs in parked if rs.deleted is None and rs.name not in running)
    old = sorted(kept, key=lambda rs: (rs.created, rs.name))
    surplus = old[: max(0, len(old) - this.source.revisions_kept)]
    return replace(
        plan, actions=tuple(do.DeleteReplicaSet(rs.name, rs.uid, rs.resource_version) for rs in surplus)
    )


def _create_twins(this: PlanInput, missing: Sequence[Pool]) -> Plan:
    if isinstance(this.rendered, Note):
        return Plan(Step.RUN, State.HELD, this.rendered, alone.covering(this), (this.rendered,))
    actions = tuple(
        do.ApplyTwin(
            pool,
            this.rendered[pool].manifest_json,
            this.rendered[pool].hash,
            0,
            1,
            0,
            None,
            partition_of(this.source, this.policy, pool),
        )
        for pool in missing
    )
    names = " and ".join(twin_name(this.source.key.name, pool) for pool in missing)
    note = Note(Reason.HANDING_OVER, f"created {names} at 0")
    raises = alone.covering(this) if alone.was_refused(this) else ()
    return Plan(Step.RUN, State.TAKING_OVER, note, (*raises, *actions), (note,))


def _hand_over(this: PlanInput, on_demand: TwinView, spot: TwinView) -> Plan:
    base = base_replicas(this.source.replicas, this.policy)
    wanted = (base, this.source.replicas - base)
    state, cover = _covered(this, on_demand, spot)
    if this.policy.freeze:
        note = Note(Reason.FROZEN, "frozen in the middle of the hand-over; counts stay as they are")
        counted = Plan(Step.RUN, State.HELD, note, wanted_on_demand=wanted[0], wanted_spot=wanted[1])
    else:
        moved = replica_moves.towards_twins(this.observed, this.source, this.policy, cover)
        moved = replace(moved, scales=replica_moves.spared(this.source, moved.scales))
        counted = moving(this, moved, State.TAKING_OVER, Reason.HANDING_OVER, wanted)
    return replace(counted, rebalance=state)


def _covered(this: PlanInput, on_demand: TwinView, spot: TwinView) -> tuple[RebalanceState, int]:
    """Return what to remember of spot in a hand-over, and what on-demand holds for what was lost there.

    Lowering that cover is `decide`'s, once nothing parked has pods: spot has to soak first.
    """
    persisted = this.observed.rebalance
    counted = rebalance_input(this.observed, this.source, on_demand, spot, this.policy).within_spec()
    state = losses(counted, this.policy, persisted.not_after(counted.now), this.rules.tuning)
    # Spot is not short while it is still being asked for, step by step.
    state = replace(state, short_since=persisted.short_since, decided=None)
    base = base_replicas(this.source.replicas, this.policy)
    if state.lost:
        return state, max(0, this.source.replicas - base - counted.spot_ready)
    held = state.last_loss is not None and not state.proven
    return state, max(0, on_demand.spec_replicas - base) if held else 0


def moving(
    this: PlanInput, moved: replica_moves.Transfer, state: State, reason: Reason, wanted: tuple[int, int]
) -> Plan:
    """Return the plan of one batch of a hand-over, either way."""
    actions = ordered(this, moved.scales)
    scales = [one for one in actions if isinstance(one, do.Scale)]
    notes = (_scaled(reason, scales),) if scales else ()
    verdict = (
        notes[0]
        if notes
        else Note(Reason.WAITING_FOR_REPLICAS, f"waiting; available/wanted: {moved.message}")
    )
    return Plan(
        Step.RUN if state is State.TAKING_OVER else Step.HAND_BACK,
        state,
        verdict,
        actions,
        notes,
        wanted_on_demand=wanted[0],
        wanted_spot=wanted[1],
        requeue_after_s=POLL_S if state is State.GIVING_BACK else None,
    )


def _scaled(reason: Reason, scales: Sequence[do.Scale]) -> Note:
    moves = ", ".join(f"{scale.name} {scale.was} -> {scale.replicas}" for scale in scales)
    return Note(reason, f"scale {moves}", quiet=True)


def _handed_over(this: PlanInput, counted: Plan) -> Plan:
    """Say once that the hand-over is done: the Split still shows that it goes on."""
    if this.observed.reported.state != State.TAKING_OVER:
        return counted
    message = (
        f"{HANDED_OVER}{_spec(this, Pool.ON_DEMAND)} replicas on on-demand, {_spec(this, Pool.SPOT)} on spot"
    )
    return replace(counted, notes=(Note(Reason.TAKEN_OVER, message), *counted.notes))


def _spec(this: PlanInput, pool: Pool) -> int:
    twin = this.observed.twin(pool)
    return twin.spec_replicas if twin is not None else 0


def _rebalance(this: PlanInput, on_demand: TwinView, spot: TwinView) -> Plan:
    persisted = this.observed.rebalance
    if this.observed.reported.state == State.TAKING_OVER and this.source.stateful is None:
        # Its user asks for spot just now, and nothing was lost there yet: no soak before the first move.
        persisted = replace(persisted, proven=persisted.last_loss is None)
    over = None
    if (move := this.observed.reported.relief.current) is not None:
        seen = [relief.without_extra(move, twin) for twin in (on_demand, spot)]
        proceeded = relief.proceeded(this, move, _decided(this, persisted, *seen), *seen)
        if isinstance(proceeded, Plan):
            return proceeded
        over = proceeded
    planned = _divided(this, on_demand, spot, persisted, _decided(this, persisted, on_demand, spot))
    return planned if over is None else _without_move(this, planned, over)


def _decided(this: PlanInput, persisted: RebalanceState, on_demand: TwinView, spot: TwinView) -> Decision:
    counted = rebalance_input(this.observed, this.source, on_demand, spot, this.policy)
    return decide(counted, this.policy, persisted, this.rules.tuning)


def _without_move(this: PlanInput, planned: Plan, over: ReliefStatus) -> Plan:
    """Return the plan with the end of a move; its extra replica, if it is there, is surplus by now."""
    note = relief.broken_off(this, over)
    notes = (*planned.notes, note) if note is not None else planned.notes
    return replace(planned, relief=over, notes=notes)


def _divided(
    this: PlanInput, on_demand: TwinView, spot: TwinView, persisted: RebalanceState, decision: Decision
) -> Plan:
    voluntary = move_limit.redivides(this, decision, on_demand, spot)
    turn = move_limit.not_yet(this, "the division that the policy asks for") if voluntary else None
    if turn is not None:
        specs = on_demand.spec_replicas, spot.spec_replicas
        # What is due by time stays due: a soak, a grace.
        decision = replace(decision, on_demand=specs[0], spot=specs[1], notes=(turn,))
    scales = _scales(this, decision, on_demand, spot)
    base = base_replicas(this.source.replicas, this.policy)
    balanced = Note(
        Reason.BALANCED, f"{on_demand.spec_replicas} on on-demand, {spot.spec_replicas} on spot, as wanted"
    )
    verdict = decision.notes[0] if decision.notes else balanced
    actions = (*_restored(this, on_demand, spot, scales), *ordered(this, scales))
    written = [one.replicas for one in actions if isinstance(one, do.Scale) and one.name == on_demand.name]
    state = replace(decision.state, decided=written[0] if written else on_demand.spec_replicas)
    if decision.on_demand < on_demand.spec_replicas and not _lowers(actions, on_demand):
        state = replace(state, last_step=persisted.last_step)  # a step that has to wait is none yet
    at_rest = not scales and (on_demand.spec_replicas, spot.spec_replicas) == (
        base,
        this.source.replicas - base,
    )
    return Plan(
        Step.RUN,
        State.STEADY if at_rest else State.MOVING if scales else State.HELD,
        verdict,
        actions,
        decision.notes if scales else (),
        wanted_on_demand=base,
        wanted_spot=this.source.replicas - base,
        rebalance=state,
        voluntary=voluntary and turn is None,
    )


def _lowers(actions: Sequence[do.Action], twin: TwinView) -> bool:
    return any(
        isinstance(action, do.Scale) and action.name == twin.name and action.replicas < action.was
        for action in actions
    )


def _restored(
    this: PlanInput, on_demand: TwinView, spot: TwinView, scales: Sequence[do.Scale]
) -> tuple[do.Action, ...]:
    """Put a twin's last available template back while spot is going or gone and replicas are missing (H65).

    Beside the raise, and again when that was written and this was refused. What a roll may take by the
    source's own strategy is not missing, nor is the member that a StatefulSet's roll takes: taken back for
    that, it would begin anew while a notice lasts. Where more have the new template than a roll holds by
    itself, a raise has been spread over both.
    """
    source = this.source
    raised = any(scale.name == on_demand.name and scale.replicas > scale.was for scale in scales)
    new = sum(
        rs.spec_replicas for rs in on_demand.replica_sets if rs.template_hash == on_demand.template_hash
    )
    least = (
        source.replicas if new > on_demand.max_surge + on_demand.max_unavailable else floor_in_roll(source)
    )
    missing = raised or replica_moves.total_available(this.observed) < least
    good = last_available(on_demand) if spot.is_losing and missing else None
    if good is None:
        return ()
    return (do.RestoreTemplate(on_demand.name, good.name, on_demand.resource_version),)


def _scales(this: PlanInput, decision: Decision, on_demand: TwinView, spot: TwinView) -> tuple[do.Scale, ...]:
    """Return the writes of a decision, but for those that have to wait for the other twin's controller.

    `decide` counts specs. A spot raise that uses the room of an on-demand lowering goes out when those
    pods have gone, not beside it: the controllers would make N + S + 1 pods of it for a moment. So does
    an on-demand raise after a spot lowering, unless something was lost: that one never waits.
    """
    wanted = {on_demand.name: _majority(this, decision, on_demand, spot), spot.name: decision.spot}
    lowered = decision.on_demand < on_demand.spec_replicas
    # Nor before the spot twin's own lowering has reached its pods: a doomed one would take the probe's place.
    if decision.spot > spot.spec_replicas and (lowered or holder_of(on_demand).lags or holder_of(spot).lags):
        wanted[spot.name] = spot.spec_replicas
    covers = decision.state.lost and decision.cause is not Cause.DIVIDED
    calm = not covers and not any(pod.state is ReplicaState.DOOMED for pod in on_demand.pods)
    if decision.on_demand > on_demand.spec_replicas and calm and holder_of(spot).lags:
        wanted[on_demand.name] = on_demand.spec_replicas
    for twin in (on_demand, spot):
        wanted[twin.name] = replica_moves.with_own_volumes(this.observed, twin, wanted[twin.name])
        if wanted[twin.name] < twin.spec_replicas:
            both = {twin.name: wanted[twin.name], on_demand.name: wanted[on_demand.name]}
            wanted[twin.name] = replica_moves.lowest(this.observed, this.source, both, twin)
    return tuple(
        do.Scale(
            replica_moves.kind_of_twins(this.observed),
            twin.name,
            twin.spec_replicas,
            wanted[twin.name],
            twin.resource_version if wanted[twin.name] < twin.spec_replicas else None,
        )
        for twin in (on_demand, spot)
        if wanted[twin.name] != twin.spec_replicas
    )


def _majority(this: PlanInput, decision: Decision, on_demand: TwinView, spot: TwinView) -> int:
    """Return what on-demand may be lowered to: spot goes first where more than half has to be on on-demand.

    H75: lowered together, the members left on spot could be the majority for a while.
    """
    policy = this.policy
    if policy.on_demand_base != "majority" or policy.on_demand_max is not None or not this.source.replicas:
        return decision.on_demand
    if decision.on_demand >= on_demand.spec_replicas:
        return decision.on_demand  # nothing is lowered
    counted = rebalance_input(this.observed, this.source, on_demand, spot, policy)
    alive = sum(pod.state.is_placed or pod.state is ReplicaState.DOOMED for pod in spot.pods)
    held = max(spot.spec_replicas - counted.spot_dead, alive)
    return max(decision.on_demand, min(on_demand.spec_replicas, held + 1))


def _with_template_problem(this: PlanInput, counted: Plan) -> Plan:
    if not isinstance(this.rendered, Note) or counted.actions:
        return counted
    return replace(counted, state=State.HELD, verdict=this.rendered, notes=(this.rendered,))


def _roll(
    this: PlanInput, counted: Plan, on_demand: TwinView, spot: TwinView, rendered: Mapping[Pool, Rendered]
) -> Plan:
    held = on_demand.spec_replicas + spot.spec_replicas
    where = Circumstances(
        source=this.source,
        order=this.policy.rollout_order,
        available=replica_moves.total_available(this.observed),
        headroom=replica_moves.surge_headroom_beside(this.observed, this.source),
        waits=this.observed.waits,
        grace_s=this.policy.grace_s,
        needed=min(this.source.replicas, held) if this.policy.freeze else this.source.replicas,
        placeless=replica_moves.placeless(this.observed, this.policy.grace_s),
        leaving=holder_of(on_demand).lags or holder_of(spot).lags,
        partitions={pool: partition_of(this.source, this.policy, pool) for pool in Pool},
        source_rolls=replica_moves.source_rolls(this.observed),
    )
    due = next_roll(on_demand, spot, rendered, where)
    if due is None:
        return counted
    if isinstance(due, Note):
        notes = (due,) if due.cause is not VerdictCause.HELD_ROLL else ()
        state = counted.state if due.cause is VerdictCause.NEXT_ROLLOUT else State.ROLLING
        return replace(counted, state=state, verdict=due, notes=notes)
    twin = on_demand if due.pool is Pool.ON_DEMAND else spot
    action = replace(
        rolled(twin, rendered[due.pool], due.max_surge, due.max_unavailable),
        partition=where.partitions[due.pool],
    )
    return replace(counted, state=State.ROLLING, verdict=due.note, actions=(action,), notes=(due.note,))


def rolled(twin: TwinView, rendered: Rendered, surge: int, unavailable: int) -> do.ApplyTwin:
    """Return the write that gives a twin a template, with its replicas as they are."""
    return do.ApplyTwin(
        pool=twin.pool,
        manifest_json=rendered.manifest_json,
        hash=rendered.hash,
        replicas=twin.spec_replicas,
        max_surge=surge,
        max_unavailable=unavailable,
        resource_version=twin.resource_version,
        partition=twin.partition,
        first_ordinal=twin.first_ordinal,
    )

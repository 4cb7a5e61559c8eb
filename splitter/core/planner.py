"""Plans one pass for one source: looks at everything observed, returns what to write and why.

The reconciler calls `policy_in_force`, lets `render` make the twins, then calls `plan`. The planner is
the list of steps of the state machine (`handover.next_step`); each step is one function here. It is
pure: it never reads a clock or a cluster, and it writes nothing but intents (`actions`) and sentences
(`Note`). Afterwards `kube.apply` writes the actions in order, then `report` writes what people see.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from splitter.core import transfer
from splitter.core.actions import (
    Action,
    ApplyTwin,
    CreateHandBack,
    DeleteReplicaSet,
    DeleteSplit,
    DeleteTwin,
    DeleteVanishedPod,
    EnsureSplit,
    HolderKind,
    Park,
    Reattach,
    Scale,
    SetDeletionCost,
    SetMark,
    SetPaused,
)
from splitter.core.division import base_replicas, caps_conflict
from splitter.core.eligibility import refusal
from splitter.core.handover import Columns, Mark, Step, hand_back_of, next_step
from splitter.core.model import (
    Note,
    Observation,
    PodView,
    Policy,
    Pool,
    Rendered,
    ReplicaSetView,
    SourceView,
    Standing,
    State,
    Tie,
    TwinView,
    seconds_between,
)
from splitter.core.reasons import Reason
from splitter.core.rebalance import RebalanceState, Tuning, decide
from splitter.core.rollout import Circumstances, Roll, next_roll
from splitter.core.situation import rebalance_input
from splitter.core.surface import (
    LABEL_SPLIT,
    USER_ANNOTATIONS,
    mark_value,
    name_problem,
    parse_mark,
    parse_policy,
    source_label_state,
    twin_name,
)

OUR_COST = "-1000"
# Three foreign unpauses within this time are a fight, and we give way (handover.md, row 6).
FIGHT_WINDOW_S, FIGHTS = 600.0, 3
# Looked at again without an event: only where no watch tells us (the source of a removed label).
_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say; the same for every workload."""

    defaults: Policy = field(default_factory=Policy)
    tuning: Tuning = field(default_factory=Tuning)
    excluded_namespaces: tuple[str, ...] = ()
    delete_pods_of_vanished_nodes: bool = True


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy to go by, and what is wrong with what was written."""

    policy: Policy
    problems: tuple[Note, ...]
    good_annotations: Mapping[str, str]
    valid: bool  # what is written now is what is in force


@dataclass(frozen=True, slots=True)
class Plan:
    """What one pass wants written and said."""

    step: Step
    state: State
    verdict: Note
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    wanted_on_demand: int = 0
    wanted_spot: int = 0
    rebalance: RebalanceState | None = None  # None: leave what is persisted
    fight: bool = False  # count one when the actions have been written
    wake_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Pass:
    observed: Observation
    source: SourceView
    in_force: PolicyInForce
    rendered: Mapping[Pool, Rendered] | Note
    rules: Rules

    @property
    def policy(self) -> Policy:
        return self.in_force.policy


def policy_in_force(observed: Observation, defaults: Policy) -> PolicyInForce:
    """Return the policy that counts now: what the annotations say, else the last good one, else the defaults.

    Bad input never moves anything: a source that is split keeps its last good policy.
    """
    annotations = observed.source.annotations if observed.source else {}
    parsed = parse_policy(annotations, defaults, observed.namespace_annotations)
    written = {name: annotations[name] for name in USER_ANNOTATIONS if name in annotations}
    problems = parsed.problems
    if parsed.policy is not None and observed.source is not None:
        if not caps_conflict(observed.source.replicas, parsed.policy):
            return PolicyInForce(parsed.policy, problems, written, valid=True)
        problems = (*problems, _caps_note(parsed.policy, observed.source.replicas))
    good = observed.split.good_annotations if observed.split else None
    last = parse_policy(good or {}, defaults, None).policy or defaults
    return PolicyInForce(last, problems, good or {}, valid=False)


def _caps_note(policy: Policy, replicas: int) -> Note:
    message = (
        f"on-demand-max {policy.on_demand_max} and spot-max {policy.spot_max} hold fewer than the {replicas}"
        " replicas; raise one of them. Until then the last good policy stays in force."
    )
    return Note(Reason.INVALID_POLICY, message, warning=True)


def columns_of(observed: Observation, source: SourceView) -> Columns:
    """Read the columns of the state machine's table off an observation."""
    mark = parse_mark(source.annotations.get("splitter.io/taken-over", ""))
    split = observed.split
    parked = observed.tied(Tie.PARKED)
    return Columns(
        label=LABEL_SPLIT in source.labels,
        conflict=split is not None and split.conflict,
        split=split is not None and split.takes_over,
        report=split is not None and not split.takes_over,
        mark=Mark.NONE if mark is None else Mark.OURS if mark.uid == source.uid else Mark.FOREIGN,
        paused=source.paused,
        paused_by_us=source.paused_by_us,
        observed=source.observed,
        attached=bool(observed.tied(Tie.ATTACHED)),
        returning=bool(observed.tied(Tie.RETURNING)),
        parked=bool(parked),
        twins=bool(observed.twins),
        ours_at_zero=transfer.at_zero(observed.twins, parked),
        hand_back=hand_back_of(observed) is not None,
        hand_back_done=transfer.hand_back_complete(observed, source),
    )


def plan(
    observed: Observation, in_force: PolicyInForce, rendered: Mapping[Pool, Rendered] | Note, rules: Rules
) -> Plan:
    """Return what to write now and why. `rendered` is a Note when the templates did not render."""
    source = observed.source
    if source is None or source.deleting:
        return Plan(Step.NOTHING, State.GIVING_BACK, Note(Reason.GIVEN_BACK, "the source is gone"))  # 1
    step = next_step(columns_of(observed, source))
    this = _Pass(observed, source, in_force, rendered, rules)
    found = _STEPS[step](this)
    if this.policy.dry_run and step is not Step.NOTHING and LABEL_SPLIT in source.labels:
        return _only_reported(this, found)
    return found


def _only_reported(this: _Pass, found: Plan) -> Plan:
    split = this.observed.split
    would = ", ".join(type(action).__name__ for action in found.actions) or "nothing"
    verdict = Note(Reason.DRY_RUN, f"would write {would}: {found.verdict.reason}, {found.verdict.message}")
    actions: tuple[Action, ...] = () if split is not None else (EnsureSplit(takes_over=False),)
    return replace(
        found, state=State.HELD, verdict=verdict, actions=actions, notes=(), rebalance=None, fight=False
    )


def _nothing(this: _Pass) -> Plan:
    if this.observed.split is not None and this.observed.split.conflict:
        message = "given back after a fight about spec.paused; remove the label and set it again to retry"
        return Plan(Step.NOTHING, State.CONFLICT, Note(Reason.CONFLICT, message, warning=True))
    return Plan(Step.NOTHING, State.GIVING_BACK, Note(Reason.GIVEN_BACK, "nothing of splitter's is left"))


def _consider(this: _Pass) -> Plan:
    objection = _objection(this)
    if objection is not None:
        report: tuple[Action, ...] = ()
        if this.observed.split is None or this.observed.split.takes_over:
            report = (EnsureSplit(takes_over=False),)
        return Plan(Step.CONSIDER, State.REFUSED, objection, report, (objection,))
    note = Note(Reason.TAKEN_OVER, f"taking over {this.source.replicas} replicas; each pod is replaced once")
    actions = (EnsureSplit(takes_over=True), _mark(this))
    return Plan(Step.CONSIDER, State.TAKING_OVER, note, actions, (note,))


def _objection(this: _Pass) -> Note | None:
    label = source_label_state(this.source.labels)
    if label.note is not None:
        return label.note
    if not this.in_force.valid:
        return this.in_force.problems[0]
    if (problem := name_problem("Deployment", this.source.key.name)) is not None:
        return problem
    if isinstance(this.rendered, Note):
        return this.rendered
    return refusal(this.observed, this.source, this.rules.excluded_namespaces)


def _mark(this: _Pass) -> SetMark:
    return SetMark(mark_value(this.source.uid, this.observed.now))


def _adopt(this: _Pass) -> Plan:
    note = Note(Reason.TAKEN_OVER, "found what splitter left here, without a valid mark; it is ours again")
    return Plan(
        Step.ADOPT, State.TAKING_OVER, note, (EnsureSplit(takes_over=True), _mark(this)), (note,)
    )


def _create_split(_: _Pass) -> Plan:
    note = Note(Reason.TAKEN_OVER, "the Split object is written anew")
    return Plan(Step.CREATE_SPLIT, State.TAKING_OVER, note, (EnsureSplit(takes_over=True),))


def _pause(this: _Pass) -> Plan:
    actions = (SetPaused(paused=True, resource_version=this.source.resource_version),)
    if not this.observed.tied(Tie.PARKED):
        note = Note(Reason.PAUSED, "paused, so that its ReplicaSets can be parked")
        return Plan(Step.PAUSE, State.TAKING_OVER, note, actions, (note,))
    fights = recent_fights(this.observed, this.observed.now)
    message = (
        f"somebody unpaused the source ({len(fights) + 1} of {FIGHTS} times within"
        f" {FIGHT_WINDOW_S / 60:.0f} min); paused again. For a restart, annotate splitter.io/restarted-at"
    )
    note = Note(Reason.FOREIGN_UNPAUSE, message, warning=True)
    return Plan(Step.PAUSE, State.MOVING, note, actions, (note,), fight=True)


def recent_fights(observed: Observation, now: datetime) -> tuple[datetime, ...]:
    """Return the fights of the last ten minutes, oldest first."""
    fights = observed.split.fights if observed.split else ()
    return tuple(at for at in fights if seconds_between(at, now) < FIGHT_WINDOW_S)


def _wait_controller(this: _Pass) -> Plan:
    state = State.TAKING_OVER if LABEL_SPLIT in this.source.labels else State.GIVING_BACK
    note = Note(Reason.WAITING_FOR_CONTROLLER, "waiting for the Deployment controller to catch up")
    return Plan(Step.WAIT_CONTROLLER, state, note, wake_after_s=_POLL_S)


def _park(this: _Pass) -> Plan:
    """Release the attached ReplicaSets, the one with the source's template last (0.1 s decides)."""
    current = this.source.template_hash
    attached = sorted(
        this.observed.tied(Tie.ATTACHED),
        key=lambda rs: (rs.template_hash == current, rs.spec_replicas != 0, rs.created),
    )
    actions = tuple(Park(rs.name, rs.resource_version, this.source.selector_keys) for rs in attached)
    note = Note(Reason.PARKED, f"parked {', '.join(rs.name for rs in attached)}")
    return Plan(Step.PARK, State.TAKING_OVER, note, actions, (note,))


def _run(this: _Pass) -> Plan:
    """Twins exist, counts are right, templates are current: one batch towards the first that is not."""
    observed, source = this.observed, this.source
    missing = [pool for pool in Pool if observed.twin(pool) is None]
    if missing:
        return _create_twins(this, missing)
    on_demand, spot = observed.on_demand, observed.spot
    if on_demand is None or spot is None or on_demand.deleting or spot.deleting:
        note = Note(Reason.WAITING_FOR_CONTROLLER, "waiting for a deleted twin to go")
        return Plan(Step.RUN, State.MOVING, note, wake_after_s=_POLL_S)
    if not transfer.at_zero((), observed.tied(Tie.PARKED)):
        counted = _hand_over(this)
    else:
        counted = _rebalance(this, on_demand, spot)
    if counted.actions or isinstance(this.rendered, Note):
        return _with_template_problem(this, counted)
    return _roll(this, counted, on_demand, spot, this.rendered)


def _create_twins(this: _Pass, missing: Sequence[Pool]) -> Plan:
    if isinstance(this.rendered, Note):
        return Plan(Step.RUN, State.HELD, this.rendered, notes=(this.rendered,))
    actions = tuple(
        ApplyTwin(pool, this.rendered[pool].manifest_json, this.rendered[pool].hash, 0, 1, 0, None)
        for pool in missing
    )
    names = " and ".join(twin_name(this.source.key.name, pool) for pool in missing)
    note = Note(Reason.TWIN_CREATED, f"created {names} at 0")
    return Plan(Step.RUN, State.TAKING_OVER, note, actions, (note,))


def _hand_over(this: _Pass) -> Plan:
    base = base_replicas(this.source.replicas, this.policy)
    wanted = (base, this.source.replicas - base)
    if this.policy.freeze:
        note = Note(Reason.FROZEN, "frozen in the middle of the hand-over; counts stay as they are")
        return Plan(Step.RUN, State.HELD, note, wanted_on_demand=wanted[0], wanted_spot=wanted[1])
    moved = transfer.towards_twins(this.observed, this.source, this.policy)
    return _moving(this, moved, State.TAKING_OVER, Reason.HANDING_OVER, wanted)


def _moving(
    this: _Pass, moved: transfer.Transfer, state: State, reason: Reason, wanted: tuple[int, int]
) -> Plan:
    actions = _guarded(this, moved.scales)
    notes = (_scaled(reason, moved.scales),) if moved.scales else ()
    verdict = notes[0] if notes else Note(Reason.WAITING_FOR_REPLICAS, f"waiting for {moved.message}")
    return Plan(
        Step.RUN if state is State.TAKING_OVER else Step.HAND_BACK,
        state,
        verdict,
        actions,
        notes,
        wanted_on_demand=wanted[0],
        wanted_spot=wanted[1],
        wake_after_s=_POLL_S if state is State.GIVING_BACK else None,
    )


def _scaled(reason: Reason, scales: Sequence[Scale], why: str = "") -> Note:
    moves = ", ".join(f"{scale.name} {scale.was} -> {scale.replicas}" for scale in scales)
    return Note(reason, f"scale {moves}{': ' if why else ''}{why}")


def _rebalance(this: _Pass, on_demand: TwinView, spot: TwinView) -> Plan:
    persisted = RebalanceState.from_json(this.observed.split.rebalance if this.observed.split else {})
    decision = decide(
        rebalance_input(this.observed, this.source, on_demand, spot, this.policy),
        this.policy,
        persisted,
        this.rules.tuning,
    )
    scales = tuple(
        Scale(
            HolderKind.DEPLOYMENT,
            twin.name,
            twin.spec_replicas,
            replicas,
            twin.resource_version if replicas < twin.spec_replicas else None,
        )
        for twin, replicas in ((on_demand, decision.on_demand), (spot, decision.spot))
        if replicas != twin.spec_replicas
    )
    base = base_replicas(this.source.replicas, this.policy)
    balanced = Note(
        Reason.BALANCED, f"{on_demand.spec_replicas} on on-demand, {spot.spec_replicas} on spot, as wanted"
    )
    verdict = decision.notes[0] if decision.notes else balanced
    at_rest = not scales and spot.spec_replicas == this.source.replicas - base
    return Plan(
        Step.RUN,
        State.STEADY if at_rest else State.MOVING if scales else State.HELD,
        verdict,
        _guarded(this, scales),
        decision.notes if scales else (),
        wanted_on_demand=base,
        wanted_spot=this.source.replicas - base,
        rebalance=decision.state,
        wake_after_s=decision.next_wake_s,
    )


def _guarded(this: _Pass, scales: Sequence[Scale]) -> tuple[Action, ...]:
    """Order the writes of a pass: raises, deletion costs, lowerings, pods of vanished nodes.

    A holder is lowered only when every pod of it that is going carries the deletion cost already: a
    cost written in the same breath may reach the ReplicaSet controller after the scale.
    """
    holders: dict[str, tuple[PodView, ...]] = {twin.name: twin.pods for twin in this.observed.twins}
    holders |= {rs.name: rs.pods for rs in this.observed.tied(Tie.PARKED)}
    costs: list[Action] = []
    uncosted: set[str] = set()
    vanished: list[Action] = []
    for name, pods in holders.items():
        for pod in pods:
            if not pod.counts:
                continue
            if pod.vanished and pod.node is not None and this.rules.delete_pods_of_vanished_nodes:
                vanished.append(DeleteVanishedPod(pod.name, pod.uid, pod.node))
            elif (cost := _cost(pod)) is not None:
                costs.append(cost)
                uncosted.add(name)
    raises = [scale for scale in scales if scale.replicas > scale.was]
    lowerings = [scale for scale in scales if scale.replicas < scale.was and scale.name not in uncosted]
    return (*raises, *costs, *lowerings, *vanished)


def _cost(pod: PodView) -> SetDeletionCost | None:
    going = pod.standing in {Standing.DOOMED, Standing.LOST}
    if going and pod.deletion_cost != OUR_COST:
        return SetDeletionCost(pod.name, pod.uid, OUR_COST, remember=pod.deletion_cost or "")
    if not going and pod.standing is Standing.SOUND and pod.cost_before is not None:
        return SetDeletionCost(pod.name, pod.uid, pod.cost_before or None)
    return None


def _with_template_problem(this: _Pass, counted: Plan) -> Plan:
    if not isinstance(this.rendered, Note) or counted.actions:
        return counted
    return replace(counted, state=State.HELD, verdict=this.rendered, notes=(this.rendered,))


def _roll(
    this: _Pass, counted: Plan, on_demand: TwinView, spot: TwinView, rendered: Mapping[Pool, Rendered]
) -> Plan:
    where = Circumstances(
        source=this.source,
        order=this.policy.rollout_order,
        available=transfer.total_available(this.observed),
        room=transfer.room_beside(this.observed, this.source),
        now=this.observed.now,
        grace_s=this.policy.grace_s,
    )
    due = next_roll(on_demand, spot, rendered, where)
    if due is None:
        return counted
    if isinstance(due, Note):
        return replace(counted, state=State.ROLLING, verdict=due)
    return replace(
        counted, state=State.ROLLING, verdict=due.note, actions=(_template(this, due, rendered),), notes=(due.note,)
    )


def _template(this: _Pass, due: Roll, rendered: Mapping[Pool, Rendered]) -> ApplyTwin:
    twin = this.observed.twin(due.pool)
    return ApplyTwin(
        pool=due.pool,
        manifest_json=rendered[due.pool].manifest_json,
        hash=rendered[due.pool].hash,
        replicas=twin.spec_replicas if twin else 0,
        max_surge=due.max_surge,
        max_unavailable=due.max_unavailable,
        resource_version=twin.resource_version if twin else None,
    )


def _unpause(this: _Pass) -> Plan:
    note = Note(Reason.GIVING_BACK, "its own ReplicaSet is back and runs all replicas; unpaused")
    actions = (SetPaused(paused=False, resource_version=this.source.resource_version),)
    return Plan(Step.UNPAUSE, State.GIVING_BACK, note, actions, (note,), wake_after_s=_POLL_S)


def _shrink_ours(this: _Pass) -> Plan:
    moved = transfer.drain(this.observed, this.source)
    return replace(_moving(this, moved, State.GIVING_BACK, Reason.GIVING_BACK, (0, 0)), step=Step.SHRINK_OURS)


def _clean_up(this: _Pass) -> Plan:
    """Take every trace away: same-template ReplicaSets, then the others back, twins, mark, Split."""
    taken = {rs.template_hash for rs in this.observed.tied(Tie.ATTACHED)} | {this.source.template_hash}
    parked = this.observed.tied(Tie.PARKED)
    twice = [rs for rs in parked if rs.template_hash in taken]
    back = [rs for rs in parked if rs.template_hash not in taken]
    actions: list[Action] = [DeleteReplicaSet(rs.name, rs.uid, rs.resource_version) for rs in twice]
    actions += [_reattach_one(this.source, rs) for rs in back]
    if back:  # adopted first; what is left goes in the next pass
        note = Note(Reason.GIVING_BACK, f"gives {len(back)} old revisions back, for kubectl rollout undo")
        return Plan(Step.CLEAN_UP, State.GIVING_BACK, note, tuple(actions), wake_after_s=_POLL_S)
    actions += [DeleteTwin(twin.name, twin.uid) for twin in this.observed.twins if not twin.deleting]
    if "splitter.io/taken-over" in this.source.annotations:
        actions.append(SetMark(None))
    conflict = this.observed.split is not None and this.observed.split.conflict
    if this.observed.split is not None and not (conflict and LABEL_SPLIT in this.source.labels):
        actions.append(DeleteSplit())
    note = Note(Reason.GIVEN_BACK, f"given back with {this.source.replicas} replicas; no trace is left")
    notes = (note,) if this.observed.twins else ()
    return Plan(Step.CLEAN_UP, State.GIVING_BACK, note, tuple(actions), notes, wake_after_s=_POLL_S)


def _reattach_one(source: SourceView, rs: ReplicaSetView) -> Reattach:
    names = (*source.selector_keys, "pod-template-hash")
    labels = tuple((name, rs.template_labels[name]) for name in names if name in rs.template_labels)
    return Reattach(rs.name, rs.resource_version, labels)


def _create_hand_back(this: _Pass) -> Plan:
    note = Note(Reason.GIVING_BACK, "made a ReplicaSet with the source's template to give back")
    return Plan(
        Step.CREATE_HAND_BACK, State.GIVING_BACK, note, (CreateHandBack(),), (note,), wake_after_s=_POLL_S
    )


def _reattach(this: _Pass) -> Plan:
    hand_back = hand_back_of(this.observed)
    if hand_back is None:
        return _wait_controller(this)
    note = Note(Reason.GIVING_BACK, f"{hand_back.name} has {this.source.replicas} available and goes back")
    return Plan(
        Step.REATTACH,
        State.GIVING_BACK,
        note,
        (_reattach_one(this.source, hand_back),),
        (note,),
        wake_after_s=_POLL_S,
    )


def _hand_back(this: _Pass) -> Plan:
    moved = transfer.towards_source(this.observed, this.source)
    return _moving(this, moved, State.GIVING_BACK, Reason.GIVING_BACK, (0, 0))


_STEPS = {
    Step.NOTHING: _nothing,
    Step.CONSIDER: _consider,
    Step.ADOPT: _adopt,
    Step.CREATE_SPLIT: _create_split,
    Step.PAUSE: _pause,
    Step.WAIT_CONTROLLER: _wait_controller,
    Step.PARK: _park,
    Step.RUN: _run,
    Step.UNPAUSE: _unpause,
    Step.SHRINK_OURS: _shrink_ours,
    Step.CLEAN_UP: _clean_up,
    Step.CREATE_HAND_BACK: _create_hand_back,
    Step.REATTACH: _reattach,
    Step.HAND_BACK: _hand_back,
}

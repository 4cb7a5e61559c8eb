"""Plans one reconcile for one source: looks at everything observed, returns what to write and why.

The reconciler calls `policy_in_force`, lets `render` make the twins, then calls `plan`. `plan` reads the
columns of the state machine off the observation and lets the step of the first matching row act. It is
pure: it never reads a clock or a cluster, and writes nothing but intents (`actions`) and sentences
(`Note`). One step a reconcile, from what is there (H2). Afterwards `kube.apply` writes the actions in order,
then `report` writes what people see.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from splitter.core import availability
from splitter.core import labels_annotations as keys
from splitter.core.actions import Action, EnsureSplit, SetBudget
from splitter.core.clock import clock
from splitter.core.deployment import adoption, offboard, unowned
from splitter.core.division import base_replicas, caps_conflict
from splitter.core.eligibility import barriers, no_spot_node, objection_while_split
from splitter.core.eligibility.pools import no_cover
from splitter.core.guard import guarded
from splitter.core.handover import Columns, Step, holds_replicas, next_step, ownership_of, waits_for_pods
from splitter.core.labels_annotations.label import format_of, source_label_state
from splitter.core.labels_annotations.policy import (
    USER_ANNOTATIONS,
    Level,
    Policy,
    defaults_for,
    parse_policy,
)
from splitter.core.limits import too_large
from splitter.core.lingering import Lingering, lingering
from splitter.core.model import Attachment, Note, Observation, Pool, Rendered, SourceView, seconds_between
from splitter.core.placement import table as placement_table
from splitter.core.plan import (
    Plan,
    PlanInput,
    PolicyInForce,
    Rules,
    as_written,
    held_as_it_is,
    held_back,
    in_part,
    looked_at_again,
    rolls,
    undone,
)
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.start_times import gap_note, learned, with_learned
from splitter.core.statefulset import steps as statefulset_steps
from splitter.core.statefulset import table as statefulset_table
from splitter.core.troubles import with_barriers, with_troubles
from splitter.core.twins import edited_twins, onboard, relief, relief_status, replica_moves
from splitter.core.twins import steps as twins_steps
from splitter.core.twins.hints import with_those_let_go
from splitter.core.twins.retries import retried

# So long a controller may take that has to act.
_ACTS_WITHIN_S = 60.0
# What these write, or wait for, may be refused, or may never come: losses are covered meanwhile.
_RAISING = frozenset(
    {
        Step.ADOPT,
        Step.CREATE_SPLIT,
        Step.CLAIM,
        Step.WAIT_CONTROLLER,
        Step.SHOW,
        Step.FOLLOW_SPLIT,
    }
)


def policy_in_force(observed: Observation, defaults: Policy) -> PolicyInForce:
    """Return the policy that counts now: what the annotations say, else the last good one, else the defaults.

    Bad input never moves anything: a source that is split keeps its last good policy. A grace or a soak that
    nobody has written follows what was learned of its starts.
    """
    in_force, starts = _policy_written(observed, defaults), learned(observed)
    policy, levels = with_learned(in_force.policy, in_force.levels, starts)
    return replace(in_force, policy=policy, levels=levels, starts=starts)


def _policy_written(observed: Observation, defaults: Policy) -> PolicyInForce:
    annotations = observed.source.annotations if observed.source else {}
    defaults = defaults_for(observed.key.kind, defaults)
    parsed = parse_policy(annotations, defaults, observed.namespace_annotations)
    effective = {**(observed.namespace_annotations or {}), **annotations}
    written: dict[str, str] = {name: effective[name] for name in USER_ANNOTATIONS if name in effective}
    problems = parsed.problems
    if observed.source is not None and (label := source_label_state(observed.source.labels).note):
        problems = (label, *problems)
    if parsed.policy is not None and observed.source is not None:
        if not caps_conflict(observed.source.replicas, parsed.policy):
            return PolicyInForce(parsed.policy, problems, written, valid=True, levels=dict(parsed.levels))
        problems = (_caps_note(parsed.policy, observed.source.replicas), *problems)
    good = observed.reported.good_annotations
    last = parse_policy(good, defaults, None).policy or defaults
    levels = {name: Level.LAST_GOOD if name in good else Level.DEFAULT for name in USER_ANNOTATIONS}
    return PolicyInForce(last, problems, good, valid=False, levels=levels)


def _caps_note(policy: Policy, replicas: int) -> Note:
    message = (
        f"on-demand-max {policy.on_demand_max} and spot-max {policy.spot_max} hold fewer than the {replicas}"
        " replicas; raise one of them. Until then the last good policy stays in force."
    )
    return Note(Reason.INVALID_POLICY, message, warning=True)


def columns_of(observed: Observation, source: SourceView) -> Columns:
    """Read the columns of the state machine's table off an observation."""
    split = observed.split
    parked = observed.attached_as(Attachment.PARKED)
    orphans = any(pod.counts for pod in observed.orphans)
    return Columns(
        label=keys.LABEL_SPLIT in source.labels,
        conflict=observed.reported.conflict,
        split=split is not None and split.takes_over,
        report=split is not None and not split.takes_over,
        mark=ownership_of(source),
        paused=source.paused,
        paused_by_us=source.paused_by_us,
        observed=source.observed,
        attached=bool(observed.attached_as(Attachment.ATTACHED)),
        returning=bool(observed.attached_as(Attachment.RETURNING)),
        parked=bool(parked),
        twins=bool(observed.twins),
        ours_at_zero=replica_moves.at_zero(observed.twins, parked),
        twins_wait=all(map(waits_for_pods, observed.twins)),
        twins_hold=any(holds_replicas(rs) for twin in observed.twins for rs in twin.replica_sets),
        unsettled=any(twin.paused for twin in observed.twins)
        or (orphans and len(observed.twins) < len(Pool)),
        rolling=sum(map(holds_replicas, observed.attached_as(Attachment.ATTACHED))) > 1,
        leaving=observed.leaving,
        orphans=orphans,
        hanging=bool(observed.going) and unowned.is_over(observed),
        parked_active=any(rs.deleted is None and holds_replicas(rs) for rs in parked),
        copied=any(rs.marked for rs in observed.attached_as(Attachment.ATTACHED)),
        adrift=any(rs.orphaned for rs in parked) or (split is not None and not onboard.owns(source, split)),
    )


def plan(
    observed: Observation, in_force: PolicyInForce, rendered: Mapping[Pool, Rendered] | Note, rules: Rules
) -> Plan:
    """Return what to write now and why. `rendered` is a Note when the templates did not render."""
    source = observed.source
    if source is None or source.deleting:
        return Plan(Step.NOTHING, State.GIVING_BACK, Note(Reason.GIVEN_BACK, "the source is gone"))  # H20
    if (newer := _newer_state(observed, source)) is not None:
        return Plan(Step.NOTHING, State.REFUSED, newer, notes=(newer,), untouched=True)
    observed, edited = edited_twins.drifted(unowned.given_up(observed), rendered)
    step = _step_of(observed, source, in_force.policy)
    asked = PlanInput(observed, source, in_force, rendered, rules)
    this, moved = lingering(asked, step)
    observed, source = this.observed, this.source
    placed = placement_table.is_in_place(observed, source, in_force.policy)
    act = placement_table.consider if placed and step is Step.CONSIDER else _STEPS[step]
    large = _too_large(this) if step in {Step.RUN, Step.PLACE} else None
    planned = (
        act(this) if large is None or step is Step.RUN else Plan(step, State.HELD, large, notes=(large,))
    )
    if step in {Step.RUN, Step.PLACE} and large is None:
        planned = relief_status.reported(this, relief.begun(this, planned))
    planned = _overdue(observed, with_those_let_go(this, planned))
    if step in _RAISING:
        planned = _with_raises(this, step, planned)
    planned = unowned.completed(this, planned)
    planned = _with_division(this, planned)
    planned = in_part(planned if large is None else held_as_it_is(planned, large))
    planned = as_written(planned, observed, planned.actions)
    planned = with_troubles(observed, planned, this.policy.grace_s, in_force.starts)
    if step in {Step.RUN, Step.PLACE, Step.CONSIDER} and planned.state is not State.REFUSED:
        planned = _with_barriers(this, planned)
        base = base_replicas(source.replicas, this.policy)
        if (gap := gap_note(source.replicas, base, in_force.starts)) is not None:
            planned = replace(planned, advice=(*planned.advice, gap))
    if step in {Step.RUN, Step.PLACE}:
        objection = large or objection_while_split(observed, source, this.policy)
        planned = replace(planned, objection=objection or no_cover(observed, source, this.policy))
        planned = edited_twins.put_back(observed, planned, edited)
        _wait_for_signals_end(observed)
    planned = _with_lingering(guarded(this, step, planned), moved)
    if (
        this.policy.dry_run
        and step not in {Step.NOTHING, Step.CUT_OFF, Step.SETTLE}
        and keys.LABEL_SPLIT in source.labels
    ):
        planned = _only_reported(this, planned)
    else:
        planned = retried(observed, planned)
    # Never above what the source asks for, whatever lingers: Karmada may take the sum for the new count.
    return looked_at_again(availability.counted(asked, planned), observed.waits.next_due_s)


def _with_lingering(planned: Plan, moved: Lingering) -> Plan:
    """Say which replicas stay while Karmada moves them (R56)."""
    planned = replace(planned, followed=moved.followed)
    if moved.note is None:
        return planned
    verdict = replace(planned.verdict, message=f"{planned.verdict.message}. {moved.note.message}")
    return replace(planned, verdict=verdict, advice=(*planned.advice, moved.note))


def _with_barriers(this: PlanInput, planned: Plan) -> Plan:
    """Say which pool takes no replica; a template that no on-demand node takes is not rolled out (H19)."""
    unseen = no_spot_node(this.observed, this.source, this.policy)
    barred = barriers(this.observed, this.source, this.policy)
    if (uncovered := no_cover(this.observed, this.source, this.policy)) is not None and rolls(planned):
        message = f"{uncovered.message}. Until then the twins keep the template that they have"
        planned = held_back(planned, replace(uncovered, message=message), this.rules.look_again_s)
    return with_barriers(planned, barred, this.rules.look_again_s, unseen)


def _overdue(observed: Observation, planned: Plan) -> Plan:
    """Say that a controller has not acted for long: as a rule it does within a second (H59).

    How long is told by the condition that it moves: never longer than the wait if nothing moved before it.
    """
    waits = planned.verdict.cause is VerdictCause.CONTROLLER
    said = (
        one.since
        for one in observed.reported.conditions
        if one.holds_for("Progressing", planned.verdict.reason)
    )
    since = next(said, observed.now)
    if not waits or not observed.waits.past(since, _ACTS_WITHIN_S):
        return planned
    message = (
        f"{planned.verdict.message}. It should take seconds, and something has been under way since"
        f" {clock(since)}: look at kube-controller-manager, and at what refuses its writes"
    )
    note = replace(planned.verdict, message=message, warning=True)
    return replace(planned, verdict=note, notes=(note, *planned.notes))


def _newer_state(observed: Observation, source: SourceView) -> Note | None:
    """Say that a newer version has written down what is known of this workload, in a form of its own.

    Read by the rules of today it would be misread, and written by them lost. Source: docs/adr/0044.
    """
    marks = (
        format_of(source.annotations.get(name))
        for name in (keys.ANNOTATION_TAKEN_OVER, keys.ANNOTATION_REPLICAS)
    )
    written = max(*marks, observed.split.format if observed.split is not None else 1)
    if written <= keys.STATE_FORMAT:
        return None
    message = (
        f"a newer splitter has split it, which writes its state in format {written}; this one reads up to"
        f" {keys.STATE_FORMAT}. It is left exactly as it is: nothing is moved, covered or given back. Run the"
        " newer version again; to stay with this one, have that one give the workload back first"
    )
    return Note(Reason.NEWER_STATE, message, warning=True)


def _too_large(this: PlanInput) -> Note | None:
    """Say what of a workload that is split is over a limit: its members are not even looked at, one by one.

    Steps that only write a number down go on, since that is how it becomes smaller; so does giving it back.
    """
    if not (why := too_large(this.source)):
        return None
    message = (
        f"{why}. It stays split as it is: losses are covered within the limits, and nothing else is moved"
        " before it is smaller or its label is removed"
    )
    return Note(Reason.TOO_LARGE, message, warning=True)


def _step_of(observed: Observation, source: SourceView, policy: Policy) -> Step:
    """Return the step that is due, by the table of its kind.

    A source whose name is too long for what would be called after it is refused, whatever it looks like.
    """
    if keys.LABEL_SPLIT in source.labels and not keys.has_names(source.key):
        return Step.CONSIDER
    if placement_table.is_in_place(observed, source, policy):
        return placement_table.next_step(observed, source)
    if source.stateful is not None:
        return statefulset_table.next_step(statefulset_table.columns_of(observed, source))
    return next_step(columns_of(observed, source))


def _with_division(this: PlanInput, planned: Plan) -> Plan:
    """Say how N is divided in a step that has nothing to do with it, as while a controller is waited for."""
    back = planned.state in {State.GIVING_BACK, State.CONFLICT}
    if back or not this.observed.twins or planned.wanted_on_demand or planned.wanted_spot:
        return planned
    base = base_replicas(this.source.replicas, this.policy)
    return replace(planned, wanted_on_demand=base, wanted_spot=this.source.replicas - base)


def _with_raises(this: PlanInput, step: Step, planned: Plan) -> Plan:
    """Return a plan with the raises that no write of these steps, and no slow controller, may hold up (H9).

    A Split or a mark that is refused is tried for ever; and while nothing of the source's own is there, what
    its controller has not seen yet (a new image, another N) is no reason to leave a loss uncovered (H59).
    What twins that wait for pods are to adopt is counted by itself.
    """
    observed, stateful = this.observed, this.source.stateful
    at_home = observed.attached_as(Attachment.ATTACHED) or observed.attached_as(Attachment.RETURNING)
    held = (
        this.source.paused
        if stateful is None
        else stateful.saved is not None and not stateful.is_written_by_others
    )
    if at_home or not (observed.twins and held):
        return planned
    if observed.leaving or any(map(waits_for_pods, observed.twins)):
        return replace(planned, actions=(*unowned.covering(this), *planned.actions))
    meant = twins_steps.run(this)
    lost = meant.rebalance is not None and meant.rebalance.lost
    losing = lost or any(twin.is_losing for twin in observed.twins)
    if not meant.raises or not (losing or step is Step.CREATE_SPLIT):
        return planned
    if step is Step.WAIT_CONTROLLER:
        return replace(meant, actions=meant.raises, requeue_after_s=planned.requeue_after_s)
    return replace(planned, actions=(*meant.raises, *planned.actions))


def _wait_for_signals_end(observed: Observation) -> None:
    """Look again when a signal ends by time alone: it has ended for sure a second later."""
    if observed.signal_ends_at is not None:
        observed.waits.look_in(max(0.0, seconds_between(observed.now, observed.signal_ends_at)) + 1.0)


def _only_reported(this: PlanInput, planned: Plan) -> Plan:
    split = this.observed.split
    would = "would now do" if planned.actions else "would do nothing now"
    verdict = Note(Reason.DRY_RUN, f"{would}: {planned.verdict.message} ({planned.verdict.reason})")
    # Nothing is replaced any more, so no eviction shall wait for that: the budget that is there is let down.
    lets_down = tuple(
        one for one in planned.actions if isinstance(one, SetBudget) and one.uid and not one.raised
    )
    report = EnsureSplit(takes_over=bool(this.observed.twins))
    actions: tuple[Action, ...] = lets_down if split is not None else (report,)
    return replace(
        planned,
        state=State.HELD,
        verdict=verdict,
        actions=actions,
        notes=(),
        rebalance=undone(replace(planned, actions=lets_down), this.observed),  # a loss is one all the same
        relief=None,
        write_conflict=False,
    )


_STEPS: Mapping[Step, Callable[[PlanInput], Plan]] = {
    Step.NOTHING: onboard.nothing,
    Step.CONSIDER: onboard.consider,
    Step.ADOPT: onboard.adopt,
    Step.CREATE_SPLIT: onboard.create_split,
    Step.CLAIM: onboard.claim,
    Step.PAUSE: onboard.pause,
    Step.WAIT_CONTROLLER: onboard.wait_controller,
    Step.WAIT_ROLLOUT: onboard.wait_rollout,
    Step.ADOPT_PODS: adoption.onboard,
    Step.SETTLE: adoption.settle,
    Step.PARK: onboard.park,
    Step.CUT_OFF: onboard.cut_off,
    Step.RUN: twins_steps.run,
    Step.UNPAUSE: offboard.unpause,
    Step.SHRINK_OURS: offboard.shrink_ours,
    Step.CLEAN_UP: offboard.clean_up,
    Step.OFFBOARD: offboard.offboard,
    Step.BRING_HOME: adoption.bring_home,
    Step.REATTACH: offboard.reattach,
    Step.HAND_BACK: offboard.hand_back,
    Step.SAVE: statefulset_steps.save,
    Step.FOLLOW: statefulset_steps.follow,
    Step.FOLLOW_SPLIT: statefulset_steps.follow_split,
    Step.SHOW: statefulset_steps.show,
    Step.WAIT_COUNT: statefulset_steps.wait_for_count,
    Step.RELEASE: statefulset_steps.release,
    Step.PLACE: placement_table.keep,
    Step.UNPLACE: placement_table.unplace,
}

"""Plans one reconcile for one source: looks at everything observed, returns what to write and why.

The reconciler calls `policy_in_force`, lets `render` make the twins, then calls `plan`. `plan` reads the
columns of the state machine off the observation and lets the step of the first matching row act; then the
plan passes each of `gates.GATES`. It is pure: it never reads a clock or a cluster, and writes nothing but
intents (`actions`) and sentences (`Note`). One step a reconcile, from what is there (H2). Afterwards
`kube.apply` writes the actions in order, then `report` writes what people see.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from splitter.core import labels_annotations as keys
from splitter.core.deployment import adoption, offboard, unowned
from splitter.core.deployment import table as deployment_table
from splitter.core.division import caps_conflict
from splitter.core.handover import Step
from splitter.core.labels_annotations.label import format_of, source_label_state
from splitter.core.labels_annotations.policy import (
    USER_ANNOTATIONS,
    Level,
    Policy,
    defaults_for,
    parse_policy,
)
from splitter.core.limits import too_large
from splitter.core.lingering import lingering
from splitter.core.model import Note, Observation, Rendered, SourceView
from splitter.core.placement import table as placement_table
from splitter.core.plan import (
    Plan,
    PlanInput,
    PolicyInForce,
    Rules,
    looked_at_again,
)
from splitter.core.planner.gates import GATES, SETTLED, Look
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool
from splitter.core.start_times import learned, with_learned
from splitter.core.statefulset import steps as statefulset_steps
from splitter.core.statefulset import table as statefulset_table
from splitter.core.twins import edited_twins, onboard
from splitter.core.twins import steps as twins_steps


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
    good = observed.reported.memory.good_annotations
    last = parse_policy(good, defaults, None).policy or defaults
    levels = {name: Level.LAST_GOOD if name in good else Level.DEFAULT for name in USER_ANNOTATIONS}
    return PolicyInForce(last, problems, good, valid=False, levels=levels)


def _caps_note(policy: Policy, replicas: int) -> Note:
    message = (
        f"on-demand-max {policy.on_demand_max} and spot-max {policy.spot_max} hold fewer than the {replicas}"
        " replicas; raise one of them. Until then the last good policy stays in force."
    )
    return Note(Reason.INVALID_POLICY, message, warning=True)


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
    large = _too_large(this) if step in SETTLED else None
    look = Look(this, asked, step, edited=edited, lingering=moved, large=large)
    planned = _act(look)
    for gate in GATES:
        planned = gate(look, planned)
    return looked_at_again(planned, observed.waits.next_due_s)


def _act(look: Look) -> Plan:
    """Return what the step asks for."""
    this, step = look.this, look.step
    if look.large is not None and step is Step.PLACE:
        return Plan(step, State.HELD, look.large, notes=(look.large,))
    if step is Step.CONSIDER and placement_table.is_in_place(this.observed, this.source, this.policy):
        return placement_table.consider(this)
    return _STEPS[step](this)


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
    return deployment_table.next_step(deployment_table.columns_of(observed, source))


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

"""The gates that every plan passes, in declared order: they narrow what a step asks for, and complete it.

`planner` lets the step of the first matching row act, and then calls each of `GATES` once. A gate says itself
in which steps it applies, so the order of the tuple is the only place that decides which one has the last
word. No step bypasses a gate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from splitter.core import availability
from splitter.core import labels_annotations as keys
from splitter.core.actions import Action, EnsureSplit, SetBudget
from splitter.core.clock import clock
from splitter.core.deployment import unowned
from splitter.core.division import base_replicas
from splitter.core.eligibility import barriers, no_spot_node, objection_while_split
from splitter.core.eligibility.pools import no_cover
from splitter.core.floor_gate import within_floor
from splitter.core.guard import guarded
from splitter.core.handover import Step, waits_for_pods
from splitter.core.holders import is_held
from splitter.core.lingering import Lingering
from splitter.core.model import Attachment, Note, seconds_between
from splitter.core.plan import (
    Plan,
    PlanInput,
    as_written,
    held_as_it_is,
    held_back,
    in_part,
    rolls,
    undone,
)
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.replica import Pool
from splitter.core.start_times import gap_note
from splitter.core.troubles import with_barriers, with_troubles
from splitter.core.twins import edited_twins, relief, relief_status
from splitter.core.twins import steps as twins_steps
from splitter.core.twins.hints import with_those_let_go
from splitter.core.twins.retries import retried

SETTLED = frozenset({Step.RUN, Step.PLACE})
"""The steps of a workload that is split, and neither taken over nor given back."""

# A controller acts within a second, as a rule.
_ACTS_WITHIN_S = 60.0
# Their writes may be refused, and what they wait for may never come: losses are covered meanwhile.
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
# A dry run does not hold these: they write nothing, or end a moment in which pods have no owner.
_NOT_DRY = frozenset({Step.NOTHING, Step.CUT_OFF, Step.SETTLE})


@dataclass(frozen=True, slots=True)
class Look:
    """What a gate may look at beside the plan."""

    this: PlanInput
    """What the step looked at: if replicas linger, N is the count before Karmada's move."""
    asked: PlanInput
    """The same with the N that the source asks for."""
    step: Step
    edited: Mapping[Pool, edited_twins.Drift]
    lingering: Lingering
    large: Note | None
    """Why a workload that is split is over a limit; None: it is not."""


Gate = Callable[[Look, Plan], Plan]


def _relieved(look: Look, planned: Plan) -> Plan:
    """Begin a move off a hot node if nothing else is done, and report how relief goes on."""
    if look.step not in SETTLED or look.large is not None:
        return planned
    return relief_status.reported(look.this, relief.begun(look.this, planned))


def _hints_let_go(look: Look, planned: Plan) -> Plan:
    """Delete placeholders of relief that are of no use any more."""
    return with_those_let_go(look.this, planned)


def _overdue(look: Look, planned: Plan) -> Plan:
    """Say that a controller has not acted for long: as a rule it does within a second (H59).

    How long is told by the condition that it moves: never longer than the wait if nothing moved before it.
    """
    observed = look.this.observed
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


def _raised(look: Look, planned: Plan) -> Plan:
    """Add the raises that no write of these steps, and no slow controller, may hold up (H9).

    A Split or a mark that is refused is tried for ever; and while nothing of the source's own is there, what
    its controller has not seen yet (a new image, another N) is no reason to leave a loss uncovered (H59).
    What twins that wait for pods are to adopt is counted by itself.
    """
    this, step = look.this, look.step
    observed = this.observed
    at_home = observed.attached_as(Attachment.ATTACHED) or observed.attached_as(Attachment.RETURNING)
    if step not in _RAISING or at_home or not (observed.twins and is_held(this.source)):
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


def _floor(look: Look, planned: Plan) -> Plan:
    """Drop what could go below the floor, whatever step asked for it (promise 1)."""
    return within_floor(look.this, planned)


def _owned(look: Look, planned: Plan) -> Plan:
    """Care for pods without an owner, which any step may meet (H53, H54)."""
    return unowned.completed(look.this, planned)


def _divided(look: Look, planned: Plan) -> Plan:
    """Say how N is divided in a step that has nothing to do with it, as while a controller is waited for."""
    this = look.this
    back = planned.state in {State.GIVING_BACK, State.CONFLICT}
    if back or not this.observed.twins or planned.wanted_on_demand or planned.wanted_spot:
        return planned
    base = base_replicas(this.source.replicas, this.policy)
    return replace(planned, wanted_on_demand=base, wanted_spot=this.source.replicas - base)


def _batched(look: Look, planned: Plan) -> Plan:
    """Keep what one reconcile may write; of a workload that is too large, what makes up for losses."""
    planned = in_part(planned if look.large is None else held_as_it_is(planned, look.large))
    return as_written(planned, look.this.observed, planned.actions)


def _troubled(look: Look, planned: Plan) -> Plan:
    """Say what is wrong with replicas, and is no want of nodes."""
    return with_troubles(look.this.observed, planned, look.this.policy.grace_s, look.this.in_force.starts)


def _barred(look: Look, planned: Plan) -> Plan:
    """Say which pool takes no replica; a template that no on-demand node takes is not rolled out (H19)."""
    this = look.this
    if look.step not in SETTLED | {Step.CONSIDER} or planned.state is State.REFUSED:
        return planned
    unseen = no_spot_node(this.observed, this.source, this.policy)
    barred = barriers(this.observed, this.source, this.policy)
    if (uncovered := no_cover(this.observed, this.source, this.policy)) is not None and rolls(planned):
        message = f"{uncovered.message}. Until then the twins keep the template that they have"
        planned = held_back(planned, replace(uncovered, message=message), this.rules.look_again_s)
    planned = with_barriers(planned, barred, this.rules.look_again_s, unseen)
    base = base_replicas(this.source.replicas, this.policy)
    if (gap := gap_note(this.source.replicas, base, this.in_force.starts)) is not None:
        planned = replace(planned, advice=(*planned.advice, gap))
    return planned


def _objected(look: Look, planned: Plan) -> Plan:
    """Say why a workload that is split would be refused today, and what was edited on its twins."""
    this = look.this
    if look.step not in SETTLED:
        return planned
    observed = this.observed
    objection = look.large or objection_while_split(observed, this.source, this.policy)
    planned = replace(planned, objection=objection or no_cover(observed, this.source, this.policy))
    if observed.signal_ends_at is not None:  # by time alone: it has ended for sure a second later
        observed.waits.look_in(max(0.0, seconds_between(observed.now, observed.signal_ends_at)) + 1.0)
    return edited_twins.put_back(observed, planned, look.edited)


def _guarded(look: Look, planned: Plan) -> Plan:
    """Write the budget that makes evictions wait for replacements."""
    return guarded(look.this, look.step, planned)


def _lingers(look: Look, planned: Plan) -> Plan:
    """Say which replicas stay while Karmada moves them (R56)."""
    moved = look.lingering
    planned = replace(planned, followed=moved.followed)
    if moved.note is None:
        return planned
    verdict = replace(planned.verdict, message=f"{planned.verdict.message}. {moved.note.message}")
    return replace(planned, verdict=verdict, advice=(*planned.advice, moved.note))


def _dry(look: Look, planned: Plan) -> Plan:
    """Write nothing in a dry run but the report; else have refused pods tried again (R50)."""
    this = look.this
    if not this.policy.dry_run or look.step in _NOT_DRY or keys.LABEL_SPLIT not in this.source.labels:
        return retried(this.observed, planned)
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


def _counted(look: Look, planned: Plan) -> Plan:
    """Count the replicas that serve: never above what the source asks for, whatever lingers.

    Karmada may take the sum for the new count.
    """
    return availability.counted(look.asked, planned)


GATES: tuple[Gate, ...] = (
    _relieved,
    _hints_let_go,
    _overdue,
    _raised,
    _floor,
    _owned,
    _divided,
    _batched,
    _troubled,
    _barred,
    _objected,
    _guarded,
    _lingers,
    _dry,
    _counted,
)

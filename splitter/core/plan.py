"""The input and the result of a plan: the types that the planner's steps share.

`planner` chooses the step; `twins`, `deployment` and `statefulset` each hold some of the steps. Nothing here
decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from splitter.core import actions as do
from splitter.core.clock import soonest_s
from splitter.core.desired.scheduling import ReservationRules
from splitter.core.handover import Step, waits_for_pods
from splitter.core.labels_annotations.policy import Level, Policy
from splitter.core.limits import MAX_MEMBERS, MAX_WRITES
from splitter.core.model import Note, Observation, Rendered, SourceView
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.rebalance import Tuning
from splitter.core.relief.model import Tuning as ReliefTuning
from splitter.core.replica import Pool
from splitter.core.split_status import Condition, RebalanceState, ReliefStatus, SplitStatus, StartTimes
from splitter.core.split_status.moving import FollowedCount
from splitter.core.split_status.starts import NOTHING_LEARNED

# Looked at again without an event: only where no watch tells us (the source of a removed label).
POLL_S = 1.0
# After a part of what is due, and while pods change their owner: not in the same reconcile, so that others
# have their turn, and without the usual rest.
AT_ONCE_S = 0.05


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say; the same for every workload."""

    defaults: Policy = field(default_factory=Policy)
    tuning: Tuning = field(default_factory=Tuning)
    excluded_namespaces: tuple[str, ...] = ()
    delete_pods_of_vanished_nodes: bool = True
    max_concurrent_moves: int = 10  # 0: no limit
    look_again_s: float = 60.0  # at a refusal that something else than the source mends: no watch tells us
    relief: ReliefTuning = field(default_factory=ReliefTuning)
    available_condition: bool = False  # of every source, and not only of Karmada's
    reservations: ReservationRules | None = (
        None  # how placeholders are made; None: members are not moved but in emergencies
    )


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy to go by, and what is wrong with what was written."""

    policy: Policy
    problems: tuple[Note, ...]
    good_annotations: Mapping[str, str]
    valid: bool  # what is written now is what is in force
    levels: Mapping[str, Level] = field(default_factory=dict)  # by annotation: where its value comes from
    starts: StartTimes = NOTHING_LEARNED


@dataclass(frozen=True, slots=True)
class Plan:
    """What one reconcile wants written and said."""

    step: Step
    state: State
    verdict: Note
    actions: tuple[do.Action, ...] = ()
    notes: tuple[Note, ...] = ()
    wanted_on_demand: int = 0
    wanted_spot: int = 0
    rebalance: RebalanceState | None = None  # None: leave what is persisted
    relief: ReliefStatus | None = None  # None: leave what is there
    troubles: tuple[Note, ...] = ()  # what is wrong with replicas, and moves none
    advice: tuple[Note, ...] = ()  # what stands as it is and people should know: said, and no decision
    barred: tuple[Note, ...] = ()  # which pool takes no replica, and that no node is spot: said first
    write_conflict: bool = False  # count one when the actions have been written
    conflicting_writer: str = (
        ""  # with whom, where that is known: only the write conflicts with one and the same count together
    )
    conflict_at: datetime | None = None  # when it was written, where that is known
    objection: Note | None = None  # why this workload, which is split, would be refused today
    voluntary: bool = False  # a move that begins now and could as well be made later
    requeue_after_s: float | None = None
    # Written after all actions, and not reported: they move nothing.
    retries: tuple[do.RetryPods | do.HideAvailable, ...] = ()
    shown: Condition | None = None  # what the source's own status should say of its replicas
    let_go: tuple[do.DeletePlaceholder, ...] = ()  # of relief, and of no use any more: written last, unsaid
    updated: int | None = None  # available replicas with the source's newest template; None: not known
    followed: FollowedCount | None = None  # None: leave what is there
    guard: str = ""  # which budget guards it against evictions, and how many pods it keeps
    untouched: bool = False  # its state is another version's: not even a status is written
    outlook: tuple[str, ...] = ()  # in placement mode: what each member would do next

    @property
    def raises(self) -> tuple[do.Scale, ...]:
        """The writes that ask for more replicas somewhere."""
        return tuple(one for one in self.actions if isinstance(one, do.Scale) and do.is_raise(one))

    @property
    def urgent(self) -> tuple[do.Action, ...]:
        """The raises, and before them the budget that keeps pods until they are made good."""
        guard = [one for one in self.actions if isinstance(one, do.SetBudget) and one.raised]
        return (*guard, *self.raises)


def looked_at_again(plan: Plan, *after_s: float | None) -> Plan:
    """Return the plan with the next look after so many seconds where that is sooner; None: no look is due."""
    soonest = soonest_s(*after_s, plan.requeue_after_s)
    return plan if soonest == plan.requeue_after_s else replace(plan, requeue_after_s=soonest)


def as_written(plan: Plan, observed: Observation, written: Sequence[do.Action]) -> Plan:
    """Return the plan with its sentences about what is written; a move that waits is a hold, and no news."""
    counts = {one.name: one.replicas for one in written if isinstance(one, do.Scale)}

    def as_done(note: Note) -> Note:
        move = note.move
        if move is None:
            return note
        twin = observed.twin(move.pool)
        count = counts.get(twin.name) if twin is not None else None
        why = note.message.removeprefix(str(move))
        if count is None:
            held = f"hold {move.pool} at {move.was}, {move.replicas} wanted{why}"
            return Note(note.reason, held, quiet=True, cause=note.cause)
        done = replace(move, replicas=count)
        return replace(note, message=f"{done}{why}", move=done)

    notes = [(note, as_done(note)) for note in plan.notes]
    said = tuple(now for before, now in notes if before.move is None or now.move is not None)
    verdict = as_done(plan.verdict)
    if verdict.move is None and plan.verdict.move is not None:
        verdict = next((note for note in said if note.move is not None), verdict)
    return replace(plan, verdict=verdict, notes=said)


def begins(plan: Plan) -> bool:
    """Whether this plan is the first touch of a workload: what follows is tried in a dry run before it."""
    return any(isinstance(action, do.SetOwnershipMark) and action.value for action in plan.actions) and (
        plan.step is Step.CONSIDER
    )


def lets_go(plan: Plan, observed: Observation) -> bool:
    """Whether this plan lets pods go, or pauses what is to let them go: that is rehearsed right before (H18).

    The first pause of a take-over is not: all that follows was rehearsed just before the mark was written.
    """
    if plan.step is Step.PAUSE:
        waiting = bool(observed.twins) and all(map(waits_for_pods, observed.twins))
        return waiting and any(isinstance(one, do.SetPaused) and one.paused for one in plan.actions)
    pauses = any(isinstance(one, do.PauseTwin) and one.paused for one in plan.actions)
    return (plan.step is Step.ADOPT_PODS and any(isinstance(one, do.OrphanPods) for one in plan.actions)) or (
        plan.step is Step.OFFBOARD and (pauses or any(isinstance(one, do.OrphanPods) for one in plan.actions))
    )


def rolls(plan: Plan) -> bool:
    """Whether this plan gives a twin that exists a template: both are tried in a dry run before it."""
    return any(
        isinstance(action, do.ApplyTwin) and action.resource_version is not None for action in plan.actions
    )


def half_rolled(observed: Observation, rendered: Mapping[Pool, Rendered]) -> bool:
    """Whether one twin has its new template already: both were tried in a dry run before that, once."""
    return any(twin.bears(rendered[twin.pool].hash) for twin in observed.twins)


def held_back(plan: Plan, denied: Note, look_again_s: float) -> Plan:
    """Return a plan that rolls nothing, because the API server would refuse a twin; it asks again later."""
    again_s = min(plan.requeue_after_s or look_again_s, look_again_s)
    return replace(
        plan,
        state=State.HELD,
        verdict=denied,
        actions=(),
        notes=(denied,),
        write_conflict=False,
        requeue_after_s=again_s,
    )


def unseen(plan: Plan, observed: Observation, why: str) -> Plan:
    """Return what is done of a plan that rests on an old view: only raises."""
    if not plan.actions and (observed.split is None or plan.state is State.REFUSED):
        return plan
    if plan.verdict.cause is VerdictCause.RELIEF:  # by choice, so it waits as well
        plan = replace(plan, actions=(), notes=(), relief=None, rebalance=None)
    note = Note(Reason.CONTROL_PLANE_VIEW, f"{why}. Nothing is lowered until it is", warning=True)
    state = undone(plan, observed) if plan.raises != plan.actions else plan.rebalance
    kept = as_written(replace(plan, actions=plan.urgent, rebalance=state), observed, plan.raises)
    notes = (*kept.notes, note) if kept.actions else (note,)
    # What somebody has undone is not written again, so it is no conflict once more.
    return replace(kept, state=State.HELD, verdict=note, notes=notes, write_conflict=False, guard="")


def remembered(plan: Plan, observed: Observation) -> SplitStatus:
    """Return the status with what a reconcile has seen, when what it decided is not written (yet)."""
    memory = observed.reported.memory
    if plan.followed is not None:
        memory = replace(memory, followed=plan.followed)
    if plan.rebalance is not None:
        memory = replace(memory, rebalance=plan.rebalance.unwritten(memory.rebalance))
    return replace(observed.reported, memory=memory)


def undone(plan: Plan, observed: Observation) -> RebalanceState | None:
    """Return what is remembered of a plan of which at most raises are written: no step, move or pod's end."""
    if plan.rebalance is None:
        return None
    known = observed.rebalance
    ended = tuple(one for one in plan.rebalance.restarts if one.at < observed.now)
    on_demand = observed.on_demand.name if observed.on_demand is not None else ""
    raised = (one.replicas for one in plan.raises if one.name == on_demand)
    return replace(plan.rebalance.unwritten(known), restarts=ended, decided=next(raised, known.decided))


def in_part(plan: Plan) -> Plan:
    """Return as much of a plan as one reconcile may write; the next one, at once, plans what is left.

    A reconcile may end after any of its writes, so the first ones are a reconcile of their own. Else a
    workload with hundreds of ReplicaSets or doomed pods would keep a worker for hundreds of requests.
    """
    if len(plan.actions) <= MAX_WRITES:
        return plan
    return replace(plan, actions=plan.actions[:MAX_WRITES], requeue_after_s=AT_ONCE_S)


def held_as_it_is(plan: Plan, large: Note) -> Plan:
    """Return what is done of a plan for a workload that is split and over a limit: losses are made up for.

    That costs a few numbers at any size: raises, and the removal of pods that no node has any more. No
    StatefulSet's twin is raised over what any StatefulSet may have.
    """
    kept = tuple(one for one in plan.actions if _makes_up(one))
    notes = (*plan.notes, large) if kept else (large,)
    return replace(plan, state=State.HELD, verdict=large, actions=kept, notes=notes)


def _makes_up(action: do.Action) -> bool:
    if not isinstance(action, do.Scale):
        return isinstance(action, do.DeleteVanishedPod)
    most = MAX_MEMBERS if action.kind is do.HolderKind.STATEFUL_SET else action.replicas
    return action.was < action.replicas <= most


@dataclass(frozen=True, slots=True)
class PlanInput:
    """Everything one step may look at."""

    observed: Observation
    source: SourceView
    in_force: PolicyInForce
    rendered: Mapping[Pool, Rendered] | Note
    """Both twins as their templates render them, or why they do not."""
    rules: Rules

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.in_force.policy

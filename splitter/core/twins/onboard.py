"""The steps from a label to a parked source: eligibility, Split and mark, pause, park.

The planner calls one of these a reconcile (H21 to H26). Each is idempotent; none counts
replicas.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from splitter.core.actions import Action, EnsureSplit, Park, SetOwnershipMark, SetPaused, StripOwnershipMark
from splitter.core.causes import why_unready
from splitter.core.eligibility import advice, refusal
from splitter.core.handover import Ownership, Step, ownership_of, waits_for_pods
from splitter.core.labels_annotations import LABEL_SPLIT, has_names, name_problem
from splitter.core.labels_annotations.label import ownership_mark_value, source_label_state
from splitter.core.model import Attachment, Note, ReplicaSetView, SourceView
from splitter.core.names import Key
from splitter.core.plan import AT_ONCE_S, POLL_S, Plan, PlanInput
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.replica import Replica
from splitter.core.split_status.view import SplitView
from splitter.core.twins import letting_go, replica_moves, write_conflicts
from splitter.core.twins.forecast import forecast
from splitter.core.twins.move_limit import not_yet

_RESUMED_GENERATION = 4
_LOOKED_AT_AGAIN = frozenset({VerdictCause.ANOTHER_OBJECT, VerdictCause.NAME_TAKEN, VerdictCause.ON_THE_WAY})


def nothing(this: PlanInput) -> Plan:
    """Say that nothing is to do (H30, or a source without label)."""
    if this.observed.reported.conflict:
        writer, stateful = this.observed.reported.conflicting_writer, this.source.stateful is not None
        message = (
            f"given back after write conflicts over {write_conflicts.contested(writer, stateful=stateful)};"
            " remove the label and set it again to retry"
        )
        left = (
            [rs for rs in this.observed.attached_as(Attachment.ATTACHED) if rs.marked]
            if this.source.observed
            else []
        )
        actions = tuple(StripOwnershipMark(rs.name) for rs in left)
        note = Note(Reason.CONFLICT, message, warning=True)
        return Plan(Step.NOTHING, State.CONFLICT, note, actions, (note,))
    return Plan(Step.NOTHING, State.GIVING_BACK, Note(Reason.GIVEN_BACK, "nothing of splitter's is left"))


def consider(this: PlanInput) -> Plan:
    """Refuse, or take over: the Split first, then the mark (H3, H21)."""
    objection = _objection(this)
    if objection is not None:
        state = State.REFUSED if objection.warning else State.HELD
        # No event tells that another object has changed, or that a replica has waited long enough.
        again_s = this.rules.look_again_s if objection.cause in _LOOKED_AT_AGAIN else None
        report = (*_reported(this, objection), *_copies(this))
        return Plan(Step.CONSIDER, state, objection, report, (objection,), requeue_after_s=again_s)
    if (turn := not_yet(this, "taking it over")) is not None:
        return Plan(Step.CONSIDER, State.HELD, turn, _reported(this, turn))
    own = [pod for rs in this.observed.attached_as(Attachment.ATTACHED) for pod in rs.pods]
    if (unrest := not_calm(own)) is not None:
        return Plan(
            Step.CONSIDER, State.HELD, unrest, _reported(this, unrest), (unrest,), requeue_after_s=POLL_S
        )
    expected = "each pod is replaced once"
    if this.source.stateful is None:
        expected = forecast(this.observed, this.source, this.policy, this.rules.tuning)
    message = f"taking over {this.source.replicas} replicas; {expected}{_held_up(this)}"
    note = Note(Reason.HANDING_OVER, message)
    actions = (*_split(this, takes_over=True), _mark(this))
    notes = (note, *advice(this.observed, this.source))
    begun = Plan(Step.CONSIDER, State.TAKING_OVER, note, actions, notes, requeue_after_s=AT_ONCE_S)
    return replace(begun, advice=this.observed.additions)


def _held_up(this: PlanInput) -> str:
    """Say which replicas are taken over as they are, and what holds them up; empty where all are ready."""
    sets = this.observed.replica_sets
    unready = [pod for rs in sets for pod in rs.pods if pod.counts and not pod.ready]
    refused = [rs.refusal.detail for rs in sets if rs.refused and rs.refusal is not None]
    waits, grace_s = this.observed.waits, this.policy.grace_s
    whys = [*refused, *(f"pod {pod.name}: {why_unready(pod, waits, grace_s)}" for pod in unready)]
    count = len(unready) + sum(rs.refused for rs in sets)
    return f"; taken over though not ready: {count} ({whys[0]})" if whys else ""


def _copies(this: PlanInput) -> list[Action]:
    """Return what takes our mark off ReplicaSets, where a take-over was undone (H29)."""
    seen = this.source.observed and ownership_of(this.source) is Ownership.NONE
    attached = this.observed.attached_as(Attachment.ATTACHED)
    return [StripOwnershipMark(rs.name) for rs in attached if rs.marked and seen]


def _reported(this: PlanInput, why: Note) -> tuple[Action, ...]:
    """Return what makes a Split that only reports, where there is none.

    None in an excluded namespace, nor where another workload's stands, nor of a name that none can have.
    """
    return _split(this, takes_over=False) if has_own_split(this.source.key, why) else ()


def has_own_split(key: Key, refused: Note) -> bool:
    """Whether a Split can report a refusal."""
    return refused.cause not in {VerdictCause.EXCLUDED, VerdictCause.NAME_TAKEN} and has_names(key)


def _objection(this: PlanInput) -> Note | None:
    label = source_label_state(this.source.labels)
    if label.note is not None:
        return label.note
    if not this.in_force.valid:
        return this.in_force.problems[0]
    if (problem := name_problem(this.source.key.kind, this.source.key.name)) is not None:
        return problem
    if isinstance(this.rendered, Note):
        return this.rendered
    return refusal(this.observed, this.source, this.policy, this.rules.excluded_namespaces)


def _split(this: PlanInput, *, takes_over: bool) -> tuple[Action, ...]:
    """Return what makes the Split say so, where it does not say so already."""
    split = this.observed.split
    says_so = split is not None and split.takes_over is takes_over and owns(this.source, split)
    return () if says_so else (EnsureSplit(takes_over=takes_over),)


def owns(source: SourceView, split: SplitView) -> bool:
    """Whether the Split goes when this source goes; one orphaned by an earlier source stays for ever."""
    return source.uid in split.owner_uids


def _mark(this: PlanInput) -> SetOwnershipMark:
    return SetOwnershipMark(ownership_mark_value(this.source.uid, this.observed.now))


def adopt(this: PlanInput) -> Plan:
    """Mark a source again that has splitter's objects and no valid mark (H22)."""
    note = Note(Reason.HANDING_OVER, "found what splitter left here, without a valid mark; it is ours again")
    actions = (*_split(this, takes_over=True), _mark(this))
    return Plan(Step.ADOPT, State.TAKING_OVER, note, actions, (note,))


def create_split(_: PlanInput) -> Plan:
    """Write the Split anew (H23); what cannot wait for it comes first (`planner`)."""
    note = Note(Reason.HANDING_OVER, "the Split object is written anew")
    return Plan(Step.CREATE_SPLIT, State.TAKING_OVER, note, (EnsureSplit(takes_over=True),))


def claim(this: PlanInput) -> Plan:
    """Make the source own what an earlier workload of this name left behind (H23)."""
    orphans = [rs for rs in this.observed.attached_as(Attachment.PARKED) if rs.orphaned]
    actions = (*_split(this, takes_over=True), *(parked(this, rs) for rs in orphans))
    left = ", ".join(rs.name for rs in orphans) or "the Split"
    kind = this.source.key.kind
    note = Note(Reason.HANDING_OVER, f"{left} left by an earlier {kind} of this name; it is this one's now")
    return Plan(Step.CLAIM, under_way(this), note, actions, (note,))


def parked(this: PlanInput, rs: ReplicaSetView) -> Park:
    """Return the write that releases a ReplicaSet from the source."""
    return Park(rs.name, rs.resource_version, this.source.selector_keys)


def pause(this: PlanInput) -> Plan:
    """Pause; with something parked it is a write conflict, counted after the write (H24, H50)."""
    if (held := letting_go.not_paused(this)) is not None:
        return held
    actions = (SetPaused(paused=True, resource_version=this.source.resource_version),)
    # Creation, mark, pause and resumption each count one generation of a Deployment.
    was_paused = this.source.generation >= _RESUMED_GENERATION
    first = not this.observed.attached_as(Attachment.PARKED) or not was_paused
    if first or _was_resumed_by_us(this):
        note = Note(Reason.HANDING_OVER, "paused, so that its pods can change their owner")
        return Plan(Step.PAUSE, State.TAKING_OVER, note, actions, (note,), requeue_after_s=AT_ONCE_S)
    count = len(write_conflicts.with_one_more(this.observed, ""))
    message = (
        f"somebody unpaused the source ({write_conflicts.times(count)}); paused again. {_what_unpauses(this)}"
    )
    note = Note(Reason.FOREIGN_WRITE, message, warning=True)
    notes = (note, *write_conflicts.declared(count, ""))
    return Plan(Step.PAUSE, State.MOVING, note, actions, notes, write_conflict=True)


def _was_resumed_by_us(this: PlanInput) -> bool:
    """Whether splitter let the source go on with its own pods: refused (H18), or in a rollout (H26)."""
    waits = bool(this.observed.twins) and all(map(waits_for_pods, this.observed.twins))
    return waits and this.observed.reported.reason in {Reason.WRITE_DENIED, Reason.ROLLOUT_IN_PROGRESS}


def _what_unpauses(this: PlanInput) -> str:
    if (who := this.source.unpaused_by_manifest) is not None:
        return f"{who} says `paused: false`: remove that line from it"
    return write_conflicts.remedy(this.source, "For a restart, annotate splitter.io/restarted-at")


def wait_controller(this: PlanInput) -> Plan:
    """Wait for the Deployment controller, or the garbage collector (H25, H31, H36)."""
    state = under_way(this) if LABEL_SPLIT in this.source.labels else State.GIVING_BACK
    message = f"waiting for {_who_acts(this)}"
    note = Note(Reason.WAITING_FOR_CONTROLLER, message, cause=VerdictCause.CONTROLLER)
    return Plan(Step.WAIT_CONTROLLER, state, note, requeue_after_s=POLL_S)


def _who_acts(this: PlanInput) -> str:
    """Name the controller that has to act, and what it has to do."""
    if going := this.observed.going:
        return (
            f"the garbage collector to take ReplicaSet {going[0].name} off its pods; after 10 s they are"
            " replaced"
        )
    if returning := this.observed.attached_as(Attachment.RETURNING):
        return f"the Deployment controller to adopt {', '.join(rs.name for rs in returning)}"
    if this.observed.leaving:
        return "the garbage collector to let the pods of a deleted ReplicaSet go"
    return "the Deployment controller to catch up"


def cut_off(this: PlanInput) -> Plan:
    """Park a ReplicaSet that hangs in its deletion: its Deployment counts it no more, and nobody waits (H54).

    Its `orphan` finalizer stays. Taken off by hand, it would have the garbage collector delete the pods.
    """
    going = this.observed.going
    actions = tuple(replace(parked(this, rs), twin=rs.held_by) for rs in going)
    count = sum(pod.counts for rs in going for pod in rs.pods)
    since = min((rs.deleted for rs in going if rs.deleted is not None), default=this.observed.now)
    message = (
        f"ReplicaSet {', '.join(rs.name for rs in going)} was deleted at {since:%H:%M:%S}Z, and the garbage"
        f" collector has not let go of {count} pods. A policy against pods without an owner may refuse it"
        " (see the log of kube-controller-manager). They are replaced instead, make before break"
    )
    note = Note(Reason.HANDOVER_HANGS, message, warning=True)
    state = under_way(this) if LABEL_SPLIT in this.source.labels else State.GIVING_BACK
    return Plan(Step.CUT_OFF, state, note, actions, (note,), requeue_after_s=AT_ONCE_S)


def not_calm(pods: Iterable[Replica]) -> Note | None:
    """Say which node is about to go, or is gone, under one of the pods that are to change their owner (H49).

    While pods have no owner, a lost one is not replaced and a budget in percent does not count them. A node
    that goes by somebody's choice is no reason to wait, nor is one that is cordoned and nothing worse: it may
    stay so for ever. (Of AWS's termination handler that is all that is seen. Its machine has 120 s, and pods
    have no owner for less than one.)
    """
    for pod in pods:
        if pod.counts and pod.going and not pod.voluntary and not pod.cordoned:
            why = f"{pod.node}{f': {pod.signal}' if pod.signal else ''}"
            message = f"its pods change their owner when no node under them is going: {why}"
            return Note(Reason.WAITING_FOR_CALM, message)
    return None


def wait_rollout(this: PlanInput) -> Plan:
    """Let the source's own rollout end, before its pods change their owner (H24)."""
    note = Note(Reason.ROLLOUT_IN_PROGRESS, f"waiting for the source's own rollout: {this.source.rollout}")
    return Plan(Step.WAIT_ROLLOUT, State.HELD, note, notes=(note,))


def under_way(this: PlanInput) -> State:
    """Return TakingOver until the handover is done, and Moving afterwards."""
    state = this.observed.reported.state
    done = state in {State.STEADY, State.MOVING, State.ROLLING}
    # Both a hand-over and what comes later may be held; only the former has something left to move.
    held = state == State.HELD
    done = done or (held and replica_moves.at_zero((), this.observed.attached_as(Attachment.PARKED)))
    return State.MOVING if done and this.observed.twins else State.TAKING_OVER


def current_last(source: SourceView, attached: Sequence[ReplicaSetView]) -> list[ReplicaSetView]:
    """Return ReplicaSets in the order of parking: the source's template last (0.1 s decides)."""
    current = source.template_hash
    return sorted(attached, key=lambda rs: (rs.template_hash == current, rs.spec_replicas != 0, rs.created))


def park(this: PlanInput) -> Plan:
    """Release what appeared while the source was not paused."""
    attached = current_last(this.source, this.observed.attached_as(Attachment.ATTACHED))
    actions = tuple(parked(this, rs) for rs in attached)
    names = ", ".join(rs.name for rs in attached)
    message = f"{names} appeared while the source was not paused; parked, and drained to 0"
    note = Note(Reason.FOREIGN_WRITE, message, warning=True)
    return Plan(Step.PARK, under_way(this), note, actions, (note,))

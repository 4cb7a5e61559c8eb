"""The moment in which pods have no acting owner: how long it may last, and what is done when it does not end.

A ReplicaSet that is deleted without its pods acts on them no more; another one adopts them some tenths of a
second later. The garbage collector may be slow or refused, and so may what adopts. Then the pods are
replaced, make before break, by the holder that the label says (H54): what is loose counts as a parked
ReplicaSet does, and is lowered pod by pod. What is there tells when the moment began: nothing is remembered.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from splitter.core.actions import Action, DeletePod, HolderKind, Scale, SetPaused
from splitter.core.handover import Step, waits_for_pods
from splitter.core.labels_annotations import LABEL_SPLIT
from splitter.core.model import Attachment, Note, Observation, ReplicaSetView
from splitter.core.plan import AT_ONCE_S, Plan, PlanInput
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status import HANDED_OVER, LET_GO, RebalanceState
from splitter.core.twins.onboard import current_last, parked

# How long pods may have no owner that acts on them.
MOMENT_S = 10.0
# And when a loss is to be covered: an adoption that goes well takes less, and the adopter covers it.
_LOSING_S = 2.0
# And where nothing says why nobody adopts them: a process that has just taken over gets to it by then.
_LATEST_S = 60.0
# What loose pods are called where a ReplicaSet has its name.
LOOSE = "pods without an owner"


def orphans_of(this: PlanInput, pool: Pool) -> list[Replica]:
    """Return the pods without an owner that a twin is to adopt."""
    return [pod for pod in this.observed.orphans if pod.counts and pod.born is pool]


def _ended(this: PlanInput) -> tuple[Action, ...]:
    """Return the removal of pods that have finished and that nothing owns: no ReplicaSet adopts them (H53).

    Their owner would have taken them along. Without one they would outlive the Deployment.
    """
    pods = (pod for pod in this.observed.orphans if pod.finished and pod.born is not None)
    return tuple(DeletePod(pod.name, pod.uid) for pod in pods)


def _loose(observed: Observation) -> list[Replica]:
    pods = [pod for rs in observed.going for pod in rs.pods]
    return [pod for pod in (*pods, *observed.orphans) if pod.counts]


def let_go_at(observed: Observation) -> datetime | None:
    """Return when the pods were let go: as their ReplicaSet says, or as the Split has told it.

    Now, while the Split tells of an earlier moment alone, which ended in a hand-over: it is written later. If
    the Split tells of no moment, as the process ended before it wrote so: when it told its last decision.
    """
    asked = [rs.deleted for rs in observed.going if rs.deleted is not None]
    decisions = observed.reported.decisions
    moments = [one for one in decisions if one.message.startswith((LET_GO, HANDED_OVER))] or decisions
    if moments and moments[-1].message.startswith(HANDED_OVER) and not asked:
        return observed.now
    begun = [one.at for one in moments[-1:]]
    known = asked or begun or [one.since for one in observed.reported.conditions]
    return min(known, default=None)


def is_over(observed: Observation) -> bool:
    """Whether the moment has lasted too long, or a loss meanwhile ends it (H54)."""
    if observed.source is None or observed.source.stateful is not None or not _loose(observed):
        return False
    since = let_go_at(observed)
    if since is None:
        return False
    waits = observed.waits
    loose = {(pod.revision, pool) for pod in _loose(observed) for pool in (pod.born, None)}
    sets: list[tuple[Pool | None, ReplicaSetView]] = [(None, rs) for rs in observed.replica_sets]
    sets += [(twin.pool, rs) for twin in observed.twins for rs in twin.replica_sets]
    adopting = [
        waits.past(rs.created, MOMENT_S)
        for pool, rs in sets
        if rs.spec_replicas and rs.deleted is None and any((one, pool) in loose for one in rs.hashes)
    ]
    going = observed.going or observed.leaving
    if not waits.past(since, MOMENT_S):
        # Twins that run adopt what they select and no more, whatever a clock says that was set back. What
        # they select is theirs before their controller acts: it may take minutes, and ends what is above
        # the count.
        run = LABEL_SPLIT in observed.source.labels and len(observed.twins) == len(Pool)
        left = run and not going and _nobody_adopts(observed)
        return left or (waits.past(since, _LOSING_S) and loses(observed))
    if going or waits.past(since, _LATEST_S) or _nobody_adopts(observed):
        return True
    refused = observed.reported.reason == Reason.WRITE_DENIED
    return any(adopting) or refused


def _nobody_adopts(observed: Observation) -> bool:
    """Whether what they were let go for is there without them: twins that run, or a source that does."""
    source = observed.source
    if source is None or LABEL_SPLIT in source.labels:
        return bool(observed.twins) and not any(twin.paused for twin in observed.twins)
    return not source.paused and bool(observed.attached_as(Attachment.ATTACHED))


def loses(observed: Observation) -> bool:
    """Whether a node goes, or is gone, under pods that nothing would replace."""
    loose = _loose(observed)
    going = any(pod.going and not pod.voluntary and not pod.cordoned for pod in loose)
    return going or bool(loose and _missing_on_spot(observed))


def _missing_on_spot(observed: Observation) -> int:
    """Count what the spot twin was to adopt and is not there: its count says how many were let go."""
    spot = observed.spot
    # Before they are let go, the source's own ReplicaSet has them.
    owned = any(rs.spec_replicas and rs.deleted is None for rs in observed.attached_as(Attachment.ATTACHED))
    if spot is None or not waits_for_pods(spot) or owned:
        return 0
    there = sum(pod.born is Pool.SPOT for pod in _unattended(observed))
    return max(0, spot.spec_replicas - there)


def _unattended(observed: Observation) -> list[Replica]:
    """Return the loose pods, and those that are being replaced already."""
    hung = [pod for rs in observed.attached_as(Attachment.PARKED) if rs.deleted for pod in rs.pods]
    return [*_loose(observed), *(pod for pod in hung if pod.counts)]


def lost_meanwhile(this: PlanInput, planned: RebalanceState | None = None) -> RebalanceState | None:
    """Return what to remember of spot that went while its pods had no owner: nothing else will tell of it.

    Else the twin would ask for them as for any new replica, and they would be covered after the grace.
    """
    known = planned or this.observed.rebalance
    gone = any(
        pod.on_spot and pod.node_status is NodeStatus.LOST for pod in _unattended(this.observed)
    ) or _missing_on_spot(this.observed)
    if known.lost or this.observed.rebalance.lost or not gone:
        return None
    window = this.rules.tuning.first_window
    return replace(
        known,
        lost=True,
        last_loss=this.observed.now,
        proven=False,
        up_since=None,
        window=window,
        asked=window,
    )


def given_up(observed: Observation) -> Observation:
    """Return what is seen with the pods that nothing has adopted in time as what they are: to be replaced."""
    if observed.going or not is_over(observed):
        return observed
    observed = _as_selected(observed)
    counted = [pod for pod in observed.orphans if pod.counts and pod.born is not None]
    if not counted:
        return observed
    loose = ReplicaSetView(
        name=LOOSE,
        uid=LOOSE,
        resource_version="",
        template_hash="",
        spec_replicas=len(counted),
        status_replicas=len(counted),
        available_replicas=sum(pod.ready for pod in counted),
        created=min(pod.created or observed.now for pod in counted),
        attachment=Attachment.PARKED,
        deleted=let_go_at(observed) or observed.now,
        pods=tuple(counted),
    )
    rest = tuple(pod for pod in observed.orphans if not pod.counts)
    sets = (*observed.replica_sets, loose)
    return replace(observed, orphans=rest, leaving=False, replica_sets=sets)


def _as_selected(observed: Observation) -> Observation:
    """Return what is seen with the pods that a ReplicaSet selects as its own (H54).

    Its controller may adopt them at any moment, and makes no pod before it has. Counted beside it they would
    let it be lowered, and it would end them as soon as it has them.
    """
    orphans: dict[str, list[Replica]] = {}  # by revision: many ReplicaSets may be there, and many pods
    for pod in observed.orphans:
        orphans.setdefault(pod.revision, []).append(pod)

    def with_pods(sets: Iterable[ReplicaSetView], pools: Collection[Pool]) -> tuple[ReplicaSetView, ...]:
        return tuple(replace(rs, pods=(*rs.pods, *selected(rs, pools))) for rs in sets)

    def selected(rs: ReplicaSetView, pools: Collection[Pool]) -> list[Replica]:
        selects = rs.deleted is None and rs.spec_replicas
        if not selects:
            return []
        own = [pod for one in dict.fromkeys(rs.hashes) for pod in orphans.get(one, ()) if pod.born in pools]
        for one in rs.hashes:
            orphans[one] = [pod for pod in orphans.get(one, ()) if pod.born not in pools]
        return own

    twins = {
        twin.pool: replace(twin, replica_sets=with_pods(twin.replica_sets, {twin.pool}))
        for twin in observed.twins
    }
    sets = with_pods(observed.replica_sets, set(Pool))
    return replace(
        observed,
        on_demand=twins.get(Pool.ON_DEMAND),
        spot=twins.get(Pool.SPOT),
        replica_sets=sets,
        orphans=tuple(pod for pods in orphans.values() for pod in pods),
    )


def completed(this: PlanInput, planned: Plan) -> Plan:
    """Return a plan with what pods without an owner need in any step."""
    if planned.step not in {Step.NOTHING, Step.CONSIDER}:
        planned = replace(planned, actions=(*planned.actions, *_ended(this)))
    # While its ReplicaSet still has them, or has just gone, the pods are seen in parts: none is missing yet.
    moves = planned.step in {Step.CUT_OFF, Step.SETTLE} or (
        planned.step is Step.RUN and is_over(this.observed)
    )
    if moves and (lost := lost_meanwhile(this, planned.rebalance)) is not None:
        planned = replace(planned, rebalance=lost)
    return _by_pod(this.observed, planned)


def _by_pod(observed: Observation, planned: Plan) -> Plan:
    """Return a plan in which what nothing acts on is lowered pod by pod."""
    hung = {rs.name: rs for rs in observed.attached_as(Attachment.PARKED) if rs.deleted is not None}
    if not hung:
        return planned
    actions: list[Action] = []
    for one in planned.actions:
        rs = hung.get(one.name) if isinstance(one, Scale) and one.kind is HolderKind.REPLICA_SET else None
        if rs is None or not isinstance(one, Scale):
            actions.append(one)
        else:
            actions += [DeletePod(pod.name, pod.uid) for pod in _first(rs.pods)[: one.was - one.replicas]]
    return replace(planned, actions=tuple(actions))


def _first(pods: Iterable[Replica]) -> list[Replica]:
    """Return pods in the order in which a ReplicaSet would delete them: of ready ones the youngest first."""
    by_age = sorted(pods, key=lambda pod: (pod.ready_since is not None, pod.ready_since), reverse=True)
    return sorted(
        (pod for pod in by_age if pod.counts),
        key=lambda pod: (pod.node is not None, pod.ready_since is not None, not pod.going),
    )


def covering(this: PlanInput) -> list[Action]:
    """Return the raise of on-demand for spot that goes or has gone while its pods cannot be adopted."""
    twin, orphans = this.observed.on_demand, [pod for pod in this.observed.orphans if pod.counts]
    going = any(pod.going and not pod.voluntary for pod in orphans) or _missing_on_spot(this.observed)
    if twin is None or not orphans or not going or this.policy.freeze:
        return []
    if orphans_of(this, Pool.ON_DEMAND) or not any(rs.spec_replicas for rs in twin.replica_sets):
        return []  # it has to be there first
    held = [rs.spec_replicas for rs in this.observed.replica_sets]
    held += [rs.spec_replicas for one in this.observed.twins for rs in one.replica_sets]
    wanted = twin.spec_replicas + this.source.replicas - sum(held) - sum(not pod.going for pod in orphans)
    if this.policy.on_demand_max is not None:
        wanted = min(wanted, this.policy.on_demand_max)
    if wanted <= twin.spec_replicas:
        return []
    return [Scale(HolderKind.DEPLOYMENT, twin.name, twin.spec_replicas, wanted, None)]


def stopped(this: PlanInput) -> Plan | None:
    """Stop a source that another client resumed while pods have no owner (H47); None if it is stopped.

    It is paused, and then its own ReplicaSets are parked, which shrink once the pods are home. Beside one of
    them its controller would share out the count, and take serving replicas for those that start.
    """
    attached = this.observed.attached_as(Attachment.ATTACHED)
    if this.source.paused and this.source.observed and not attached:
        return None
    if not this.source.paused:
        message = f"{this.source.key.name} was resumed while pods had no owner; paused until they are back"
        actions: tuple[Action, ...] = (SetPaused(paused=True, resource_version=this.source.resource_version),)
    elif not this.source.observed:
        message = "waiting for the Deployment controller to see the pause"
        waits = Note(Reason.WAITING_FOR_CONTROLLER, message, cause=VerdictCause.CONTROLLER)
        return Plan(Step.WAIT_CONTROLLER, State.GIVING_BACK, waits, requeue_after_s=AT_ONCE_S)
    else:
        message = f"parked {', '.join(rs.name for rs in attached)}, made while the source was not paused"
        actions = tuple(parked(this, rs) for rs in current_last(this.source, attached))
    note = Note(Reason.GIVING_BACK, message)
    return Plan(Step.BRING_HOME, State.GIVING_BACK, note, actions, (note,), requeue_after_s=AT_ONCE_S)

"""Onboarding and offboarding of a Deployment without a restart: its running pods change their owner.

A ReplicaSet is deleted with its pods left running, and another one with the right selector adopts them. The
planner calls one of these a reconcile. Everything is derived from what is there: labels on pods, ReplicaSets
at 0 that keep a template, the twins' counts. So a crash between any two writes is harmless.
Source: H40 to H51, each cited where it is decided; each was seen on a real API server.
"""

from collections.abc import Sequence
from dataclasses import replace

from splitter.core import actions as do
from splitter.core.deployment.unowned import orphans_of, stopped
from splitter.core.desired.compare import is_withdrawn
from splitter.core.handover import Step, holds_replicas, waits_for_pods
from splitter.core.holders.holder import is_rolling
from splitter.core.labels_annotations import kept_name
from splitter.core.model import Attachment, Note, ReplicaSetView, TwinView
from splitter.core.plan import AT_ONCE_S, POLL_S, Plan, PlanInput
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status import LET_GO
from splitter.core.twins import alone, letting_go, replica_moves
from splitter.core.twins.onboard import not_calm, parked, under_way
from splitter.core.twins.write_order import LOST_COST, OUR_COST, cost_of, is_low

_UNSEEN = "waiting for the Deployment controller to see the twins"


def onboard(this: PlanInput) -> Plan:
    """Park what is idle, prepare the twins for the source's pods, then let the pods go (H26, H40)."""
    refused = this.observed.letting_go_refused
    return _onboard(this) if refused is None else letting_go.undone(this, refused)


def _onboard(this: PlanInput) -> Plan:
    attached = this.observed.attached_as(Attachment.ATTACHED)
    active = [rs for rs in attached if holds_replicas(rs)]
    if len(active) > 1:
        # An image was set just before the pause: let the Deployment controller finish first.
        note = Note(Reason.ROLLOUT_IN_PROGRESS, "a rollout began before the pause; it goes on first")
        resume = do.SetPaused(paused=False, resource_version=this.source.resource_version)
        return Plan(Step.ADOPT_PODS, State.HELD, note, (resume,), (note,))
    if idle := [rs for rs in attached if not holds_replicas(rs)]:
        # First of all: a paused Deployment scales the one ReplicaSet that it has, also an old one, to N.
        note = Note(Reason.HANDING_OVER, f"parked {', '.join(rs.name for rs in idle)}")
        actions = tuple(parked(this, rs) for rs in idle)
        return Plan(Step.ADOPT_PODS, under_way(this), note, actions, (note,), requeue_after_s=AT_ONCE_S)
    if isinstance(this.rendered, Note):
        return Plan(Step.ADOPT_PODS, State.HELD, this.rendered, notes=(this.rendered,))
    [home] = active
    if not home.hashes:
        note = Note(
            Reason.SELECTOR_NOT_RELEASABLE,
            f"{home.name} does not select its pods by their hash",
            warning=True,
        )
        return Plan(Step.ADOPT_PODS, State.HELD, note, notes=(note,))
    if (unrest := not_calm(home.pods)) is not None:
        return Plan(Step.ADOPT_PODS, State.HELD, unrest, notes=(unrest,), requeue_after_s=POLL_S)
    return (
        _prepared(this, home)
        or letting_go.taken_back(this)
        or _let_go(Step.ADOPT_PODS, under_way(this), [home])
    )


def _prepared(this: PlanInput, home: ReplicaSetView) -> Plan | None:
    """Return what has to be written before the pods are let go; None: nothing (H42, H43)."""
    pods = [pod for pod in home.pods if pod.counts]
    if max(len(pods), home.status_replicas) > home.spec_replicas or (
        len(pods) < home.spec_replicas and home.refusal is None
    ):
        return _waits(f"waiting for {home.name} to have {home.spec_replicas} pods", under_way(this))
    spot = sum(pod.on_spot for pod in pods)
    sizes = {
        Pool.ON_DEMAND: home.spec_replicas - spot + len(orphans_of(this, Pool.ON_DEMAND)),
        Pool.SPOT: spot + len(orphans_of(this, Pool.SPOT)),
    }
    if actions := (
        *_kept(this, home, home.name),
        *_without_rivals(this, [home]),
        *(action for pool in Pool for action in _sized(this, pool, sizes[pool])),
        *(
            do.LabelPod(pod.name, pod.uid, pool_of(pod))  # finished ones, too: by that they are removed
            for pod in home.pods
            if not pod.terminating and pod.born is not pool_of(pod)
        ),
    ):
        message = f"running pods that stay on on-demand: {sizes[Pool.ON_DEMAND]}, on spot: {spot}"
        note = Note(Reason.HANDING_OVER, message, quiet=True)
        return Plan(Step.ADOPT_PODS, under_way(this), note, actions, (note,), requeue_after_s=AT_ONCE_S)
    if not all(twin.observed for twin in this.observed.twins):
        return _waits(_UNSEEN, under_way(this))
    return None


def pool_of(pod: Replica) -> Pool:
    """Return the twin that a running pod belongs to: by the node it is on; without one, on-demand (H41)."""
    return Pool.SPOT if pod.on_spot else Pool.ON_DEMAND


def _sized(this: PlanInput, pool: Pool, replicas: int) -> list[do.Action]:
    """Return what gives a twin that waits for pods so many replicas.

    It is created with them: at 0 it would scale what it adopts to 0 (seen on 1.36: all pods deleted).
    """
    twin = this.observed.twin(pool)
    if twin is None:
        return [_created(this, pool, replicas)]
    if twin.spec_replicas == replicas:
        return []
    return [
        do.Scale(do.HolderKind.DEPLOYMENT, twin.name, twin.spec_replicas, replicas, twin.resource_version)
    ]


def _created(this: PlanInput, pool: Pool, replicas: int) -> do.ApplyTwin:
    if isinstance(this.rendered, Note):
        raise TypeError("a twin is created of what was rendered")
    made = this.rendered[pool]
    return do.ApplyTwin(pool, made.manifest_json, made.hash, replicas, 1, 0, None, paused=True)


def _kept(this: PlanInput, rs: ReplicaSetView, template_of: str | None) -> list[do.KeepRevision]:
    """Return what keeps the template of a ReplicaSet that goes, under each hash that its pods have.

    Without an owner they are known by their hash alone. Whether they are made of the template that their next
    owner has by then is seen in this one: taken for current, they would never be replaced.
    """
    borne = {pod.revision for pod in rs.pods if pod.counts} & set(rs.hashes)
    names = (kept_name(this.source.key.name, one) for one in rs.hashes if one in borne or one == rs.hashes[0])
    return [do.KeepRevision(name, template_of) for name in names if _parked_as(this, name) is None]


def _parked_as(this: PlanInput, name: str) -> ReplicaSetView | None:
    return next((rs for rs in this.observed.attached_as(Attachment.PARKED) if rs.name == name), None)


def _without_rivals(this: PlanInput, going: Sequence[ReplicaSetView]) -> list[do.Action]:
    """Return the deletion of parked ReplicaSets at 0 that would adopt the pods and end them (H51)."""
    hashes = {pod.revision for rs in going for pod in rs.pods} | {one for rs in going for one in rs.hashes}
    rivals = [
        rs
        for rs in this.observed.attached_as(Attachment.PARKED)
        if rs.deleted is None and hashes & set(rs.hashes) and not holds_replicas(rs)
    ]
    return [do.DeleteReplicaSet(rs.name, rs.uid, rs.resource_version) for rs in rivals]


def _kept_of(this: PlanInput, hashes: Sequence[str]) -> ReplicaSetView | None:
    """Return the ReplicaSet at 0 that keeps the template of pods with these hashes: an older one first.

    Of pods of several templates those that have the current one are replaced too; the others would never be.
    """
    kept = (_parked_as(this, kept_name(this.source.key.name, one)) for one in hashes)
    current = this.source.template_hash
    return min((rs for rs in kept if rs), key=lambda rs: rs.template_hash == current, default=None)


def _own_revision(this: PlanInput) -> ReplicaSetView | None:
    """Return the first ReplicaSet at 0 that has kept the source's template as it is now."""
    prefix, current = kept_name(this.source.key.name, ""), this.source.template_hash
    parked = this.observed.attached_as(Attachment.PARKED)
    kept = (rs for rs in parked if rs.template_hash == current and rs.name.startswith(prefix))
    return min(kept, key=lambda rs: (rs.created, rs.name), default=None)


def _let_go(step: Step, state: State, replica_sets: Sequence[ReplicaSetView]) -> Plan:
    """Delete ReplicaSets and leave their pods running (H44)."""
    count = sum(pod.counts for rs in replica_sets for pod in rs.pods)
    note = Note(
        Reason.HANDING_OVER if step is Step.ADOPT_PODS else Reason.GIVING_BACK,
        f"{LET_GO}: {count}",
    )
    actions = tuple(do.OrphanPods(rs.name, rs.uid, rs.resource_version) for rs in replica_sets)
    return Plan(step, state, note, actions, (note,), requeue_after_s=AT_ONCE_S)


def settle(this: PlanInput) -> Plan:
    """Let the twins adopt what was let go, then resume them (H27, H45)."""
    if late := [pod for pod in this.observed.orphans if pod.born is None]:
        labels = tuple(do.LabelPod(pod.name, pod.uid, pool_of(pod)) for pod in late)
        note = Note(Reason.HANDING_OVER, f"pods made in the last moment: {len(labels)}", quiet=True)
        return Plan(Step.SETTLE, under_way(this), note, labels, (note,), requeue_after_s=AT_ONCE_S)
    actions: list[do.Action] = []
    # A twin that found none of its pods makes them: no more than there are to be, less what the source's own
    # ReplicaSets hold, which may have adopted them while it was unpaused, and what a twin has already.
    has = {twin.pool: twin.spec_replicas for twin in this.observed.twins if not waits_for_pods(twin)}
    held = sum(rs.spec_replicas for rs in this.observed.replica_sets) + sum(has.values())
    left = max(0, this.source.replicas - held)
    for pool in Pool:
        twin, pods = this.observed.twin(pool), orphans_of(this, pool)
        if twin is None:
            if isinstance(this.rendered, Note):
                return Plan(Step.SETTLE, State.HELD, this.rendered, notes=(this.rendered,))
            actions.append(_created(this, pool, len(pods)))
        elif twin.deleting:
            return _waits("waiting for a deleted twin to go", State.TAKING_OVER)
        elif pods and twin.paused:
            # At fewer than its pods it would end some as soon as it has them.
            size = max(len(pods), min(twin.spec_replicas, left + has.get(pool, 0)))
            actions += _sized(this, pool, size) or _adopting(this, twin, pods)
        elif twin.paused and not any(orphans_of(this, other) for other in Pool):
            if waits_for_pods(twin) and twin.spec_replicas > left:
                actions += _sized(this, pool, left)
            else:
                actions.append(do.PauseTwin(twin.name, paused=False, resource_version=twin.resource_version))
        taken = len(pods) if twin is None else 0 if pool in has else twin.spec_replicas
        left = max(0, left - taken)
    state = under_way(this)
    if not actions:
        seen = all(twin.observed for twin in this.observed.twins)
        message = f"waiting for {len(this.observed.orphans)} pods to be adopted" if seen else _UNSEEN
        return _waits(message, state, AT_ONCE_S)
    note = Note(Reason.HANDING_OVER, "the twins take the running pods", quiet=True)
    return Plan(Step.SETTLE, state, note, tuple(actions), (note,), requeue_after_s=AT_ONCE_S)


def _adopting(this: PlanInput, twin: TwinView, pods: Sequence[Replica]) -> list[do.Action]:
    """Return what makes a twin adopt these pods; nothing while a ReplicaSet of it is about to."""
    if ended := _unbound(pods):
        return ended
    hashes = tuple(sorted({pod.revision for pod in pods}))
    if any(set(hashes) <= set(rs.hashes) for rs in twin.replica_sets if rs.spec_replicas):
        return []
    if held := [rs for rs in twin.replica_sets if holds_replicas(rs)]:
        # Some of the pods only: what was let go half, as by a label set again at once, is let go whole.
        return [do.OrphanPods(rs.name, rs.uid, rs.resource_version) for rs in held]
    if (twin.robbed or not twin.rendered_hash) and not isinstance(this.rendered, Note):
        # It was robbed of its owner or its label, or edited: it is written whole again, and waits on.
        whole = _created(this, twin.pool, twin.spec_replicas)
        return [replace(whole, resource_version=twin.resource_version)]
    kept = _kept_of(this, hashes)
    if kept is not None and not _has_template_of(this, twin, kept):
        # Else both twins would roll at once when they are resumed. They roll later, one after the other.
        return [do.RestoreTemplate(twin.name, kept.name, twin.resource_version, tried=False)]
    name = _free_name(twin.name, hashes[0], twin.replica_sets)
    # What it adopts is scaled to the count that its controller has seen (H42).
    return [do.AdoptPods(name, twin.pool, hashes, None)] if twin.observed else []


def _has_template_of(this: PlanInput, twin: TwinView, kept: ReplicaSetView) -> bool:
    """Whether a twin's template is that of the pods: rendered, if only the placement differs, or put back."""
    if is_withdrawn(twin.rendered_hash) or isinstance(this.rendered, Note):
        return True
    made = this.rendered[twin.pool]
    is_current = kept.template_hash == this.source.template_hash
    return made.same_pods and is_current and twin.rendered_hash == made.hash


def _unbound(pods: Sequence[Replica]) -> list[do.Action]:
    """Return the deletion of pods without a node: their new owner makes them for where they may run (H51)."""
    return [do.DeleteUnboundPod(pod.name, pod.uid) for pod in pods if pod.node is None]


def _free_name(owner: str, template_hash: str, replica_sets: Sequence[ReplicaSetView]) -> str:
    """Return what a ReplicaSet that adopts is called: as Kubernetes would, while nothing else is."""
    name, taken = f"{owner}-{template_hash}", {rs.name for rs in replica_sets}
    while name in taken:
        name += "a"
    return name


def offboard(this: PlanInput) -> Plan:
    """Let the twins' pods go, in a moment of calm (H37, H46)."""
    twins = this.observed.twins
    if any(twin.deleting for twin in twins):
        note, raises = alone.waiting(this), alone.covering(this)
        return Plan(Step.OFFBOARD, State.GIVING_BACK, note, raises, requeue_after_s=POLL_S)
    active = [rs for twin in twins for rs in twin.replica_sets if holds_replicas(rs)]
    if not active:
        note = Note(Reason.GIVING_BACK, "no pod of a twin is left; unpaused")
        resume = do.SetPaused(paused=False, resource_version=this.source.resource_version)
        return Plan(Step.OFFBOARD, State.GIVING_BACK, note, (resume,), (note,), requeue_after_s=AT_ONCE_S)
    idle = [rs for twin in twins for rs in twin.replica_sets if not holds_replicas(rs)]
    for actions in (
        [
            do.PauseTwin(twin.name, paused=True, resource_version=twin.resource_version)
            for twin in twins
            if not twin.paused
        ],
        _without_rivals(this, active),
        # A paused Deployment scales the last ReplicaSet that it has, also an old one, to its replicas.
        [do.DeleteReplicaSet(rs.name, rs.uid, rs.resource_version) for rs in idle],
        _all_kept(this),
    ):
        if actions:
            note = Note(Reason.GIVING_BACK, "the twins are about to give their pods back", quiet=True)
            return Plan(
                Step.OFFBOARD, State.GIVING_BACK, note, tuple(actions), (note,), requeue_after_s=AT_ONCE_S
            )
    if not all(twin.observed for twin in twins):
        return _waits(
            "waiting for the Deployment controller to see that the twins are paused", State.GIVING_BACK
        )
    return _let_go(Step.OFFBOARD, State.GIVING_BACK, active)


def _all_kept(this: PlanInput) -> list[do.Action]:
    """Return what keeps the templates of all pods that the twins have."""
    owned = [(twin, rs) for twin in this.observed.twins for rs in filter(holds_replicas, twin.replica_sets)]
    templates = [(rs, None if _is_current(this, twin, rs) else rs.name) for twin, rs in owned]
    templates.sort(key=lambda one: one[1] is None)  # of the same hash, an older one counts
    creations: dict[str, do.Action] = {}
    for rs, template_of in templates:
        for kept in _kept(this, rs, template_of):
            creations.setdefault(kept.name, kept)
    return list(creations.values())


def _is_current(this: PlanInput, twin: TwinView, rs: ReplicaSetView) -> bool:
    """Whether the pods of a twin's ReplicaSet are made of the source's template as it is now.

    They are compared themselves, with the source: what a template set or a person has added to a twin does
    not outlive it. Where the source's pods may stand is told by what the twin was made of.
    """
    if isinstance(this.rendered, Note):
        return False
    as_rendered = bool(twin.rendered_hash) and not is_withdrawn(twin.rendered_hash)
    made_of_it = as_rendered and twin.made_of == this.rendered[twin.pool].made_of
    return made_of_it and rs.template_hash == twin.template_hash and rs.pod_hash == this.source.pod_hash


def restless(this: PlanInput) -> bool:
    """Whether what the twins have to do goes first: cover a loss, or finish a rollout that goes well."""
    twins = this.observed.twins
    if any(twin.paused for twin in twins):
        return False  # it has begun: the shortest way out is on
    if not replica_moves.at_zero((), this.observed.attached_as(Attachment.PARKED)):
        return True  # what a foreign unpause has made
    # A node may be about to go, or silent, for ever: no reason to wait where nothing is to be covered.
    done = this.policy.freeze or replica_moves.total_available(this.observed) >= this.source.replicas
    pods = [pod for twin in twins for pod in twin.pods]
    # A user may have given one that is to stay a cost as low: it would go, and the doomed one stay.
    alone = not any(pod.available and is_low(pod.deletion_cost) for pod in pods)
    pods = [pod for pod in pods if not (done and _goes_first(pod, alone=alone))]
    return not_calm(pods) is not None or any(_rolls_well(this, twin) for twin in twins)


def _goes_first(pod: Replica, *, alone: bool) -> bool:
    """Whether the source's ReplicaSet removes it before any that is to stay: dead, or alone with our cost."""
    dead = pod.node_status is NodeStatus.LOST and pod.ready_since is None
    return dead or (alone and pod.deletion_cost in {OUR_COST, LOST_COST} and pod.cost_before is not None)


def _rolls_well(this: PlanInput, twin: TwinView) -> bool:
    """Whether it rolls, and nothing says that it will not get on: it may have no progressDeadlineSeconds."""
    waits = (pod.trouble or pod.is_stuck(this.observed.waits, this.policy.grace_s) for pod in twin.pods)
    return is_rolling(twin) and not twin.stalled and not any(waits)


def bring_home(this: PlanInput) -> Plan:
    """Let the source adopt what the twins have let go (H32, H47)."""
    pods = [pod for pod in this.observed.orphans if pod.counts]
    if ended := _unbound(pods):
        note = Note(Reason.GIVING_BACK, f"pods without a node are made again by the source: {len(ended)}")
        again_s = AT_ONCE_S
        return Plan(Step.BRING_HOME, State.GIVING_BACK, note, tuple(ended), (note,), requeue_after_s=again_s)
    hashes = tuple(sorted({pod.revision for pod in pods}))
    attached = this.observed.attached_as(Attachment.ATTACHED)
    active = [rs for rs in attached if rs.spec_replicas or not this.source.replicas]
    if any(set(hashes) <= set(rs.hashes) for rs in active):
        return _waits("waiting for the source's ReplicaSet to adopt its pods", State.GIVING_BACK, AT_ONCE_S)
    if (first := stopped(this)) is not None:
        return first
    costs = [cost for pod in pods if (cost := cost_of(pod)) is not None]
    if costs and len(pods) > this.source.replicas:  # those above N end as soon as they are home
        note = Note(
            Reason.GIVING_BACK, f"of {len(pods)} pods those on nodes that go are to end first", quiet=True
        )
        again_s = AT_ONCE_S
        return Plan(Step.BRING_HOME, State.GIVING_BACK, note, tuple(costs), (note,), requeue_after_s=again_s)
    kept = _kept_of(this, hashes)
    if kept is None or kept.template_hash == this.source.template_hash:
        # All of them have the source's template: its ReplicaSet is called as it was before, if it was.
        kept = _own_revision(this) or kept
    if kept is not None:  # pods that it makes have the hash of its template
        own = kept.name.removeprefix(kept_name(this.source.key.name, ""))
        hashes = tuple(dict.fromkeys((own, *hashes)))
    name = _free_name(this.source.key.name, hashes[0], this.observed.replica_sets)
    action = do.AdoptPods(name, None, hashes, kept.name if kept is not None else None)
    note = Note(Reason.GIVING_BACK, f"running pods go back to {this.source.key.name}: {len(pods)}")
    return Plan(Step.BRING_HOME, State.GIVING_BACK, note, (action,), (note,), requeue_after_s=AT_ONCE_S)


def unlabelled(replica_sets: Sequence[ReplicaSetView]) -> list[do.Action]:
    """Return what takes our labels off the pods that are back."""
    pods = (pod for rs in replica_sets for pod in rs.pods if not pod.terminating and pod.born is not None)
    return [do.LabelPod(pod.name, pod.uid, None) for pod in pods]


def _waits(message: str, state: State, again_s: float = POLL_S) -> Plan:
    return Plan(
        Step.WAIT_CONTROLLER,
        state,
        Note(Reason.WAITING_FOR_CONTROLLER, message, cause=VerdictCause.CONTROLLER),
        requeue_after_s=again_s,
    )

"""The steps of a StatefulSet in placement mode: check it, keep its ordinals, give it back.

The planner calls one of these a reconcile, where `is_in_place` says so. Nothing is written to the workload
itself: the Split is all there is of ours, so its object is the mark too, and taking it away is the whole way
back. What the admission policy reads is made of the namespace's Splits (`kube.placement_writer`) and written
before the Split, on the way in and on the way out: nobody is moved while the two differ. What moves and why
is decided by `placement`; here its answer becomes writes.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from splitter.core import actions as do
from splitter.core import labels_annotations as keys
from splitter.core.eligibility import placement_advice, refusal, why_unplaceable
from splitter.core.handover import Step
from splitter.core.labels_annotations.label import source_label_state
from splitter.core.labels_annotations.policy import Policy
from splitter.core.mode import mode_of
from splitter.core.model import Mode, Note, Observation, SourceView
from splitter.core.names import ordinal_of
from splitter.core.placeable import Reach, runs
from splitter.core.placement import relief
from splitter.core.placement.members import TRANSIT_S, Member, Placeholder, PlacementInput
from splitter.core.placement.place import Placed, place
from splitter.core.placement.reservations import placeholder_manifest, reservation_hash
from splitter.core.plan import Plan, PlanInput
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool, Replica
from splitter.core.split_status import ReliefStatus
from splitter.core.twins.onboard import has_own_split
from splitter.core.twins.relief_status import remembering

# A pod whose end takes longer, or that is not made again, keeps no node for itself.
_ROOM_STAYS_S = 300.0


def is_in_place(observed: Observation, source: SourceView, policy: Policy) -> bool:
    """Whether this workload is split by placement, or is to be; what is split stays as it was taken."""
    split, labelled = observed.split, keys.LABEL_SPLIT in source.labels
    if source.stateful is None:
        return False
    if split is not None and split.takes_over and split.ordinals is not None:
        return True
    if observed.published is not None and not labelled and (split is None or not split.takes_over):
        return True  # the Split was deleted by hand, and the policy knows nothing of that
    # A Split without ordinals tells nothing: of one in placement mode somebody may have removed them.
    by_twins = (
        {keys.ANNOTATION_REPLICAS, keys.ANNOTATION_TAKEN_OVER} & set(source.annotations)
        or observed.twins
        or (split is not None and split.replicas and source.stateful.spec_replicas == 0)
    )
    return labelled and not by_twins and mode_of(source.key.kind, policy.mode) is Mode.PLACEMENT


def next_step(observed: Observation, source: SourceView) -> Step:
    """Return the step that is due."""
    split = observed.split
    ours = split is not None and split.takes_over
    if keys.LABEL_SPLIT not in source.labels:
        return Step.UNPLACE
    owned = split is not None and source.uid in split.owner_uids
    return Step.PLACE if ours and owned else Step.CONSIDER


def consider(this: PlanInput) -> Plan:
    """Refuse, or put the ordinals in force for the first time: nothing restarts by that."""
    if (objection := _objection(this)) is not None:
        state = State.REFUSED if objection.warning else State.HELD
        reports = this.observed.split is None and has_own_split(this.source.key, objection)
        report = (do.EnsureSplit(takes_over=False),) if reports else ()
        again_s = this.rules.look_again_s
        return Plan(Step.CONSIDER, state, objection, report, (objection,), requeue_after_s=again_s)
    placed = _placed(this, placement_input(this))
    wanted = ", ".join(map(str, placed.ordinals)) or "none"
    note = Note(
        Reason.TAKEN_OVER,
        f"split by placement: of {this.source.replicas} pods, ordinals {wanted} start on on-demand from"
        " now on; nothing restarts but what has to move, one pod at a time",
    )
    notes = (note, *placement_advice(this.observed, this.source))
    actions = (do.PlaceOrdinals(placed.ordinals),)
    return _planned(this, placed, Plan(Step.CONSIDER, State.MOVING, note, actions, notes))


def _objection(this: PlanInput) -> Note | None:
    if (label := source_label_state(this.source.labels).note) is not None:
        return label
    if not this.in_force.valid:
        return this.in_force.problems[0]
    if (problem := keys.name_problem(this.source.key.kind, this.source.key.name, Mode.PLACEMENT)) is not None:
        return problem
    return refusal(this.observed, this.source, this.policy, this.rules.excluded_namespaces)


def keep(this: PlanInput) -> Plan:
    """Keep the ordinals in force, remove what no node has any more, move at most one member."""
    members = placement_input(this)
    placed, remembered = _relieved(this, members, _placed(this, members))
    try:
        actions = _actions(this, placed)
    except ValueError as problem:
        placed = _without_reservation(placed, str(problem))
        actions = _actions(this, placed)
    rested = _is_at_rest(placed)
    state = State.STEADY if rested else State.MOVING if placed.moving or placed.vanished else State.HELD
    # Said at the take-over too; here for members that came later, and for words that went with a crash.
    advice = placement_advice(this.observed, this.source)
    plan = Plan(Step.PLACE, state, placed.verdict, actions, placed.notes, advice=advice, relief=remembered)
    rolling = _rolling(this.source)
    if rested and rolling:
        note = Note(Reason.ROLLOUT_IN_PROGRESS, f"the StatefulSet's own update goes on: {rolling}")
        plan = replace(plan, state=State.ROLLING, verdict=note)
    return _planned(this, placed, plan)


def unplace(this: PlanInput) -> Plan:
    """Delete the Split and its ordinals; no pod restarts."""
    note = Note(
        Reason.GIVEN_BACK,
        f"its {this.source.replicas} pods stay where they are; new ones are placed as its manifest says",
    )
    gone = tuple(
        do.DeletePlaceholder(pod.name, pod.uid) for pod in this.observed.placeholders if not pod.terminating
    )
    return Plan(Step.UNPLACE, State.GIVING_BACK, note, (*gone, do.DeleteSplit()), (note,))


def _planned(this: PlanInput, placed: Placed, plan: Plan) -> Plan:
    return replace(
        plan,
        wanted_on_demand=len(placed.base),
        wanted_spot=max(0, this.source.replicas - len(placed.base)),
        rebalance=placed.state,
        outlook=placed.outlook,
    )


def _placed(this: PlanInput, members: PlacementInput) -> Placed:
    persisted = this.observed.rebalance
    restarts = tuple(sorted({*persisted.restarts, *this.observed.restarts}))
    persisted = replace(persisted, restarts=restarts)
    return place(members, this.policy, persisted, this.rules.tuning)


def _is_at_rest(placed: Placed) -> bool:
    return not placed.moving and placed.verdict.reason is Reason.BALANCED


def _relieved(this: PlanInput, members: PlacementInput, placed: Placed) -> tuple[Placed, ReliefStatus | None]:
    """Return it with the restart of a member on a hot node, if one is due; and what to remember of that."""
    observed, source, hot = this.observed, this.source, this.observed.hot_nodes
    known = observed.reported.relief
    if hot is None or this.policy.freeze or this.policy.dry_run:
        return placed, None
    landed = relief.landed(members, known.moves[-1], hot) if known.moves else None
    if landed is not None:
        move, note = landed
        return replace(placed, notes=(*placed.notes, note)), replace(known, moves=(*known.moves[:-1], move))
    if hot.leaves is None or hot.paused or not relief.is_asked(observed, source, this.policy):
        return placed, None
    uid = hot.leaves.pod_uid
    pod = next((m.pod for m in members.members if m.pod is not None and m.pod.uid == uid), None)
    pool = relief.leaves_from(observed, source, pod) if pod is not None else None
    held = relief.why_none_leaves(observed, source, placed.state)
    if held or not _is_at_rest(placed) or pod is None or pod.node_uid is None or pool is None:
        return placed, None
    placed = relief.relieved(members, placed, hot.leaves, pool, this.rules.tuning)
    if placed.evict is None or (restart := relief.begun(observed, pod, pool, source.replicas)) is None:
        return placed, None
    return placed, remembering(this, replace(restart, stand=hot.leaves.stand))


def placement_input(this: PlanInput) -> PlacementInput:
    """Return the members of the StatefulSet as `placement` looks at them: at most `limits.MAX_MEMBERS`."""
    observed, source = this.observed, this.source
    first = source.stateful.first_ordinal if source.stateful is not None else 0
    # Of a name that is seen twice for a moment, the one that was made last.
    known = sorted((pod for own in observed.replica_sets for pod in own.pods), key=_age)
    pods = {pod.ordinal: pod for pod in known}
    last = first + source.replicas
    reach = observed.related.reach
    split = observed.split
    made_of = (
        reservation_hash(json.loads(source.manifest_json), this.rules.reservations)
        if this.rules.reservations
        else ""
    )
    members = tuple(
        Member(
            k,
            pods.get(k),
            _born(pods.get(k)),
            reach.get(k, Reach()),
            _staged(source, pods.get(k)),
            _untried(source, k, pods),
        )
        for k in range(first, last)
    )
    return PlacementInput(
        now=observed.now,
        name=source.key.name,
        desired=source.replicas,
        members=members,
        in_force=(split.ordinals or ()) if split is not None else (),
        surplus=tuple(
            pods[k] for k in sorted(pods, key=lambda k: k or 0) if k is None or not first <= k < last
        ),
        placeholder=_placeholder(observed),
        spent=_spent(observed),
        made_of=made_of,
        ordered=source.stateful is None or not source.stateful.parallel,
        rolling=_rolling(source),
        update_at_once=_update_takes(source, members),
        min_ready_s=source.stateful.min_ready_s if source.stateful is not None else 0.0,
        published=_is_published(observed),
        unplaceable=why_unplaceable(observed, source),
        removes_vanished=this.rules.delete_pods_of_vanished_nodes,
        blocked=observed.blocked,
        fit_spot=observed.fit_spot,
        view_broken=observed.view_broken,
        refused=observed.refused,
        waits=observed.waits,
    )


def _is_published(observed: Observation) -> bool:
    """Whether the admission policy goes by what the Split says."""
    split = observed.split
    if split is None or split.ordinals is None:
        return False
    return observed.published_nodes and observed.published == runs(split.ordinals)


def _staged(source: SourceView, pod: Replica | None) -> str:
    """Say what a restart would bring to a pod that its owner keeps back: with OnDelete, a new template."""
    stateful = source.stateful
    if stateful is None or pod is None or not stateful.on_delete or pod.revision == stateful.revision:
        return ""
    return (
        "updateStrategy OnDelete keeps a new template back until somebody deletes the pod, and a move would"
        f" hand it out; delete {pod.name} when you want that"
    )


def _untried(source: SourceView, ordinal: int, pods: Mapping[int | None, Replica]) -> str:
    """Return the revision that a new pod would be of, where it is another one and no ready pod has it."""
    stateful, pod = source.stateful, pods.get(ordinal)
    if stateful is None or pod is None or pod.revision in {"", stateful.revision}:
        return ""
    kept = ordinal < stateful.first_ordinal + stateful.partition
    tried = any(one.ready and one.revision == stateful.revision for one in pods.values())
    return "" if kept or tried else stateful.revision


def _rolling(source: SourceView) -> str:
    """Say how far the StatefulSet's own update is; a change that its controller has not seen may be one."""
    if source.stateful is None:
        return ""
    return source.stateful.updating or (
        "" if source.observed else "its controller has not seen the last change"
    )


def _update_takes(source: SourceView, members: Iterable[Member]) -> int:
    """Return how many members the StatefulSet's own update may take in this moment.

    It waits for those that it has made: one with a broken image holds it up for ever.
    """
    if (stateful := source.stateful) is None:
        return 1
    if not source.observed:
        return stateful.update_at_once
    pods = [member.pod for member in members if member.pod is not None]
    waits = sum(pod.counts and not pod.ready and pod.revision == stateful.revision for pod in pods)
    return max(0, stateful.update_at_once - waits)


def _age(pod: Replica) -> datetime:
    return pod.created or datetime.min.replace(tzinfo=UTC)


def _born(pod: Replica | None) -> Pool | None:
    return pod.born if pod is not None else None


def _placeholder(observed: Observation) -> Placeholder | None:
    """Return the placeholder that holds room, if one does: not one that ends."""
    held = (_held_by(pod) for pod in observed.placeholders if pod.counts)
    return next((one for one in held if one is not None), None)


def _spent(observed: Observation) -> Placeholder | None:
    """Return a placeholder that holds no room: a kubelet did not take it, or it came to a node that goes.

    What tolerates everything is bound to a cordoned node as to any other, each time anew.
    """
    for pod in observed.placeholders:
        came = observed.waits.left_s(pod.bound_since or pod.created, TRANSIT_S) > 0 and pod.going
        if not pod.terminating and (pod.finished or came) and (held := _held_by(pod)) is not None:
            return held
    return None


def _held_by(pod: Replica) -> Placeholder | None:
    pool, _, rest = pod.held_for.partition("/")
    number, _, made_of = rest.partition("/")
    ordinal = ordinal_of(number)
    if pool not in {one.value for one in Pool} or ordinal is None:
        return None
    return Placeholder(Pool(pool), ordinal, made_of, pod)


def _actions(this: PlanInput, placed: Placed) -> tuple[do.Action, ...]:
    """Return the writes in their order: the ordinals alone, else removals, the eviction, the room."""
    split = this.observed.split
    in_force = set(split.ordinals or ()) if split is not None else set()
    if set(placed.ordinals) != in_force or not _is_published(this.observed):
        return (do.PlaceOrdinals(placed.ordinals),)
    actions: list[do.Action] = [
        do.DeleteVanishedPod(pod.name, pod.uid, pod.node, at_once=True)
        for pod in placed.vanished
        if pod.node is not None
    ]
    actions += [do.DeleteUnboundPod(pod.name, pod.uid) for pod in placed.unbound]
    if placed.evict is not None:
        actions.append(do.EvictPod(placed.evict.pod, placed.evict.uid, placed.evict.to))
    return (*actions, *_reserve(this, placed))


def _without_reservation(placed: Placed, why: str) -> Placed:
    """Return it with nobody moving, because no pod can hold the room that a move needs."""
    note = Note(Reason.WAITING_FOR_ROOM, f"no placeholder can be made: {why}", warning=True)
    return replace(placed, verdict=note, notes=(*placed.notes, note), reservation=None, moving=False)


def _reserve(this: PlanInput, placed: Placed) -> tuple[do.Action, ...]:
    """Hold the room of the next move and of a member on its way; let go what is of no use (P21).

    Raises ValueError when the workload asks for more than a placeholder can.
    """
    rules, wanted = this.rules.reservations, placed.reservation
    held, moving = _placeholder(this.observed), _on_its_way(this, placed)
    made_of = reservation_hash(json.loads(this.source.manifest_json), rules) if rules is not None else ""
    if held is not None:
        of_next = wanted is not None and (held.pool, held.ordinal, held.made_of) == (
            wanted.pool,
            wanted.ordinal,
            made_of,
        )
        stays = of_next if moving is None else (held.pool, held.ordinal) == moving
        gone = (do.DeletePlaceholder(held.pod.name, held.pod.uid),)
        return () if stays and not held.pod.going else gone
    # One that has failed holds nothing but the name, and nobody else deletes it.
    if spent := [pod for pod in this.observed.placeholders if pod.finished and not pod.terminating]:
        return tuple(do.DeletePlaceholder(pod.name, pod.uid) for pod in spent)
    ending = any(pod.terminating for pod in this.observed.placeholders)
    # While a member is on its way, another placeholder might take its room.
    if ending or moving is not None or wanted is None or rules is None:
        return ()
    reach = this.observed.related.reach.get(wanted.ordinal, Reach())
    spec = placeholder_manifest(json.loads(this.source.manifest_json), wanted.pool, rules, reach.terms_json)
    return (do.CreatePlaceholder(wanted.pool, f"{wanted.pool}/{wanted.ordinal}/{made_of}", json.dumps(spec)),)


def _on_its_way(this: PlanInput, placed: Placed) -> tuple[Pool, int] | None:
    """Return the member that was moved and has not been made again, for five minutes, and its new pool."""
    if placed.evict is not None:
        return placed.evict.to, placed.evict.ordinal
    state = placed.state
    if state.moved is None or not this.observed.waits.left_s(state.last_step, _ROOM_STAYS_S):
        return None
    pods = (pod for own in this.observed.replica_sets for pod in own.pods)
    made_again = any(pod.ordinal == state.moved and pod.uid != state.moved_uid for pod in pods)
    return None if made_again else (Pool.ON_DEMAND if state.moved_up else Pool.SPOT, state.moved)

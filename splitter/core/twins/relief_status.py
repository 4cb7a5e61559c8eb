"""What a workload remembers of the moves of its replicas off hot nodes, and what its Split says of relief.

`relief` writes moves down here, and `planner` asks for what is said. Nothing here decides.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from splitter.core.handover import Step
from splitter.core.hot_nodes import Aim, LeavingReplica
from splitter.core.labels_annotations import ANNOTATION_RELIEF
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation, TwinView
from splitter.core.placeable import FEWEST
from splitter.core.plan import Plan, PlanInput
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.relief.model import VAIN_S
from splitter.core.relief.thresholds import may_restart, thresholds_of
from splitter.core.replica import Pool, Replica
from splitter.core.split_status import TEXT_MAX, ReliefMove, ReliefStatus
from splitter.core.split_status.relief import HOT_NODES_MAX, MOVES_MAX
from splitter.core.twins.other_pool import in_other_pool, leaving
from splitter.core.twins.replica_moves import surge_headroom_beside
from splitter.core.twins.write_order import is_low

_ELSE = "Where that does not change, delete them when it suits you: new ones start where they belong"
_NAMED = 2


def created_since(move: ReliefMove, pods: Iterable[Replica]) -> list[Replica]:
    """Return the pods of a twin that were created after a move was begun: the new replica, if it is alone."""
    return [
        pod
        for pod in pods
        if pod.counts
        and pod.uid != move.pod_uid
        and pod.created is not None
        and pod.created > move.newer_than
    ]


def never_fit(this: PlanInput) -> str:
    """Return why no replica of this workload is ever moved, as it is; empty where one may."""
    if this.source.stateful is not None:
        return _never_fit_members(this)
    if this.source.max_surge < 1:
        return "its maxSurge is 0, so there is no room for one more"
    return ""


def _never_fit_members(this: PlanInput) -> str:
    split, own = this.observed.split, this.source.annotations.get(ANNOTATION_RELIEF)
    ordinals = "a StatefulSet removes pods by their ordinals, so it cannot be relieved of a certain one"
    if split is None or split.ordinals is None:
        return ordinals
    if not may_restart(this.policy.relief, own):
        return (
            f"{ordinals}; that would be a restart, so it has to be asked for on the StatefulSet itself:"
            f" {ANNOTATION_RELIEF}: cpu=85,restarts"
        )
    if this.source.replicas < FEWEST:
        return f"of fewer than {FEWEST} members no majority is left while one restarts"
    return ""


def why_not_begun(this: PlanInput, wanted: LeavingReplica) -> str:
    """Return why the move of a replica does not begin in a calm moment; empty where it may."""
    observed, policy = this.observed, this.policy
    if why := _unfit(this):
        return why
    twin, pod = replica_of(observed, wanted)
    if twin is None or pod is None or not pod.available:
        return "the replica that is to leave is not available"
    if has_rival(twin.pods, pod):
        return "another replica has as low a pod-deletion-cost"
    most = policy.spot_max if twin.pool is Pool.SPOT else policy.on_demand_max
    if most is not None and twin.spec_replicas >= most:
        return f"{twin.name} may hold no more than {most}"
    return ""


def replica_of(observed: Observation, wanted: LeavingReplica) -> tuple[TwinView, Replica] | tuple[None, None]:
    """Return the replica that is to leave, with its twin, if it is still there."""
    pairs = ((twin, pod) for twin in observed.twins for pod in twin.pods if pod.uid == wanted.pod_uid)
    return next(pairs, (None, None))


def is_calm(planned: Plan) -> bool:
    """Whether nothing else is done with its twins."""
    return planned.step is Step.RUN and planned.state is State.STEADY and not planned.actions


def _unfit(this: PlanInput) -> str:
    """Return why no move of this workload begins; empty where one may."""
    observed, source, policy = this.observed, this.source, this.policy
    if why := never_fit(this):
        return why
    if policy.freeze or policy.dry_run:
        return "the counts stay as they are (splitter.io/freeze, splitter.io/dry-run)"
    if is_outdated(this):
        return "a new template waits to be rolled out"
    if surge_headroom_beside(observed, source) < 1:
        return "there is no room for one more now"
    return ""


def is_outdated(this: PlanInput) -> bool:
    """Whether a twin has another template than is rendered now, or nothing can be rendered."""
    rendered = this.rendered
    return isinstance(rendered, Note) or any(
        not one.bears(rendered[one.pool].hash) for one in this.observed.twins
    )


def is_refused(observed: Observation) -> bool:
    """Whether pods of a twin are refused, as by a quota."""
    return any(rs.refused for twin in observed.twins for rs in twin.replica_sets)


def has_rival(pods: Sequence[Replica], leaving: Replica) -> bool:
    """Whether another pod bears a deletion cost that is as low as ours: a ReplicaSet might take that one."""
    return any(is_low(one.deletion_cost) for one in pods if one.counts and one.uid != leaving.uid)


def remembering(this: PlanInput, move: ReliefMove) -> ReliefStatus:
    """Return what to remember with this move as the last one: what still counts, and no more than fits."""
    known = this.observed.reported.relief
    kept = [one for one in _counting(this, known) if one.ended is not None]
    return replace(known, moves=(*kept, move)[-MOVES_MAX:])


def reported(this: PlanInput, planned: Plan) -> Plan:
    """Return the plan with how relief stands, for the status; and with why it pauses, for people.

    And with why pods stay in the other pool, which is said whether relief is asked for or not.
    """
    observed, asked = this.observed, thresholds_of(this.policy.relief) is not None
    known = planned.relief or observed.reported.relief
    notes = _staying(this, planned) + ([_state_of(this, planned, this.policy)] if asked else [])
    if not notes and known == ReliefStatus():
        return planned
    moves = _counting(this, known)
    if not asked:  # who turns it off and on again wants it tried again
        moves = tuple(one if one.aim is Aim.POOL else replace(one, stand="") for one in moves)
    hot = observed.hot_nodes.hot if asked and observed.hot_nodes is not None else ()
    status = ReliefStatus(
        notes[-1].reason.value if notes else "",
        "; ".join(note.message for note in notes)[:TEXT_MAX],
        tuple(hot[:HOT_NODES_MAX]),
        moves,
    )
    said = (note for note in notes if note.warning or (note.about and is_calm(planned)))
    return replace(planned, relief=status, advice=(*planned.advice, *said))


def _staying(this: PlanInput, planned: Plan) -> list[Note]:
    """Say which pods stay in the other pool and why, by twin and cause; nothing while one leaves."""
    if planned.verdict.cause is VerdictCause.RELIEF:
        return []
    notes = []
    for twin, pods, waits in in_other_pool(this):
        why = waits
        if not is_calm(planned):
            why = "they wait until nothing else is done with their workload"
        elif held := why_not_begun(this, leaving(twin, pods[0])):
            why = f"{held}. {_ELSE}"
        if why:
            other = Pool.SPOT if twin.pool is Pool.ON_DEMAND else Pool.ON_DEMAND
            about = f"pods of {twin.name} stay on {other} nodes: {why}"
            names = _some(sorted(f"{pod.name} on {pod.node}" for pod in pods))
            notes.append(Note(Reason.PODS_IN_OTHER_POOL, f"{about} ({len(pods)}: {names})", about=about))
    return notes


def _some(names: Sequence[str]) -> str:
    """Name some of them, and count the others.

    >>> _some(["a", "b"]), _some(["a", "b", "c", "d"])
    ('a, b', 'a, b and 2 more')
    """
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _counting(this: PlanInput, known: ReliefStatus) -> tuple[ReliefMove, ...]:
    counts_s = max(this.rules.relief.rest_s, this.rules.relief.cycle_s)
    horizon = this.observed.now - timedelta(seconds=counts_s)
    a_day_ago = this.observed.now - timedelta(seconds=VAIN_S)
    return tuple(
        one
        for one in known.moves
        if one.ended is None
        or (one.ended >= horizon and (one.taken_back or one.aim is not Aim.POOL))
        or (one.stand and one.taken_back and one.ended >= a_day_ago)
    )


def _state_of(this: PlanInput, planned: Plan, policy: Policy) -> Note:
    hot = this.observed.hot_nodes
    paused = "the settings give no source of real use (relief_source)" if hot is None else hot.paused
    unfit = never_fit(this)
    if unfit or paused:
        # What its kind does not allow is nobody's fault: a Namespace may ask for all that is in it.
        return Note(Reason.RELIEF_PAUSED, f"relief pauses: {unfit or paused}", warning=not unfit)
    if planned.verdict.cause is VerdictCause.RELIEF:
        return Note(Reason.RELIEVING, planned.verdict.message)
    if hot is None or not hot.known:
        return Note(Reason.NODES_MEASURED, "real use is being measured; nothing is known yet")
    held = why_not_begun(this, hot.leaves) if hot.leaves is not None and is_calm(planned) else ""
    said = (hot.badly_placed, f"a move does not begin: {held}" if held else "")
    if hot.hot:
        names = ", ".join(hot.hot[:HOT_NODES_MAX])
        more = _appended(hot.left, hot.unhinted, *said)
        return Note(Reason.NODES_MEASURED, f"its replicas stand on hot nodes ({names}){more}")
    more = _appended(*said)
    return Note(Reason.NODES_MEASURED, f"none of its replicas stands on a hot node ({policy.relief}){more}")


def _appended(*said: str) -> str:
    return "".join(f"; {why}" for why in said if why)

"""What a workload remembers of the moves of its replicas off hot nodes, and what its Split says of relief.

`relief` writes moves down here, and `planner` asks for what is said. Nothing here decides.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from splitter.core.labels_annotations import ANNOTATION_RELIEF
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, PodView
from splitter.core.placeable import FEWEST
from splitter.core.plan import Plan, PlanInput
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.relief.thresholds import may_restart, thresholds_of
from splitter.core.split_status import TEXT_MAX, ReliefMove, ReliefStatus
from splitter.core.split_status.relief import HOT_NODES_MAX, MOVES_MAX


def created_since(move: ReliefMove, pods: Iterable[PodView]) -> list[PodView]:
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


def remembering(this: PlanInput, move: ReliefMove) -> ReliefStatus:
    """Return what to remember with this move as the last one: what still counts, and no more than fits."""
    known = this.observed.reported.relief
    kept = [one for one in _counting(this, known) if one.ended is not None]
    return replace(known, moves=(*kept, move)[-MOVES_MAX:])


def reported(this: PlanInput, planned: Plan) -> Plan:
    """Return the plan with how relief stands, for the status; and with why it pauses, for people."""
    observed, policy = this.observed, this.policy
    known = planned.relief or observed.reported.relief
    if thresholds_of(policy.relief) is None:
        if known == ReliefStatus():
            return planned
        kept = ReliefStatus(moves=_counting(this, known))
        return replace(planned, relief=kept)
    note = _state_of(this, planned, policy)
    hot = observed.hot_nodes.hot if observed.hot_nodes is not None else ()
    status = ReliefStatus(
        note.reason.value, note.message[:TEXT_MAX], tuple(hot[:HOT_NODES_MAX]), _counting(this, known)
    )
    warned = (note,) if note.warning else ()
    return replace(planned, relief=status, advice=(*planned.advice, *warned))


def _counting(this: PlanInput, known: ReliefStatus) -> tuple[ReliefMove, ...]:
    counts_s = max(this.rules.relief.rest_s, this.rules.relief.cycle_s)
    horizon = this.observed.now - timedelta(seconds=counts_s)
    return tuple(one for one in known.moves if one.ended is None or one.ended >= horizon)


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
        return Note(Reason.NODES_COOL, "real use is being measured; nothing is known yet")
    if hot.hot:
        names = ", ".join(hot.hot[:HOT_NODES_MAX])
        more = "".join(f"; {why}" for why in (hot.left, hot.unhinted, hot.badly_placed) if why)
        return Note(Reason.NODES_HOT, f"its replicas stand on hot nodes ({names}){more}")
    badly_placed = f"; {hot.badly_placed}" if hot.badly_placed else ""
    return Note(
        Reason.NODES_COOL, f"none of its replicas stands on a hot node ({policy.relief}){badly_placed}"
    )

"""The restart of one member that stands on a hot node, where its StatefulSet asks for that (docs/adr/0073).

`table` asks when nothing else is to be done, and the reconciler's watch asks who may leave at all. Nobody
needs such a restart now: it waits for an hour in which nothing was lost or moved. Its end is permitted by
`disruption`, as each is, and the scheduler chooses the node, in the same pool.
"""

from dataclasses import replace

from splitter.core.eligibility import why_unplaceable
from splitter.core.hot_nodes import HotNodes, LeavingReplica
from splitter.core.labels_annotations import ANNOTATION_RELIEF
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation, SourceView
from splitter.core.placeable import FEWEST
from splitter.core.placement.disruption import HOUR_S, Cause, End, permitted
from splitter.core.placement.members import Eviction, PlacementInput
from splitter.core.placement.place import Placed
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.rebalance import Tuning
from splitter.core.relief.thresholds import may_restart
from splitter.core.replica import Pool, Replica
from splitter.core.split_status import RebalanceState, ReliefMove

# After a move that ended where it was not to.
_DAY_S = 24 * HOUR_S
# A budget that refused an eviction is not asked again at each look.
_REFUSED_S = 600.0


def is_asked(observed: Observation, source: SourceView, policy: Policy) -> bool:
    """Whether it is in placement mode, and says itself that its members may be restarted for relief."""
    placed = observed.split is not None and observed.split.ordinals is not None
    asked = may_restart(policy.relief, source.annotations.get(ANNOTATION_RELIEF))
    return placed and source.stateful is not None and asked


def why_none_leaves(observed: Observation, source: SourceView, state: RebalanceState) -> str:
    """Return why no member is restarted for relief now, whatever is hot; empty where one may be."""
    waits, refused = observed.waits, observed.refused
    since_step_s = _DAY_S if state.failed_moves.count or state.failed_covers.count else HOUR_S
    reasons = (
        (source.replicas < FEWEST, f"of fewer than {FEWEST} members no majority would be left"),
        (bool(state.restarts) or state.moved is not None, "a member was ended within the hour"),
        (waits.left_s(state.last_loss, HOUR_S) > 0, "spot was lost or had a notice within the hour"),
        (waits.left_s(state.last_step, since_step_s) > 0, "a member was moved a while ago"),
        (state.unplaced, "the last pod was created without the label of policy splitter-placement"),
        (
            refused is not None and waits.left_s(refused.at, _REFUSED_S) > 0,
            "an eviction was refused a moment ago",
        ),
        (observed.view_broken, "too many nodes are not ready"),
        (bool(why_unplaceable(observed, source)), "its new pod would start anywhere"),
    )
    return next((why for holds, why in reasons if holds), "")


def leaves_from(observed: Observation, source: SourceView, pod: Replica) -> Pool | None:
    """Return the pool that a member stands in and would be made again in; None: it is no candidate.

    Nor is one whose volumes do not say on which nodes they can be attached: it might only come back.
    """
    split, stateful, ordinal = observed.split, source.stateful, pod.ordinal
    if split is None or split.ordinals is None or stateful is None or ordinal is None:
        return None
    pool = Pool.ON_DEMAND if ordinal in split.ordinals else Pool.SPOT
    if not pod.available or pod.hinted or pod.cordoned:
        return None
    if pod.on_spot is not (pool is Pool.SPOT) or (pool is Pool.SPOT and observed.blocked):
        return None
    if stateful.on_delete and pod.revision != stateful.revision:
        return None
    reach = observed.related.reach.get(ordinal)
    somewhere = reach is not None and reach.terms_json
    if source.claims or (stateful.claim_templates and not somewhere):
        return None
    return pool


def relieved(
    observed: PlacementInput, placed: Placed, leaving: LeavingReplica, pool: Pool, tuning: Tuning
) -> Placed:
    """Return what is done with one member evicted off its hot node; as it is, where others are not ready.

    It is called where all stand where they are wanted. `pool` is where it stands and starts again.
    """
    member = next((m for m in observed.members if m.pod is not None and m.pod.uid == leaving.pod_uid), None)
    if member is None or member.pod is None or member.pool is not pool or not _is_calm(observed, placed):
        return placed
    end = End(member.ordinal, member.pod, Cause.ORDER)
    granted, held, state = permitted(observed, (end,), placed.state, tuning)
    if end not in granted:
        return replace(placed, notes=(*placed.notes, *(one.note for one in held if one.note.warning)))
    state = replace(
        state,
        moved=member.ordinal,
        moved_uid=member.pod.uid,
        moved_up=pool is Pool.ON_DEMAND,
        last_step=observed.now,
    )
    note = Note(
        Reason.RELIEVING,
        f"evict {member.pod.name}: it is to leave, {leaving.why}; it starts again on {pool}, where the"
        " scheduler chooses",
        cause=VerdictCause.RELIEF,
    )
    return replace(
        placed,
        evict=Eviction(member.ordinal, member.pod.name, member.pod.uid, pool),
        verdict=note,
        state=state,
        notes=(*placed.notes, note),
        moving=True,
    )


def _is_calm(observed: PlacementInput, placed: Placed) -> bool:
    """Whether all members are ready, and nobody is about to change that."""
    busy = (
        placed.moving,
        placed.evict is not None,
        placed.vanished,
        placed.unbound,
        placed.reservation is not None,
        observed.placeholder is not None,
        observed.rolling,
        observed.surplus,
        observed.view_broken,
        observed.unplaceable,
    )
    return not any(busy) and all(
        member.is_available(observed.waits, observed.min_ready_s) and not member.staged
        for member in observed.members
    )


def begun(observed: Observation, pod: Replica, pool: Pool, replicas: int) -> ReliefMove | None:
    """Return what to remember of such a restart: over at once, and where it came to is told by `landed`."""
    if pod.node is None or pod.node_uid is None:
        return None
    return ReliefMove(
        at=observed.now,
        pool=pool.value,
        pod=pod.name,
        pod_uid=pod.uid,
        node=pod.node,
        node_uid=pod.node_uid,
        replicas=replicas,
        newer_than=pod.created or observed.now,
        ended=observed.now,
    )


def landed(observed: PlacementInput, move: ReliefMove, hot: HotNodes) -> tuple[ReliefMove, Note] | None:
    """Return the last restart with where its new pod stands, and what to say; None: told, or not known."""
    pods = (member.pod for member in observed.members if member.pod is not None)
    pod = next((one for one in pods if one.name == move.pod and one.uid != move.pod_uid), None)
    known = move.ended is None or move.to_node_uid or move.taken_back
    if known or pod is None or not pod.available or pod.node_uid is None or not hot.known:
        return None
    over = replace(move, ended=observed.now)
    if pod.node_uid == move.node_uid or pod.node in hot.avoid:
        message = (
            f"{move.pod} was to leave {move.node}, and came to {pod.node}, which is hot; it stays, and no"
            " member is restarted for relief within the hour"
        )
        return replace(over, taken_back=True), Note(Reason.RELIEF_UNDONE, message, warning=True)
    message = f"{move.pod} has left {move.node}, and is ready on {pod.node}"
    return replace(over, to_node_uid=pod.node_uid, stand=""), Note(Reason.RELIEVED, message)

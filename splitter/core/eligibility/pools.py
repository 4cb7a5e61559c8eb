"""Says which pool can never take a workload's replicas, and that no node is recognised as spot.

`nodes.pools` has compared; here it is held against the policy, since a pool that is not wanted is no matter.
One check refuses; the notes are said before a take-over, and while a workload is split (H19, H39).
"""

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation, SourceView
from splitter.core.nodes.pools import Barrier
from splitter.core.reasons import Reason, VerdictCause

_OTHER_NODES = "it is possible only if an autoscaler, or its administrator, brings other nodes"


def barriers(observed: Observation, source: SourceView, policy: Policy) -> tuple[Note, ...]:
    """Return a warning for each pool that is wanted and takes no replica; cover first."""
    fit = observed.pools
    if fit is None:
        return ()
    notes = []
    most = max(1, source.replicas)
    covered = most if policy.on_demand_max is None else min(most, policy.on_demand_max)
    if fit.on_demand is not None and fit.on_demand.room_for < covered:
        notes.append(_of_cover(fit.on_demand))
    if fit.spot is not None and fit.spot.room_for < _wanted_on_spot(source, policy) and not fit.no_spot_node:
        notes.append(_of_spot(fit.spot))
    return tuple(notes)


def no_spot_node(observed: Observation, source: SourceView, policy: Policy) -> Note | None:
    """Say that no node is recognised as spot; not after a loss of spot, which may have taken them all."""
    fit = observed.pools
    if fit is None or not fit.no_spot_node or not _wanted_on_spot(source, policy):
        return None
    if observed.rebalance.lost or observed.rebalance.last_loss is not None:
        return None
    if fit.spot is not None and fit.spot.certain:
        return _of_spot(fit.spot)
    message = seen_as_spot(fit.no_spot_node)
    return Note(Reason.SPOT_UNSEEN, message, warning=True, about="nodes", cause=VerdictCause.BY_NODES)


def seen_as_spot(hint: str) -> str:
    """Say that no node is recognised as spot, and what to do; `hint` names what looks like spot."""
    return (
        f"no node of the cluster is recognised as spot ({hint}), so no replica can go to spot. If nodes are"
        " spot, write their label into the setting spot_selectors, as key=value; otherwise bring spot nodes,"
        " or have an autoscaler bring them"
    )


def no_cover(observed: Observation, source: SourceView, policy: Policy) -> Note | None:
    """Object to a template that keeps every replica off on-demand whatever nodes come (H19)."""
    fit = observed.pools
    if fit is None or fit.on_demand is None or not fit.on_demand.certain:
        return None
    return next((note for note in barriers(observed, source, policy)), None)


def _of_cover(barrier: Barrier) -> Note:
    if barrier.certain:
        message = (
            f"cover is impossible: the pod template has {barrier.why}, so no on-demand node ever takes a"
            " replica, and nothing replaces one that is lost on spot. Remove that from the pod template;"
            " splitter adds what asks for spot to the spot twin alone"
        )
        return Note(Reason.COVER_IMPOSSIBLE, message, warning=True, about="certain")
    message = f"cover is impossible with the nodes that there are: {barrier.why}; {_OTHER_NODES}"
    return Note(Reason.COVER_IMPOSSIBLE, message, warning=True, about="nodes", cause=VerdictCause.BY_NODES)


def _of_spot(barrier: Barrier) -> Note:
    if barrier.certain:
        message = (
            f"spot is impossible: the pod template has {barrier.why}, so no spot node ever takes a replica,"
            " and nothing is saved. Remove that from the pod template, or annotate splitter.io/spot-percent=0"
        )
        return Note(Reason.SPOT_IMPOSSIBLE, message, warning=True, about="certain")
    message = f"spot is impossible with the nodes that there are: {barrier.why}; {_OTHER_NODES}"
    return Note(Reason.SPOT_IMPOSSIBLE, message, warning=True, about="nodes", cause=VerdictCause.BY_NODES)


def _wanted_on_spot(source: SourceView, policy: Policy) -> int:
    """Return the replicas that the policy wants on spot; of a workload at 0, what it would of one."""
    replicas = max(1, source.replicas)
    return replicas - base_replicas(replicas, policy)

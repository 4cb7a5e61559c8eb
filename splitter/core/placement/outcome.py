"""Judges how the last move ended, and how long the next one has to wait.

`place` asks at the beginning of each reconcile, before anything is moved; `mover` asks how long to rest.
"""

from dataclasses import replace

from splitter.core.clock import clock
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.placement.members import PlacementInput
from splitter.core.reasons import Reason
from splitter.core.rebalance import Tuning
from splitter.core.replica import NodeStatus, Pool
from splitter.core.split_status import RebalanceState
from splitter.core.split_status.backoff import Backoff


def rest(state: RebalanceState, tuning: Tuning, to: Pool) -> float:
    """Return the seconds before the next move to a pool: doubled by each that ended elsewhere.

    To on-demand nobody has to rest but after such a one. Each was a restart in vain, so the wait grows to the
    better part of a day.

    >>> rest(RebalanceState(failed_moves=Backoff(2)), Tuning(), Pool.SPOT)
    240.0
    """
    if to is Pool.ON_DEMAND:
        return state.failed_covers.rest_s(tuning.step_interval_s)
    return max(tuning.step_interval_s, state.failed_moves.rest_s(tuning.step_interval_s))


def room_rest(state: RebalanceState, tuning: Tuning, pool: Pool) -> float:
    """Return the seconds before room in a pool is asked for again, doubled by each that held none."""
    return _placeholders(state, pool).rest_s(tuning.step_interval_s)


def _placeholders(state: RebalanceState, pool: Pool) -> Backoff:
    """Return the placeholders that held no room in this pool; those of the other say nothing of it."""
    return (
        state.failed_placeholders if state.failed_placeholders_up is (pool is Pool.ON_DEMAND) else Backoff()
    )


def with_spent(
    observed: PlacementInput, state: RebalanceState, tuning: Tuning
) -> tuple[RebalanceState, Note | None]:
    """Count a placeholder that holds no room and is let go now, and say why."""
    if (spent := observed.spent) is None:
        return state, None
    state = replace(
        state,
        failed_placeholders=_placeholders(state, spent.pool).failed(observed.now),
        failed_placeholders_up=spent.pool is Pool.ON_DEMAND,
    )
    pod = spent.pod
    why = "has failed" if pod.finished else f"came to a node that is about to go ({pod.signal or 'doomed'})"
    message = (
        f"the placeholder for {observed.name}-{spent.ordinal} {why}: node {pod.node}; another asks for room"
        f" on {spent.pool} not before {clock(observed.now, room_rest(state, tuning, spent.pool))}"
    )
    return state, Note(Reason.WAITING_FOR_ROOM, message, warning=True)


def judged(
    observed: PlacementInput, policy: Policy, state: RebalanceState
) -> tuple[RebalanceState, Note | None]:
    """Look how the last move ended; the note is about one that did not end where it was to."""
    if state.unplaced and _is_placed_again(observed, state):
        state = replace(state, unplaced=False)
    if state.moved is None or state.last_step is None:
        return state, None
    moved = next((m for m in observed.members if m.ordinal == state.moved), None)
    if moved is None:
        return replace(state, moved=None), None
    pod = moved.pod
    if pod is None or pod.uid == state.moved_uid:
        return state, None
    to, elsewhere = (Pool.ON_DEMAND, Pool.SPOT) if state.moved_up else (Pool.SPOT, Pool.ON_DEMAND)
    name = f"{observed.name}-{moved.ordinal}"
    is_bound = pod.node_status not in {NodeStatus.UNBOUND, NodeStatus.UNSEEN}
    if moved.born is None:
        message = (
            f"{name} was to start on {to}, and was created without the label of policy splitter-placement"
        )
    elif is_bound and pod.on_spot is state.moved_up:
        message = f"{name} was to start on {to}, and the scheduler chose {elsewhere} node {pod.node}"
    elif pod.going and not state.moved_up:
        message = f"{name} was to start on {to}, and came to node {pod.node}, which is about to go"
    elif moved.is_stuck(observed.waits, policy.grace_s):
        message = f"{name} was to start on {to}, and found no node"
    elif moved.serves:
        state = replace(state, moved=None, unplaced=False, failed_placeholders=Backoff())
        up = state.moved_up
        return replace(state, failed_covers=Backoff()) if up else replace(state, failed_moves=Backoff()), None
    else:
        return state, None
    state = replace(
        state,
        moved=None,
        # To find no node takes the whole grace: the wait begins when that is known.
        last_step=observed.now if state.moved_up else state.last_step,
        unplaced=moved.born is None,
        failed_moves=state.failed_moves if state.moved_up else state.failed_moves.failed(),
        failed_covers=state.failed_covers.failed() if state.moved_up else state.failed_covers,
    )
    message += "; the next try waits longer"
    return state, Note(Reason.MOVE_UNDONE, message, warning=True)


def _is_placed_again(observed: PlacementInput, state: RebalanceState) -> bool:
    """Whether a pod that was made after the last move bears the policy's label: it acts."""
    pods = (member.pod for member in observed.members if member.born is not None)
    made = [pod.created for pod in pods if pod is not None and pod.created is not None]
    return state.last_step is not None and max(made, default=state.last_step) > state.last_step

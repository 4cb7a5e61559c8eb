"""Says what would keep a member from being made again if its pod ended now (P19).

`disruption` asks before it permits an end, whatever that is for, and `mover` to choose a member that may go.
What a member waits for is returned as a `Hold`. Nothing here counts the members or knows a budget.
"""

from dataclasses import dataclass
from datetime import timedelta

from splitter.core.clock import clock, soonest_s
from splitter.core.model import Note
from splitter.core.nodes.signals import NOTICE_STALE_S
from splitter.core.placement.members import Hold, Member, PlacementInput
from splitter.core.reasons import Reason
from splitter.core.rebalance import Tuning
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status import RebalanceState

_SLACK_S = 10.0
"""Between the decision and the first second of the grace: an answer, a budget's refusal, a kubelet."""


@dataclass(frozen=True, slots=True)
class _Obstacle:
    why: str
    until: str  # what ends it
    reason: Reason = Reason.WAITING_FOR_REPLICAS
    wait_s: float | None = None  # after which it has ended, where time alone ends it


def not_made_again(
    observed: PlacementInput, ordinal: int, pod: Replica, state: RebalanceState, tuning: Tuning
) -> Hold | None:
    """Return why an eviction would not bring the member back; None: it would, or its node ends in a moment.

    Near the deadline of its node the member is lost in any case: then it ends in order. A start does not
    count there, since what cannot be made again has none. Units: seconds.
    """
    last_call_s = _last_call_s(observed, pod, state)
    if last_call_s == 0:
        return None
    obstacle = (
        _behind(observed, ordinal)
        or _beside_one_that_is_away(observed, ordinal, state)
        or _of_an_untried_template(observed, ordinal)
        or _no_node_was_found(observed, pod, state, tuning)
    )
    if obstacle is None:
        return None
    member = next((m for m in observed.members if m.ordinal == ordinal), None)
    in_hurry = pod.going and member is not None and not member.is_unhurried(observed.waits)
    return _held(observed, pod, obstacle, last_call_s, warning=in_hurry)


def held_in_order(observed: PlacementInput, ordinal: int, pod: Replica) -> Hold | None:
    """Return why a pod that has never run is not deleted: the controller would not make the next one."""
    obstacle = _behind(observed, ordinal)
    return _held(observed, pod, obstacle, None) if obstacle is not None else None


def _held(
    observed: PlacementInput,
    pod: Replica,
    obstacle: _Obstacle,
    last_call_s: float | None,
    *,
    warning: bool = False,
) -> Hold:
    where = "doomed node" if pod.going else "node"
    stays = f"{pod.name} stays on {where} {pod.node}" if pod.node else f"{pod.name} is left as it is"
    message = f"{stays}: {obstacle.why}; it moves {obstacle.until}"
    if last_call_s is not None:
        message += f", or at {clock(observed.now, last_call_s)}, so that it ends before its node does"
    note = Note(obstacle.reason, message, warning=warning)
    return Hold(note, soonest_s(obstacle.wait_s, last_call_s))


def _last_call_s(observed: PlacementInput, pod: Replica, state: RebalanceState) -> float | None:
    """Return the seconds until the pod has to begin to end, before its node does; None: no time is known.

    If the node names no time, it is what the provider gives after the last notice that was seen. A node that
    outlives its end by minutes has none.
    """
    ends = pod.deadline
    if ends is None and pod.reclaim_s is not None and state.last_loss is not None:
        ends = state.last_loss + timedelta(seconds=pod.reclaim_s)
    if ends is None or not pod.going:
        return None
    if observed.waits.past(ends, NOTICE_STALE_S):
        return None
    return observed.waits.until_s(ends - timedelta(seconds=pod.termination_s + _SLACK_S))


def _behind(observed: PlacementInput, ordinal: int) -> _Obstacle | None:
    """Find what OrderedReady waits for: a lower ordinal that is missing, ending or not available.

    Source: `processReplica` in Kubernetes' pkg/controller/statefulset/stateful_set_control.go.
    """
    if not observed.ordered:
        return None
    first = next(
        (
            m
            for m in observed.members
            if m.ordinal < ordinal and not m.is_ready_for(observed.waits, observed.min_ready_s)
        ),
        None,
    )
    if first is None:
        return None
    other, name, pod = f"{observed.name}-{first.ordinal}", f"{observed.name}-{ordinal}", first.pod
    wait_s = None
    if pod is None:
        ill = f"{other} is not there"
    elif not pod.counts:
        ill = f"{other} is ending" if pod.terminating else f"{other} has failed"
    elif first.serves:
        ill = f"{other} has not been ready for {observed.min_ready_s:.0f} s (minReadySeconds)"
        wait_s = observed.waits.left_s(pod.ready_since, observed.min_ready_s)
    else:
        ill = f"{other} is not ready"
    why = f"{ill}, and the StatefulSet controller (OrderedReady) would not make {name} again"
    return _Obstacle(why, f"when {other} is available", wait_s=wait_s)


def _beside_one_that_is_away(
    observed: PlacementInput, ordinal: int, state: RebalanceState
) -> _Obstacle | None:
    """Find another member that has ended and has no node yet: perhaps no node has room."""
    ended = {one.ordinal for one in state.restarts}
    for member in observed.members:
        if member.ordinal == ordinal or not (away := _away(observed, member, ended)):
            continue
        other = f"{observed.name}-{member.ordinal}"
        return _Obstacle(
            f"{other} {away}, and nothing tells that another would fare better", f"when {other} has a node"
        )
    return None


def _away(observed: PlacementInput, member: Member, ended: set[int]) -> str:
    pod = member.pod
    if pod is None or pod.finished:
        waits_its_turn = member.ordinal not in ended and _behind(observed, member.ordinal) is not None
        return "" if waits_its_turn else "is not made again yet"
    if member.is_lost:
        return ""  # it has a node, or is removed
    if pod.terminating:
        return "is ending"
    return "has no node" if pod.node_status is NodeStatus.UNBOUND else ""


def _of_an_untried_template(observed: PlacementInput, ordinal: int) -> _Obstacle | None:
    """Find a template that the end would hand out before any member has shown that it starts."""
    member = next((m for m in observed.members if m.ordinal == ordinal), None)
    if member is None or not member.untried:
        return None
    why = f"its new pod would be of template {member.untried}, and no member of that is ready"
    return _Obstacle(why, "when one is", Reason.ROLLOUT_IN_PROGRESS)


def _no_node_was_found(
    observed: PlacementInput, pod: Replica, state: RebalanceState, tuning: Tuning
) -> _Obstacle | None:
    """Find that the last member that was moved to on-demand came to no node there, a while ago."""
    if not pod.going:
        return None
    rest_s = state.failed_covers.rest_s(tuning.step_interval_s)
    if not (wait_s := observed.waits.left_s(state.last_step, rest_s)):
        return None
    why = f"the last move to {Pool.ON_DEMAND} did not end there"
    return _Obstacle(why, f"at {clock(state.last_step, rest_s)}", Reason.MOVE_UNDONE, wait_s)

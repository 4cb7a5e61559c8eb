"""Counts the pods and nodes of an Observation: the input of `decide`.

The planner calls this in each reconcile in which nothing parked has pods. It only counts; the rules of
counting stand in R21 to R23 and on `RebalanceInput`.
"""

from datetime import datetime, timedelta

from splitter.core.causes import hindered, over_quota, unplaceable, without_a_node
from splitter.core.holders import holder_of
from splitter.core.holders.holder import SILENT_S, available_of, counting, is_rolling, stuck
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Observation, SourceView, TwinView, seconds_between
from splitter.core.rebalance import RebalanceInput
from splitter.core.replica import NodeStatus, Replica, ReplicaState

_SILENT_MAX_S = 86_400.0


def rebalance_input(
    observed: Observation, source: SourceView, on_demand: TwinView, spot: TwinView, policy: Policy
) -> RebalanceInput:
    """Count the twins' replicas by the state of their pods' nodes."""
    od_holder, spot_holder = holder_of(on_demand), holder_of(spot)
    od_all = od_holder.staying
    od_pods, spot_pods = counting(od_all), counting(spot_holder.staying)
    ready_since = _ready_since(observed, spot, spot_pods)
    od_going = [pod for pod in od_all if pod.is_to_be_replaced]
    od_cut_off = od_holder.cut_off(observed.waits, policy.grace_s)
    od_held = od_cut_off + od_holder.slow_to_end(observed.waits)
    losing = _losing(spot)
    doomed = [pod for pod in spot_pods if pod.state is ReplicaState.DOOMED]
    by_ordinal = spot_holder.keeps_names
    # A StatefulSet waits for those that are asked to end, too.
    silent = sum(_is_silent(pod, observed) for pod in (spot_holder.staying if by_ordinal else spot_pods))
    dead = silent + spot_holder.cut_off(observed.waits, policy.grace_s)
    return RebalanceInput(
        now=observed.now,
        desired=source.replicas,
        max_surge=source.max_surge,
        max_unavailable=source.max_unavailable,
        on_demand_spec=on_demand.spec_replicas,
        on_demand_ready=_ready(on_demand, od_pods),
        on_demand_stuck=without_a_node(od_pods, observed.waits, policy.grace_s) - od_cut_off,
        on_demand_over_quota=over_quota(on_demand),
        # A vanished node's pod is deleted in this very reconcile, and its ReplicaSet replaces it.
        on_demand_doomed=len(od_going) + od_held,
        on_demand_held=od_held,
        on_demand_late=sum(_is_late(pod, observed.rebalance.on_demand_doomed_since) for pod in od_going),
        spot_spec=spot.spec_replicas,
        spot_ready_since=ready_since,
        # R23. Ready, but not in the status yet: it has a place all the same.
        spot_starting=sum(pod.state.is_placed for pod in spot_pods) - len(ready_since),
        spot_pending_since=min(
            (
                pod.unschedulable_since
                for pod in spot_pods
                if pod.unschedulable_since is not None and pod.state is not ReplicaState.HINDERED
            ),
            default=None,
        ),
        spot_hindered=hindered(spot),
        spot_unplaceable=unplaceable(spot),
        spot_doomed=len(doomed),
        spot_by_ordinal=by_ordinal,
        spot_silent=0 if by_ordinal else silent,
        spot_dead=min(dead, source.replicas) if by_ordinal else 0,
        spot_pinned=spot_holder.pinned,
        spot_stop_at=min(
            (
                pod.deadline - timedelta(seconds=pod.termination_s)
                for pod in doomed
                if pod.deadline is not None
            ),
            default=None,
        ),
        spot_stop_after_s=min(
            (
                pod.notice_s - pod.termination_s
                for pod in doomed
                if pod.deadline is None and pod.notice_s is not None
            ),
            default=None,
        ),
        lost_node_uids=tuple(sorted({pod.node_uid or "" for pod in losing})),
        lost_nodes_live=not any(pod.node_status is NodeStatus.LOST for pod in losing),
        surging=_surging(on_demand) + _surging(spot),
        fit_spot=observed.fit_spot,
        blocked=observed.blocked,
        view_broken=observed.view_broken,
        waits=observed.waits,
    )


def _surging(twin: TwinView) -> int:
    """Count the replicas that a rollout may hold above the spec; those that wait for a node take no room."""
    return max(0, twin.max_surge - stuck(twin.pods)) if is_rolling(twin) and twin.spec_replicas else 0


def _ready(twin: TwinView, pods: list[Replica]) -> int:
    """Count the available replicas, as many as status and each ReplicaSet admit."""
    kept = sum(min(sum(pod.available for pod in rs.pods), rs.spec_replicas) for rs in twin.replica_sets)
    return max(0, min(available_of(pods, twin.available_replicas), kept))


def _ready_since(observed: Observation, spot: TwinView, pods: list[Replica]) -> tuple[datetime, ...]:
    """Return since when each ready replica stands; no more than the twin's status and ReplicaSets admit."""
    instants = sorted(
        observed.now if pod.hinted else pod.ready_since
        for pod in pods
        if pod.available and pod.ready_since is not None
    )
    return tuple(instants[: _ready(spot, pods)])


def _is_late(pod: Replica, doomed_since: datetime | None) -> bool:
    """Whether it was made when replicas were doomed already; in the same second is taken for later."""
    made = pod.created
    return doomed_since is not None and made is not None and made >= doomed_since.replace(microsecond=0)


def _is_silent(pod: Replica, observed: Observation) -> bool:
    """Whether its node has said nothing for so long that it makes room for others.

    Who was not ready before that is dead no longer than its node is lost. Who tolerates everything may be
    bound to one that is silent already: it waits for as long as that one was, or another would follow it
    there every six minutes.
    """
    since = pod.silent_since
    if since is None:
        return False
    lost = observed.rebalance.last_loss or since
    waits_s = min(max(SILENT_S, seconds_between(lost, since)), _SILENT_MAX_S)
    return observed.waits.past(max(lost, since), waits_s)


def _losing(spot: TwinView) -> list[Replica]:
    """Return the pods under which a spot node goes or is gone (R21), terminating ones included.

    A pod that we deleted from a vanished node is terminating at once; its loss must be charged all the same.
    """
    known = (pod for pod in spot.pods if pod.node_uid is not None)
    return [pod for pod in known if pod.on_spot and not pod.voluntary and pod.going]

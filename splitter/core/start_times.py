"""Learns how long a workload's pods take to start, on each pool, and what that means for a loss of all spot.

`planner.policy_in_force` asks `learned` in each reconcile; `report.status` keeps the answer in the Split, so
that it survives restarts. It is the last few times themselves, in whole seconds: old ones make room for new
ones, and people can read them. Each pod counts once, by the time at which it was bound. Source: R28;
docs/adr/0055.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import ceil

from splitter.core import labels_annotations as keys
from splitter.core.labels_annotations.policy import Level, Policy
from splitter.core.labels_annotations.words import MAX_SOAK_S
from splitter.core.model import Note, Observation, seconds_between
from splitter.core.nodes.signals import SHORTEST_NOTICE_S
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Replica
from splitter.core.split_status.starts import (
    KEPT,
    LONGEST_GRACE_S,
    LONGEST_START_S,
    NOTHING_LEARNED,
    PoolStarts,
    StartTimes,
)

ENOUGH = 3
"""So many times must be known before a default follows them."""
_SKEW_S = -5.0  # the clocks of API server, scheduler and kubelet differ a little
_MOST = 0.9  # a start that nine in ten do not exceed
_NODES_GRACE, _STARTS_SOAK = 1.5, 3.0
_GRACE_STEP_S, _SOAK_STEP_S = 30, 60  # a default that changed with each second would be a write for each pod


def warned_s(starts: StartTimes) -> float:
    """Return the seconds from a notice to the end of a spot node; the shortest where nobody says."""
    return SHORTEST_NOTICE_S if starts.notice_s is None else float(starts.notice_s)


def cover_s(starts: StartTimes) -> int | None:
    """Return the seconds in which an on-demand replica is there when it is asked for; None: not known.

    A start that nine in ten do not exceed, after a node as it usually comes.
    """
    times = starts.on_demand.start_s or starts.spot.start_s
    return quantile(times, _MOST) + quantile(starts.on_demand.node_s or (0,), 0.5) if times else None


def slowest_s(starts: StartTimes, *, on_spot: bool) -> float:
    """Return the longest start that was seen on a pool: who takes longer is stuck. 0: none was seen."""
    return float(max((starts.spot if on_spot else starts.on_demand).start_s, default=0))


def patience_s(pod: Replica, grace_s: float, starts: StartTimes) -> float:
    """Return the seconds that a replica may take: for a node the grace, then the longest start at least."""
    if pod.node_status is NodeStatus.UNBOUND:
        return grace_s
    return max(grace_s, slowest_s(starts, on_spot=pod.on_spot))


def with_pod(starts: PoolStarts, pod: Replica) -> PoolStarts:
    """Return the same with a pod that is Ready; a time that cannot be is left out."""
    start_s = _elapsed_s(pod.bound_since, pod.ready_since, LONGEST_START_S)
    node_s = _elapsed_s(pod.created, pod.bound_since, LONGEST_GRACE_S)
    return PoolStarts((*starts.start_s, *start_s)[-KEPT:], (*starts.node_s, *node_s)[-KEPT:])


def with_pods(starts: StartTimes, pods: Sequence[Replica], now: datetime) -> StartTimes:
    """Return the same with the pods that became Ready.

    They are counted in the order in which they were bound: who is still starting holds up those after it,
    for an hour at most. So one instant tells who was counted. When a clock is set back, pods of the time
    that comes twice may count twice.
    """
    bound = sorted(
        ((since.replace(microsecond=0), pod) for pod in pods if (since := pod.bound_since) is not None),
        key=lambda one: one[0],
    )
    until = min(starts.until, now) if starts.until is not None else None
    open_since = min((since for since, pod in bound if _is_starting(pod, now)), default=now)
    due = [(since, pod) for since, pod in bound if (until is None or since > until) and since < open_since]
    pools = {True: starts.spot, False: starts.on_demand}
    for _, pod in due:
        if pod.ready_since is not None:
            pools[pod.on_spot] = with_pod(pools[pod.on_spot], pod)
    until = due[-1][0] if due else until
    if until is None:
        return NOTHING_LEARNED  # of a notice alone the CRD takes nothing, nor any other field of the status
    return StartTimes(
        until=until,
        notice_s=_notice_s(pods) or starts.notice_s,
        on_demand=pools[False],
        spot=pools[True],
    )


def learned(observed: Observation) -> StartTimes:
    """Return what the Split remembers, and what the pods of this moment add to it."""
    pods = [*observed.orphans, *(pod for rs in observed.holders for pod in rs.pods)]
    kept = observed.reported.memory.starts
    # Without the time up to which pods were counted, these would count twice.
    return with_pods(kept if kept.until is not None else NOTHING_LEARNED, pods, observed.now)


def with_learned(
    policy: Policy, levels: Mapping[str, Level], starts: StartTimes
) -> tuple[Policy, Mapping[str, Level]]:
    """Return the policy with defaults that follow what was learned, where nobody has said any.

    The grace lasts until a spot node usually comes, and half as long again. The soak is three times a start:
    spot is worth moving to where it lives for several. Both are only ever longer than splitter's own
    defaults. Who has set others in the settings has said how long it is to be.
    """
    grace_s, soak_s = policy.grace_s, policy.soak_s
    own = Policy()
    unsaid = {name for name, level in levels.items() if level is Level.DEFAULT}
    if keys.ANNOTATION_GRACE in unsaid and grace_s == own.grace_s and len(starts.spot.node_s) >= ENOUGH:
        usual_s = _NODES_GRACE * quantile(starts.spot.node_s, 0.5)
        grace_s = max(grace_s, min(LONGEST_GRACE_S, _stepped(usual_s, _GRACE_STEP_S)))
    if keys.ANNOTATION_SOAK in unsaid and soak_s == own.soak_s and len(starts.spot.start_s) >= ENOUGH:
        lives_s = _STARTS_SOAK * quantile(starts.spot.start_s, _MOST)
        soak_s = max(soak_s, min(MAX_SOAK_S, _stepped(lives_s, _SOAK_STEP_S)))
    longer = {keys.ANNOTATION_GRACE: grace_s > policy.grace_s, keys.ANNOTATION_SOAK: soak_s > policy.soak_s}
    grown = {name: Level.LEARNED for name, is_longer in longer.items() if is_longer}
    return replace(policy, grace_s=grace_s, soak_s=soak_s), {**levels, **grown}


def gap_note(replicas: int, on_demand: int, starts: StartTimes) -> Note | None:
    """Return what a loss of all spot leaves where a start outlasts the notice; None where enough is left.

    `on_demand`: the replicas that are always there.
    """
    needed_s, notice_s = cover_s(starts), warned_s(starts)
    if needed_s is None or on_demand >= (base := gap_base(replicas, needed_s, notice_s)):
        return None
    message = (
        f"pods need {needed_s} s, the notice is {notice_s:.0f} s: a loss of all spot leaves {on_demand} of"
        f" {replicas} for {needed_s - notice_s:.0f} s; {keys.ANNOTATION_ON_DEMAND_BASE} {base} would leave"
        f" {base}"
    )
    return Note(Reason.NOTICE_TOO_SHORT, message, about="gap")


def gap_base(replicas: int, start_s: float, notice_s: float) -> int:
    """Return how many replicas on on-demand cover what the notice does not: its share of a start.

    Never more than a majority: beyond that spot is hardly worth having.

    >>> gap_base(6, 60.0, 30.0), gap_base(6, 30.0, 30.0), gap_base(6, 600.0, 30.0)
    (3, 0, 4)
    """
    if start_s <= notice_s:
        return 0
    return min(replicas // 2 + 1, ceil(replicas * (start_s - notice_s) / start_s))


def quantile(times: Sequence[int], share: float) -> int:
    """Return the least time that such a share of them does not exceed. There must be one.

    >>> quantile([30, 10, 20], 0.5), quantile([30, 10, 20], 0.9), quantile([7], 0.5)
    (20, 30, 7)
    """
    return sorted(times)[ceil(share * len(times)) - 1]


def _is_starting(pod: Replica, now: datetime) -> bool:
    """Whether it has a node, and may yet become Ready there, or tell on what kind of node."""
    if pod.bound_since is None or not 0 <= seconds_between(pod.bound_since, now) <= LONGEST_START_S:
        return False
    if pod.node_status is NodeStatus.UNSEEN:
        return True
    return pod.counts and pod.ready_since is None and not pod.going


def _notice_s(pods: Iterable[Replica]) -> int | None:
    """Return the shortest notice of the spot nodes under these pods."""
    return min((int(pod.usual_notice_s) for pod in pods if pod.on_spot and pod.usual_notice_s), default=None)


def _elapsed_s(begin: datetime | None, end: datetime | None, longest_s: float) -> tuple[int, ...]:
    """Return the whole seconds between two instants, if that is a time that can be."""
    if begin is None or end is None:
        return ()
    elapsed_s = seconds_between(begin, end)
    return (round(max(0.0, elapsed_s)),) if _SKEW_S <= elapsed_s <= longest_s else ()


def _stepped(seconds: float, step_s: int) -> float:
    return float(ceil(seconds / step_s) * step_s)

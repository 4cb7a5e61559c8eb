"""Counts the floor, and how many available replicas surely stay, for each ReplicaSet (H4).

Every write that lowers a count goes by this: MAKE and BREAK (`handover`), the lowerings of a running
split (`replica_moves.may_lower`), and rolls (`replica_moves.total_available`). Counted over sums it was
wrong twice (docs/adr/0033).
"""

from collections.abc import Sequence
from operator import itemgetter

from splitter.core.model import PodView, ReplicaSetView, TwinView


def floor_of(replicas: int, surge: int, unavailable: int) -> int:
    """Return F, the available replicas that no write of ours goes below (promise 1)."""
    return max(0, replicas if surge >= 1 else replicas - unavailable)


def kept_by_replica_set(rs: ReplicaSetView, replicas: int) -> int:
    """Count the available replicas that a ReplicaSet surely keeps at so many.

    A ready pod that does not count as available, on a doomed node for instance, may stay in the place of one
    that does, unless it bears our deletion cost.
    """
    pods = staying_pods(rs.pods, rs.spec_replicas, rs.first_ordinal)
    rivals = sum(_is_ready(pod) and not pod.available and pod.cost_before is None for pod in pods)
    return max(0, min(available_of(pods, rs.available_replicas), replicas - rivals))


def available_of(pods: Sequence[PodView], admitted: int) -> int:
    """Count the available among the pods that a status admits as such: those that are ready for longest.

    The status counts those on doomed nodes, and none before its `minReadySeconds`: a doomed one must not
    stand for one that has just become ready.
    """
    return len(_admitted(pods, admitted))


def _admitted(pods: Sequence[PodView], admitted: int) -> list[PodView]:
    ready = [(pod.ready_since, pod.available, pod) for pod in pods if pod.counts and pod.ready_since]
    if admitted < len(ready):
        ready = sorted(ready, key=itemgetter(0, 1))[: max(0, admitted)]
    return [pod for _, available, pod in ready if available]


def kept_by_twin(twin: TwinView, replicas: int) -> int:
    """Count the available replicas that a twin surely keeps once it is set to so many.

    Each ReplicaSet counts by itself: what one has above its spec does not make up for another. In a roll the
    Deployment controller keeps `replicas - maxUnavailable` ready pods, those on doomed nodes included. What
    exceeds `replicas + maxSurge` it takes from any ReplicaSet: proportional scaling takes serving replicas of
    an older one although the newer one never comes up. Then it may take as many once more
    (`_taken_twice`), from the older ones alone. Source: pkg/controller/deployment of Kubernetes 1.36, `scale`
    and `rolloutRolling`.
    """
    if twin.first_ordinal is not None:
        available = _admitted(twin.pods, twin.available_replicas)
        kept = len(staying_pods(available, replicas, twin.first_ordinal))
        kept = min(kept, sum(rs.spec_replicas for rs in twin.replica_sets))
        return max(0, min(kept, replicas - twin.max_unavailable)) if may_roll(twin) else kept
    if not may_roll(twin):
        kept = sum(kept_by_replica_set(rs, min(rs.spec_replicas, replicas)) for rs in twin.replica_sets)
        return min(kept, replicas, twin.available_replicas)
    held = [rs for rs in twin.replica_sets if rs.spec_replicas]
    kept = sum(kept_by_replica_set(rs, rs.spec_replicas) for rs in held)
    above = sum(rs.spec_replicas for rs in held) - replicas - twin.max_surge
    if above < 0:  # a lowering cuts the old ones all the same, in proportion, and raises the new ones
        above = max(0, twin.spec_replicas - replicas)
    # At worst it takes them where the fewest are free to go.
    free = min((rs.spec_replicas - sum(map(_is_ready, rs.pods)) for rs in held), default=0)
    doomed = sum(_is_ready(pod) and not pod.available for pod in twin.pods)
    lost = max(0, above - max(0, free))
    least = replicas - twin.max_unavailable
    newest = sum(
        kept_by_replica_set(rs, rs.spec_replicas) for rs in held if rs.template_hash == twin.template_hash
    )
    spared = max(least - doomed - _taken_twice(twin, least, above, lost), newest - lost)
    return max(0, min(kept - lost, least - doomed, spared, twin.available_replicas))


def _taken_twice(twin: TwinView, least: int, above: int, lost: int) -> int:
    """Count the serving replicas of older ReplicaSets that may go although no more than `least` are there.

    Of what is available above its least, the controller takes older replicas. It reads that in statuses,
    which may still show what has gone a moment before: the `lost` of a scale-down (docs/adr/0090).
    """
    new = [rs for rs in twin.replica_sets if rs.template_hash == twin.template_hash]
    older = sum(rs.spec_replicas for rs in twin.replica_sets if rs.template_hash != twin.template_hash)
    ready = [(rs, sum(map(_is_ready, rs.pods))) for rs in twin.replica_sets]
    serving = sum(count for rs, count in ready if rs in new)
    # It takes none before so many of the newest are available: `maxScaledDown` in `reconcileOldReplicaSets`.
    spare = older + max(serving, sum(rs.available_replicas for rs in new)) - least
    if spare <= 0:
        return 0
    # A status on its way may show even what is ready above the spec.
    shown = sum(max(rs.available_replicas, count) - min(rs.spec_replicas, count) for rs, count in ready)
    # Of the newest it cuts those first that do not serve.
    unready = sum(max(0, rs.spec_replicas - count) for rs, count in ready if rs in new)
    return shown + min(lost, spare - 1 + max(0, min(serving, above - unready)))


def may_roll(twin: TwinView) -> bool:
    """Whether its controller may exchange replicas (H57): a write that it has not seen may begin a roll."""
    return is_rolling(twin) or not twin.observed


def is_rolling(twin: TwinView) -> bool:
    """Whether it holds replicas of another template than its own, or of more than one ReplicaSet."""
    holding = [rs for rs in twin.replica_sets if rs.spec_replicas or rs.status_replicas]
    return len(holding) > 1 or any(rs.template_hash != twin.template_hash for rs in holding)


def staying_pods(pods: Sequence[PodView], spec: int, first_ordinal: int | None) -> Sequence[PodView]:
    """Return the pods that their controller is to keep: of a StatefulSet, known by their ordinals."""
    if first_ordinal is None:
        return pods
    last = first_ordinal + spec
    return [pod for pod in pods if pod.ordinal is not None and first_ordinal <= pod.ordinal < last]


def _is_ready(pod: PodView) -> bool:
    return pod.counts and pod.ready_since is not None

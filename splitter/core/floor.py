"""Counts the floor, what surely stays after a write, and what one may cost, for each ReplicaSet (H4, H56).

Every write that lowers a count goes by this: MAKE and BREAK (`handover`), the lowerings of a running
split (`replica_moves.may_lower`), and rolls (`replica_moves.total_available`). Counted over sums it was
wrong twice (docs/adr/0033), and once as a difference of two lower bounds (docs/adr/0096).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from splitter.core.model import PodView, ReplicaSetView, SourceView, TwinView

Among = Callable[[PodView], bool]  # which pods are counted


def floor_of(replicas: int, surge: int, unavailable: int) -> int:
    """Return F, the available replicas that no write of ours goes below (promise 1)."""
    return max(0, replicas if surge >= 1 else replicas - unavailable)


def is_available(pod: PodView) -> bool:
    """Whether a pod is ready on a node that stays."""
    return pod.available


def serves(pod: PodView) -> bool:
    """Whether clients would miss a pod: it is ready, on a doomed node or not."""
    return pod.serves


def most_lost(one: TwinView | ReplicaSetView, replicas: int) -> int:
    """Return how many serving pods a holder may lose, at the most, by a change to this many replicas (H56).

    An upper bound: all that serve, the doomed included, less those that surely still serve afterwards.
    """
    staying = staying_pods(one.pods, one.spec_replicas, one.first_ordinal)
    return max(0, sum(map(serves, staying)) - kept_by(one, replicas, serves))


def kept_by(one: TwinView | ReplicaSetView, replicas: int, among: Among = is_available) -> int:
    """Count the pods among these that a holder surely keeps at this many replicas."""
    if isinstance(one, TwinView):
        return kept_by_twin(one, replicas, among)
    return kept_by_replica_set(one, replicas, among)


def kept_by_replica_set(rs: ReplicaSetView, replicas: int, among: Among = is_available) -> int:
    """Count the pods among these that a ReplicaSet, or a StatefulSet, surely keeps at this many replicas.

    A ready pod that does not count, on a doomed node for instance, may stay in the place of one that does,
    unless its deletion cost is lower than that of each pod that counts.
    """
    # Which pods it ends depends on no status: that only says which ones count as available.
    admitted = rs.available_replicas if among is is_available else None
    if rs.first_ordinal is None:
        return _kept(rs, replicas, among, admitted)
    return _kept_members(rs, replicas, among, admitted, rolled=int(rs.rolls))


def _kept_members(
    one: TwinView | ReplicaSetView, replicas: int, among: Among, admitted: int | None, *, rolled: int
) -> int:
    """Count the pods that a StatefulSet keeps: it ends the highest ordinals, ready or not.

    Its roll may take `rolled` of them if all others look ready.
    """
    counted = staying_pods(_admitted(one.pods, admitted), replicas, one.first_ordinal)
    staying = staying_pods(one.pods, replicas, one.first_ordinal) if rolled else ()
    rivals = sum(pod.ready and not among(pod) for pod in staying)
    kept = sum(map(among, counted))
    return max(0, min(kept, replicas - rolled - rivals) if rolled else kept)


def _kept(rs: ReplicaSetView, replicas: int, among: Among, admitted: int | None) -> int:
    """Count as above; with a status, only what that admits."""
    ready = [pod for pod in rs.pods if pod.ready]
    lowest = min((_deletion_cost(pod) for pod in ready if among(pod)), default=0)
    rivals = sum(not among(pod) and _deletion_cost(pod) >= lowest for pod in ready)
    # A controller that has not seen them ready takes them for as good as those that are not.
    unseen = max(0, min(len(ready) - rs.available_replicas, sum(pod.counts for pod in rs.pods) - replicas))
    return max(0, min(_counted(ready, admitted, among), replicas - rivals, sum(map(among, ready)) - unseen))


def _counted(pods: Sequence[PodView], admitted: int | None, among: Among) -> int:
    return sum(map(among, _admitted(pods, admitted)))


def _deletion_cost(pod: PodView) -> int:
    try:
        return int(pod.deletion_cost or 0)
    except ValueError:
        return 0  # as Kubernetes takes it


def available_of(pods: Sequence[PodView], admitted: int) -> int:
    """Count the available among the pods that a status admits as such: those that are ready for longest.

    The status counts those on doomed nodes, and none before its `minReadySeconds`: a doomed one must not
    stand for one that has just become ready.
    """
    return _counted(pods, admitted, is_available)


def _admitted(pods: Sequence[PodView], admitted: int | None) -> list[PodView]:
    ready = [(pod.ready_since, pod.available, pod) for pod in pods if pod.counts and pod.ready_since]
    if admitted is not None and admitted < len(ready):
        ready = sorted(ready, key=itemgetter(0, 1))[: max(0, admitted)]
    return [pod for _, _, pod in ready]


@dataclass(frozen=True, slots=True)
class _Roll:
    """A Deployment that may exchange replicas, a twin or the source."""

    replica_sets: Sequence[ReplicaSetView]
    template_hash: str
    spec_replicas: int
    max_surge: int
    max_unavailable: int


def kept_by_twin(twin: TwinView, replicas: int, among: Among = is_available) -> int:
    """Count the pods among these that a twin surely keeps at this many replicas.

    Each ReplicaSet counts by itself: what one has above its spec does not make up for another. The twin's
    status caps what is available; which pods its ReplicaSets end does not depend on it.
    """
    admitted = twin.available_replicas if among is is_available else None
    if twin.first_ordinal is not None:
        rolled = twin.max_unavailable if may_roll(twin) else 0
        kept = _kept_members(twin, replicas, among, admitted, rolled=rolled)
        return min(kept, sum(rs.spec_replicas for rs in twin.replica_sets))
    if not may_roll(twin):
        kept = sum(
            kept_by_replica_set(rs, min(rs.spec_replicas, replicas), among) for rs in twin.replica_sets
        )
        kept = min(kept, replicas)
    else:
        surge, unavailable = twin.max_surge, twin.max_unavailable
        roll = _Roll(twin.replica_sets, twin.template_hash, twin.spec_replicas, surge, unavailable)
        kept = _kept_in_roll(roll, replicas, among)
    return kept if admitted is None else min(kept, admitted)


def kept_by_source(source: SourceView, attached: Sequence[ReplicaSetView]) -> int:
    """Count the available replicas that a source surely keeps that runs by itself, by its own strategy."""
    if source.observed and not _is_rolling(attached, source.template_hash):
        return sum(kept_by_replica_set(rs, min(rs.spec_replicas, source.replicas)) for rs in attached)
    surge, unavailable = source.max_surge, source.max_unavailable
    roll = _Roll(attached, source.template_hash, source.replicas, surge, unavailable)
    return _kept_in_roll(roll, source.replicas, is_available)


def _kept_in_roll(roll: _Roll, replicas: int, among: Among) -> int:
    """Count the replicas among these that a Deployment surely keeps that may roll.

    Its controller keeps `replicas - maxUnavailable` ready pods, those on doomed nodes included. What exceeds
    `replicas + maxSurge` it takes from any ReplicaSet: proportional scaling takes serving replicas of an
    older one although the newer one never comes up. Then it may take as many once more (`_taken_twice`), from
    the older ones alone; and what no status of a ReplicaSet shows as available it takes first. Source:
    pkg/controller/deployment of Kubernetes 1.36, `scale` and `rolloutRolling`.
    """
    held = [rs for rs in roll.replica_sets if rs.spec_replicas]
    counts = {rs.uid: _kept(rs, rs.spec_replicas, among, rs.available_replicas) for rs in held}
    kept = sum(counts.values())
    above = sum(rs.spec_replicas for rs in held) - replicas - roll.max_surge
    if above < 0:  # a lowering cuts the old ones all the same, in proportion, and raises the new ones
        above = max(0, roll.spec_replicas - replicas)
    # At worst it takes them where the fewest are free to go.
    free = min((rs.spec_replicas - sum(pod.ready for pod in rs.pods) for rs in held), default=0)
    others = sum(pod.ready and not among(pod) for rs in roll.replica_sets for pod in rs.pods)
    lost = max(0, above - max(0, free))
    least = replicas - roll.max_unavailable
    newest = sum(counts[rs.uid] for rs in held if rs.template_hash == roll.template_hash)
    spared = max(least - others - _taken_twice(roll, least, above, lost), newest - lost)
    return max(0, min(kept - lost, least - others, spared))


def _taken_twice(roll: _Roll, least: int, above: int, lost: int) -> int:
    """Count the serving replicas of older ReplicaSets that may go although no more than `least` are there.

    Of what is available above its least, the controller takes older replicas. It reads that in statuses,
    which may still show what has gone a moment before: the `lost` of a scale-down (docs/adr/0090).
    """
    ready = [(rs, sum(pod.ready for pod in rs.pods)) for rs in roll.replica_sets]
    new = [(rs, count) for rs, count in ready if rs.template_hash == roll.template_hash]
    older = sum(rs.spec_replicas for rs in roll.replica_sets if rs.template_hash != roll.template_hash)
    serving = sum(count for _, count in new)
    # It takes none before so many of the newest are available: `maxScaledDown` in `reconcileOldReplicaSets`.
    spare = older + max(serving, sum(rs.available_replicas for rs, _ in new)) - least
    if spare <= 0:
        return 0
    # A status on its way may show even what is ready above the spec.
    shown = sum(max(rs.available_replicas, count) - min(rs.spec_replicas, count) for rs, count in ready)
    # Of the newest it cuts those first that do not serve.
    unready = sum(max(0, rs.spec_replicas - count) for rs, count in new)
    return shown + min(lost, spare - 1 + max(0, min(serving, above - unready)))


def may_roll(twin: TwinView) -> bool:
    """Whether its controller may exchange replicas (H57): a write that it has not seen may begin a roll."""
    return is_rolling(twin) or not twin.observed


def is_rolling(twin: TwinView) -> bool:
    """Whether it holds replicas of another template than its own, or of more than one ReplicaSet."""
    return _is_rolling(twin.replica_sets, twin.template_hash)


def _is_rolling(replica_sets: Sequence[ReplicaSetView], template_hash: str) -> bool:
    holding = [rs for rs in replica_sets if rs.spec_replicas or rs.status_replicas]
    return len(holding) > 1 or any(rs.template_hash != template_hash for rs in holding)


def staying_pods(pods: Sequence[PodView], spec: int, first_ordinal: int | None) -> Sequence[PodView]:
    """Return the pods that their controller is to keep: of a StatefulSet, known by their ordinals."""
    if first_ordinal is None:
        return pods
    last = first_ordinal + spec
    return [pod for pod in pods if pod.ordinal is not None and first_ordinal <= pod.ordinal < last]

"""The answers of a twin that is a Deployment, and what a source that runs by itself surely keeps."""

from collections.abc import Sequence
from dataclasses import dataclass

from splitter.core.holders.holder import (
    Holder,
    ReplicaSet,
    admits,
    holds_others,
    is_rolling,
    kept_of,
    may_roll,
)
from splitter.core.holders.pods import Among, available_of, counting, is_available
from splitter.core.model import ReplicaSetView, SourceView, TwinView


@dataclass(frozen=True, slots=True)
class Deployment(Holder):
    """A twin of a Deployment."""

    view: TwinView
    kind = "Deployment"

    def surely_keeps(self, replicas: int, among: Among = is_available) -> int:
        """Count the pods among these that it surely keeps at this many replicas.

        Each ReplicaSet counts by itself: what one has above its spec does not make up for another. The status
        caps what is available; which pods its ReplicaSets end does not depend on it.
        """
        twin, admitted = self.view, admits(self.view, among)
        if may_roll(twin):
            kept = _kept_in_roll(twin, twin.replica_sets, twin.spec_replicas, replicas, among)
        else:
            kept = min(_kept_at_rest(twin.replica_sets, replicas, among), replicas)
        return kept if admitted is None else min(kept, admitted)

    @property
    def exchanging(self) -> bool:
        """Whether it holds replicas of another template than its own, or of more than one ReplicaSet."""
        return is_rolling(self.view)

    @property
    def lags(self) -> bool:
        """Whether a lowering has not reached its ReplicaSets and their pods yet.

        Two controllers write its status, one after the other, so it is seconds behind while they are busy:
        pods that already end are left out.
        """
        twin = self.view
        ending = sum(pod.terminating for pod in twin.pods)
        left = max(len(counting(twin.pods)), twin.status_replicas - ending)
        return max(left, self.asked) > twin.spec_replicas + (twin.max_surge if self.exchanging else 0)

    @property
    def looks_free(self) -> bool:
        """Whether more are ready than its status and its ReplicaSets admit."""
        twin = self.view
        counted = min(available_of(twin.pods, twin.available_replicas), self.asked)
        return not self.exchanging and sum(map(is_available, twin.pods)) > counted


def kept_by_source(source: SourceView, attached: Sequence[ReplicaSetView]) -> int:
    """Count the available replicas that a source surely keeps if it runs by itself, by its own strategy."""
    if source.observed and not holds_others(attached, source.template_hash):
        return _kept_at_rest(attached, source.replicas, is_available)
    return _kept_in_roll(source, attached, source.replicas, source.replicas, is_available)


def _kept_at_rest(replica_sets: Sequence[ReplicaSetView], replicas: int, among: Among) -> int:
    return sum(ReplicaSet(rs).surely_keeps(min(rs.spec_replicas, replicas), among) for rs in replica_sets)


def _kept_in_roll(
    roll: TwinView | SourceView, sets: Sequence[ReplicaSetView], spec: int, replicas: int, among: Among
) -> int:
    """Count the replicas among these that a Deployment surely keeps if it may roll.

    Its controller keeps `replicas - maxUnavailable` ready pods, those on doomed nodes included. What exceeds
    `replicas + maxSurge` it takes from any ReplicaSet: proportional scaling takes serving replicas of an
    older one although the newer one never comes up. Then it may take as many once more (`_taken_twice`), from
    the older ones alone; and what no status of a ReplicaSet shows as available it takes first. Source:
    pkg/controller/deployment of Kubernetes 1.36, `scale` and `rolloutRolling`.
    """
    held = [rs for rs in sets if rs.spec_replicas]
    counts = {rs.uid: kept_of(rs, rs.spec_replicas, among, rs.available_replicas) for rs in held}
    kept = sum(counts.values())
    above = sum(rs.spec_replicas for rs in held) - replicas - roll.max_surge
    if above < 0:  # a lowering cuts the old ones all the same, in proportion, and raises the new ones
        above = max(0, spec - replicas)
    # At worst it takes them where the fewest are free to go.
    free = min((rs.spec_replicas - sum(pod.ready for pod in rs.pods) for rs in held), default=0)
    others = sum(pod.ready and not among(pod) for rs in sets for pod in rs.pods)
    lost = max(0, above - max(0, free))
    least = replicas - roll.max_unavailable
    newest = sum(counts[rs.uid] for rs in held if rs.template_hash == roll.template_hash)
    spared = max(least - others - _taken_twice(roll, sets, least, above, lost), newest - lost)
    return max(0, min(kept - lost, least - others, spared))


def _taken_twice(
    roll: TwinView | SourceView, sets: Sequence[ReplicaSetView], least: int, above: int, lost: int
) -> int:
    """Count the serving replicas of older ReplicaSets that may go although no more than `least` are there.

    Of what is available above its least, the controller takes older replicas. It reads that in statuses,
    which may still show what has gone a moment before: the `lost` of a scale-down (docs/adr/0090).
    """
    ready = [(rs, sum(pod.ready for pod in rs.pods)) for rs in sets]
    new = [(rs, count) for rs, count in ready if rs.template_hash == roll.template_hash]
    older = sum(rs.spec_replicas for rs in sets if rs.template_hash != roll.template_hash)
    serving = sum(count for _, count in new)
    # It takes none until enough of the newest are available: `maxScaledDown` in `reconcileOldReplicaSets`.
    spare = older + max(serving, sum(rs.available_replicas for rs, _ in new)) - least
    if spare <= 0:
        return 0
    # A status on its way may show even what is ready above the spec.
    shown = sum(max(rs.available_replicas, count) - min(rs.spec_replicas, count) for rs, count in ready)
    # Of the newest it cuts those first that do not serve.
    unready = sum(max(0, rs.spec_replicas - count) for rs, count in new)
    return shown + min(lost, spare - 1 + max(0, min(serving, above - unready)))

"""What rules may ask of an object that holds replicas, and the answers of ReplicaSets and Deployments.

Every write that lowers a count goes by `surely_keeps` and `may_lose` (H4, H56): MAKE and BREAK (`shares`),
the lowerings of a running split (`replica_moves.may_lower`), rolls (`replica_moves.total_available`) and the
floor gate. Counted over sums it was wrong twice (docs/adr/0033), and once as a difference of two lower bounds
(docs/adr/0096).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Protocol

from splitter.core.clock import Waits
from splitter.core.model import ReplicaSetView, SourceView, TwinView
from splitter.core.replica import Replica

Among = Callable[[Replica], bool]  # which pods are counted
is_available: Among = attrgetter("available")  # ready on a node that stays
serves: Among = attrgetter("serves")  # clients would miss it: ready, on a doomed node or not

# Kubernetes leaves pods on a silent node for 300 s (the default tolerationSeconds); this is a bit more.
SILENT_S = 360.0


def floor_of(replicas: int, surge: int, unavailable: int) -> int:
    """Return F, the available replicas that no write of splitter goes below (promise 1)."""
    return max(0, replicas if surge >= 1 else replicas - unavailable)


def counting(pods: Sequence[Replica]) -> list[Replica]:
    """Return the pods that a ReplicaSet counts as its replicas."""
    return [pod for pod in pods if pod.counts]


def stuck(pods: Sequence[Replica]) -> int:
    """Count the replicas that the scheduler cannot place: they take no room from others."""
    return sum(pod.counts and pod.unschedulable_since is not None for pod in pods)


def doomed_or_lost(pods: Sequence[Replica]) -> int:
    """Count the replicas that are about to go or gone: each is replaced at once on on-demand."""
    return sum(pod.is_to_be_replaced for pod in pods)


def available_of(pods: Sequence[Replica], admitted: int) -> int:
    """Count the available among the pods that a status admits as such: those that are ready for longest.

    The status counts those on doomed nodes, and none before its `minReadySeconds`: a doomed one must not
    be counted in place of one that has just become ready.
    """
    return sum(map(is_available, admitted_of(pods, admitted)))


def admitted_of(pods: Sequence[Replica], admitted: int | None) -> list[Replica]:
    """Return the ready pods, but no more than a status admits, if one is given."""
    ready = [(pod.ready_since, pod.available, pod) for pod in pods if pod.counts and pod.ready_since]
    if admitted is not None and admitted < len(ready):
        ready = sorted(ready, key=itemgetter(0, 1))[: max(0, admitted)]
    return [pod for _, _, pod in ready]


class Holder(Protocol):
    """An object that holds replicas. The defaults suit one without rolls, whose pods get new names."""

    __slots__ = ()

    kind: str
    view: ReplicaSetView | TwinView

    @property
    def replica_sets(self) -> Sequence[ReplicaSetView]:
        """Its pods by template."""
        return self.view.replica_sets if isinstance(self.view, TwinView) else (self.view,)

    def surely_keeps(self, replicas: int, among: Among = is_available) -> int:
        """Count the pods among these that it surely keeps at this many replicas: a lower bound."""
        ...

    def may_lose(self, replicas: int) -> int:
        """Return how many serving pods it may lose, at the most, by a change to this many replicas (H56).

        An upper bound: all that serve, the doomed included, less those that surely still serve afterwards.
        """
        return max(0, sum(map(serves, self.staying)) - self.surely_keeps(replicas, serves))

    @property
    def keeps_names(self) -> bool:
        """Whether a pod that comes in the place of another has its name, and waits until that is free."""
        return False

    @property
    def staying(self) -> Sequence[Replica]:
        """The pods that its controller keeps at its count, as far as they exist."""
        return self.view.pods

    @property
    def held(self) -> int:
        """The most it may have at this moment, unschedulable ones left out; in a roll it may surge.

        Scaled down and up within its controller's lag, a status still shows the old numbers, so what its
        templates ask for counts too.
        """
        view = self.view
        spec = view.spec_replicas
        if spec and isinstance(view, TwinView) and may_roll(view):
            spec += view.max_surge
        return max(spec, view.status_replicas, self.asked, len(counting(view.pods))) - stuck(view.pods)

    @property
    def asked(self) -> int:
        """The replicas that its templates ask for, in all."""
        return sum(rs.spec_replicas for rs in self.replica_sets)

    @property
    def lags(self) -> bool:
        """Whether a lowering has not reached its pods yet."""
        return max(self.view.status_replicas, self.asked) > self.view.spec_replicas

    @property
    def exchanging(self) -> bool:
        """Whether its controller moves replicas between ReplicaSets, as many as its numbers allow."""
        return False

    @property
    def looks_free(self) -> bool:
        """Whether its controller may delete serving pods as unavailable: its status does not show them."""
        return False

    def cut_off(self, _waits: Waits, _grace_s: float) -> int:
        """Count the pods that wait for a node that reaches their volume, and hold their names."""
        return 0

    def slow_to_end(self, _waits: Waits) -> int:
        """Count the pods that take too long to end: their names may not become free soon."""
        return 0

    def dead(self, _waits: Waits) -> int:
        """Count the pods on silent nodes that nothing replaces."""
        return 0

    @property
    def pinned(self) -> int:
        """The doomed pods that a lowering does not take before others that stay."""
        return 0

    @property
    def hides_templates(self) -> bool:
        """Whether it is unknown which of its pods have its template."""
        return False

    def roll_numbers(self, surge: int, unavailable: int) -> tuple[int, int, str]:
        """Return the numbers of a roll that is asked for with these, and how to say them."""
        return surge, unavailable, f"maxSurge {surge}, maxUnavailable {unavailable}"


@dataclass(frozen=True, slots=True)
class ReplicaSet(Holder):
    """A ReplicaSet that no Deployment scales: a parked one, or one of a Deployment's, looked at by itself."""

    view: ReplicaSetView
    kind = "ReplicaSet"

    def surely_keeps(self, replicas: int, among: Among = is_available) -> int:
        """Count the pods among these that it surely keeps at this many replicas.

        A ready pod that does not count, on a doomed node for instance, may stay in the place of one that
        does, unless its deletion cost is lower than that of each pod that counts. Which pods it ends depends
        on no status: that only says which ones count as available.
        """
        return kept_of(self.view, replicas, among, admits(self.view, among))


def admits(view: ReplicaSetView | TwinView, among: Among) -> int | None:
    """Return how many pods a status admits as available; None: other pods are asked for."""
    return view.available_replicas if among is is_available else None


def kept_of(rs: ReplicaSetView, replicas: int, among: Among, admitted: int | None) -> int:
    """Count the pods that a ReplicaSet surely keeps; with a status, only what that admits."""
    ready = [pod for pod in rs.pods if pod.ready]
    lowest = min((_deletion_cost(pod) for pod in ready if among(pod)), default=0)
    rivals = sum(not among(pod) and _deletion_cost(pod) >= lowest for pod in ready)
    # If its controller has not seen that they are ready, it treats them as unready.
    unseen = max(0, min(len(ready) - rs.available_replicas, sum(pod.counts for pod in rs.pods) - replicas))
    counted = sum(map(among, admitted_of(ready, admitted)))
    return max(0, min(counted, replicas - rivals, sum(map(among, ready)) - unseen))


def _deletion_cost(pod: Replica) -> int:
    try:
        return int(pod.deletion_cost or 0)
    except ValueError:
        return 0  # as Kubernetes takes it


def is_rolling(twin: TwinView) -> bool:
    """Whether it holds replicas of another template than its own, or of more than one ReplicaSet."""
    return holds_others(twin.replica_sets, twin.template_hash)


def may_roll(twin: TwinView) -> bool:
    """Whether its controller may exchange replicas (H57): a write that it has not seen may begin a roll."""
    return is_rolling(twin) or not twin.observed


def holds_others(replica_sets: Sequence[ReplicaSetView], template_hash: str) -> bool:
    """Whether these hold replicas of another template than this, or of more than one ReplicaSet."""
    holding = [rs for rs in replica_sets if rs.spec_replicas or rs.status_replicas]
    return len(holding) > 1 or any(rs.template_hash != template_hash for rs in holding)


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

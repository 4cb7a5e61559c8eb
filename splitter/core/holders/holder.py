"""What rules may ask of an object that holds replicas, and the answers of a ReplicaSet, the plainest one.

Every write that lowers a count goes by `surely_keeps` and `may_lose` (H4, H56): MAKE and BREAK (`shares`),
the lowerings of a running split (`replica_moves.may_lower`), rolls (`replica_moves.total_available`) and the
floor gate. Counted over sums it was wrong twice (docs/adr/0033), and once as a difference of two lower bounds
(docs/adr/0096).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from splitter.core.clock import Waits
from splitter.core.holders.pods import Among, admitted_of, counting, is_available, serves, stuck
from splitter.core.model import PodView, ReplicaSetView, TwinView


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
    def staying(self) -> Sequence[PodView]:
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


def _deletion_cost(pod: PodView) -> int:
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

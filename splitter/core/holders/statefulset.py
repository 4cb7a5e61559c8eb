"""The answers of a StatefulSet, the source or a twin: its pods keep their names, the highest goes first."""

from collections.abc import Sequence
from dataclasses import dataclass

from splitter.core.clock import Waits
from splitter.core.holders.holder import SILENT_S, Among, Holder, admits, admitted_of, is_available
from splitter.core.model import ReplicaSetView, TwinView
from splitter.core.reasons import Reason
from splitter.core.replica import Replica, ReplicaState

# Twice the default of terminationGracePeriodSeconds, whatever the pod has: that may be an hour.
SLOW_END_S = 60.0


@dataclass(frozen=True, slots=True)
class StatefulSet(Holder):
    """A StatefulSet: the source, or a twin."""

    view: ReplicaSetView | TwinView
    first: int
    rolls: bool  # in a roll, or perhaps: it may take a member
    seen: bool = True  # its controller has seen the last write
    kind = "StatefulSet"

    def surely_keeps(self, replicas: int, among: Among = is_available) -> int:
        """Count the pods that it keeps: it ends the highest ordinals, ready or not.

        Its roll may take one of them if all others look ready.
        """
        pods = admitted_of(self.view.pods, admits(self.view, among))
        kept = sum(map(among, staying_pods(pods, replicas, self.first)))
        if self.rolls:
            staying = staying_pods(self.view.pods, replicas, self.first)
            rivals = sum(pod.ready and not among(pod) for pod in staying)
            kept = max(0, min(kept, replicas - 1 - rivals))
        return min(kept, self.asked)

    @property
    def keeps_names(self) -> bool:
        """Whether a pod that comes in the place of another has its name."""
        return True

    @property
    def staying(self) -> Sequence[Replica]:
        """The pods that its controller keeps at its count, by their ordinals."""
        return staying_pods(self.view.pods, self.view.spec_replicas, self.first)

    def cut_off(self, waits: Waits, grace_s: float) -> int:
        """Count the pods that wait for a node that reaches their volume, and hold their names."""
        return sum(is_cut_off(pod, waits, grace_s) for pod in self.staying)

    def slow_to_end(self, waits: Waits) -> int:
        """Count the pods that take too long to end: their names may not become free soon.

        A member that a roll ends is not one: it comes again with the new template, however long it takes.
        """
        hash_ = self.view.template_hash
        rolled = {pod.uid for rs in self.replica_sets if rs.template_hash != hash_ for pod in rs.pods}
        ending = (pod for pod in self.staying if not pod.going and pod.uid not in rolled)
        return sum(waits.past(pod.terminating_since, SLOW_END_S) for pod in ending)

    def dead(self, waits: Waits) -> int:
        """Count the pods on silent nodes that nothing replaces."""
        return sum(waits.past(pod.silent_since, SILENT_S) for pod in self.staying)

    @property
    def pinned(self) -> int:
        """The doomed members below one that stays: it would be lowered before them."""
        ordinals = [(pod.ordinal, pod) for pod in self.staying if pod.ordinal is not None]
        highest = max((ordinal for ordinal, pod in ordinals if pod.available), default=-1)
        return sum(pod.state is ReplicaState.DOOMED and ordinal < highest for ordinal, pod in ordinals)

    @property
    def hides_templates(self) -> bool:
        """Whether it is unknown which of its pods have its template."""
        return not self.seen

    def roll_numbers(self, surge: int, unavailable: int) -> tuple[int, int, str]:  # noqa: ARG002 - it rolls by its own
        """Return the numbers of a roll, whatever is asked for."""
        return 0, 1, "one pod at a time"


def staying_pods(pods: Sequence[Replica], spec: int, first: int) -> Sequence[Replica]:
    """Return the pods that a StatefulSet keeps at this many replicas, by their ordinals."""
    last = first + spec
    return [pod for pod in pods if pod.ordinal is not None and first <= pod.ordinal < last]


def is_cut_off(pod: Replica, waits: Waits, grace_s: float) -> bool:
    """Whether a StatefulSet's member has waited for the grace where no node can reach its volume.

    The volume is on a node that is gone, or in a zone without one. Under another name it would get a new one.
    """
    reason = pod.trouble.reason if pod.trouble is not None else None
    return pod.ordinal is not None and reason is Reason.VOLUME_ZONE_CONFLICT and pod.is_stuck(waits, grace_s)

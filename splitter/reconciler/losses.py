"""Counts the replicas that are missing after losses, and holds back what can wait while they are many.

After a raise nothing of ours may slow the new pods down. A removed pod costs the API server two requests of
ours and some ten of Kubernetes' own, as much as the new pod that takes its place. `Reconciler` asks here
before it writes. Where few are missing the API server has time for both, and a dead pod leaves the Service at
once. Source: R52, docs/adr/0060.
"""

from collections.abc import Callable

from splitter.core.actions import Action, DeleteVanishedPod, Scale, SetDeletionCost, is_raise
from splitter.core.model import NodeStatus, Observation
from splitter.core.names import Key
from splitter.core.plan import Plan

# So many missing replicas of all workloads together are many.
_MANY = 50
# Seconds from a workload's loss for which it is counted, and waits: Kubernetes removes the pods itself then.
_LONGEST_S = 40.0


class Losses:
    """The workloads that have lost pods, since when, and how many replicas each one misses."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Know of none yet; `clock` returns seconds."""
        self._clock = clock
        self._missing: dict[Key, tuple[float, int]] = {}

    def saw(self, observed: Observation) -> None:
        """Take note of a workload that is reconciled: while lost pods of it count, it may miss replicas."""
        key = observed.key
        pods = [pod for twin in observed.twins for pod in twin.pods]
        lost = any(pod.counts and pod.node_status is NodeStatus.LOST for pod in pods)
        if observed.source is None or not lost:
            self._missing.pop(key, None)
            return
        since, _ = self._missing.get(key, (self._clock(), 0))
        missing = observed.source.replicas - sum(pod.available for pod in pods)
        self._missing[key] = (since, max(0, missing))

    def hold(self, key: Key, planned: Plan) -> bool:
        """Whether what is planned waits for replicas that are missing, of this workload or of others."""
        since, _ = self._missing.get(key, (None, 0))
        now_s = self._clock()
        if since is None or now_s - since >= _LONGEST_S or planned.retries or not can_wait(planned):
            return False
        missing = sum(count for at, count in self._missing.values() if now_s - at < _LONGEST_S)
        return missing > _MANY


def can_wait(planned: Plan) -> bool:
    """Whether something is to be written, and all of it only takes away what is lost or about to go."""
    return bool(planned.actions) and all(_takes_away(one) for one in planned.actions)


def _takes_away(action: Action) -> bool:
    """Whether it removes pods or prepares that; not where a StatefulSet waits for the name of the pod."""
    match action:
        case Scale():
            return not is_raise(action)
        case DeleteVanishedPod():
            return not action.at_once
        case _:
            return isinstance(action, SetDeletionCost)

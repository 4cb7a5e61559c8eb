"""Counts the replicas that are missing after losses, and holds back what can wait until all are available.

After a raise nothing of ours may slow the new pods down. A removed pod costs the API server two requests of
ours and some ten of Kubernetes' own, as much as the new pod that takes its place. `Reconciler` asks here
before it writes. Where few are missing the API server has time for both, and a dead pod leaves the Service at
once. What the API server has no time for shows in that the missing become fewer: while they do, it is busy
with them; when they do not for a while, it is calm, or they are not to be had. Source: R52, docs/adr/0060,
docs/adr/0074.
"""

from collections.abc import Callable
from dataclasses import dataclass

from splitter.core.actions import Action, DeleteVanishedPod, Scale, SetDeletionCost, is_raise
from splitter.core.model import Observation
from splitter.core.names import Key
from splitter.core.plan import Plan

# So many missing replicas of all workloads together are many.
_MANY = 50
# Seconds in which nobody misses fewer: then those that miss some are waited for no longer.
_STANDSTILL_S = 15.0
# Seconds from a workload's loss for which it is waited for, and waits itself. So long Kubernetes leaves the
# pods of a silent node.
_LONGEST_S = 300.0


@dataclass(slots=True)
class _Loss:
    """What one workload has lost: since when, how many pods, and the fewest replicas that it missed since."""

    since_s: float
    lost: int
    missing: int
    waited_for: bool = True
    waits: bool = True

    def is_old(self, now_s: float) -> bool:
        """Whether nobody waits for it any more, nor does it wait itself."""
        return now_s - self.since_s >= _LONGEST_S


class Losses:
    """The workloads that have lost pods."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Know of none yet; `clock` returns seconds, and never goes back."""
        self._clock = clock
        self._known: dict[Key, _Loss] = {}
        self._better_s = 0.0  # when one of them missed fewer than before, or lost more
        self._many = False

    def saw(self, observed: Observation) -> None:
        """Take note of a workload that is reconciled: while lost pods of it count, it may miss replicas."""
        now_s = self._clock()
        self._note(observed, now_s)
        if now_s - self._better_s >= _STANDSTILL_S:
            for loss in self._known.values():
                loss.waited_for = False
        waited_for = [one for one in self._known.values() if one.waited_for and not one.is_old(now_s)]
        missing = sum(one.missing for one in waited_for)
        self._many = missing > _MANY or (self._many and missing > 0)

    def _note(self, observed: Observation, now_s: float) -> None:
        key, pods = observed.key, [pod for twin in observed.twins for pod in twin.pods]
        lost = sum(pod.state.is_lost for pod in pods)
        if observed.source is None or not lost:
            self._known.pop(key, None)
            return
        missing = max(0, observed.source.replicas - sum(pod.available for pod in pods))
        before = self._known.get(key)
        if before is None or lost > before.lost:
            since_s = before.since_s if before is not None else now_s
            self._known[key] = _Loss(since_s, lost, min(lost, missing))  # a scale-out may miss many more
            self._better_s = now_s
            return
        # Somebody removes them already: a ReplicaSet that nobody lowers makes new ones in their place.
        before.waits = before.waits and lost == before.lost
        before.lost = lost
        if missing < before.missing:
            before.missing = missing
            self._better_s = now_s

    def hold(self, key: Key, planned: Plan) -> bool:
        """Whether what is planned waits for replicas that are missing, of this workload or of others."""
        loss = self._known.get(key)
        if loss is None or not loss.waits or planned.retries or not can_wait(planned):
            return False
        return self._many and not loss.is_old(self._clock())


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

"""Who goes first where many wait: by the priority of their pods, and in a namespace by rank.

The reconciler tells it what it saw of a workload; the queue of emergencies and the turns of voluntary moves
ask it. Priorities count between namespaces, since the cluster's administrator says who may use which, and for
every second workload only (`fair`), since most administrators say nothing; ranks are written by tenants, so
they count within a namespace only. Source: R51, docs/adr/0058 and 0109.
"""

from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Observation
from splitter.core.names import Key

Order = tuple[int, int]
"""The smaller goes first. The first number counts between namespaces, both within one."""

_UNKNOWN: Order = (0, Policy().rank)


class Ranking:
    """What was seen last of each workload."""

    def __init__(self) -> None:
        self._orders: dict[Key, Order] = {}

    def __len__(self) -> int:
        """Return how many are not like most."""
        return len(self._orders)

    def of(self, key: Key) -> Order:
        """Return the place of a workload; of one that was not seen yet, that of most."""
        return self._orders.get(key, _UNKNOWN)

    def saw(self, observed: Observation, policy: Policy) -> None:
        """Take note of a workload, or of its end."""
        priority = max((pod.priority for holder in observed.holders for pod in holder.pods), default=0)
        order = (-priority, policy.rank)
        if observed.source is None or order == _UNKNOWN:
            self._orders.pop(observed.key, None)
        else:
            self._orders[observed.key] = order

"""What recorded pods cost, from pods and nodes alone, beside what the Splits tell of the same time.

`suite` asks the Splits at both ends of a run and has the pods recorded in between. A replica costs from the
moment it is bound to a node until it is no more, has ended, or its node is no more. Nothing here is of
splitter's own counting but the words of a Split's `usage`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lab.fixtures.shop import CAPACITY
from lab.sandbox.recording import NodeChange, NodeSeen, PodChange, PodSeen, Recording
from lab.sandbox.timeline import Between
from lab.splits import ON_DEMAND, SPOT

USES = {"on-demand": ON_DEMAND, "spot": SPOT}
NEAR = 0.02
"""The part of a bill by which what is counted may differ from it."""
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Billed:
    """Replica-seconds of one workload on one pool."""

    namespace: str
    use: str
    bill_s: float
    counted_s: float

    @property
    def off(self) -> float:
        """By which part of the bill it is off; 1 where something is counted and nothing was billed."""
        if not self.bill_s:
            return float(bool(self.counted_s))
        return self.counted_s / self.bill_s - 1

    @property
    def near(self) -> bool:
        """Whether it is near enough."""
        return abs(self.off) <= NEAR


def bill(recording: Recording, namespace: str, between: Between) -> dict[str, float]:
    """Return the replica-seconds that all pods of a namespace have cost by pool within a stretch of time."""
    pods: dict[str, PodSeen] = {}
    nodes: dict[str, NodeSeen] = {}
    used: Counter[str] = Counter()
    begin_s, end_s = between.start.monotonic_s, between.end.monotonic_s
    now_s = begin_s
    seconds: dict[str, float] = dict.fromkeys(USES.values(), 0.0)
    for change in recording.changes:
        at_s = min(max(change.at.monotonic_s, begin_s), end_s)
        seconds = {use: total + used[use] * (at_s - now_s) for use, total in seconds.items()}
        now_s = at_s
        match change:
            case PodChange(pod=pod, deleted=deleted) if pod.namespace == namespace:
                pods.pop(pod.uid, None)
                if not deleted and pod.phase not in _ENDED:
                    pods[pod.uid] = pod
            case NodeChange(node=node, deleted=False):
                nodes[node.name] = node
            case NodeChange(node=node) if node.name in nodes and nodes[node.name].uid == node.uid:
                del nodes[node.name]
            case _:
                continue
        used = Counter(USES[nodes[pod.node].labels[CAPACITY]] for pod in pods.values() if pod.node in nodes)
    return {use: total + used[use] * (end_s - now_s) for use, total in seconds.items()}


def beside(
    namespace: str, billed: Mapping[str, float], before: Mapping[str, float], after: Mapping[str, float]
) -> list[Billed]:
    """Return each pool's bill beside what a Split counted at both ends."""
    counted = {use: after[use] - before[use] for use in billed}
    return [Billed(namespace, use, billed[use], counted[use]) for use in billed]

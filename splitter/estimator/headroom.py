"""How many replicas find room on the healthy nodes of both pools, node by node; pure.

A replica of a split workload becomes one of either twin, so a spot node is asked with the spot twin's
tolerations and any other node with the on-demand twin's. A node that is announced to go, or hinted at, has no
room (K1). Like `core.nodes.fit`, it knows nothing of anti-affinity, spread and volumes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from splitter.core.nodes.facts import Health, NodeState
from splitter.core.nodes.fit import NodeHeadroom, PodRequest, Toleration, count_headroom_on, may_run_on

ANYWHERE = Toleration(operator="Exists")


@dataclass(frozen=True, slots=True)
class ReplicaRequest:
    """What one replica asks of a node, as a pod of either twin."""

    on_demand: PodRequest
    spot: PodRequest

    @classmethod
    def of(cls, pod: PodRequest, spot_tolerations: tuple[Toleration, ...] = ()) -> "ReplicaRequest":
        """Return the replica that the twins make of a source's pod."""
        tolerations = (*pod.tolerations, *spot_tolerations)
        requirements = pod.requirements + len(spot_tolerations)
        return cls(pod, replace(pod, tolerations=tolerations, requirements=requirements))

    def on(self, node: NodeState) -> PodRequest:
        """Return what the twin asks for that runs on such a node."""
        return self.spot if node.is_spot else self.on_demand

    @property
    def comparisons(self) -> int:
        """With how much one node is compared."""
        return max(one.requirements + len(one.requests) for one in (self.on_demand, self.spot))


class Headroom:
    """What the healthy nodes have left; what is placed there is taken."""

    def __init__(self, nodes: Iterable[NodeHeadroom]) -> None:
        self._left = [one for one in nodes if one.node.health is Health.HEALTHY]

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self._left)

    def admitting(self, replicas: Sequence[ReplicaRequest]) -> "Headroom":
        """Return the headroom of those nodes that admit one of these replicas, to be taken for themselves."""
        return Headroom(
            one
            for one in self._left
            if any(may_run_on(replica.on(one.node), one.node) for replica in replicas)
        )

    def count(self, replica: ReplicaRequest) -> int:
        """Return how many such replicas fit."""
        return sum(self._on(replica, one) for one in self._left)

    def place(self, replica: ReplicaRequest, replicas: int) -> int:
        """Place up to so many replicas, and return how many found room."""
        left = replicas
        for at, one in enumerate(self._left):
            if left <= 0:
                break
            if fits := min(left, self._on(replica, one)):
                left -= fits
                self._left[at] = _with(one, replica.on(one.node).requests, fits)
        return replicas - left

    @staticmethod
    def _on(replica: ReplicaRequest, one: NodeHeadroom) -> int:
        pod = replica.on(one.node)
        return count_headroom_on(pod, one) if may_run_on(pod, one.node) else 0


def count_sets(headroom: Headroom, components: Sequence[tuple[ReplicaRequest, int]]) -> int:
    """Return how many sets of all these components fit, each with so many replicas.

    Several compete for the same nodes, so the number is found by trying (K3), with the scarcest first.
    """
    asked = [(replica, replicas) for replica, replicas in components if replicas > 0]
    by_scarcity = sorted(
        (headroom.count(replica) // replicas, at) for at, (replica, replicas) in enumerate(asked)
    )
    if not asked or len(asked) == 1:
        return by_scarcity[0][0] if asked else 0

    def fit(sets: int) -> bool:
        tried = headroom.admitting([replica for replica, _ in asked])
        wanted = [(asked[at][0], asked[at][1] * sets) for _, at in by_scarcity]
        return all(tried.place(replica, replicas) == replicas for replica, replicas in wanted)

    low, high = 0, by_scarcity[0][0]
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fit(middle) else (low, middle - 1)
    return low


def _with(one: NodeHeadroom, requests: Mapping[str, int], replicas: int) -> NodeHeadroom:
    wanted = {**requests, "pods": 1}
    used = {name: one.used.get(name, 0) + amount * replicas for name, amount in wanted.items()}
    return NodeHeadroom(one.node, {**one.used, **used})

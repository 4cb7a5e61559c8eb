"""A cluster in small: nodes that come and go, pods that take time to start, controllers that obey specs.

`replay` tells it what happens to nodes and which counts to hold; it tells how many replicas are where.
Pods are bound as soon as a node has a free slot; on-demand always has room. It decides nothing.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from splitter.core.rebalance import RebalanceInput

TERMINATION_S = 30.0
"""Kubernetes' default of terminationGracePeriodSeconds: what a pod is given to end."""


@dataclass(slots=True, eq=False)
class Pod:
    """One replica; `node` is None while it is Pending."""

    created_s: float
    ready_at_s: float | None = None
    node: str | None = None


@dataclass(slots=True)
class World:
    """The pods of one workload and the spot nodes they may use."""

    start: datetime
    on_demand_start_s: float
    spot_start_s: float
    slots_per_node: int
    visible: bool
    """Free slots can be seen before a pod is bound there (standing nodes, no autoscaler)."""
    notice_s: float
    """From a node's notice to its end, as its provider tells; 0: there is no notice."""
    doomed: dict[str, bool] = field(default_factory=dict)
    """Every spot node that is there; True while it is about to go."""
    on_demand: list[Pod] = field(default_factory=list)
    spot: list[Pod] = field(default_factory=list)
    clock_s: float = 0.0
    on_demand_spec: int = 0
    spot_spec: int = 0

    def is_ready(self, pod: Pod) -> bool:
        """Say whether a pod has had the time to start."""
        return pod.ready_at_s is not None and pod.ready_at_s <= self.clock_s

    def is_healthy(self, pod: Pod) -> bool:
        """Say whether a spot pod is on a node that is not doomed."""
        return pod.node is not None and self.doomed.get(pod.node) is False

    @property
    def serving(self) -> int:
        """Count the replicas that answer, on doomed nodes too."""
        on_spot = sum(pod.node in self.doomed for pod in self.spot if self.is_ready(pod))
        return on_spot + sum(map(self.is_ready, self.on_demand))

    @property
    def spot_serving(self) -> int:
        """Count the replicas that answer from spot."""
        return sum(pod.node in self.doomed for pod in self.spot if self.is_ready(pod))

    @property
    def spot_paid(self) -> int:
        """Count the spot replicas that have a node, and so are paid for."""
        return sum(pod.node in self.doomed for pod in self.spot)

    def observe(self, desired: int, max_surge: int, max_unavailable: int) -> RebalanceInput:
        """Count as `kube.observe` does: by the state of the pods' nodes."""
        bound = [pod for pod in self.spot if pod.node is not None]
        healthy = [pod for pod in bound if self.is_healthy(pod)]
        return RebalanceInput(
            now=self.start + timedelta(seconds=self.clock_s),
            desired=desired,
            max_surge=max_surge,
            max_unavailable=max_unavailable,
            on_demand_spec=self.on_demand_spec,
            on_demand_ready=sum(map(self.is_ready, self.on_demand)),
            spot_spec=self.spot_spec,
            spot_ready_since=tuple(
                self.start + timedelta(seconds=pod.ready_at_s)
                for pod in healthy
                if pod.ready_at_s is not None and self.is_ready(pod)
            ),
            spot_starting=sum(not self.is_ready(pod) for pod in healthy),
            spot_doomed=sum(self.doomed.get(pod.node or "") is True for pod in bound),
            spot_stop_after_s=self.notice_s - TERMINATION_S if self.notice_s > 0 else None,
            lost_node_uids=tuple(sorted({str(pod.node) for pod in bound if not self.is_healthy(pod)})),
            fit_spot=sum(self._free_slots().values()) if self.visible else 0,
        )

    def scale(self, on_demand: int, spot: int) -> list[float]:
        """Let controllers and scheduler act on these counts; return when the new pods become ready."""
        self.on_demand_spec, self.spot_spec = on_demand, spot
        self.spot = [pod for pod in self.spot if pod.node is None or pod.node in self.doomed]
        self.on_demand = self._scaled(self.on_demand, on_demand)
        self.spot = self._scaled(self.spot, spot)
        due_s = []
        for pod in self.on_demand:
            if pod.ready_at_s is None:
                pod.ready_at_s = self.clock_s + self.on_demand_start_s
                due_s.append(pod.ready_at_s)
        pending = [pod for pod in self.spot if pod.node is None]
        for pod, node in zip(pending, self._free_places(), strict=False):
            pod.node, pod.ready_at_s = node, self.clock_s + self.spot_start_s
            due_s.append(pod.ready_at_s)
        return due_s

    def _free_slots(self) -> dict[str, int]:
        taken: dict[str | None, int] = {}
        for pod in self.spot:
            taken[pod.node] = taken.get(pod.node, 0) + 1
        return {
            node: self.slots_per_node - taken.get(node, 0)
            for node, doomed in self.doomed.items()
            if not doomed and taken.get(node, 0) < self.slots_per_node
        }

    def _free_places(self) -> list[str]:
        """Return the free slots as the scheduler fills them: the node with the fewest of our pods first."""
        places = [
            (self.slots_per_node - free + turn, node)
            for node, free in self._free_slots().items()
            for turn in range(free)
        ]
        return [node for _, node in sorted(places, key=lambda place: place[0])]

    def _scaled(self, pods: list[Pod], spec: int) -> list[Pod]:
        """Keep what a ReplicaSet keeps: the bound, the ready, the not doomed (deletion cost), the old."""

        def worth(pod: Pod) -> tuple[bool, bool, bool, float]:
            doomed = self.doomed.get(pod.node or "", False)
            return (
                pod.node is not None or pod.ready_at_s is not None,
                self.is_ready(pod),
                not doomed,
                -pod.created_s,
            )

        kept = pods if len(pods) <= spec else sorted(pods, key=worth, reverse=True)[:spec]
        return kept + [Pod(self.clock_s) for _ in range(spec - len(kept))]

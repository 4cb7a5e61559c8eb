"""What the page looks at, in memory: workloads, nodes and who stands there, without a server."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from plugin.dashboard.paper_cluster import split
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.nodes.facts import CapacityClass, Health, NodeFacts, NodeState
from splitter.kube import parse
from splitter.kube.records import NodeRecord, PodRecord, SplitRecord
from splitter.plugin.dashboard.model import Model

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@dataclass
class PaperView:
    """Stands in for a `ClusterView`, and feeds a model whose clock the test sets."""

    now: datetime = NOON
    splits: dict[Key, SplitRecord] = field(default_factory=dict)
    nodes: list[NodeRecord] = field(default_factory=list)
    on_nodes: dict[str, dict[Key, int]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unseen: frozenset[str] = frozenset()
    versions: int = 0

    def __post_init__(self) -> None:
        """Have a model look here."""
        self.model = Model(lambda: self.now)
        self.model.look(self)  # type: ignore[arg-type] # as much of one as is read

    def sees(self, plural: str) -> bool:
        """Whether objects of a kind may be listed."""
        return plural not in self.unseen

    def split(self, key: Key) -> SplitRecord | None:
        """Return a workload."""
        return self.splits.get(key)

    def pods_of(self, split: SplitRecord) -> list[PodRecord]:
        """Return no pods."""
        assert split.source in self.splits
        return []

    def troubled_nodes(self) -> tuple[NodeRecord, ...]:
        """Return the nodes that are not healthy."""
        return tuple(one for one in self.nodes if one.state.health is not Health.HEALTHY)

    def splits_on(self, node: str) -> dict[Key, int]:
        """Return how many replicas of which workload stand on a node."""
        return self.on_nodes.get(node, {})

    def put(self, name: str, status: dict[str, Any] | None = None, **fields: Any) -> Key:  # noqa: ANN401 - as `split`
        """Write a workload, and tell the model; `status`: over what `fields` make of it."""
        raw = split(name, **{"since": self.now - timedelta(hours=10), **fields})
        self.versions += 1
        raw["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": str(self.versions)}
        raw["status"] |= status or {}
        record = parse.split(raw)
        self.splits[record.source] = record
        self.model.changed(record.source)
        return record.source

    def put_node(self, name: str, health: Health, *, spot: bool = True, **fields: Any) -> None:  # noqa: ANN401 - any field
        """Write a node."""
        capacity = CapacityClass.SPOT if spot else CapacityClass.ON_DEMAND
        state = replace(NodeState(name, name, capacity, health), **fields)
        self.nodes.append(NodeRecord("", name, 1, self.now, NodeFacts(name, name), state))

    def delete(self, key: Key) -> None:
        """Delete a workload, and tell the model."""
        del self.splits[key]
        self.model.changed(key)


def key_of(name: str, namespace: str = "shop") -> Key:
    """Return the key of a Deployment."""
    return Key(DEPLOYMENT, namespace, name)

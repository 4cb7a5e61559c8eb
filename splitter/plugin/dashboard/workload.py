"""What the second view says of one workload: its nodes with the replicas on them, by pool and zone.

Pure but for the model that it reads: nothing here renders.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, unique

from splitter.core.names import Key
from splitter.core.nodes.facts import Health
from splitter.core.replica import Pool
from splitter.kube.records import NodeRecord, PodRecord, SplitRecord
from splitter.plugin.dashboard.fleet import pool_of, zone_of
from splitter.plugin.dashboard.model import Model

_NODES = 200  # of one workload: more boxes are no picture
_HOT = "hot by real use"


@unique
class Shown(StrEnum):
    """How a replica is."""

    READY = "ready"
    STARTING = "starting"
    GOING = "going"
    LOST = "lost"
    PENDING = "pending"
    ENDING = "ending"


SIGNS = {
    Shown.READY: "",
    Shown.STARTING: "…",
    Shown.GOING: "!",
    Shown.LOST: "×",  # noqa: RUF001 (the sign that is meant)
    Shown.PENDING: "?",
    Shown.ENDING: "-",
}
WORDS = {
    Shown.READY: "ready",
    Shown.STARTING: "starting, or not ready",
    Shown.GOING: "its node is going",
    Shown.LOST: "its node is gone",
    Shown.PENDING: "has no node yet",
    Shown.ENDING: "is ending",
}


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica."""

    name: str
    shown: Shown
    detail: str


@dataclass(frozen=True, slots=True)
class Box:
    """A node with the replicas of this workload."""

    name: str
    pool: str
    zone: str
    health: str
    signal: str
    deadline: datetime | None
    replicas: tuple[Replica, ...]


@dataclass(frozen=True, slots=True)
class Zone:
    """The nodes of a pool in one zone."""

    name: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class PoolPicture:
    """A pool: its zones, and its replicas without a node."""

    name: str
    zones: tuple[Zone, ...]
    pending: tuple[Replica, ...]
    replicas: int


def picture(model: Model, split: SplitRecord) -> tuple[tuple[PoolPicture, ...], int]:
    """Return both pools as they are, and how many nodes are not shown."""
    by_node: dict[str | None, list[PodRecord]] = {}
    for pod in model.view.pods_of(split):
        if not pod.finished:
            by_node.setdefault(pod.node, []).append(pod)
    unplaced = by_node.pop(None, [])
    hot = frozenset(model.statuses[split.source].relief.hot_nodes)
    boxes = [_box(name, model.view.node(name or ""), pods, hot) for name, pods in by_node.items()]
    boxes.sort(key=lambda box: (box.pool, box.zone, box.name))
    left_out = max(0, len(boxes) - _NODES)
    pools = []
    for pool in Pool:
        own = [box for box in boxes[:_NODES] if box.pool == pool.value]
        pending = [pod for pod in unplaced if (pod.born or Pool.SPOT) is pool]
        pools.append(
            PoolPicture(
                pool.value,
                tuple(
                    Zone(name, tuple(box for box in own if box.zone == name))
                    for name in sorted({box.zone for box in own})
                ),
                tuple(Replica(pod.name, _without_node(pod), _detail(pod)) for pod in _by_name(pending)),
                sum(len(box.replicas) for box in own) + len(pending),
            )
        )
    return tuple(pools), left_out


def split_of(model: Model, key: Key) -> SplitRecord | None:
    """Return the Split of a workload, if it is shown."""
    return model.view.split(key) if key in model.statuses else None


def _by_name(pods: list[PodRecord]) -> list[PodRecord]:
    return sorted(pods, key=lambda pod: pod.name)


def _box(name: str | None, node: NodeRecord | None, pods: list[PodRecord], hot: Collection[str]) -> Box:
    if node is None:
        # Not seen: what its replicas were made for says which pool it is of.
        pool = next((pod.born.value for pod in pods if pod.born is not None), Pool.ON_DEMAND.value)
        health, zone, signal, deadline = "", "", "not seen here", None
    else:
        state = node.state
        pool, zone = pool_of(state), zone_of(state)
        health, signal, deadline = state.health.value, state.signal, state.deadline
        if state.name in hot:
            signal = f"{signal}, {_HOT}" if signal else _HOT
    replicas = tuple(Replica(pod.name, _on_node(pod, node), _detail(pod)) for pod in _by_name(pods))
    return Box(name or "", pool, zone, health, signal, deadline, replicas)


def _on_node(pod: PodRecord, node: NodeRecord | None) -> Shown:
    if pod.terminating:
        return Shown.ENDING
    health = node.state.health if node is not None else Health.HEALTHY
    if health is Health.GONE:
        return Shown.LOST
    if health is Health.DOOMED:
        return Shown.GOING
    return Shown.READY if pod.ready_since is not None else Shown.STARTING


def _without_node(pod: PodRecord) -> Shown:
    return Shown.ENDING if pod.terminating else Shown.PENDING


def _detail(pod: PodRecord) -> str:
    return f"{pod.trouble.reason}: {pod.trouble.detail}" if pod.trouble is not None else ""

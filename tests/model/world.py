"""One state of the explored world: the stories' cluster, splitter's process, the promises, the budget.

`key` says when two states are the same: versions count as fresh or stale, ages as one of three, pods as
what they are and not by their names. Time stands still at `NOW`; only `pass_time` lets it pass, and then
everything that was young is older than the grace, or than everything.
"""

import marshal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, cast

from model.cluster import APP, START, Cluster, Deployment, Node, Pod, ReplicaSet, StatefulSet, copied
from model.promises import NodeStatus
from splitter.core.actions import (
    Action,
    ApplyTwin,
    DeleteReplicaSet,
    DeleteTwin,
    DeleteUnboundPod,
    DeleteVanishedPod,
    LabelPod,
    OrphanPods,
    Park,
    PauseTwin,
    Reattach,
    RestoreTemplate,
    SaveReplicas,
    Scale,
    SetDeletionCost,
    SetPaused,
    StripOwnershipMark,
)
from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER, LABEL_SPLIT
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Observation
from splitter.core.plan import Plan, PolicyInForce

POLICY = Policy(on_demand_base=1, spot_percent=100)
MAJORITY = Policy(on_demand_base="majority")
NOW = 100_000
GRACE_S = 200  # longer than grace, settle, burst, step, release; shorter than a soak and ten minutes
FOREVER_S = 20_000  # longer than everything that splitter waits for
YOUNG_S = 400  # what is younger has not outlived a soak

Status = dict[str, object]


@dataclass(frozen=True)
class Config:
    """A workload, and what may happen to it in one run."""

    replicas: int = 2
    surge: int = 1
    unavailable: int = 0
    faults: tuple[str, ...] = ()
    faults_max: int = 1
    crashes: int = 0
    ordered: bool | None = None
    """Whether a StatefulSet is OrderedReady; None: it is a Deployment."""
    start: str = "labelled"
    """`labelled`: just now; `split`: on-boarded long ago; `given-back`: as that, and unlabelled just now."""
    late: bool = False
    """A node's event reaches splitter some steps later than everything else."""
    lingering: bool = False
    """Pods end when they like; otherwise at once, which nobody notices as long as nodes have room."""
    whole_reconciles: bool = False
    """Nobody acts between the look and the last write of a reconcile; otherwise between any two writes."""
    scheduled_late: bool = False
    """The scheduler is one of those who act in any order; otherwise it is always the next."""

    def __str__(self) -> str:
        """Return what the report calls it."""
        what = "+".join(self.faults) or "quiet"
        extra = "".join(
            f" {word}"
            for word, given in (
                ("crash", self.crashes),
                ("whole-reconciles", self.whole_reconciles),
                ("late", self.late),
                ("lingering", self.lingering),
                ("scheduled-late", self.scheduled_late),
            )
            if given
        )
        size = f"N{self.replicas} S{self.surge} U{self.unavailable}"
        if self.ordered is not None:
            size = f"N{self.replicas} {'OrderedReady' if self.ordered else 'Parallel'}"
        return f"{size} {self.start}: {self.faults_max} of {what}{extra}"


@dataclass
class World:
    """Everything that decides what may happen next."""

    cluster: Cluster
    pending: tuple[Action, ...] = ()
    last: tuple[Observation, Plan, PolicyInForce] | None = None
    report: Status | None = None
    """The status that the reconcile writes after its last action."""
    seen: NodeStatus | None = None
    seen_ceiling: int = 0
    excused: bool = False
    """The world did something after this reconcile looked, or something that it could not see."""
    allowance: int = 0
    awake: bool = False
    """Its last reconcile asked to be called again, which a crash forgets."""
    faults: tuple[str, ...] = ()
    crashes: int = 0
    quota: int | None = None
    nodes_seen: dict[str, Node] | None = field(default=None)
    """The nodes as splitter sees them while their events are late."""

    def copied(self) -> "World":
        """Return a copy that shares nothing that changes."""
        other = copied(self)
        other.cluster = self.cluster.copied()
        return other


def fresh(config: Config) -> World:
    """Return an unlabelled workload that has run for long, with nodes of both kinds."""
    cluster = Cluster(config.replicas, config.surge, config.unavailable, ordered=config.ordered)
    cluster.now, cluster.born = NOW, 1_000
    cluster.stalls_as_kubernetes = False  # it would stop a life that splitter has no part in
    for name, spot in (("od-a", False), ("spot-a", True), ("spot-b", True)):
        cluster.add_node(name, spot=spot, slots=40)
    return World(cluster, crashes=config.crashes, allowance=config.replicas + max(1, config.surge))


# Putting a world into its normal form.


def normalise(world: World, config: Config) -> None:
    """Let happen what happens at once, and rename what has a name by chance."""
    cluster = world.cluster
    for rs in cluster.replica_sets.values():
        rs.created = int(rs.uid.rpartition("-")[2])  # the order of birth is all that counts
    ended = [
        name for name, pod in cluster.pods.items() if not pod.active and _ends_at_once(cluster, pod, config)
    ]
    for name in ended:
        del cluster.pods[name]
    held = {pod.node for pod in cluster.pods.values()} | set(cluster.nodes) | set(world.nodes_seen or ())
    cluster.seen_nodes = {name: node for name, node in cluster.seen_nodes.items() if name in held}
    if cluster.split is not None:
        cluster.split.status = _kept(cluster.split.status)
    _rename_pods(world)


def _ends_at_once(cluster: Cluster, pod: Pod, config: Config) -> bool:
    if pod.node is None:
        return True
    node = cluster.nodes.get(pod.node)
    return not config.lingering and node is not None and node.ready


def _kept(status: Status) -> Status:
    """Return of a status what a later reconcile reads."""
    names = ("state", "conflict", "conflictingWriter", "writeConflicts", "memory")
    return {name: status[name] for name in names if name in status}


def kept_report(status: Status | None) -> Status | None:
    """Return of a status that is about to be written what a later reconcile reads."""
    return None if status is None else _kept(status)


def pod_form(pod: Pod) -> tuple[object, ...]:
    """Return everything about a pod but its name."""
    return (
        pod.owner,
        pod.node or "",
        -1 if pod.ready_since is None else NOW - pod.ready_since,
        NOW - pod.created,
        pod.ordinal,
        pod.active,
        -1 if pod.unschedulable_since is None else NOW - pod.unschedulable_since,
        pod.label.value if pod.label is not None else "",
        pod.hash,
        pod.template,
        pod.pool.value if pod.pool is not None else "",
        pod.cost or "",
        "-" if pod.cost_before is None else f"={pod.cost_before}",
    )


_ON_PODS = SetDeletionCost | DeleteVanishedPod | LabelPod | DeleteUnboundPod


def _rename_pods(world: World) -> None:
    cluster = world.cluster
    pods = sorted(cluster.pods.values(), key=pod_form)
    names: dict[str, str] = {}
    renamed: dict[str, Pod] = {}
    for number, pod in enumerate(pods):
        name = pod.name if pod.ordinal is not None else f"{pod.owner[4:] or 'free'}-p{number:02}"
        names[pod.name] = name
        pod.name, pod.uid = name, f"uid-{name}"
        renamed[name] = pod
    cluster.pods = renamed
    if any(isinstance(action, _ON_PODS) for action in world.pending):
        world.pending = tuple(_renamed(action, names) for action in world.pending)


def _renamed(action: Action, names: dict[str, str]) -> Action:
    if isinstance(action, _ON_PODS):
        name = names.get(action.pod, "gone")
        return replace(action, pod=name, uid=f"uid-{name}")
    return action


# When two worlds are the same.


def key(world: World) -> bytes:
    """Return a digest that is equal for worlds with the same future."""
    cluster = world.cluster
    order = sorted(cluster.replica_sets.values(), key=lambda rs: rs.created)
    ranks = {rs.uid: rank for rank, rs in enumerate(order)}
    owners = {one.uid: number for number, one in enumerate(cluster.deployments)}
    source, split = cluster.source, cluster.split
    form: Any = (
        _deployment(source),
        LABEL_SPLIT in source.labels,
        ANNOTATION_TAKEN_OVER in source.annotations,
        sorted(
            f"{name}={text}" for name, text in source.annotations.items() if name != ANNOTATION_TAKEN_OVER
        ),
        [(twin.edited, twin.edited and NOW - twin.edited_at) for _, twin in sorted(cluster.twins.items())],
        [(pool.value, _deployment(twin)) for pool, twin in sorted(cluster.twins.items())],
        [_replica_set(rs, owners) for rs in order],
        # Pods are sorted by their owner's uid, so by its birth, and then by what they are.
        [(_rank(pod, ranks), *pod_form(pod)[1:]) for pod in cluster.pods.values()],
        _nodes(cluster.nodes),
        _nodes(world.nodes_seen) if world.nodes_seen is not None else "",
        sorted(cluster.seen_nodes),
        (split.takes_over, split.replicas, _json(split.status)) if split is not None else "",
        [_action(world, action, ranks) for action in world.pending],
        "" if world.report is None else _json(world.report),
        split is not None and world.last is not None and _same_split(world),
        (world.seen.available, world.seen.serving) if world.seen is not None and world.pending else "",
        world.seen_ceiling if world.pending else 0,
        world.excused,
        world.allowance,
        world.awake,
        world.faults,
        world.crashes,
        -1 if world.quota is None else world.quota,
    )
    return blake2b(marshal.dumps(form, 2), digest_size=12).digest()


def _rank(pod: Pod, ranks: Mapping[str, int]) -> int | str:
    return ranks.get(pod.owner, 99) if pod.ordinal is None else pod.owner


def _same_split(world: World) -> bool:
    seen = world.last[0].split if world.last else None
    return seen is not None and world.cluster.split is not None and seen.uid == world.cluster.split.uid


def _deployment(one: Deployment) -> tuple[object, ...]:
    return (
        one.template,
        one.rendered_hash,
        one.made_of,
        one.robbed,
        one.replicas,
        one.max_surge,
        one.max_unavailable,
        one.observed_generation >= one.generation,
        one.paused,
        one.paused_by_us,
        one.lowered,
        one.status_replicas,
        one.status_updated,
        one.status_available,
        (one.partition, one.old_template, one.writer) if isinstance(one, StatefulSet) else (),
    )


def _replica_set(rs: ReplicaSet, owners: dict[str, int]) -> tuple[object, ...]:
    return (
        owners.get(rs.owner, 9),
        rs.template,
        APP in rs.labels,
        LABEL_SPLIT in rs.labels,
        rs.name,
        rs.hashes,
        rs.deleting,
        rs.spec,
        rs.controlled,
        rs.desired_replicas,
        rs.max_replicas,
        rs.status_replicas,
        rs.status_available,
        rs.marked,
    )


def _nodes(nodes: dict[str, Node]) -> list[tuple[object, ...]]:
    return sorted((node.name, node.doomed, node.ready) for node in nodes.values())


def _json(value: object) -> str:
    return repr(value)


def _action(  # noqa: C901, PLR0911 - one line a write
    world: World, action: Action, ranks: dict[str, int]
) -> tuple[object, ...]:
    """Return a write with its precondition as fresh or stale, and its object by rank."""
    cluster = world.cluster
    sets = {rs.name: rs for rs in cluster.replica_sets.values()}
    twins = {twin.name: twin for twin in cluster.twins.values()}

    def is_fresh(version: str | None, there: ReplicaSet | Deployment | None) -> str:
        if there is None:
            return "gone"
        return "any" if version is None else "fresh" if version == str(there.version) else "stale"

    kind = type(action).__name__
    match action:
        case SetPaused():
            return (kind, action.paused, is_fresh(action.resource_version, cluster.source))
        case SaveReplicas():
            return (kind, action.replicas, action.left, is_fresh(action.resource_version, cluster.source))
        case Scale():
            rs = sets.get(action.name)
            there = cluster.source if action.name == cluster.source.name else twins.get(action.name)
            version = is_fresh(action.resource_version, rs or there)
            return (kind, ranks[rs.uid] if rs else action.name, action.was, action.replicas, version)
        case Park() | Reattach() | DeleteReplicaSet() | OrphanPods():
            rs = sets.get(action.name)
            return (kind, ranks[rs.uid] if rs else 99, is_fresh(action.resource_version, rs))
        case StripOwnershipMark():
            rs = sets.get(action.name)
            return (kind, ranks[rs.uid] if rs else 99)
        case ApplyTwin():
            there = cluster.twins.get(action.pool)
            version = is_fresh(action.resource_version, there)
            numbers = (action.replicas, action.max_surge, action.max_unavailable, action.partition)
            return (kind, action.pool.value, action.hash, *numbers, version, action.resource_version is None)
        case RestoreTemplate():
            rs = sets.get(action.replica_set)
            version = is_fresh(action.resource_version, twins.get(action.twin))
            return (kind, action.twin, ranks[rs.uid] if rs else 99, version)
        case DeleteTwin():
            return (kind, action.name, any(twin.uid == action.uid for twin in twins.values()))
        case PauseTwin():
            version = is_fresh(action.resource_version, twins.get(action.name))
            return (kind, action.name, action.paused, version)
        case LabelPod() | DeleteUnboundPod():
            place = list(cluster.pods).index(action.pod) if action.pod in cluster.pods else 99
            return (kind, place, repr(getattr(action, "pool", "")))
        case SetDeletionCost() | DeleteVanishedPod():
            place = list(cluster.pods).index(action.pod) if action.pod in cluster.pods else 99
            cost = (
                repr((action.cost, action.remember)) if isinstance(action, SetDeletionCost) else action.node
            )
            return (kind, place, cost)
        case _:
            return (kind, repr(action))


# Time.


def pass_time(world: World, seconds: int) -> None:
    """Let everything get older, keeping only whether it is new, older than the grace, or than everything."""
    cluster = world.cluster

    def older(at: int) -> int:
        age = NOW - at + seconds
        return NOW - (GRACE_S if age <= YOUNG_S else FOREVER_S)

    for pod in cluster.pods.values():
        pod.created = older(pod.created)
        if pod.ready_since is not None:
            pod.ready_since = older(pod.ready_since)
        if pod.unschedulable_since is not None:
            pod.unschedulable_since = older(pod.unschedulable_since)
    for twin in cluster.twins.values():
        if twin.edited:
            twin.edited_at = older(twin.edited_at)
    if cluster.split is not None:
        cluster.split.status = _older_status(cluster, cluster.split.status, older)
    world.report = None


def _older_status(cluster: Cluster, status: Status, older: Callable[[int], int]) -> Status:
    def moved(text: str) -> str:
        at = round((datetime.fromisoformat(text) - START).total_seconds())
        return cluster.instant(older(at)).isoformat().replace("+00:00", "Z")

    changed = dict(status)
    if "writeConflicts" in status:
        changed["writeConflicts"] = [moved(text) for text in cast("list[str]", status["writeConflicts"])]
    memory = cast("Status", status.get("memory", {}))
    rebalance = dict(cast("Status", memory.get("rebalance", {})))
    for name in ("lastLoss", "upSince", "shortSince", "lastStep", "coverSince", "doomedSince"):
        if name in rebalance:
            rebalance[name] = moved(str(rebalance[name]))
    if "rebalance" in memory:
        changed["memory"] = {**memory, "rebalance": rebalance}
    return changed
